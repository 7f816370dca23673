"""Where the least value f* is known: how near to it a point is expected to be [OPT20, turned into minimisation].

| symbol | meaning |
|---|---|
| mu, sigma | mean and standard deviation of a row of the forecast |
| gamma | (mu - f*) / sigma |
| ERM | E[(f - f*)+] = sigma h(gamma): the expected regret, Eq. (10); minimised |
| CBM | |mu - f*| + sqrt(beta) sigma: a bound on it, Eq. (8); minimised |
| MES* | gamma phi(gamma) / (2 Phi(gamma)) - log Phi(gamma): what is learned of f, given that nothing is below f* |
| EI^ | E[(best - max(f, f*))+] = EI(best) - EI(f*): improvement, of which none goes further than f*; ours |

EI^ is EI where f* is far out of reach, and needs no more than a bound. There ERM is greedy: it goes on looking beside
the best point although nothing near it can be the optimum. So `Aimed` takes ERM where the model that knows f* forecasts
best and the point that ERM would take may be the optimum, else EI^. A value that was surpassed is wrong: then it takes
EI.
"""

from dataclasses import dataclass, field
from math import log, pi, sqrt
from typing import Literal

import numpy as np
from scipy.special import log_ndtr

from calibo.acquisition.improvement import (
    LogExpectedImprovement,
    LogImprovementCriterion,
    ProbabilityCriterion,
    leading,
)
from calibo.acquisition.landscape import ForecastLandscape
from calibo.acquisition.moments import LOG_ROOT_2PI, log_mean, log_ndtr_slope
from calibo.acquisition.protocols import Acquisition, Landscape
from calibo.calibration import CalibrationMap
from calibo.errors import InputError, demand_number
from calibo.forecasts import Forecast
from calibo.observations import Observations, spread
from calibo.optimum import Optimum
from calibo.parts import register
from calibo.surrogate import FittedSurrogate, GaussianProcess, ModelChoice, Surrogate, Untransformed
from calibo.transforms import IDENTITY
from calibo.types import Array

__all__ = [
    "Aimed",
    "AimedLandscape",
    "BoundedImprovement",
    "ExpectedRegret",
    "ImprovementOnOptimum",
    "KnownAcquisition",
    "KnownEntropySearch",
    "RegretBound",
    "surely_below",
]

FAR = 8.0  # gamma beyond which MES* is taken by its series
CHANCE = 0.02  # that a point is as good as the least value, below which ERM is not trusted there
SURE = 2.0  # score of the value below which the function surely is
TOUCHING = 1e-6  # share of the tolerance within which the best is the least value
ROUNDING = 1e-12  # share of an integral below which nothing can be told
FAR_BELOW = 50.0  # minus gamma beyond which it is taken by another one


@dataclass(frozen=True)
class KnownAcquisition:
    """What acquisitions with a known least value share."""

    optimum: Optimum | None = None
    """None until it is told: see `calibo.knowledge`."""

    def _told(self) -> Optimum:
        if self.optimum is None:
            raise InputError(f"`known_optimum` must be given for {type(self).__name__}, but is not. Give it.")
        return self.optimum

    def _least(self, observations: Observations, fitted: FittedSurrogate) -> float:
        """The surrogate's own, where it knows one."""
        optimum, known = self._told(), getattr(fitted, "optimum", None)
        return optimum.within_reach(observations.y, observations.noise_std) if known is None else float(known)

    def surpassed(self, observations: Observations, fitted: FittedSurrogate) -> bool:
        """Whether the function is surely better than the least value at an evaluated point, whatever noise there is."""
        known = self._told()
        return surely_below(fitted, observations.x, known.value - known.slack(observations.y))

    def demand_scale(self, surrogate: Surrogate) -> None:
        """Raise where it cannot read what the surrogate forecasts; most can."""


def surely_below(fitted: FittedSurrogate, x: Array, value: float) -> bool:
    """Whether at one of the points the function is believed to be below a value, up to a small chance."""
    return bool(fitted.latent(x).at_score(SURE).min() < value)


