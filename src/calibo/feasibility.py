"""Feasibility: a surrogate of each constraint, and one of the labels "ran" (-1) and "failed" (+1)."""

from dataclasses import dataclass, replace
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
        fitted = [self._fitted(observations, x, labels, rng, previous)] if (labels > 0.0).any() else []
        for excess in limits.T:
            known = ~np.isnan(excess)
            if known.any():
                fitted.append(self._fitted(observations, observations.x[known], excess[known], rng, previous))
        return FittedFeasibility(tuple(ForecastLandscape(one, SUCCESS) for one in fitted))

    def _fitted(
        self, observations: Observations, x: Array, excess: Array, rng: np.random.Generator, previous: Any
    ) -> Any:
        steps = len(np.unique(excess)) <= 2
        n = len(x)
        data = replace(
            observations,
            x=x,
            y=np.where(excess > 0.0, 1.0, -1.0) if steps else _asinh_scaled(excess),
            noise_std=np.full(n, np.nan),
            feasible=np.ones(n, dtype=bool),
            constraints=None,
            scores=None,
        )
        return (self.labels if steps else self.limits).fit(data, rng=rng, previous=previous)


SUCCESS = ProbabilityCriterion(0.0, CalibrationMap())  # log P(excess < 0)


@dataclass(frozen=True, eq=False)
class FittedFeasibility(Landscape):
    """The joint log probability of success, assuming independence."""

    parts: tuple[ForecastLandscape, ...]
    scale: Scale = "log"

    @property
    def state(self) -> dict[str, Any]:
        """See ``Proposal.state``."""
        return {key: fit for part in self.parts for key, fit in part.fitted.state.items()}

    def value(self, x: Array) -> Array:
        return np.asarray(sum((part.value(x) for part in self.parts), np.zeros(len(x))))

    def value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        value, gradient = np.zeros(len(x)), np.zeros_like(x)
        for part in self.parts:
            more, slope = part.value_and_gradient(x)
            value, gradient = value + more, gradient + slope
        return value, gradient


def _asinh_scaled(excess: Array) -> Array:
    """The excess on an asinh scale: fine near 0, coarse far away."""
    excess = np.clip(excess, -LARGEST, LARGEST)
    # a unit that changes at every step would invalidate all earlier fits
    first = np.abs(excess[: 1 << (len(excess).bit_length() - 1)])
    usual = first[(first > 0.0) & (first < LARGEST)]
    unit = float(np.median(usual)) if len(usual) else 1.0
    with np.errstate(over="ignore"):
        return np.arcsinh(np.clip(excess / unit, -1e6, 1e6))
