"""Acquisition functions for a known optimal value f* [OPT20, restated for minimization].

| symbol | meaning |
|---|---|
| mu, sigma | mean and standard deviation of a mixture component |
| gamma | (mu - f*) / sigma |
| ERM | E[(f - f*)+] = sigma h(gamma): the expected regret, Eq. (10); minimized |
| EI^ | E[(best - max(f, f*))+] = EI(best) - EI(f*): improvement truncated at f*; ours |

EI^ reduces to EI if f* is far out of reach, and f* may be just a bound. In that case ERM is greedy: it keeps sampling
near the best point although no point there can be the optimum. So `GuardedRegret` uses ERM if the model that is given
f* forecasts best and the minimizer of ERM may be the optimum. Otherwise it uses EI^, or EI if the outcomes refute f*.
"""

from dataclasses import dataclass, field, replace
from math import log
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from calibo.acquisition.base import Acquisition, Criterion, ForecastLandscape, Landscape, Scale
from calibo.acquisition.improvement import (
    LogExpectedImprovement,
    LogImprovementCriterion,
    ProbabilityCriterion,
    leading_transform,
)
from calibo.arrays import Array
from calibo.calibration.base import Recalibrator
from calibo.errors import InputError
from calibo.forecasts import CalibrationMap, Forecast
from calibo.models.base import FittedSurrogate, Surrogate
from calibo.observations import Observations
from calibo.optimum import Aim, Optimum
from calibo.parts import register
from calibo.transforms import IDENTITY

if TYPE_CHECKING:
    from calibo.side_information import SideInformation

CHANCE = 0.02  # minimum probability that a point reaches f*, for ERM to be used
SURE = 2.0  # normal score of the upper bound of the function
TOUCHING = 1e-6  # relative to the tolerance: distance within which the best has reached f*
ROUNDING = 1e-12  # relative rounding error of a difference of integrals


@dataclass(frozen=True)
class KnownAcquisition(Acquisition):
    """Base of acquisitions that require a known optimum."""

    optimum: Optimum | None = None
    """None until it is given as side information."""

    needs_optimum: ClassVar[bool] = True

    @property
    def lacks_optimum(self) -> bool:
        return self.optimum is None

    def with_side_information(self, info: "SideInformation") -> Acquisition:
        return replace(self, optimum=info.optimum or self.optimum)

    def _given(self) -> Optimum:
        if self.optimum is None:
            raise InputError(f"`known_optimum` must be given for {type(self).__name__}, but is missing. Pass it.")
        return self.optimum

    def _least(self, observations: Observations, fitted: FittedSurrogate) -> float:
        """The optimal value: the surrogate's, if it has one."""
        given = self._given()
        if fitted.optimum is not None:
            return fitted.optimum
        return given.feasible_value(observations.y, observations.noise_std)

    def _refuted(self, observations: Observations, fitted: FittedSurrogate) -> bool:
        """Whether the function, without noise, is almost surely below the optimal value at an evaluated point."""
        given = self._given()
        return surely_below(fitted, observations.x, given.value - given.tolerance_for(observations.y))


def surely_below(fitted: FittedSurrogate, x: Array, value: float) -> bool:
    """Whether the function is below ``value`` at one of the points with high probability."""
    return bool(fitted.posterior(x).at_normal_score(SURE).min() < value)


class ReadsValues(KnownAcquisition):
    """An acquisition that requires forecasts of untransformed outcomes."""

    def check(self, surrogate: Surrogate, recalibrator: Recalibrator) -> None:
        if surrogate.transforms_outcomes:
            raise InputError(
                f"`strategy` must forecast untransformed outcomes for {type(self).__name__}, but has a model on "
                "another scale. Start with 'plain', or add '+single' before it."
            )


@register("erm")
@dataclass(frozen=True)
class ExpectedRegret(ReadsValues):
    """-log E[(f - f*)+]: negated log expected regret."""

    def prepare(self, observations: Observations, fitted: FittedSurrogate, map: CalibrationMap) -> ForecastLandscape:
        least = self._least(observations, fitted)
        return ForecastLandscape(fitted, RegretCriterion(LogImprovementCriterion(-least, IDENTITY, map.negate())))


@register("bounded-ei")
@dataclass(frozen=True)
class BoundedImprovement(KnownAcquisition):
    """log E[(best - max(f, f*))+]: expected improvement truncated at the optimal value."""

    @property
    def may_be_bounded(self) -> bool:
        return True

    def prepare(self, observations: Observations, fitted: FittedSurrogate, map: CalibrationMap) -> Landscape:
        if self._refuted(observations, fitted):
            return LogExpectedImprovement().prepare(observations, fitted, map)
        given = self._given()
        unit, best = leading_transform(fitted, observations.x[:1]), float(fitted.in_sample_mean(observations.x).min())
        tolerance = given.tolerance_for(observations.y) or 1e-300
        # once the best has reached the optimal value, up to rounding, the remaining gain is the tolerance
        least = given.value if best - given.value > TOUCHING * tolerance else best - tolerance
        top, bottom = (LogImprovementCriterion(float(unit(np.asarray(y))), unit, map) for y in (best, least))
        return ForecastLandscape(fitted, BoundedCriterion(top, bottom))


