"""Strategy: the few lines that join the rooms, and the named presets."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from math import log
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from calibo.acquisition import (
    Acquisition,
    Criterion,
    ExpectedImprovement,
    LogExpectedImprovement,
    LowerBound,
    ProbabilityOfImprovement,
)
from calibo.calibration import CalibrationMap, Evidence, NoEvidence, NoRecalibration, Recalibrator
from calibo.cube import Cube
from calibo.errors import InputError
from calibo.feasibility import Feasibility, FittedFeasibility
from calibo.forecast import Forecast
from calibo.gp.kernels import RBF
from calibo.observations import Observations, spread
from calibo.search import Search
from calibo.surrogate import FLAT, FittedSurrogate, GaussianProcess, Surrogate
from calibo.types import Array

__all__ = ["PRESETS", "FittedStrategy", "Proposal", "Strategy", "named"]

PENALTY = 100.0  # of a bound where failure is likelier than success, in spreads of the outcomes
ANCHORS = 5  # best points around which the search looks closely


@dataclass(frozen=True, eq=False)
class Proposal:
    """Where to evaluate next, and what was believed when that was decided."""

    x: Array
    """(d,)"""

    forecast: Forecast
    """Of the observation at x, from finished evaluations alone, before recalibration."""

    map: CalibrationMap
    fitted: FittedSurrogate

    state: Mapping[str, Any]
    """Storable; handed to the next proposal as ``previous`` it saves work and changes nothing."""

    repeated: bool = False
    """True where every configuration had been tried."""


@dataclass(frozen=True)
class Strategy:
    """A recipe for proposals."""

    surrogate: Surrogate = field(default_factory=GaussianProcess)
    evidence: Evidence = NoEvidence()
    recalibrator: Recalibrator = NoRecalibration()
    acquisition: Acquisition = LogExpectedImprovement()
    feasibility: Feasibility = Feasibility()
    search: Search = Search()

    initial: int | None = None
    """Evaluations of the space-filling design before the first model; None for the dimension, 4 to 10."""

    def initial_size(self, cube: Cube) -> int:
        """How many evaluations the design takes in this cube."""
        return int(np.clip(cube.free.sum(), 4, 10)) if self.initial is None else self.initial

    def fit(
        self, observations: Observations, *, rng: np.random.Generator, previous: Mapping[str, Any] | None = None
    ) -> "FittedStrategy":
        """What the strategy believes after ``observations``, of which one at least must be feasible."""
        previous, valid = previous or {}, observations.valid()
        with _one_blas_thread():
            fitted = self.surrogate.fit(valid, rng=rng, previous=previous.get("surrogate"))
            map = self.recalibrator.fit(self.evidence.scores(self.surrogate, fitted, valid, rng=rng))
            feasible = None
            if not observations.feasible.all():
                feasible = self.feasibility.fit(observations, rng=rng, previous=previous.get("feasibility"))
        return FittedStrategy(self, observations, fitted, map, feasible)

    def propose(
        self,
        observations: Observations,
        *,
        rng: np.random.Generator,
        previous: Mapping[str, Any] | None = None,
        fixed: Array | None = None,
    ) -> Proposal:
        """The point (d,) to evaluate next; columns of ``fixed`` (d,) that are not NaN stay."""
        return self.fit(observations, rng=rng, previous=previous).propose(rng=rng, fixed=fixed)


@dataclass(frozen=True, eq=False)
class FittedStrategy:
    """What is believed of the objective: the surrogate, how it is recalibrated, and where evaluations succeed."""

    strategy: Strategy
    observations: Observations
    fitted: FittedSurrogate
    map: CalibrationMap
    feasibility: FittedFeasibility | None

    @property
    def state(self) -> Mapping[str, Any]:
        """See ``Proposal.state``."""
        return {"surrogate": self.fitted.state, "feasibility": self.feasibility and self.feasibility.state}

    def propose(self, *, rng: np.random.Generator, fixed: Array | None = None) -> Proposal:
        """The point (d,) to evaluate next; columns of ``fixed`` (d,) that are not NaN stay."""
        with _one_blas_thread():
            x, repeated = self._search(rng, np.full(len(self.observations.cube), np.nan) if fixed is None else fixed)
            return Proposal(x, self.fitted.predict(x[None]), self.map, self.fitted, self.state, repeated)

    def _search(self, rng: np.random.Generator, fixed: Array) -> tuple[Array, bool]:
        data, known, valid = self.observations, self.fitted.smoothed(), self.observations.valid()
        believing = self.fitted.believing(data.pending) if len(data.pending) else self.fitted
        criterion = self.strategy.acquisition.prepare(valid, believing, self.map)
        objective = _Objective(believing, criterion, self.feasibility, spread(known) or 1.0)
        anchors = valid.x[np.argsort(known, kind="stable")[:ANCHORS]]
        tried = data.x[~data.feasible] if _noisy(self.fitted, anchors) else data.x
        maximize = partial(self.strategy.search.maximize, objective, data.cube, rng=rng, anchors=anchors, fixed=fixed)
        x = maximize(excluded=np.concatenate([tried, data.pending]))
        if x is not None:
            return x, False
        again = maximize(excluded=np.empty((0, len(data.cube))))
        assert again is not None, "nothing was excluded"
        return again, True


def _noisy(fitted: FittedSurrogate, x: Array) -> bool:
    """Whether an outcome at ``x`` differs from the function by a twentieth of the outcomes' spread or more."""
    scale = spread(fitted.smoothed())
    predicted, latent = fitted.predict(x).scale, fitted.latent(x).scale
    noise = predicted * np.sqrt(1.0 - np.square(latent / predicted))
    return scale > 0.0 and float(noise.mean()) >= 0.05 * scale