class ReadsValues(KnownAcquisition):
    """One that needs forecasts of the values themselves."""

    def demand_scale(self, surrogate: Surrogate) -> None:
        recipes = [recipe for _, recipe in surrogate.recipes] if isinstance(surrogate, ModelChoice) else [surrogate]
        for recipe in recipes:
            if isinstance(recipe, GaussianProcess) and recipe.transform != Untransformed():
                raise InputError(
                    f"`strategy` must forecast the values themselves for {type(self).__name__}, but has a model on "
                    "another scale. Begin with 'plain', or put '+single' before."
                )


@register("erm")
@dataclass(frozen=True)
class ExpectedRegret(ReadsValues):
    """-log E[(f - f*)+]: where the expected regret is least."""

    def prepare(self, observations: Observations, fitted: FittedSurrogate, map: CalibrationMap) -> ForecastLandscape:
        least = self._least(observations, fitted)
        return ForecastLandscape(fitted, RegretCriterion(LogImprovementCriterion(-least, IDENTITY, map.mirrored())))


@register("ei-known")
@dataclass(frozen=True)
class ImprovementOnOptimum(KnownAcquisition):
    """log E[(f* - f)+]: EI with the least value as the best so far."""

    def prepare(self, observations: Observations, fitted: FittedSurrogate, map: CalibrationMap) -> Landscape:
        return ForecastLandscape(fitted, LogImprovementCriterion(self._least(observations, fitted), IDENTITY, map))


@register("bounded-ei")
@dataclass(frozen=True)
class BoundedImprovement(KnownAcquisition):
    """log E[(best - max(f, f*))+]: improvement on the best so far that goes no further than the least value."""

    def prepare(self, observations: Observations, fitted: FittedSurrogate, map: CalibrationMap) -> Landscape:
        known = self._told()
        if self.surpassed(observations, fitted):
            return LogExpectedImprovement().prepare(observations, fitted, map)
        unit, best = leading(fitted, observations.x[:1]), float(fitted.smoothed().min())
        slack = known.slack(observations.y) or 1e-300
        # once the best is as good as the least value, up to rounding, what is left to be gained is the tolerance
        least = known.value if best - known.value > TOUCHING * slack else best - slack
        top, bottom = (LogImprovementCriterion(float(unit(np.asarray(y))), unit, map) for y in (best, least))
        return ForecastLandscape(fitted, BoundedCriterion(top, bottom))


@register("aimed")
@dataclass(frozen=True)
class Aimed(KnownAcquisition):
    """Expected regret where the least value is within reach, else what is used without knowing it."""

    otherwise: Acquisition = field(default_factory=BoundedImprovement)

    def prepare(self, observations: Observations, fitted: FittedSurrogate, map: CalibrationMap) -> Landscape:
        usual = self.otherwise.prepare(observations, fitted, map)
        if getattr(fitted, "optimum", None) is None or self.surpassed(observations, fitted):
            return usual
        near = self._told().value + self._told().slack(observations.y)
        regret = ExpectedRegret(self.optimum).prepare(observations, fitted, map)
        return AimedLandscape(fitted, regret.criterion, usual, ProbabilityCriterion(near, map))


@dataclass(frozen=True, eq=False)
class AimedLandscape(ForecastLandscape):
    """The expected regret, and what to take instead where its best point cannot be the optimum."""

    otherwise: Landscape
    near: ProbabilityCriterion

    def within_reach(self, x: Array) -> bool:
        """Whether the function may be as good as the least value at ``x`` (d,)."""
        return bool(self.near.value(self.fitted.latent(x[None]))[0] >= log(CHANCE))


@register("cbm")
@dataclass(frozen=True)
class RegretBound(KnownAcquisition):
    """Negated |median - f*| + sqrt(beta_t) sigma."""

    beta: float | Literal["code", "paper", "srinivas"] = "code"
    """A number, or a schedule: "code" 0.1 log t, of the paper's program; "paper" 2 |f*| + 300 log^3(t / delta), with f*
    standardised; "srinivas" 2 log(t^(d/2 + 2) pi^2 / (3 delta)) [SRI10]."""

    delta: float = 0.1

    def __post_init__(self) -> None:
        if self.beta not in ("code", "paper", "srinivas"):
            demand_number("beta", self.beta, "a number of at least 0, or 'code', 'paper' or 'srinivas'", least=0.0)
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
    """log MES*, mean over rows."""

    def prepare(self, observations: Observations, fitted: FittedSurrogate, map: CalibrationMap) -> Landscape:
        return ForecastLandscape(fitted, EntropyCriterion(self._least(observations, fitted), map.mirrored()))


