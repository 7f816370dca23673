"""Feasibility: a surrogate of each constraint, and one of the labels "ran" (-1) and "failed" (+1)."""

from dataclasses import dataclass, replace
from math import log
from typing import Any

import numpy as np

from calibo.acquisition.base import ForecastLandscape, Landscape, Scale
from calibo.acquisition.improvement import ProbabilityCriterion
from calibo.arrays import Array
from calibo.forecasts import CalibrationMap
from calibo.models import GaussianProcess, LabelClassifier, Surrogate
from calibo.observations import LARGEST, Observations
from calibo.parts import register


@register("feasibility")
@dataclass(frozen=True)
class Feasibility:
    """Model of the log probability that an evaluation neither fails nor violates a constraint.

    Measured constraint values are used even for infeasible points; objective values of failed ones are not.
    """

    labels: Surrogate = LabelClassifier()
    limits: Surrogate = GaussianProcess()

    def fit(
        self,
        observations: Observations,
        *,
        rng: np.random.Generator,
        previous: Any = None,
        avoid: Array | None = None,
    ) -> "FittedFeasibility":
        """Points to ``avoid`` (k, d) are treated as failures."""
        limits = np.empty((len(observations), 0)) if observations.constraints is None else observations.constraints
        failed = ~observations.feasible & ~(limits > 0.0).any(axis=1)
        x, labels = observations.x, np.where(failed, 1.0, -1.0)
        if avoid is not None:
            x, labels = np.concatenate([x, avoid]), np.concatenate([labels, np.ones(len(avoid))])
        columns = [(x, labels)] if (labels > 0.0).any() else []
        columns += [(observations.x[known], excess[known]) for excess in limits.T if (known := ~np.isnan(excess)).any()]
        fitted: dict[bool, list[ForecastLandscape]] = {True: [], False: []}
        for x, excess in columns:
            steps = len(np.unique(excess)) <= 2  # only the side of the boundary is known
            model = self._fitted(observations, x, excess, steps, rng, previous)
            fitted[steps].append(ForecastLandscape(model, SUCCESS))
        return FittedFeasibility(tuple(fitted[True]), tuple(fitted[False]))

    def _fitted(
        self, observations: Observations, x: Array, excess: Array, steps: bool, rng: np.random.Generator, previous: Any
    ) -> Any:
        n = len(x)
        data = replace(
            observations,
            x=x,
            y=np.where(excess > 0.0, 1.0, -1.0) if steps else _asinh_scaled(excess),
            noise_std=np.full(n, np.nan),
            feasible=np.ones(n, dtype=bool),
            constraints=None,
            scores=None,
            report_scores=None,
        )
        return (self.labels if steps else self.limits).fit(data, rng=rng, previous=previous)


SUCCESS = ProbabilityCriterion(0.0, CalibrationMap())  # log P(excess < 0)


LEAST_SUCCESS = 0.75  # probability of success below which a point is penalized, where only labels are known
CAUTION = 100.0  # by this factor: near a boundary, improvement grows faster than the probability falls
PENALTY = 100.0  # on a bound if failure is more likely than success, in spreads of the outcomes


@dataclass(frozen=True, eq=False)
class FittedFeasibility(Landscape):
    """The joint log probability of success, assuming independence."""

    labels: tuple[ForecastLandscape, ...]
    limits: tuple[ForecastLandscape, ...]
    caution: float = 0.0
    """How much points below LEAST_SUCCESS are penalized beyond their probability, if only labels are known."""

    scale: Scale = "log"

    def cautious(self) -> "FittedFeasibility":
        """The same with a penalty: labels do not say how far a boundary is, measured constraints do."""
        return replace(self, caution=CAUTION)

    @property
    def parts(self) -> tuple[ForecastLandscape, ...]:
        return self.labels + self.limits

    @property
    def state(self) -> dict[str, Any]:
        """See ``Proposal.state``."""
        return {key: fit for part in self.parts for key, fit in part.fitted.state.items()}

    def value(self, x: Array) -> Array:
        value = np.asarray(sum((part.value(x) for part in self.limits), np.zeros(len(x))))
        for part in self.labels:
            value = value + self._penalized(part.value(x))[0]
        return value

    def value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        value, gradient = np.zeros(len(x)), np.zeros_like(x)
        for part in self.limits:
            more, slope = part.value_and_gradient(x)
            value, gradient = value + more, gradient + slope
        for part in self.labels:
            log_p, slope = part.value_and_gradient(x)
            more, factor = self._penalized(log_p)
            value, gradient = value + more, gradient + factor[:, None] * slope
        return value, gradient

    def _penalized(self, log_p: Array) -> tuple[Array, Array]:
        """The log probability with its penalty, and the derivative."""
        short = np.minimum(log_p - log(LEAST_SUCCESS), 0.0)
        return log_p + self.caution * short, 1.0 + np.where(short < 0.0, self.caution, 0.0)


def _asinh_scaled(excess: Array) -> Array:
    """The excess on an asinh scale: fine near 0, coarse far away."""
    excess = np.clip(excess, -LARGEST, LARGEST)
    # a unit that changes at every step would invalidate all earlier fits
    first = np.abs(excess[: 1 << (len(excess).bit_length() - 1)])
    usual = first[(first > 0.0) & (first < LARGEST)]
    unit = float(np.median(usual)) if len(usual) else 1.0
    with np.errstate(over="ignore"):
        return np.arcsinh(np.clip(excess / unit, -1e6, 1e6))


@dataclass(frozen=True, eq=False)
class WeightedLandscape:
    """What the search maximizes: the acquisition function, weighted by the probability of feasibility."""

    landscape: Landscape
    feasibility: FittedFeasibility
    spread: float

    def value(self, x: Array) -> Array:
        value = self.landscape.value(x)
        return self._weigh(value, self.feasibility.value(x))[0] if self.feasibility.parts else value

    def screen(self, x: Array) -> Array:
        value = self.landscape.screen(x)
        return self._weigh(value, self.feasibility.value(x))[0] if self.feasibility.parts else value

    def value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        value, gradient = self.landscape.value_and_gradient(x)
        if not self.feasibility.parts:
            return value, gradient
        log_p, d_log_p = self.feasibility.value_and_gradient(x)
        weighted, by_value, by_log_p = self._weigh(value, log_p)
        return weighted, by_value[:, None] * gradient + by_log_p[:, None] * d_log_p

    def _weigh(self, value: Array, log_p: Array) -> tuple[Array, Array, Array]:
        """The acquisition value weighted by feasibility, and its derivatives with respect to both."""
        scale = self.landscape.scale
        if scale == "log":
            return value + log_p, np.ones_like(value), np.ones_like(value)
        if scale == "gain":
            factor = np.exp(log_p)
            return value * factor, factor, value * factor
        # a bound cannot be scaled towards zero: it is penalized only if failure is more likely than success
        short = np.minimum(log_p - log(0.5), 0.0)
        penalty = PENALTY * self.spread
        return value + penalty * short, np.ones_like(value), np.where(short < 0.0, penalty, 0.0)