@register("aimed")
@dataclass(frozen=True)
class GuardedRegret(KnownAcquisition):
    """Expected regret if the optimal value is within reach, otherwise ``otherwise``."""

    otherwise: Acquisition = field(default_factory=BoundedImprovement)

    needs_optimum: ClassVar[bool] = False  # it is only created with one

    def with_side_information(self, info: "SideInformation") -> Acquisition:
        return replace(info, optimum=info.optimum or self.optimum).aim(self.otherwise)

    def prepare(self, observations: Observations, fitted: FittedSurrogate, map: CalibrationMap) -> Landscape:
        otherwise = self.otherwise.prepare(observations, fitted, map)
        refuted = self._refuted(observations, fitted)
        if fitted.optimum is None or refuted:
            return FallbackLandscape(otherwise, "wrong" if refuted else "another model")
        near = self._given().value + self._given().tolerance_for(observations.y)
        regret = ExpectedRegret(self.optimum).prepare(observations, fitted, map)
        return GuardedRegretLandscape(fitted, regret.criterion, otherwise, ProbabilityCriterion(near, map))


@dataclass(frozen=True, eq=False)
class GuardedRegretLandscape(ForecastLandscape):
    """The expected regret, with a fallback if its best point is unlikely to be the optimum."""

    otherwise: Landscape
    near: ProbabilityCriterion

    aim: Aim = "regret"

    def fallback(self, x: Array) -> Landscape | None:
        reachable = self.near.value(self.fitted.posterior(x[None]))[0] >= log(CHANCE)
        return None if reachable else FallbackLandscape(self.otherwise, "out of reach")


@dataclass(frozen=True, eq=False)
class FallbackLandscape(Landscape):
    """A landscape that does not target the known optimum, with the reason."""

    landscape: Landscape
    aim: Aim

    @property
    def scale(self) -> Scale:  # type: ignore[override]
        return self.landscape.scale

    def value(self, x: Array) -> Array:
        return self.landscape.value(x)

    def value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        return self.landscape.value_and_gradient(x)

    def screen(self, x: Array) -> Array:
        return self.landscape.screen(x)


@dataclass(frozen=True, eq=False)
class RegretCriterion(Criterion):
    """Regret: the improvement of -f over -f*."""

    negated: LogImprovementCriterion

    scale: Literal["log"] = "log"

    def value(self, forecast: Forecast) -> Array:
        return -self.negated.value(_negate(forecast))

    def screen(self, forecast: Forecast) -> Array:
        return -self.negated.screen(_negate(forecast))

    def partials(self, forecast: Forecast) -> tuple[Array, Array, Array]:
        value, by_loc, by_scale = self.negated.partials(_negate(forecast))
        return -value, by_loc, -by_scale


@dataclass(frozen=True, eq=False)
class BoundedCriterion(Criterion):
    """log of the difference of two expected improvements: over the best and over the optimal value."""

    best: LogImprovementCriterion
    least: LogImprovementCriterion

    scale: Literal["log"] = "log"

    def value(self, forecast: Forecast) -> Array:
        return _less(self.best.value(forecast), self.least.value(forecast))[0]

    def screen(self, forecast: Forecast) -> Array:
        return _less(self.best.screen(forecast), self.least.screen(forecast))[0]

    def partials(self, forecast: Forecast) -> tuple[Array, Array, Array]:
        whole, by_loc, by_scale = self.best.partials(forecast)
        beyond, less_by_loc, less_by_scale = self.least.partials(forecast)
        value, kept = _less(whole, beyond)
        share = 1.0 - kept
        return value, (by_loc - share * less_by_loc) / kept, (by_scale - share * less_by_scale) / kept


def _less(whole: Array, part: Array) -> tuple[Array, Array]:
    """log(exp(whole) - exp(part)), and the fraction of the whole that remains."""
    kept = np.maximum(-np.expm1(np.minimum(part - whole, 0.0)), ROUNDING)
    return whole + np.log(kept), kept


def _negate(forecast: Forecast) -> Forecast:
    """The forecast of -f."""
    require_values(forecast)
    return forecast.negate()


def require_values(forecast: Forecast) -> None:
    if any(transform != IDENTITY for transform in forecast.transforms):
        raise InputError("A known optimum needs forecasts of untransformed outcomes, but got some on another scale.")
