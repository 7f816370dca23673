"""Surrogates: recipes that turn observations into something that forecasts."""

from calibo.surrogate.choice import FittedChoice, ModelChoice
from calibo.surrogate.gaussian import FLAT, FittedGaussianProcess, GaussianProcess, Priors
from calibo.surrogate.outcomes import LearnedAsinh, LearnedBoxCox, LearnedYeoJohnson, Untransformed
from calibo.surrogate.protocols import FittedSurrogate, Surrogate

__all__ = [
    "FLAT",
    "FittedChoice",
    "FittedGaussianProcess",
    "FittedSurrogate",
    "GaussianProcess",
    "LearnedAsinh",
    "LearnedBoxCox",
    "LearnedYeoJohnson",
    "ModelChoice",
    "Priors",
    "Surrogate",
    "Untransformed",
]
