"""Strategy: the few lines that join the rooms, and the named presets."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from math import log
from typing import Any

import numpy as np

from calibo.acquisition import (
    Acquisition,
    ExpectedImprovement,
    Landscape,
    LogExpectedImprovement,
    LowerBound,
    ProbabilityOfImprovement,
)
from calibo.branches import Branches, filled, stilled
from calibo.calibration import CalibrationMap, Evidence, NoEvidence, NoRecalibration, Recalibrator
from calibo.cube import Cube
from calibo.design import sobol_points
from calibo.errors import InputError
from calibo.feasibility import Feasibility, FittedFeasibility
from calibo.forecasts import Forecast
from calibo.gp.kernels import RBF
from calibo.observations import Observations, spread
from calibo.search import Search
from calibo.surrogate import FLAT, FittedSurrogate, GaussianProcess, Surrogate
from calibo.threads import one_blas_thread
from calibo.types import Array, Flags

__all__ = ["PRESETS", "FittedStrategy", "Proposal", "Strategy", "named"]

PENALTY = 100.0  # of a bound where failure is likelier than success, in spreads of the outcomes
ANCHORS = 5  # best points around which the search looks closely
DESIGN_TRIES = 64  # points of the design looked through for one not tried yet


@dataclass(frozen=True, eq=False)
class Proposal:
    """Where to evaluate next, and what was believed when that was decided."""

    x: Array
    """(d,); NaN where the point has no such column."""

    forecast: Forecast | None = None
    """Of the observation at x, from finished evaluations alone, before recalibration; None before there is a model."""

    map: CalibrationMap = field(default_factory=CalibrationMap)
    fitted: FittedSurrogate | None = None

    state: Mapping[str, Any] | None = None
    """Storable; handed to the next proposal as ``previous`` it saves work and changes nothing."""

    repeated: bool = False
    """True where no configuration was found that had not been tried."""


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

    def __post_init__(self) -> None:
        if self.initial is not None and (not isinstance(self.initial, int | np.integer) or self.initial < 0):
            raise InputError(f"`initial` must be None or a whole number of at least 0, but got {self.initial!r}.")

    def initial_size(self, cube: Cube) -> int:
        """How many evaluations the design takes in this cube."""
        return int(np.clip(cube.free.sum(), 4, 10)) if self.initial is None else self.initial

    def propose(
        self,
        observations: Observations,
        *,
        seed: int,
        previous: Mapping[str, Any] | None = None,
        fixed: Array | None = None,
    ) -> Proposal:
        """The point to evaluate next, a function of the observations and the ``seed`` of the run.

        First a space-filling design, then the model; where nothing has succeeded yet, the point likeliest
        to succeed. Columns of ``fixed`` (d,) that are not NaN stay.
        """
        count = len(observations) + len(observations.pending)
        rng = np.random.default_rng([seed, count])
        held = np.full(len(observations.cube), np.nan) if fixed is None else fixed
        branches = Branches.of(observations, held, rng)
        closed = branches.closed(observations)
        tried = branches.settled(observations)
        proposal = self._proposed(closed, branches.held, tried, count, seed, rng, previous)
        return replace(proposal, x=branches.opened(proposal.x))

    def _proposed(
        self,
        observations: Observations,
        held: Array,
        tried: Flags,
        count: int,
        seed: int,
        rng: np.random.Generator,
        previous: Mapping[str, Any] | None,
    ) -> Proposal:
        """A point that agrees with a row of ``held`` (b, d), each of which gets its turn in the design.

        Points seen and not flagged in ``tried`` (n + q,) may be proposed again.
        """
        if not count or count < self.initial_size(observations.cube):
            points = sobol_points(len(observations.cube), count, DESIGN_TRIES, seed)
            row = held[count % len(held)]
            points = observations.cube.snap(np.where(np.isnan(row), points, row))
            fresh = points[~observations.cube.among(points, observations.seen()[tried])]
            if len(fresh):
                return Proposal(fresh[0], state=previous)
        if observations.feasible.any():
            return self.fit(observations, rng=rng, previous=previous).propose(rng=rng, fixed=held, tried=tried)
        with one_blas_thread():
            return self._where_success_is_likeliest(observations, rng, held, tried, previous or {})

    def fit(
        self, observations: Observations, *, rng: np.random.Generator, previous: Mapping[str, Any] | None = None
    ) -> "FittedStrategy":
        """What the strategy believes after ``observations``, of which one at least must be feasible."""
        observations = filled(observations)
        previous, valid = previous or {}, observations.valid()
        with one_blas_thread():
            fitted = self.surrogate.fit(valid, rng=rng, previous=previous.get("surrogate"))
            map = self.recalibrator.fit(self.evidence.scores(self.surrogate, fitted, valid, rng=rng))
            feasible = self.feasibility.fit(observations, rng=rng, previous=previous.get("feasibility"))
        return FittedStrategy(self, observations, fitted, map, feasible)

    def _where_success_is_likeliest(
        self,
        observations: Observations,
        rng: np.random.Generator,
        fixed: Array,
        tried: Flags,
        previous: Mapping[str, Any],
    ) -> Proposal:
        """Far from all failures, and where limits are exceeded least; pending points are kept away from, too."""
        seen, known = observations.seen(), previous.get("feasibility")
        objective = self.feasibility.fit(observations, rng=rng, previous=known, shunned=observations.pending)
        maximize = partial(self.search.maximize, objective, observations.cube, rng=rng, anchors=seen[:0], fixed=fixed)
        x, repeated = _untried(maximize, seen[tried])
        state = {"surrogate": previous.get("surrogate") or {}, "feasibility": objective.state}
        return Proposal(x, state=state, repeated=repeated)


@dataclass(frozen=True, eq=False)
class FittedStrategy:
    """What is believed of the objective: the surrogate, how it is recalibrated, and where evaluations succeed."""

    strategy: Strategy
    observations: Observations
    fitted: FittedSurrogate
    map: CalibrationMap
    feasibility: FittedFeasibility
    """The log probability of success."""

    @property
    def state(self) -> Mapping[str, Any]:
        """See ``Proposal.state``."""
        return {"surrogate": self.fitted.state, "feasibility": self.feasibility.state}

    def forecast(self, x: Array, *, noise: bool = False) -> Forecast:
        """Of the function at each point (n, d), or with ``noise`` of an observation; not yet recalibrated."""
        x = stilled(self.observations.cube, x)
        with one_blas_thread():
            return self.fitted.predict(x) if noise else self.fitted.latent(x)

    def propose(self, *, rng: np.random.Generator, fixed: Array | None = None, tried: Flags | None = None) -> Proposal:
        """The point (d,) to evaluate next; it agrees with a row of ``fixed`` (b, d) where that is not NaN.

        Of the points seen, it repeats none of those ``tried`` (n + q,), by default all.
        """
        with one_blas_thread():
            free = np.full((1, len(self.observations.cube)), np.nan)
            everything = np.ones(len(self.observations.seen()), dtype=bool)
            x, repeated = self._search(rng, free if fixed is None else fixed, everything if tried is None else tried)
            return Proposal(x, self.fitted.predict(x[None]), self.map, self.fitted, self.state, repeated)

    def _search(self, rng: np.random.Generator, fixed: Array, tried: Flags) -> tuple[Array, bool]:
        data, valid = self.observations, self.observations.valid()
        believing = self.fitted.believing(data.pending) if len(data.pending) else self.fitted
        criterion = self.strategy.acquisition.prepare(valid, believing, self.map)
        objective = _Objective(Landscape(believing, criterion), self.feasibility, spread(valid.y) or 1.0)
        anchors = valid.x[np.argsort(self.fitted.smoothed(), kind="stable")[:ANCHORS]]
        again = data.feasible & self._noisy(anchors)  # under noise a success may be worth another look
        excluded = data.seen()[tried & ~np.concatenate([again, np.zeros(len(data.pending), dtype=bool)])]
        maximize = partial(self.strategy.search.maximize, objective, data.cube, rng=rng, anchors=anchors, fixed=fixed)
        return _untried(maximize, excluded)

    def _noisy(self, x: Array) -> bool:
        """Whether an outcome at ``x`` differs from the function by a twentieth of the outcomes' spread or more."""
        predicted, latent = self.fitted.predict(x).scale, self.fitted.latent(x).scale
        noise = float((predicted * np.sqrt(1.0 - np.square(latent / predicted))).mean())
        scale = spread(self.observations.valid().y)
        return scale > 0.0 and noise >= 0.05 * scale


