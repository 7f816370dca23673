"""Surrogates: recipes that turn observations into something that forecasts."""

from calibo.surrogate.bagging import Bagged, FittedBag
from calibo.surrogate.choice import FittedChoice, ModelChoice
from calibo.surrogate.fitted import FittedGaussianProcess
from calibo.surrogate.gaussian import GaussianProcess, forget_fits
from calibo.surrogate.known import FittedKnownOptimum, KnownOptimum
from calibo.surrogate.local import FittedLocalScale, LocalScale
from calibo.surrogate.outcomes import (
    LearnedAsinh,
    LearnedBoxCox,
    LearnedTanh,
    LearnedYeoJohnson,
    Logarithm,
    Untransformed,
)
from calibo.surrogate.priors import FLAT, Priors
from calibo.surrogate.protocols import FittedSurrogate, Surrogate
from calibo.surrogate.transfer import FittedTransfer, Source, Transfer

__all__ = [
    "FLAT",
    "Bagged",
    "FittedBag",
    "FittedChoice",
    "FittedGaussianProcess",
    "FittedKnownOptimum",
    "FittedLocalScale",
    "FittedSurrogate",
    "FittedTransfer",
    "GaussianProcess",
    "KnownOptimum",
    "LearnedAsinh",
    "LearnedBoxCox",
    "LearnedTanh",
    "LearnedYeoJohnson",
    "LocalScale",
    "Logarithm",
    "ModelChoice",
    "Priors",
    "Source",
    "Surrogate",
    "Transfer",
    "Untransformed",
    "forget_fits",
]
