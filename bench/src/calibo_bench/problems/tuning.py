"""Models on real data, tuned by cross-validation with random splits, as users do it.

An evaluation draws the splits, and the seed of the model, so that its outcome is noisy. The truth of a point is the
mean of 30 such evaluations, with the same 30 draws for every point. Data come with scikit-learn or statsmodels, or from
the directory CALIBO_DATA.
"""

import gzip
import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibo.errors import InputError
from calibo.space import Categorical, Float, Int, Space
from calibo_bench.problems.data import data_file
from calibo_bench.problems.mnist import usps
from calibo_bench.problems.synthetic import Instance, Problem
from calibo_bench.problems.xgboost import pixels

__all__ = ["CONFIRMATION", "DEVELOPMENT", "Task"]

FOLDS = 3
REPEATS = 30  # cross-validations whose mean is the truth of a point
LEAST = 1e-6  # probability, so that a log loss is finite
NEWSGROUPS = ("newsgroups20/20news_bydate.jsonl.gz", "de84b0a957e58b34bc18d516dae80cb78e7ed09edd3c5f424e8b6b9e94b0353e")

Data = tuple[Any, NDArray[Any]]
"""Features, an array or a sparse matrix, and outcomes."""


@dataclass(frozen=True, eq=False)
class Task:
    """A model to tune."""

    name: str
    data: Callable[[], Data]
    model: Callable[[Mapping[str, Any], int], Any]
    """A scikit-learn estimator for active parameters and a seed."""

    loss: str
    """One of "log", "error" (per cent) and "rmse"."""

    space: Mapping[str, Any]
    conditions: Mapping[str, tuple[str, list[Any]]] = field(default_factory=dict)

    def problem(self) -> Problem:
        return Problem(f"cv-{self.name}", lambda _: self.instance)

    @property
    def instance(self) -> Instance:
        return _instance(self)

    def evaluate(self, params: Mapping[str, Any], seed: int) -> float:
        """The loss of one cross-validation, weighted by fold."""
        from sklearn.model_selection import KFold, StratifiedKFold

        x, y = _loaded(self.data)
        splitter = KFold if self.loss == "rmse" else StratifiedKFold
        splits = splitter(FOLDS, shuffle=True, random_state=seed).split(np.zeros(len(y)), y)
        losses = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of solvers that did not converge
            for train, test in splits:
                model = self.model(params, seed).fit(x[train], y[train])
                losses.append(_loss(self.loss, model, x[test], y[test]))
        return float(np.mean(losses))


@cache
def _loaded(data: Callable[[], Data]) -> Data:
    return data()


@cache
def _instance(task: Task) -> Instance:
    """One for all seeds, so that its range is estimated once."""
    space, known = Space(task.space), dict[str, float]()

    def evaluate(params: Mapping[str, Any], seed: int) -> float:
        return task.evaluate(made.active(params), seed)

    def truth(params: Mapping[str, Any]) -> float:
        name = repr(made.active(params))
        if name not in known:
            known[name] = float(np.mean([evaluate(params, 1_000_000 + k) for k in range(REPEATS)]))
        return known[name]

    made = Instance(
        space,
        lambda params: evaluate(params, 0),
        None,
        samples=32,
        drawn=lambda params, rng: evaluate(params, int(rng.integers(1_000_000))),
        truth=truth,
        conditions=task.conditions,
    )
    return made


