"""Negated lower confidence bounds on the outcome."""

from dataclasses import dataclass
from math import isfinite, log, pi, sqrt
from numbers import Real
from typing import Literal

from calibo.acquisition.base import Acquisition, Criterion, ForecastLandscape, Landscape
from calibo.arrays import Array
from calibo.errors import InputError
from calibo.forecasts import CalibrationMap, Forecast
from calibo.models import FittedSurrogate
from calibo.observations import Observations
from calibo.parts import register


@register("lcb")
@dataclass(frozen=True)
class LowerBound(Acquisition):
    """Negated lower confidence bound: the outcome ``kappa`` standard scores below the median."""

    kappa: float | Literal["srinivas"] = 2.0
    """Fixed, or "srinivas": sqrt(2 log(t^(d/2 + 2) pi^2 / (3 delta))), growing with t [SRI10, Thm. 2]."""

    delta: float = 0.1
    """Failure probability of the regret bound, for "srinivas"."""

    def __post_init__(self) -> None:
        if self.kappa != "srinivas" and not (isinstance(self.kappa, Real) and isfinite(self.kappa)):
            raise InputError(f"`kappa` must be a finite number or 'srinivas', but got {self.kappa!r}.")
        if not 0.0 < self.delta < 1.0:
            raise InputError(f"`delta` must lie between 0 and 1, but got {self.delta!r}.")

    def prepare(self, observations: Observations, fitted: FittedSurrogate, map: CalibrationMap) -> Landscape:
        kappa = self._weight(len(observations) + 1, observations.x.shape[1])
        return ForecastLandscape(fitted, ScoreCriterion(float(map.inverse(-kappa))))

    def _weight(self, t: int, d: int) -> float:
        if self.kappa == "srinivas":
            return sqrt(2.0 * ((0.5 * d + 2.0) * log(t) + log(pi * pi / (3.0 * self.delta))))
        return float(self.kappa)


@dataclass(frozen=True)
class ScoreCriterion(Criterion):
    """The negated outcome at a fixed normal score of the raw forecast."""

    score: float

    scale: Literal["bound"] = "bound"

    def value(self, forecast: Forecast) -> Array:
        return -forecast.at_normal_score(self.score)

    def partials(self, forecast: Forecast) -> tuple[Array, Array, Array]:
        value, by_loc, by_scale = forecast.at_normal_score_partials(self.score)
        return -value, -by_loc, -by_scale