@dataclass(frozen=True, eq=False)
class _Objective:
    """A criterion as a function of points, weighed by the probability of feasibility."""

    fitted: FittedSurrogate
    criterion: Criterion
    feasibility: FittedFeasibility | None
    spread: float

    def value(self, x: Array) -> Array:
        value = self.criterion.value(self.fitted.latent(x))
        if self.feasibility is None:
            return value
        return self._weighed(value, self.feasibility.log_probability(x))[0]

    def value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        forecast, d_loc, d_scale = self.fitted.latent_with_gradient(x)
        value, by_loc, by_scale = self.criterion.partials(forecast)
        gradient = np.einsum("sn,snd->nd", by_loc, d_loc) + np.einsum("sn,snd->nd", by_scale, d_scale)
        if self.feasibility is None:
            return value, gradient
        log_p, d_log_p = self.feasibility.log_probability_with_gradient(x)
        weighed, by_value, by_log_p = self._weighed(value, log_p)
        return weighed, by_value[:, None] * gradient + by_log_p[:, None] * d_log_p

    def _weighed(self, value: Array, log_p: Array) -> tuple[Array, Array, Array]:
        """The criterion with feasibility, and its derivatives by both."""
        if self.criterion.scale == "log":
            return value + log_p, np.ones_like(value), np.ones_like(value)
        if self.criterion.scale == "gain":
            p = np.exp(log_p)
            return value * p, p, value * p
        # a bound has no zero to be scaled towards: it counts in full where success is likelier than not
        short = np.minimum(log_p - log(0.5), 0.0)
        weight = PENALTY * self.spread
        return value + weight * short, np.ones_like(value), np.where(short < 0.0, weight, 0.0)


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # looks through every loaded library once: 1-5 ms


def _one_blas_thread() -> Any:
    """At these sizes a second BLAS thread costs more than it does."""
    return _controller().limit(limits=1, user_api="blas")


PRESETS: Mapping[str, Strategy] = {
    "default": Strategy(),
    "ei": Strategy(acquisition=ExpectedImprovement()),
    "pi": Strategy(acquisition=ProbabilityOfImprovement()),
    "lcb": Strategy(acquisition=LowerBound()),
    "papers-base": Strategy(
        surrogate=GaussianProcess(RBF, FLAT, growth=0.0), acquisition=ExpectedImprovement(), initial=3
    ),
}
"""The strategies that have a name; "papers-base" is the base of CAL21, CAL23 and CAL24: RBF, maximum likelihood."""


def named(strategy: str | Strategy | None) -> Strategy:
    """A strategy by its name, itself, or the default."""
    if strategy is None:
        return PRESETS["default"]
    if isinstance(strategy, Strategy):
        return strategy
    if strategy not in PRESETS:
        raise InputError(f"`strategy` must be a Strategy or one of {sorted(PRESETS)}, but got {strategy!r}.")
    return PRESETS[strategy]
