"""scikit-learn models on its bundled data, tuned by cross-validation; under a second per evaluation."""

import warnings
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from calibo.space import Categorical, Float, Int, Parameter, Space
from calibo_bench.problems.synthetic import Instance, Problem

__all__ = ["TUNING"]


@cache
def _data(name: str, rows: int) -> Any:
    import sklearn.datasets

    x, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
    step = max(len(x) // rows, 1)  # strided, so that all classes are present
    return x[::step], y[::step]


def _error(model: Any, name: str, rows: int, scoring: str) -> float:
    """Cross-validated loss: smaller is better."""
    from sklearn.model_selection import cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x, y = _data(name, rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of solvers that did not converge
        return -float(cross_val_score(make_pipeline(StandardScaler(), model), x, y, cv=3, scoring=scoring).mean())


def _svm(params: Mapping[str, Any]) -> float:
    from sklearn.svm import SVC

    return _error(SVC(C=params["C"], gamma=params["gamma"]), "digits", 450, "accuracy")


def _network(params: Mapping[str, Any]) -> float:
    from sklearn.neural_network import MLPClassifier

    model = MLPClassifier(
        (params["units"],),
        activation=params["activation"],
        alpha=params["alpha"],
        learning_rate_init=params["rate"],
        max_iter=40,
        random_state=0,
    )
    return _error(model, "wine", 178, "neg_log_loss")


def _boosting(params: Mapping[str, Any]) -> float:
    from sklearn.ensemble import GradientBoostingRegressor

    model = GradientBoostingRegressor(
        n_estimators=params["trees"],
        learning_rate=params["rate"],
        max_depth=params["depth"],
        subsample=params["subsample"],
        random_state=0,
    )
    return _error(model, "diabetes", 442, "neg_root_mean_squared_error")


def _forest(params: Mapping[str, Any]) -> float:
    from sklearn.ensemble import RandomForestClassifier

    model = RandomForestClassifier(
        params["trees"],
        max_depth=params["depth"],
        min_samples_leaf=params["leaf"],
        max_features=params["features"],
        criterion=params["criterion"],
        random_state=0,
    )
    return _error(model, "breast_cancer", 569, "neg_log_loss")


def _ridge(params: Mapping[str, Any]) -> float:
    from sklearn.kernel_ridge import KernelRidge

    model = KernelRidge(alpha=params["alpha"], gamma=params["gamma"], kernel=params["kernel"])
    return _error(model, "diabetes", 442, "neg_root_mean_squared_error")


def _problem(name: str, value: Callable[[Mapping[str, Any]], float], space: Mapping[str, Parameter]) -> Problem:
    return Problem(f"tune-{name}", lambda _: Instance(Space(space), value, None, samples=16))


TUNING = (
    _problem("svm", _svm, {"C": Float(1e-3, 1e3, log=True), "gamma": Float(1e-5, 10, log=True)}),
    _problem(
        "network",
        _network,
        {
            "units": Int(2, 64, log=True),
            "activation": Categorical(["relu", "tanh", "logistic"]),
            "alpha": Float(1e-6, 1.0, log=True),
            "rate": Float(1e-4, 0.3, log=True),
        },
    ),
    _problem(
        "boosting",
        _boosting,
        {
            "trees": Int(5, 80, log=True),
            "rate": Float(1e-2, 1.0, log=True),
            "depth": Int(1, 6),
            "subsample": Float(0.3, 1.0),
        },
    ),
    _problem(
        "forest",
        _forest,
        {
            "trees": Int(5, 40, log=True),
            "depth": Int(1, 12),
            "leaf": Int(1, 20, log=True),
            "features": Float(0.1, 1.0),
            "criterion": Categorical(["gini", "entropy"]),
        },
    ),
    _problem(
        "ridge",
        _ridge,
        {
            "alpha": Float(1e-4, 1e3, log=True),
            "gamma": Float(1e-5, 1.0, log=True),
            "kernel": Categorical(["rbf", "laplacian"]),
        },
    ),
)