def _loss(kind: str, model: Any, x: Any, y: NDArray[Any]) -> float:
    if kind == "rmse":
        return float(np.sqrt(np.mean((model.predict(x) - y) ** 2)))
    if kind == "error":
        return float(100.0 * np.mean(model.predict(x) != y))
    p = model.predict_proba(x)[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    return float(-np.log(np.clip(p, LEAST, 1.0)).mean())


# data


def _bundled(name: str, rows: int = 10_000) -> Callable[[], Data]:
    @cache
    def load() -> Data:
        import sklearn.datasets

        x, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
        chosen = np.random.default_rng(0).permutation(len(y))[:rows]
        return x[chosen], y[chosen]

    return load


def _survey(
    name: str, outcome: str, rows: int, change: Callable[[NDArray[Any]], NDArray[Any]] = np.asarray
) -> Callable[[], Data]:
    """A data set of statsmodels, without rows that lack a value."""

    @cache
    def load() -> Data:
        try:
            from statsmodels.api import datasets
        except ImportError:
            raise InputError("This data set needs statsmodels. Run `pip install calibo-bench[tuning]`.") from None
        table = getattr(datasets, name).load_pandas().data.dropna()
        y = change(table.pop(outcome).to_numpy())
        chosen = np.random.default_rng(0).permutation(len(y))[:rows]
        return table.to_numpy(dtype=float)[chosen], y[chosen]

    return load


def _usps() -> Data:
    digits = usps()
    return digits.x[:360].astype(float), digits.y[:360]


def _skin() -> Data:
    """Distinct colours: a random split of all pixels would share most of them."""
    x, y, _, _ = pixels()
    distinct = np.unique(np.column_stack([x, y]), axis=0)
    chosen = distinct[np.random.default_rng(0).permutation(len(distinct))[:1_200]]
    return chosen[:, :3] / 255.0, chosen[:, 3]


def _newsgroups() -> Data:
    """Word counts of 700 articles in four groups, without their headers."""
    from sklearn.feature_extraction.text import CountVectorizer

    wanted = ("comp.graphics", "rec.autos", "sci.med", "talk.politics.guns")
    path = data_file(*NEWSGROUPS, "the 20 Newsgroups home page, 20news-bydate.tar.gz, as JSON lines")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        articles = [entry for line in file if (entry := json.loads(line))["group"] in wanted]
    chosen = [articles[i] for i in np.random.default_rng(0).permutation(len(articles))[:700]]
    texts = [entry["text"].partition("\n\n")[2] for entry in chosen]
    counts = CountVectorizer(stop_words="english", min_df=2).fit_transform(texts)
    return counts.tocsr(), np.array([wanted.index(entry["group"]) for entry in chosen])


# models; imports are local, because scikit-learn takes a second to import


def _pipeline(*steps: Any) -> Any:
    from sklearn.pipeline import make_pipeline

    return make_pipeline(*(step for step in steps if step is not None))


def _scaler(name: str = "standard") -> Any:
    from sklearn.preprocessing import MinMaxScaler, StandardScaler

    return {"standard": StandardScaler(), "range": MinMaxScaler(), "none": None}[name]


def _support_vector_regression(params: Mapping[str, Any], _: int) -> Any:
    from sklearn.svm import SVR

    return _pipeline(_scaler(), SVR(C=params["C"], gamma=params["gamma"], epsilon=params["epsilon"]))


def _boosted(params: Mapping[str, Any], seed: int) -> Any:
    try:
        from xgboost import XGBClassifier
    except ImportError:
        raise InputError("Boosting needs XGBoost. Run `pip install calibo-bench[tuning]`.") from None
    return XGBClassifier(n_jobs=1, random_state=seed, tree_method="hist", verbosity=0, **params)


def _extra_trees(params: Mapping[str, Any], seed: int) -> Any:
    from sklearn.ensemble import ExtraTreesClassifier

    return ExtraTreesClassifier(
        params["trees"],
        max_depth=params["depth"],
        min_samples_leaf=params["leaf"],
        max_features=params["features"],
        criterion=params["criterion"],
        random_state=seed,
    )


def _classifier(params: Mapping[str, Any], seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.tree import DecisionTreeClassifier

    if params["kind"] == "neighbors":
        model = KNeighborsClassifier(params["neighbors"], weights=params["weights"], p=params["p"])
    elif params["kind"] == "logistic":
        model = LogisticRegression(C=params["C"], max_iter=60)
    else:
        model = DecisionTreeClassifier(max_depth=params["depth"], min_samples_leaf=params["leaf"], random_state=seed)
    return _pipeline(_scaler(params["scaler"]), model)


def _kernel_ridge(params: Mapping[str, Any], _: int) -> Any:
    from sklearn.kernel_ridge import KernelRidge

    degree = params.get("degree", 3)
    return _pipeline(
        _scaler(), KernelRidge(alpha=params["alpha"], gamma=params["gamma"], kernel=params["kernel"], degree=degree)
    )


def _neighbors(params: Mapping[str, Any], seed: int) -> Any:
    from sklearn.decomposition import PCA
    from sklearn.neighbors import KNeighborsClassifier

    model = KNeighborsClassifier(params["neighbors"], weights=params["weights"], metric=params["metric"])
    return _pipeline(PCA(params["components"], random_state=seed), model)


def _reduced_svm(params: Mapping[str, Any], seed: int) -> Any:
    from sklearn.decomposition import PCA
    from sklearn.svm import SVC

    model = SVC(C=params["C"], gamma=params["gamma"])
    return _pipeline(PCA(params["components"], whiten=params["whiten"] == "yes", random_state=seed), model)


def _spline_ridge(params: Mapping[str, Any], _: int) -> Any:
    from sklearn.linear_model import Ridge
    from sklearn.preprocessing import SplineTransformer

    splines = SplineTransformer(
        params["knots"], degree=params["degree"], knots=params["placing"], extrapolation="constant"
    )
    return _pipeline(splines, Ridge(params["alpha"]))


def _features_and_logistic(params: Mapping[str, Any], seed: int) -> Any:
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import LogisticRegression

    features = Nystroem(gamma=params["gamma"], n_components=params["components"], random_state=seed)
    return _pipeline(_scaler(), features, LogisticRegression(C=params["C"], max_iter=60))


def _text_classifier(params: Mapping[str, Any], seed: int) -> Any:
    from sklearn.feature_extraction.text import TfidfTransformer
    from sklearn.linear_model import SGDClassifier
    from sklearn.naive_bayes import ComplementNB, MultinomialNB

    weights = TfidfTransformer(
        norm=None if params["norm"] == "none" else params["norm"],
        use_idf=params["idf"] == "yes",
        sublinear_tf=params["sublinear"] == "yes",
    )
    if params["kind"] == "linear":
        model: Any = SGDClassifier(params["loss"], alpha=params["penalty"], max_iter=15, tol=None, random_state=seed)
    else:
        model = (ComplementNB if params["kind"] == "complement" else MultinomialNB)(alpha=params["smoothing"])
    return _pipeline(weights, model)


YES = Categorical(["yes", "no"])
BOOSTED = {
    "n_estimators": Int(5, 40, log=True),
    "learning_rate": Float(1e-2, 1.0, log=True),
    "max_depth": Int(1, 8),
    "min_child_weight": Float(0.1, 20.0, log=True),
    "subsample": Float(0.3, 1.0),
    "colsample_bytree": Float(0.2, 1.0),
    "reg_lambda": Float(1e-3, 100.0, log=True),
}

DEVELOPMENT: tuple[Task, ...] = (
    Task(
        "svr-diabetes",
        _bundled("diabetes"),
        _support_vector_regression,
        "rmse",
        {"C": Float(1e-1, 1e4, log=True), "gamma": Float(1e-5, 1.0, log=True), "epsilon": Float(1e-1, 100.0, log=True)},
    ),
    Task("xgboost-cancer", _bundled("breast_cancer", 300), _boosted, "log", BOOSTED),
    Task(
        "trees-wine",
        _bundled("wine"),
        _extra_trees,
        "log",
        {
            "trees": Int(2, 20, log=True),
            "depth": Int(1, 12),
            "leaf": Int(1, 20, log=True),
            "features": Float(0.1, 1.0),
            "criterion": Categorical(["gini", "entropy"]),
        },
    ),
    Task(
        "pipeline-cancer",
        _bundled("breast_cancer", 300),
        _classifier,
        "log",
        {
            "scaler": Categorical(["standard", "range", "none"]),
            "kind": Categorical(["neighbors", "logistic", "tree"]),
            "neighbors": Int(1, 50, log=True),
            "weights": Categorical(["uniform", "distance"]),
            "p": Float(1.0, 3.0),
            "C": Float(1e-4, 1e3, log=True),
            "depth": Int(1, 10),
            "leaf": Int(1, 50, log=True),
        },
        {
            "neighbors": ("kind", ["neighbors"]),
            "weights": ("kind", ["neighbors"]),
            "p": ("kind", ["neighbors"]),
            "C": ("kind", ["logistic"]),
            "depth": ("kind", ["tree"]),
            "leaf": ("kind", ["tree"]),
        },
    ),
    Task(
        "ridge-diabetes",
        _bundled("diabetes", 300),
        _kernel_ridge,
        "rmse",
        {
            "alpha": Float(1e-3, 1e2, log=True),
            "gamma": Float(1e-4, 1.0, log=True),
            "kernel": Categorical(["rbf", "laplacian", "polynomial"]),
            "degree": Int(1, 4),
        },
        {"degree": ("kernel", ["polynomial"])},
    ),
    Task(
        "neighbors-digits",
        _bundled("digits", 500),
        _neighbors,
        "error",
        {
            "components": Int(2, 40),
            "neighbors": Int(1, 30, log=True),
            "weights": Categorical(["uniform", "distance"]),
            "metric": Categorical(["euclidean", "manhattan", "chebyshev", "cosine"]),
        },
    ),
)
"""Anything may be tried on these."""

CONFIRMATION: tuple[Task, ...] = (
    Task(
        "svm-usps",
        _usps,
        _reduced_svm,
        "error",
        {
            "components": Int(2, 60, log=True),
            "whiten": YES,
            "C": Float(1e-2, 1e3, log=True),
            "gamma": Float(1e-5, 1.0, log=True),
        },
    ),
    Task("xgboost-affairs", _survey("fair", "affairs", 1_000, lambda y: (y > 0).astype(int)), _boosted, "log", BOOSTED),
    Task(
        "trees-votes",
        _survey("anes96", "vote", 1_000, lambda y: y.astype(int)),
        _extra_trees,
        "log",
        {
            "trees": Int(2, 20, log=True),
            "depth": Int(1, 16),
            "leaf": Int(1, 60, log=True),
            "features": Float(0.1, 1.0),
            "criterion": Categorical(["gini", "entropy", "log_loss"]),
        },
    ),
    Task(
        "splines-visits",
        _survey("randhie", "mdvis", 1_500, lambda y: np.log1p(y.astype(float))),
        _spline_ridge,
        "rmse",
        {
            "knots": Int(2, 30, log=True),
            "degree": Int(1, 4),
            "placing": Categorical(["uniform", "quantile"]),
            "alpha": Float(1e-3, 1e4, log=True),
        },
    ),
    Task(
        "features-skin",
        _skin,
        _features_and_logistic,
        "log",
        {"gamma": Float(1e-3, 1e2, log=True), "components": Int(3, 60, log=True), "C": Float(1e-3, 1e4, log=True)},
    ),
    Task(
        "pipeline-newsgroups",
        _newsgroups,
        _text_classifier,
        "error",
        {
            "norm": Categorical(["l1", "l2", "none"]),
            "idf": YES,
            "sublinear": YES,
            "kind": Categorical(["linear", "naive", "complement"]),
            "loss": Categorical(["hinge", "log_loss", "modified_huber"]),
            "penalty": Float(1e-6, 1e-1, log=True),
            "smoothing": Float(1e-3, 10.0, log=True),
        },
        {
            "loss": ("kind", ["linear"]),
            "penalty": ("kind", ["linear"]),
            "smoothing": ("kind", ["naive", "complement"]),
        },
    ),
)
"""Other data sets: a finished default is confirmed on these, once."""