@dataclass(frozen=True, eq=False)
class RegretCriterion:
    """Regret above f* is improvement of -f on -f*."""

    mirrored: LogImprovementCriterion

    scale: Literal["log"] = "log"

    def value(self, forecast: Forecast) -> Array:
        return -self.mirrored.value(_turned(forecast))

    def screened(self, forecast: Forecast) -> Array:
        return -self.mirrored.screened(_turned(forecast))

    def partials(self, forecast: Forecast) -> tuple[Array, Array, Array]:
        value, by_loc, by_scale = self.mirrored.partials(_turned(forecast))
        return -value, by_loc, -by_scale


@dataclass(frozen=True, eq=False)
class BoundedCriterion:
    """log of the difference of two expected improvements: on the best, and on the least value."""

    best: LogImprovementCriterion
    least: LogImprovementCriterion

    scale: Literal["log"] = "log"

    def value(self, forecast: Forecast) -> Array:
        return _less(self.best.value(forecast), self.least.value(forecast))[0]

    def screened(self, forecast: Forecast) -> Array:
        return _less(self.best.screened(forecast), self.least.screened(forecast))[0]

    def partials(self, forecast: Forecast) -> tuple[Array, Array, Array]:
        whole, by_loc, by_scale = self.best.partials(forecast)
        beyond, less_by_loc, less_by_scale = self.least.partials(forecast)
        value, kept = _less(whole, beyond)
        share = 1.0 - kept
        return value, (by_loc - share * less_by_loc) / kept, (by_scale - share * less_by_scale) / kept


def _less(whole: Array, part: Array) -> tuple[Array, Array]:
    """log(exp(whole) - exp(part)), and which share of the whole is left."""
    kept = np.maximum(-np.expm1(np.minimum(part - whole, 0.0)), ROUNDING)
    return whole + np.log(kept), kept


def _turned(forecast: Forecast) -> Forecast:
    """The forecast of -f."""
    _demand_values(forecast)
    return Forecast(-forecast.loc, forecast.scale, forecast.weights, forecast.transforms)


def _demand_values(forecast: Forecast) -> None:
    if any(transform != IDENTITY for transform in forecast.transforms):
        raise InputError("A known optimum needs forecasts of the values themselves, but got some on another scale.")


@dataclass(frozen=True)
class BoundCriterion:
    """Distance of the middle from f*, and how far up a bound lies."""

    optimum: float
    middle: float
    upper: float
    """Raw scores of the median and of the bound."""

    scale: Literal["bound"] = "bound"

    def value(self, forecast: Forecast) -> Array:
        return self.partials(forecast)[0]

    def screened(self, forecast: Forecast) -> Array:
        return self.value(forecast)

    def partials(self, forecast: Forecast) -> tuple[Array, Array, Array]:
        middle, by_loc, by_scale = forecast.at_score_partials(self.middle)
        upper, up_by_loc, up_by_scale = forecast.at_score_partials(self.upper)
        side = np.where(middle >= self.optimum, 1.0, -1.0)
        value = np.abs(middle - self.optimum) + upper - middle
        return -value, -(side - 1.0) * by_loc - up_by_loc, -(side - 1.0) * by_scale - up_by_scale


@dataclass(frozen=True, eq=False)
class EntropyCriterion:
    """log of the mean of MES* over rows, gamma as the map corrects it."""

    optimum: float
    map: CalibrationMap
    """The mirrored one: gamma is a score of -f."""

    scale: Literal["log"] = "log"

    def value(self, forecast: Forecast) -> Array:
        return self.partials(forecast)[0]

    def screened(self, forecast: Forecast) -> Array:
        return self.value(forecast)

    def partials(self, forecast: Forecast) -> tuple[Array, Array, Array]:
        _demand_values(forecast)
        raw = (forecast.loc - self.optimum) / forecast.scale
        log_rows, slope = log_entropy(self.map(raw))
        value, share = log_mean(log_rows, forecast.weights)
        by_raw = share * slope * self.map.slope(raw)
        return value, by_raw / forecast.scale, -by_raw * raw / forecast.scale


def log_entropy(gamma: Array) -> tuple[Array, Array]:
    """log of gamma phi / (2 Phi) - log Phi, and its derivative; by a series where both terms vanish."""
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
