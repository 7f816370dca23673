"""Acquisitions for a known optimum f* that the default does not use [OPT20].

| symbol | meaning |
|---|---|
| mu, sigma | mean and standard deviation of a mixture component |
| gamma | (mu - f*) / sigma |
| CBM | |mu - f*| + sqrt(beta) sigma: a bound on the regret, Eq. (8); minimized |
| MES* | gamma phi(gamma) / (2 Phi(gamma)) - log Phi(gamma): max-value entropy search with f* known |
"""

from dataclasses import dataclass
from math import log, pi, sqrt
from typing import Literal

import numpy as np
from scipy.special import log_ndtr

from calibo.acquisition.base import Criterion, ForecastLandscape, Landscape
from calibo.acquisition.improvement import LogImprovementCriterion
from calibo.acquisition.known_optimum import KnownAcquisition, ReadsValues, require_values
from calibo.acquisition.moments import LOG_ROOT_2PI, log_mean, log_ndtr_slope
from calibo.arrays import Array
from calibo.errors import InputError, require_number
from calibo.forecasts import CalibrationMap, Forecast
from calibo.models import FittedSurrogate
from calibo.observations import Observations, spread
from calibo.parts import register
from calibo.transforms import IDENTITY

FAR = 8.0  # gamma beyond which MES* is evaluated by its series
FAR_BELOW = 50.0  # minus gamma beyond which another series is used


@register("ei-known")
@dataclass(frozen=True)
class ImprovementOnOptimum(KnownAcquisition):
    """log E[(f* - f)+]: EI with the optimal value as the incumbent."""

    def prepare(self, observations: Observations, fitted: FittedSurrogate, map: CalibrationMap) -> Landscape:
        return ForecastLandscape(fitted, LogImprovementCriterion(self._least(observations, fitted), IDENTITY, map))


@register("cbm")
@dataclass(frozen=True)
class RegretBound(KnownAcquisition):
    """Negated |median - f*| + sqrt(beta_t) sigma."""

    beta: float | Literal["code", "paper", "srinivas"] = "code"
    """A number, or a schedule: "code" 0.1 log t, from the paper's code; "paper" 2 |f*| + 300 log^3(t / delta), with f*
    standardized; "srinivas" 2 log(t^(d/2 + 2) pi^2 / (3 delta)) [SRI10]."""

    delta: float = 0.1

    def __post_init__(self) -> None:
        if self.beta not in ("code", "paper", "srinivas"):
            require_number("beta", self.beta, "a number of at least 0, or 'code', 'paper' or 'srinivas'", least=0.0)
        if not 0.0 < self.delta < 1.0:
            raise InputError(f"`delta` must lie between 0 and 1, but got {self.delta!r}.")

    def prepare(self, observations: Observations, fitted: FittedSurrogate, map: CalibrationMap) -> Landscape:
        least = self._least(observations, fitted)
        scores = float(map.inverse(0.0)), float(map.inverse(sqrt(self._weight(observations, least))))
        return ForecastLandscape(fitted, BoundCriterion(least, *scores))

    def _weight(self, observations: Observations, least: float) -> float:
        t, d = len(observations) + 1, len(observations.cube)
        if self.beta == "code":
            return 0.1 * log(t)
        if self.beta == "paper":
            standard = (least - float(observations.y.mean())) / (spread(observations.y) or 1.0)
            growing: float = log(t / self.delta) ** 3
            return 2.0 * abs(standard) + 300.0 * growing
        if self.beta == "srinivas":
            return 2.0 * ((0.5 * d + 2.0) * log(t) + log(pi * pi / (3.0 * self.delta)))
        return float(self.beta)


@register("mes-known")
@dataclass(frozen=True)
class KnownEntropySearch(ReadsValues):
    """log MES*, averaged over components."""

    def prepare(self, observations: Observations, fitted: FittedSurrogate, map: CalibrationMap) -> Landscape:
        return ForecastLandscape(fitted, EntropyCriterion(self._least(observations, fitted), map.negate()))


@dataclass(frozen=True)
class BoundCriterion(Criterion):
    """Negated |median - f*| + (upper bound - median)."""

    optimum: float
    middle: float
    upper: float
    """Raw scores of the median and of the bound."""

    scale: Literal["bound"] = "bound"

    def partials(self, forecast: Forecast) -> tuple[Array, Array, Array]:
        middle, by_loc, by_scale = forecast.at_normal_score_partials(self.middle)
        upper, up_by_loc, up_by_scale = forecast.at_normal_score_partials(self.upper)
        side = np.where(middle >= self.optimum, 1.0, -1.0)
        value = np.abs(middle - self.optimum) + upper - middle
        return -value, -(side - 1.0) * by_loc - up_by_loc, -(side - 1.0) * by_scale - up_by_scale


@dataclass(frozen=True, eq=False)
class EntropyCriterion(Criterion):
    """log of MES* averaged over components, with calibrated gamma."""

    optimum: float
    map: CalibrationMap
    """The negated map: gamma is a score of -f."""

    scale: Literal["log"] = "log"

    def partials(self, forecast: Forecast) -> tuple[Array, Array, Array]:
        require_values(forecast)
        raw = (forecast.loc - self.optimum) / forecast.scale
        log_rows, slope = log_entropy(self.map(raw))
        value, share = log_mean(log_rows, forecast.weights)
        by_raw = share * slope * self.map.slope(raw)
        return value, by_raw / forecast.scale, -by_raw * raw / forecast.scale


def log_entropy(gamma: Array) -> tuple[Array, Array]:
    """log of gamma phi / (2 Phi) - log Phi, and its derivative; by series in the tails."""
    far, below = gamma > FAR, gamma < -FAR_BELOW
    g = np.clip(gamma, -FAR_BELOW, FAR)
    ratio = log_ndtr_slope(g)  # phi / Phi, with derivative -ratio (g + ratio)
    value = 0.5 * g * ratio - log_ndtr(g)
    derivative = -0.5 * ratio - 0.5 * g * ratio * (g + ratio)
    # phi (g / 2 + 1 / g - 1 / g^3 + 3 / g^5 - 15 / g^7): the next term is 105 / g^9
    big = np.maximum(gamma, FAR)
    sum_ = 0.5 * big + 1.0 / big - big**-3.0 + 3.0 * big**-5.0 - 15.0 * big**-7.0
    d_sum = 0.5 - big**-2.0 + 3.0 * big**-4.0 - 15.0 * big**-6.0 + 105.0 * big**-8.0
    series, d_series = -0.5 * np.square(big) - LOG_ROOT_2PI + np.log(sum_), -big + d_sum / sum_
    with np.errstate(divide="ignore"):
        near, d_near = np.log(value), derivative / value
    # with x = -g: log x + log(2 pi) / 2 - 1/2 + 2 / x^2 - 15 / (2 x^4) + ...
    x = np.maximum(-gamma, FAR_BELOW)
    deep, d_deep = (
        np.log(x) + LOG_ROOT_2PI - 0.5 + 2.0 * x**-2.0 - 7.5 * x**-4.0,
        -1.0 / x + 4.0 * x**-3.0 - 30.0 * x**-5.0,
    )
    value, slope = np.where(below, np.log(deep), near), np.where(below, d_deep / deep, d_near)
    return np.where(far, series, value), np.where(far, d_series, slope)
