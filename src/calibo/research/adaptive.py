"""A confidence bound with a guarantee for unknown hyperparameters, by assuming ever rougher functions [BER19].

| symbol | meaning |
|---|---|
| t, d | observations, dimension |
| B_0, B_t | initial and current bound on the norm of the function: B_t = B_0 g^d |
| g | t^(growth / d): fitted lengthscales are divided by it, so that the function class grows |
| sigma, I | noise relative to the prior standard deviation, and information gain: (log det K - sum log noise) / 2 |
| beta^(1/2) | B_t + 4 sigma sqrt(I + 1 + log(1 / delta)): standard deviations below the mean |
"""

from dataclasses import dataclass
from math import log, sqrt
from typing import ClassVar

import numpy as np

from calibo.acquisition.base import Acquisition, ForecastLandscape, Landscape
from calibo.acquisition.bounds import ScoreCriterion
from calibo.calibration import Recalibrator
from calibo.errors import InputError, require_number
from calibo.forecasts import CalibrationMap
from calibo.gp import linalg
from calibo.gp.process import Process
from calibo.models import FittedGaussianProcess, FittedSurrogate, GaussianProcess, Surrogate
from calibo.observations import Observations
from calibo.parts import register

LEAST_NOISE = 1e-8  # relative to the prior variance: without noise the information gain is infinite


@register("adaptive-lcb")
@dataclass(frozen=True)
class AdaptiveLowerBound(Acquisition):
    """A lower confidence bound whose lengthscales shrink and whose weight grows with the number of observations.

    [BER19] leaves both growth rates to the user. Here one exponent sets both, so that the norm bound grows as t^growth
    in every dimension.
    """

    bound: float = 2.0
    """B_0: the initial weight of the standard deviation."""

    growth: float = 0.25
    delta: float = 0.1

    def __post_init__(self) -> None:
        for name in ("bound", "growth"):
            require_number(name, getattr(self, name), "a number of at least 0", least=0.0)
        require_number("delta", self.delta, "a number between 0 and 1", above=0.0, below=1.0)

    reads_one_model: ClassVar[bool] = True

    def check(self, surrogate: Surrogate, recalibrator: Recalibrator) -> None:
        if not isinstance(surrogate, GaussianProcess):
            raise InputError(
                f"`surrogate` must be a GaussianProcess, whose lengthscales the adaptive bound shortens, but got a "
                f"{type(surrogate).__name__}. Start with 'plain' or 'papers-base', or add '+single' before it."
            )

    def prepare(self, observations: Observations, fitted: FittedSurrogate, map: CalibrationMap) -> Landscape:
        assert isinstance(fitted, FittedGaussianProcess), "see check"
        t, d = max(len(observations), 1), max(int(observations.cube.free.sum()), 1)
        shortened = fitted.with_lengthscales_divided_by(t ** (self.growth / d))
        weight = self.bound * t**self.growth + max(self._noise(process) for process in shortened.processes)
        return ForecastLandscape(shortened, ScoreCriterion(float(map.inverse(-weight))))

    def _noise(self, process: Process) -> float:
        prior, _ = process.kernel.diagonal(process.theta[:-2], process.x)
        variance = max(float(prior.mean()), 1e-300)  # a linear kernel has zero variance at the centre
        noise = np.maximum(process.noise, LEAST_NOISE * variance)
        information = 0.5 * (linalg.log_determinant(process.root) - float(np.log(noise).sum()))
        sigma = sqrt(float(np.median(noise)) / variance)
        return 4.0 * sigma * sqrt(max(information, 0.0) + 1.0 - log(self.delta))
