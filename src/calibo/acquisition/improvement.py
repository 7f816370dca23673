"""Expected improvement, its logarithm, and the probability of improvement."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from scipy.special import log_ndtr

from calibo.acquisition.base import Acquisition, Criterion, ForecastLandscape, Landscape, require_finite
from calibo.acquisition.moments import MapIntegral, log_h, log_mean, log_ndtr_slope
from calibo.acquisition.quadrature import Improvements
from calibo.arrays import Array
from calibo.forecasts import CalibrationMap, Forecast
from calibo.models import FittedSurrogate
from calibo.observations import Observations, spread
from calibo.parts import register
from calibo.transforms import Transform


@dataclass(frozen=True)
class Improvement(Acquisition):
    """Base of expected improvement and its logarithm."""

    xi: float = 0.0
    """Minimum improvement, relative to the standard deviation of the outcomes."""

    unit: Transform | Literal["model"] = "model"
    """The scale on which improvement is measured: a transform, or "model" for that of the highest-weighted model."""

    def __post_init__(self) -> None:
        require_finite("xi", self.xi)

    @property
    def may_be_bounded(self) -> bool:
        return self.xi == 0.0 and self.unit == "model"

    @abstractmethod
    def criterion(self, logarithm: "LogImprovementCriterion") -> Criterion:
        """The criterion to maximize, from log expected improvement."""

    def prepare(self, observations: Observations, fitted: FittedSurrogate, map: CalibrationMap) -> Landscape:
        unit = leading_transform(fitted, observations.x[:1]) if self.unit == "model" else self.unit
        logarithm = LogImprovementCriterion(
            float(unit(np.asarray(_target(fitted, observations.x, self.xi)))), unit, map
        )
        return ForecastLandscape(fitted, self.criterion(logarithm))


@register("log-ei")
class LogExpectedImprovement(Improvement):
    """log E[(best - Y)+]: same maximizer as expected improvement, without vanishing gradients [AME23]."""

    def criterion(self, logarithm: "LogImprovementCriterion") -> Criterion:
        return logarithm


@register("ei")
class ExpectedImprovement(Improvement):
    """E[(best - Y)+]: expected improvement over the best so far."""

    def criterion(self, logarithm: "LogImprovementCriterion") -> Criterion:
        return ImprovementCriterion(logarithm)


@dataclass(frozen=True, eq=False)
class LogImprovementCriterion(Criterion):
    """log of the integral of the calibrated CDF up to ``best``, measured in ``unit``."""

    best: float
    unit: Transform
    map: CalibrationMap

    scale: Literal["log"] = "log"

    def screen(self, forecast: Forecast) -> Array:
        """Applies the map to each mixture component separately: a cheap approximation."""
        return self._by_rows(forecast)[0] if self._on_unit(forecast) else self.value(forecast)

    def partials(self, forecast: Forecast) -> tuple[Array, Array, Array]:
        if self._on_unit(forecast) and (len(forecast.loc) == 1 or self._plain):
            return self._by_rows(forecast)
        return Improvements(forecast, self.map, self.unit, self.best)()

    def _on_unit(self, forecast: Forecast) -> bool:
        return all(transform == self.unit for transform in forecast.transforms)

    def _by_rows(self, forecast: Forecast) -> tuple[Array, Array, Array]:
        """Exact for one component, or for the identity map: EI = sigma H(z), H' = Phi(m(z)), dEI/dsigma = H - z H'."""
        z = (self.best - forecast.loc) / forecast.scale
        if self._plain:
            log_rows, by_cdf, by_density = log_h(z)
        else:
            log_rows, by_cdf, by_density = self._integral(z)
        log_rows = log_rows + np.log(forecast.scale)
        d_loc, d_scale = -by_cdf / forecast.scale, by_density / forecast.scale
        if len(z) == 1:
            return log_rows[0], d_loc, d_scale
        value, share = log_mean(log_rows, forecast.weights)
        return value, share * d_loc, share * d_scale

    @cached_property
    def _plain(self) -> bool:
        return self.map.is_identity

    @cached_property
    def _integral(self) -> MapIntegral:
        return MapIntegral(self.map)


@dataclass(frozen=True, eq=False)
class ImprovementCriterion(Criterion):
    """The exponential of log EI; zero, with zero gradient, if it underflows."""

    logarithm: LogImprovementCriterion

    scale: Literal["gain"] = "gain"

    def value(self, forecast: Forecast) -> Array:
        return np.exp(self.logarithm.value(forecast))

    def screen(self, forecast: Forecast) -> Array:
        return np.exp(self.logarithm.screen(forecast))

    def partials(self, forecast: Forecast) -> tuple[Array, Array, Array]:
        log_value, d_loc, d_scale = self.logarithm.partials(forecast)
        value = np.exp(log_value)
        return value, value * d_loc, value * d_scale


@register("pi")
@dataclass(frozen=True)
class ProbabilityOfImprovement(Acquisition):
    """log P(Y < best - xi); the logarithm has the same maximizer and never underflows."""

    xi: float = 0.01
    """Minimum improvement, relative to the standard deviation of the outcomes."""

    mapped: bool = False
    """Whether to maximize the calibrated probability wherever decisions are calibrated. An increasing map does not
    change the maximizer, so by default the raw one is maximized unless there are constraints or failures. On plateaus a
    search under any map may end at another point."""

    def __post_init__(self) -> None:
        require_finite("xi", self.xi)

    def depends_on_map(self, *, constrained: bool) -> bool:
        return self.mapped or constrained  # combined with feasibility, the magnitude matters

    def prepare(self, observations: Observations, fitted: FittedSurrogate, map: CalibrationMap) -> Landscape:
        return ForecastLandscape(fitted, ProbabilityCriterion(_target(fitted, observations.x, self.xi), map))


@dataclass(frozen=True, eq=False)
class ProbabilityCriterion(Criterion):
    """log of the calibrated CDF at ``target``; if the map is flat, the raw score breaks ties."""

    target: float
    map: CalibrationMap

    scale: Literal["log"] = "log"

    def value(self, forecast: Forecast) -> Array:
        score = forecast.normal_score(np.full(len(forecast), self.target))
        return np.asarray(log_ndtr(self.map(score)) + TIE_BREAK * score)

    def partials(self, forecast: Forecast) -> tuple[Array, Array, Array]:
        score, by_loc, by_scale, _ = forecast.normal_score_partials(np.full(len(forecast), self.target))
        calibrated = self.map(score)
        rate = log_ndtr_slope(calibrated) * self.map.slope(score) + TIE_BREAK
        return np.asarray(log_ndtr(calibrated) + TIE_BREAK * score), rate * by_loc, rate * by_scale


TIE_BREAK = 1e-9  # negligible wherever the map is not flat


def leading_transform(fitted: FittedSurrogate, x: Array) -> Transform:
    """The transform of the component with the largest weight."""
    forecast = fitted.posterior(x)
    return forecast.transforms[int(np.argmax(forecast.weights))]


def _target(fitted: FittedSurrogate, x: Array, xi: float) -> float:
    """The lowest posterior mean at an observed point, minus the minimum improvement."""
    known = fitted.in_sample_mean(x)
    return float(known.min()) - xi * spread(known)