def _untried(maximize: Any, excluded: Array) -> tuple[Array, bool]:
    """The maximum outside ``excluded``, or the maximum of all and True where there is nothing outside."""
    x = maximize(excluded=excluded)
    return (maximize(excluded=excluded[:0]), True) if x is None else (x, False)


@dataclass(frozen=True, eq=False)
class _Objective:
    """What is maximised: the landscape of a criterion, weighed by the probability of success."""

    landscape: Landscape
    feasibility: FittedFeasibility
    spread: float

    def value(self, x: Array) -> Array:
        value = self.landscape.value(x)
        return self._weighed(value, self.feasibility.value(x))[0] if self.feasibility.parts else value

    def value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        value, gradient = self.landscape.value_and_gradient(x)
        if not self.feasibility.parts:
            return value, gradient
        log_p, d_log_p = self.feasibility.value_and_gradient(x)
        weighed, by_value, by_log_p = self._weighed(value, log_p)
        return weighed, by_value[:, None] * gradient + by_log_p[:, None] * d_log_p

    def _weighed(self, value: Array, log_p: Array) -> tuple[Array, Array, Array]:
        """The criterion with feasibility, and its derivatives by both."""
        scale = self.landscape.criterion.scale
        if scale == "log":
            return value + log_p, np.ones_like(value), np.ones_like(value)
        if scale == "gain":
            p = np.exp(log_p)
            return value * p, p, value * p
        # a bound has no zero to be scaled towards: it counts in full where success is likelier than not
        short = np.minimum(log_p - log(0.5), 0.0)
        weight = PENALTY * self.spread
        return value + weight * short, np.ones_like(value), np.where(short < 0.0, weight, 0.0)


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
    if not isinstance(strategy, str) or strategy not in PRESETS:
        raise InputError(f"`strategy` must be a Strategy or one of {sorted(PRESETS)}, but got {strategy!r}.")
    return PRESETS[strategy]
