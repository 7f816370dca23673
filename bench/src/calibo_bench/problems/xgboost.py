"""XGBoost on the Skin Segmentation data of UCI: OPT20 Sec. 4.3.

The data are not part of the package: see `calibo_bench.problems.data`.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from calibo.arrays import Array
from calibo.errors import InputError
from calibo.space import Float, Int, Parameter, Space
from calibo_bench.problems.data import Contents, data_arrays
from calibo_bench.problems.synthetic import Instance, Problem

__all__ = ["BOOSTING", "error_rate"]

SKIN = Contents(
    "the UCI Machine Learning Repository, dataset 229, Skin_NonSkin.txt: blue, green, red and 1 for skin, 2 for other, "
    "uint8 (245057, 4)",
    "357dd600dc24bae68d8d0215373834ad11a2223a91a8c360b412b74c79974b9c",
)
TRAINED = 0.15  # share of the pixels for training; the others are held out
ROUNDS = 100

SPACE: dict[str, Parameter] = {
    "min_child_weight": Int(1, 20),
    "colsample_bytree": Float(0.1, 1.0),
    "max_depth": Int(5, 15),
    "subsample": Float(0.5, 1.0),
    "alpha": Float(0.0, 10.0),
    "gamma": Float(0.0, 10.0),
}


@cache
def pixels() -> tuple[Array, Array, Array, Array]:
    """Colours and skin labels, for training and held out; the random split is always the same."""
    (data,) = data_arrays("skin/skin_nonskin.npz", SKIN, ("data",))
    order = np.random.default_rng(0).permutation(len(data))
    x, y = data[order, :3].astype(float), (data[order, 3] == 1).astype(float)
    n = round(TRAINED * len(x))
    return x[:n], y[:n], x[n:], y[n:]


def error_rate(parts: tuple[Array, Array, Array, Array], params: Mapping[str, Any]) -> float:
    """Error in per cent on the held-out pixels."""
    xgboost = _package()
    x, y, held_out, truth = parts
    settings = {"objective": "binary:logistic", "tree_method": "hist", "nthread": 1, "seed": 0, **params}
    model = xgboost.train(settings, xgboost.DMatrix(x, y, nthread=1), ROUNDS)
    found = model.predict(xgboost.DMatrix(held_out, nthread=1))
    return float(100.0 * np.mean((found > 0.5) != (truth > 0.5)))


def _package() -> Any:
    try:
        import xgboost
    except ImportError:
        raise InputError("Boosting needs XGBoost. Run `pip install calibo-bench[papers]`.") from None
    return xgboost


@cache
def _instance() -> Instance:
    parts = pixels()
    return Instance(Space(SPACE), lambda params: error_rate(parts, params), None, samples=16, bound=0.0)


BOOSTING = (Problem("xgboost-skin", lambda _: _instance()),)
