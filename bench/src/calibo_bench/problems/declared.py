"""Define-by-run problems for Optuna trials: conditional parameters, mixed types, constraints."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from math import log, log2, log10, pi, sin
from typing import Any

import numpy as np
from optuna.trial import Trial

from calibo.arrays import Array
from calibo_bench.problems.functions import function

__all__ = ["DECLARED", "Declared"]


@dataclass(frozen=True)
class Declared:
    """An objective, to be minimised."""

    objective: Callable[[Trial], float]
    kind: str
    measure: str
    """What its value measures."""


def _above(name: str, u: Array) -> float:
    """The regret of a textbook function at a point of the unit cube."""
    made = function(name)
    return float(made(made.low + (made.high - made.low) * u) - made.minimum)


def three_functions(trial: Trial) -> float:
    """One of three functions, each with its own parameters, and one shared parameter; the minimum is 0."""
    shared = trial.suggest_float("shared", 0, 1)
    kind = trial.suggest_categorical("kind", ["branin", "hartmann3", "forrester"])
    d = {"branin": 2, "hartmann3": 3, "forrester": 1}[kind]
    x = np.array([trial.suggest_float(f"{kind}{j}", 0, 1) for j in range(d)])
    offset = {"branin": 0.0, "hartmann3": 0.5, "forrester": 1.0}[kind]
    value = forrester(x) if kind == "forrester" else _above(kind, x) / (10 if kind == "branin" else 1)
    return float(offset + value + (shared - 0.3) ** 2)


def forrester(x: Any) -> float:
    return float((6 * x[0] - 2) ** 2 * sin(12 * x[0] - 4) + 6.02074)


def three_classifiers(trial: Trial) -> float:
    """Cross-validated error in per cent of one of three classifiers on bundled data."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_score
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    kind = trial.suggest_categorical("kind", ["svm", "neighbors", "logistic"])
    if kind == "svm":
        model = SVC(
            C=trial.suggest_float("svm_C", 1e-3, 1e3, log=True), gamma=trial.suggest_float("gamma", 1e-5, 10, log=True)
        )
    elif kind == "neighbors":
        model = KNeighborsClassifier(
            trial.suggest_int("neighbors", 1, 60, log=True),
            weights=trial.suggest_categorical("weights", ["uniform", "distance"]),
            p=trial.suggest_float("p", 1.0, 3.0),
        )
    else:
        model = LogisticRegression(C=trial.suggest_float("logistic_C", 1e-4, 1e3, log=True), max_iter=200)
    pixels, digits = _digits()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of solvers that did not converge
        scores = cross_val_score(make_pipeline(StandardScaler(), model), pixels, digits, cv=3)
    return float(100 * (1 - scores.mean()))


@cache
def _digits() -> Any:
    from sklearn.datasets import load_digits

    pixels, digits = load_digits(return_X_y=True)
    return pixels[:400], digits[:400]


def mixed(trial: Trial) -> float:
    """Interacting floats, integers, log scales and categories; the minimum is 0."""
    rate = log10(trial.suggest_float("rate", 1e-5, 1.0, log=True))
    units = log2(trial.suggest_int("units", 1, 1024, log=True))
    layers = trial.suggest_int("layers", 1, 8)
    batch = trial.suggest_int("batch", 16, 256, step=16)
    dropout = trial.suggest_float("dropout", 0.0, 0.9, step=0.1)
    kind = trial.suggest_categorical("activation", ["relu", "gelu", "tanh", "selu"])
    best_rate = -2.0 - 0.25 * (layers - 3) - {"relu": 0.0, "gelu": 0.3, "tanh": 0.8, "selu": 0.5}[kind]
    width = (units - 6.0 - 0.5 * (3 - layers)) ** 2 / 4
    other = 0.3 * abs(layers - 3) + 2 * (dropout - 0.2) ** 2 + 0.1 * (log(batch / 64)) ** 2
    return float((rate - best_rate) ** 2 + width + other + {"relu": 0.2, "gelu": 0.0, "tanh": 0.5, "selu": 0.3}[kind])


def boosted_trees(trial: Trial) -> float:
    """Cross-validated log loss of gradient boosted trees on bundled data."""
    from sklearn.datasets import load_wine
    from sklearn.ensemble import GradientBoostingClassifier
    from sklearn.model_selection import cross_val_predict

    model = GradientBoostingClassifier(
        n_estimators=trial.suggest_int("trees", 2, 64, log=True),
        learning_rate=trial.suggest_float("rate", 1e-3, 1.0, log=True),
        max_depth=trial.suggest_int("depth", 1, 8),
        subsample=trial.suggest_float("subsample", 0.3, 1.0),
        max_features=trial.suggest_categorical("features", ["sqrt", "log2", "all"]).replace("all", "") or None,
        random_state=0,
    )
    x, y = load_wine(return_X_y=True)
    probabilities = cross_val_predict(model, x, y, cv=3, method="predict_proba")
    return float(-np.log(np.maximum(probabilities[np.arange(len(y)), y], 1e-3)).mean())


def wave_and_disk(trial: Trial) -> float:
    """Minimise x + y beyond a wave and inside a disk; the minimum is 0.5998 (Gramacy et al. 2016)."""
    x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
    trial.set_constraint("wave", 1.5 - x - 2 * y - 0.5 * sin(2 * pi * (x**2 - 2 * y)))
    trial.set_constraint("disk", x**2 + y**2 - 1.5)
    return x + y - 0.599788


def limited_hartmann(trial: Trial) -> float:
    """Hartmann6 with the sum of four parameters at most 1.2; values relative to the unconstrained minimum."""
    x = np.array([trial.suggest_float(f"x{j}", 0, 1) for j in range(6)])
    trial.set_constraint("sum", float(x[:4].sum() - 1.2))
    return _above("hartmann6", x)


DECLARED: Mapping[str, Declared] = {
    "three functions": Declared(three_functions, "define-by-run, `if` on a categorical", "regret"),
    "three classifiers": Declared(three_classifiers, "define-by-run, `if` on a categorical", "error in per cent"),
    "mixed": Declared(mixed, "mixed, with log ints", "regret"),
    "boosted trees": Declared(boosted_trees, "mixed, with log ints", "log loss"),
    "wave and disk": Declared(wave_and_disk, "constrained", "regret of the best feasible value"),
    "Hartmann6 with a limit": Declared(
        limited_hartmann, "constrained", "best feasible value above Hartmann6's minimum"
    ),
}
