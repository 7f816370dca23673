"""Strategy: the few lines that join the rooms."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import log
from typing import Any, Literal, get_args

import numpy as np

from calibo.acquisition import (
    Acquisition,
    Aimed,
    AimedLandscape,
    ForecastLandscape,
    KnownAcquisition,
    Landscape,
    LogExpectedImprovement,
    ProbabilityOfImprovement,
    surely_below,
)
from calibo.acquisition.improvement import ProbabilityCriterion
from calibo.branches import Branches, filled, stilled
from calibo.calibration import (
    Aim,
    CalibrationMap,
    Evidence,
    Fit,
    Gate,
    NoEvidence,
    NoRecalibration,
    Recalibrator,
    Record,
    Scored,
    ShiftScaleRecalibrator,
    Stream,
)
from calibo.cube import Cube
from calibo.design import Design, design_points, design_size
from calibo.errors import InputError
from calibo.feasibility import Feasibility, FittedFeasibility
from calibo.forecasts import Forecast
from calibo.observations import Observations, spread
from calibo.optimum import FIRST, Optimum
from calibo.parts import identity, register
from calibo.search import Search
from calibo.surrogate import FittedSurrogate, ModelChoice, Surrogate
from calibo.threads import one_blas_thread
from calibo.types import Array, Flags

__all__ = ["FittedStrategy", "Proposal", "Recalibrate", "Strategy"]

Recalibrate = Literal["auto", "always", "never"]

PENALTY = 100.0  # of a bound where failure is likelier than success, in spreads of the outcomes
ANCHORS = 5  # best points around which the search looks closely
ENDS = np.array([[-1.0], [1.0]])  # scores between which half the width of a Normal is its standard deviation
APART = 1e-4  # of every continuous axis: a point so near to a pending one would hardly tell more
DESIGN_TRIES = 64  # points of the design looked through for one not tried yet


METHODS = {
    "surrogate": ("fit", "refit"),
    "evidence": ("scores",),
    "recalibrator": ("fit",),
    "acquisition": ("prepare",),
    "feasibility": ("fit",),
    "search": ("maximize",),
}
"""What each part of a strategy must have."""


def _article(name: str) -> str:
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


@dataclass(frozen=True, eq=False)
class Proposal:
    """Where to evaluate next, and what was believed when that was decided."""

    x: Array
    """(d,); NaN where the point has no such column."""

    forecast: Forecast | None = None
    """Of the observation at x, from finished evaluations alone, before recalibration; None before there is a model."""

    map: CalibrationMap = field(default_factory=CalibrationMap)
    fitted: FittedSurrogate | None = None

    record: Record | None = None
    """The forecast as it is stored with the evaluation, to be checked against the outcome."""

    state: Mapping[str, Any] | None = None
    """Storable; handed to the next proposal as ``previous`` it saves work and changes nothing."""

    repeated: bool = False
    """True where no configuration was found that had not been tried."""


@register("strategy")
@dataclass(frozen=True)
class Strategy:
    """A recipe for proposals."""

    surrogate: Surrogate = field(default_factory=ModelChoice)
    evidence: Evidence = Stream()
    recalibrator: Recalibrator = Gate()
    acquisition: Acquisition = LogExpectedImprovement()
    feasibility: Feasibility = Feasibility()
    search: Search = Search()

    initial: int | None = None
    """Evaluations of the design before the first model; None for the dimension, 4 to 10."""

    design: Design = "sobol"
    """How they fill the space: a scrambled Sobol sequence, a Latin hypercube, or at random."""

    def __post_init__(self) -> None:
        if self.initial is not None and (not isinstance(self.initial, int | np.integer) or self.initial < 0):
            raise InputError(f"`initial` must be None or a whole number of at least 0, but got {self.initial!r}.")
        if self.design not in get_args(Design):
            raise InputError(f"`design` must be one of {list(get_args(Design))}, but got {self.design!r}.")
        for name, methods in METHODS.items():
            part = getattr(self, name)
            if isinstance(part, type) or not all(callable(getattr(part, method, None)) for method in methods):
                raise InputError(f"`{name}` must be {_article(name)} with {' and '.join(methods)}, but got {part!r}.")
        identity(self)  # raises where a part has no registered name
        if hasattr(self.acquisition, "check"):
            self.acquisition.check(self.surrogate, self.recalibrator)
        if isinstance(self.acquisition, KnownAcquisition):
            self.acquisition.demand_scale(self.surrogate)

    @property
    def waiting(self) -> tuple[str, ...]:
        """The parts that need a known optimum and have none yet."""
        parts = (part for part in (self.surrogate, self.acquisition) if getattr(part, "optimum", self) is None)
        return tuple(type(part).__name__ for part in parts)

    def demand_optimum(self) -> None:
        """Raise where a part waits for a known optimum."""
        if self.waiting:
            raise InputError(
                f"`known_optimum` must be given for a strategy with {' and '.join(self.waiting)}, but is not. "
                "Give it, on the command line by --known-optimum, or take another strategy."
            )

    def initial_size(self, cube: Cube) -> int:
        """How many evaluations the design takes in this cube."""
        return design_size(cube) if self.initial is None else self.initial

    def recalibrating(self, mode: Recalibrate) -> "Strategy":
        """The same strategy that corrects its forecasts "always", "never", or as far as it has helped: "auto"."""
        if mode not in get_args(Recalibrate):
            raise InputError(f"`recalibrate` must be one of {list(get_args(Recalibrate))}, but got {mode!r}.")
        if mode == "never":
            return replace(self, evidence=NoEvidence(), recalibrator=NoRecalibration())
        evidence = Stream() if isinstance(self.evidence, NoEvidence) else self.evidence
        gate = self.recalibrator if isinstance(self.recalibrator, Gate) else Gate(self.recalibrator)
        if isinstance(gate.recalibrator, NoRecalibration):
            gate = replace(gate, recalibrator=ShiftScaleRecalibrator())
        return replace(self, evidence=evidence, recalibrator=gate if mode == "auto" else gate.recalibrator)

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
        size = self.initial_size(observations.cube)
        if not count or count < size:
            points = design_points(self.design, len(observations.cube), size, count, DESIGN_TRIES, seed)
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
            fit = Fit(self.surrogate, fitted, valid, rng, previous.get("evidence") or {})
            evidence, map = self.corrected(fit)
            feasible = self.feasibility.fit(observations, rng=rng, previous=previous.get("feasibility"))
        return FittedStrategy(self, observations, fitted, evidence, map, feasible)

    def corrected(self, fit: Fit) -> tuple[Scored, CalibrationMap]:
        """The evidence and the correction; a gate judges it by the stream, wherever it was learned."""
        evidence = self.evidence.scores(fit)
        if not isinstance(self.recalibrator, Gate) or isinstance(self.evidence, Stream):
            return evidence, self.recalibrator.fit(evidence.scores)
        return evidence, self.recalibrator.fit(evidence.scores, Stream().scores(fit).scores)

    def _where_success_is_likeliest(
        self,
        observations: Observations,
        rng: np.random.Generator,
        fixed: Array,
        tried: Flags,
        previous: Mapping[str, Any],
    ) -> Proposal:
        """Far from all failures, and where limits are exceeded least; pending points are kept away from, too."""
        known = previous.get("feasibility")
        objective = self.feasibility.fit(observations, rng=rng, previous=known, shunned=observations.pending)
        maximize = partial(self.search.maximize, objective, observations.cube, rng=rng, fixed=fixed)
        x, repeated = _untried(partial(maximize, anchors=observations.x[:0]), observations, tried)
        state = {"surrogate": previous.get("surrogate") or {}, "feasibility": objective.state}
        return Proposal(x, state=state, repeated=repeated)


@dataclass(frozen=True, eq=False)
class FittedStrategy:
    """What is believed of the objective: the surrogate, how it is recalibrated, and where evaluations succeed."""

    strategy: Strategy
    observations: Observations
    fitted: FittedSurrogate
    evidence: Scored
    map: CalibrationMap
    feasibility: FittedFeasibility
    """The log probability of success."""

    @property
    def state(self) -> Mapping[str, Any]:
        """See ``Proposal.state``."""
        parts = {"surrogate": self.fitted.state, "evidence": self.evidence.state}
        return {**parts, "feasibility": self.feasibility.state}

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
            everything = np.ones(len(self.observations.seen()), dtype=bool)
            x, repeated, aim = self._search(rng, fixed, everything if tried is None else tried)
            forecast, latent = self.fitted.predict(x[None]), self.fitted.latent(x[None])
        record = self.recorded(forecast, latent)
        if record is not None and aim is not None:
            record = replace(record, aim=aim)
        return Proposal(x, forecast, self.map, self.fitted, record, self.state, repeated)

    def recorded(self, forecast: Forecast, latent: Forecast) -> Record | None:
        """The forecast of an observation at one point, as it is stored; None where outcomes have no scale yet."""
        valid = self.observations.valid()
        if spread(valid.y) == 0.0:
            return None
        return Record.made(forecast, self.map, self.strategy.surrogate, latent, self.fitted.models)

    def chance(self, delta: float, *, rng: np.random.Generator, fixed: Array | None = None) -> float:
        """The highest probability found anywhere that the function is better than the best known by over ``delta``."""
        with one_blas_thread():
            criterion = ProbabilityCriterion(float(self.fitted.smoothed().min()) - delta, self.map)
            objective = self._objective(ForecastLandscape(self.fitted, criterion))
            x = self._maximizer(objective, rng, fixed)(excluded=_nothing)
            return min(float(np.exp(objective.value(x[None])[0])), 1.0)  # what breaks ties may add a little

    def _search(self, rng: np.random.Generator, fixed: Array | None, tried: Flags) -> tuple[Array, bool, Aim | None]:
        """The point to evaluate, whether it was tried before, and whether it is aimed at a known optimum."""
        data = self.observations
        believing = self.fitted.believing(data.pending) if len(data.pending) else self.fitted
        acquisition = self.strategy.acquisition
        # the most probable improvement is the same under every map; how probable it is matters beside failures alone
        raw = isinstance(acquisition, ProbabilityOfImprovement) and not (acquisition.mapped or self.feasibility.parts)
        landscape = acquisition.prepare(data.valid(), believing, CalibrationMap() if raw else self.map)
        again = data.feasible & self._noisy()  # under noise a success may be worth another look
        settled = tried & ~np.concatenate([again, np.zeros(len(data.pending), dtype=bool)])
        x, repeated = _untried(self._maximizer(self._objective(landscape), rng, fixed), data, settled)
        if not isinstance(acquisition, Aimed):
            return x, repeated, None
        if not isinstance(landscape, AimedLandscape):
            return x, repeated, "wrong" if acquisition.surpassed(data.valid(), believing) else "another model"
        if landscape.within_reach(x):
            return x, repeated, "regret"
        x, repeated = _untried(self._maximizer(self._objective(landscape.otherwise), rng, fixed), data, settled)
        return x, repeated, "out of reach"

    def _objective(self, landscape: Landscape) -> "_Objective":
        return _Objective(landscape, self.feasibility, spread(self.observations.valid().y) or 1.0)

    def _maximizer(self, objective: "_Objective", rng: np.random.Generator, fixed: Array | None) -> Any:
        cube = self.observations.cube
        held = np.full((1, len(cube)), np.nan) if fixed is None else fixed
        search = partial(self.strategy.search.maximize, objective, cube, screen=objective.screened)
        return partial(search, rng=rng, anchors=self._anchors, fixed=held)

    @cached_property
    def _anchors(self) -> Array:
        """(a, d) the best points: around them the search looks closely."""
        return self.observations.valid().x[np.argsort(self.fitted.smoothed(), kind="stable")[:ANCHORS]]

    def reaches(self, optimum: Optimum) -> bool:
        """Whether the best is within the tolerance of the least value, which is not wrong; freed from noise."""
        valid = self.observations.valid()
        least, slack, best = optimum.value, optimum.slack(valid.y), float(valid.y.min())
        told = bool(np.any(valid.noise_std > 0.0))
        noisy = told or self._noisy()
        lucky = told or (noisy and len(valid) >= FIRST)  # few outcomes do not tell noise from a wrong value
        if surely_below(self.fitted, valid.x, least - slack) or (best < least - slack and not lucky):
            return False
        if noisy:
            best = float(self.forecast(valid.x).at_score(float(self.map.inverse(0.0))).min())
        return best <= least + slack

    def _noisy(self) -> bool:
        """Whether outcomes at good points differ from the function by a twentieth of their spread or more."""
        ends = (of(self._anchors).at_score(ENDS) for of in (self.fitted.predict, self.fitted.latent))
        observed, function = (np.maximum(0.5 * high - 0.5 * low, 1e-300) for low, high in ends)
        noise = float(
            (observed * np.sqrt(np.maximum(1.0 - np.square(np.minimum(function / observed, 1.0)), 0.0))).mean()
        )
        scale = spread(self.observations.valid().y)
        return scale > 0.0 and noise >= 0.05 * scale


def _untried(maximize: Any, observations: Observations, tried: Flags) -> tuple[Array, bool]:
    """The best point that is none of those seen and ``tried`` (n + q,), nor near a pending one.

    Where there is no such point, the best of all; and whether the point was tried before.
    """
    cube, seen = observations.cube, observations.seen()[tried]
    pending = observations.pending[tried[len(observations) :]]
    x = maximize(excluded=lambda x: cube.among(x, seen) | cube.among(x, pending, APART))
    if x is None:
        x = maximize(excluded=_nothing)
    return x, bool(cube.among(x[None], seen)[0])


def _nothing(x: Array) -> Flags:
    return np.zeros(len(x), dtype=bool)


@dataclass(frozen=True, eq=False)
class _Objective:
    """What is maximised: the landscape of an acquisition, weighed by the probability of success."""

    landscape: Landscape
    feasibility: FittedFeasibility
    spread: float

    def value(self, x: Array) -> Array:
        value = self.landscape.value(x)
        return self._weighed(value, self.feasibility.value(x))[0] if self.feasibility.parts else value

    def screened(self, x: Array) -> Array:
        value = self.landscape.screened(x)
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
        scale = self.landscape.scale
        if scale == "log":
            return value + log_p, np.ones_like(value), np.ones_like(value)
        if scale == "gain":
            p = np.exp(log_p)
            return value * p, p, value * p
        # a bound has no zero to be scaled towards: it counts in full where success is likelier than not
        short = np.minimum(log_p - log(0.5), 0.0)
        weight = PENALTY * self.spread
        return value + weight * short, np.ones_like(value), np.where(short < 0.0, weight, 0.0)
