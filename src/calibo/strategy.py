"""Strategy: a surrogate, its recalibration, an acquisition function and its search, combined to propose points.

What is decided and what is reported are two views of the same outcomes. Decisions are made with the strategy's own
surrogate, which finds good points fast. What people read comes from its ``report``, which holds from the first outcomes
on: forecasts, recommendations, audits, and the probability that a search goes on to improve.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from calibo.acquisition import Acquisition, ForecastLandscape, Landscape, LogExpectedImprovement
from calibo.acquisition.base import Criterion
from calibo.acquisition.improvement import LogImprovementCriterion, ProbabilityCriterion
from calibo.acquisition.known_optimum import surely_below
from calibo.arrays import Array, Flags
from calibo.calibration import Gate, Prequential, Recalibrator, Record, ScoreSource
from calibo.calibration.prequential import noise_between, recorded_scores
from calibo.conditional import ConditionalParameters
from calibo.cube import Cube
from calibo.design import Design, design_points
from calibo.errors import InputError
from calibo.feasibility import Feasibility, FittedFeasibility, WeightedLandscape
from calibo.forecaster import FittedForecaster, Forecaster, Recalibrate
from calibo.forecasts import NO_CORRECTION, CalibrationMap, Forecast
from calibo.html import table
from calibo.models import FittedSurrogate, IntegratedProcess, ModelChoice, Surrogate
from calibo.observations import Observations, spread
from calibo.optimum import FIRST, Optimum
from calibo.parts import identity, register
from calibo.search import Search
from calibo.space import Params
from calibo.threads import one_blas_thread
from calibo.transforms import IDENTITY

if TYPE_CHECKING:
    from calibo.side_information import SideInformation

ANCHORS = 5  # best points to search around
ENDS = np.array([[-1.0], [1.0]])  # normal scores; half the width between them is the sigma of a Normal
APART = 1e-4  # fraction of every continuous axis: a point this close to a pending one adds little information
FAR_APART = 0.1  # the same before the first success, when no model tells points apart, and for promising points
INDISTINCT = 0.1  # standard deviations of an outcome, by which rounding may move the forecast
DESIGN_TRIES = 64  # design points to search for one not tried yet
INFORMED_INITIAL = 2  # size of the initial design with prior studies
NOISY = 0.05  # noise in spreads of the outcomes, on the scale of the model, from which a point may be worth repeating
EXACT = 2e-3  # noise below which outcomes are exact; the prior expects 3e-3
REPORTED = 3  # outcomes from which reports are recorded
PROMISING = 16  # points whose improvement is considered when the rest of a study is judged
NEGLIGIBLE = 1e-4  # probability of improving from which on further points are left out
REPORT = Forecaster(IntegratedProcess(), Prequential(first=REPORTED))

PARTS = {"acquisition": Acquisition, "feasibility": Feasibility, "search": Search}


Correction = Literal["always", "noise", "never"]

Rounding = Callable[[Array], Sequence[Array]]
"""Points (d,) near the given one, at values that a person can set: fewest digits first."""


def _exact(x: Array) -> list[Array]:
    return [x]


@dataclass(frozen=True, eq=False)
class Proposal:
    """Where to evaluate next."""

    x: Array
    """(d,); NaN for inactive parameters."""

    record: Record | None = None
    """The stored forecast at ``x``, from finished evaluations only; None before the first model."""

    report: Record | None = None
    """The forecast reported, if the strategy has a view for it; None before the third outcome."""

    state: Mapping[str, Any] | None = None
    """A cache that can be stored: pass it to the next proposal as ``previous``. It does not change the result."""

    repeated: bool = False
    """True if no untried configuration was found."""


@dataclass(frozen=True, repr=False)
class Recommendation:
    """The evaluated point with the best posterior median."""

    params: Params
    median: float
    interval: tuple[float, float]
    """90 % credible interval of the noise-free value."""

    noise: float = 0.0
    """Standard deviation by which repeated measurements of this point would vary, as far as is known."""

    def __repr__(self) -> str:
        params = {name: float(f"{v:.6g}") if isinstance(v, float) else v for name, v in self.params.items()}
        low, high = self.interval
        return (
            f"Recommendation(params={params!r}, median={self.median:.6g}, interval=({low:.6g}, {high:.6g}), "
            f"noise={self.noise:.2g})"
        )

    def _repr_html_(self) -> str:
        """For notebooks."""
        low, high = self.interval
        return table(
            [
                *self.params.items(),
                ("median", self.median),
                ("90 % interval", f"{low:.6g} to {high:.6g}"),
                ("noise", f"{self.noise:.2g}"),
            ]
        )


@register("strategy", stored_as={"score_source": "evidence"}, absent={"decide": "always"})
@dataclass(frozen=True)
class Strategy:
    """How points are proposed."""

    surrogate: Surrogate = field(default_factory=ModelChoice)
    score_source: ScoreSource = Prequential()
    recalibrator: Recalibrator = Gate()
    acquisition: Acquisition = LogExpectedImprovement()
    feasibility: Feasibility = Feasibility()
    search: Search = Search()

    initial: int | None = None
    """Size of the initial design; None for the dimension, clipped to 4 to 10."""

    design: Design = "sobol"
    """Kind of initial design: a scrambled Sobol sequence, a Latin hypercube, or random points."""

    report: Forecaster | None = REPORT
    """The view for people; None to report what it decides with."""

    decide: Correction = "noise"
    """When decisions read calibrated forecasts: "always", "never", or "noise": until the model that decides has found
    that outcomes are exact."""

    def __post_init__(self) -> None:
        if self.initial is not None and (not isinstance(self.initial, int | np.integer) or self.initial < 0):
            raise InputError(f"`initial` must be None or a whole number of at least 0, but got {self.initial!r}.")
        if self.decide not in get_args(Correction):
            raise InputError(f"`decide` must be one of {list(get_args(Correction))}, but got {self.decide!r}.")
        if self.design not in get_args(Design):
            raise InputError(f"`design` must be one of {list(get_args(Design))}, but got {self.design!r}.")
        for name, kind in PARTS.items():
            if not isinstance(getattr(self, name), kind):
                raise InputError(f"`{name}` must be of type {kind.__name__}, but got {getattr(self, name)!r}.")
        if self.report is not None and not isinstance(self.report, Forecaster):
            raise InputError(f"`report` must be None or a Forecaster, but got {self.report!r}.")
        _ = self.decider  # raises if a part of it has another type
        identity(self)  # raises if a part has no registered name
        self.acquisition.check(self.surrogate, self.recalibrator)

    @property
    def decider(self) -> Forecaster:
        """How the forecasts are made by which points are chosen."""
        return Forecaster(self.surrogate, self.score_source, self.recalibrator)

    def require_optimum(self) -> None:
        """Raise if a part needs a known optimum and has none."""
        lacking = [type(part).__name__ for part in (self.surrogate, self.acquisition) if part.lacks_optimum]
        if lacking:
            raise InputError(
                f"`known_optimum` must be given for a strategy with {' and '.join(lacking)}, but is not. "
                "Pass it, or choose another strategy."
            )

    def with_side_information(self, info: "SideInformation") -> "Strategy":
        """The strategy with prior studies and a known optimum added to its side information."""
        needed = self.surrogate.needs_optimum or self.acquisition.needs_optimum
        info = replace(info, only_where_needed=needed)
        return replace(
            self,
            surrogate=self.surrogate.with_side_information(info),
            acquisition=self.acquisition.with_side_information(info),
            initial=INFORMED_INITIAL if info.sources and self.initial is None else self.initial,
            report=None if info.sources else self.report,  # which knows nothing of prior studies
        )

    def initial_size(self, cube: Cube) -> int:
        """Size of the initial design in this cube."""
        return cube.design_size if self.initial is None else self.initial

    def with_recalibration(self, mode: Recalibrate) -> "Strategy":
        """The same strategy that recalibrates "always", "never", or, if "auto", as far as it improved forecasts."""
        decider = self.decider.with_recalibration(mode)
        report = None if self.report is None else self.report.with_recalibration(mode)
        decide: Correction = "always" if mode == "always" else self.decide
        parts = {"score_source": decider.score_source, "recalibrator": decider.recalibrator}
        return replace(self, **parts, report=report, decide=decide)  # type: ignore[arg-type]

    def propose(
        self,
        observations: Observations,
        *,
        seed: int,
        previous: Mapping[str, Any] | None = None,
        fixed: Array | None = None,
        rounded: Rounding = _exact,
    ) -> Proposal:
        """The next point to evaluate, determined by the observations and the ``seed`` of the run.

        The initial design comes first, then the model. Non-NaN columns of ``fixed`` (d,) are kept. The point is
        ``rounded`` before its forecast is made: as far as the model hardly tells the difference.
        """
        count = len(observations) + len(observations.pending)
        rng = np.random.default_rng([seed, count])
        fixed = np.full(len(observations.cube), np.nan) if fixed is None else fixed
        conditional = ConditionalParameters.learn(observations, fixed, rng)
        tried = conditional.fully_described(observations)
        imputed = conditional.impute(observations)
        x = self._from_design(imputed, conditional.fixed, tried, count, seed)
        if x is not None:
            x = rounded(x)[0]
            return Proposal(conditional.deactivate(x), report=self.report_at(x, imputed, previous), state=previous)
        fitted = self.fit(imputed, rng=rng, previous=previous)
        proposal = fitted.propose(rng=rng, fixed=conditional.fixed, tried=tried, rounded=rounded)
        return replace(proposal, x=conditional.deactivate(proposal.x))

    def _from_design(
        self, observations: Observations, fixed: Array, tried: Flags, count: int, seed: int
    ) -> Array | None:
        """The next design point that was not ``tried``; cycles through the rows of ``fixed`` (b, d)."""
        size = self.initial_size(observations.cube)
        if count and count >= size:
            return None
        points = design_points(self.design, len(observations.cube), size, count, DESIGN_TRIES, seed)
        row = fixed[count % len(fixed)]
        points = observations.cube.snap(np.where(np.isnan(row), points, row))
        fresh = points[~observations.cube.among(points, observations.all_points()[tried])]
        return fresh[0] if len(fresh) else None

    def scores(
        self, records: Sequence[tuple[Record | None, Record | None]], y: Array, noise_std: Array
    ) -> tuple[Array, Array | None]:
        """(n,) normal scores of outcomes under recorded forecasts, decided and reported; NaN without one."""
        decided = recorded_scores([record for record, _ in records], y, noise_std, self.surrogate)
        if self.report is None:
            return decided, None
        return decided, recorded_scores([report for _, report in records], y, noise_std, self.report.surrogate)

    def report_at(
        self, x: Array, observations: Observations, previous: Mapping[str, Any] | None = None
    ) -> Record | None:
        """The forecast reported at ``x`` (d,), without a decision; None without a view for it, or too early."""
        valid = observations.impute().valid()
        if self.report is None or len(valid) < REPORTED:
            return None
        return _fit_report(self.report, valid, previous or {}).record(x)

    def fit(
        self, observations: Observations, *, rng: np.random.Generator, previous: Mapping[str, Any] | None = None
    ) -> "FittedStrategy":
        """The posterior given ``observations``, its calibration map, and the feasibility model."""
        observations = observations.impute()
        previous, valid = previous or {}, observations.valid()
        decider = None
        if len(valid):
            decider = self.decider.fit(
                valid, rng=rng, previous=previous.get("surrogate"), scored=previous.get("evidence")
            )
        with one_blas_thread():
            avoid = None if len(valid) else observations.pending  # before the first feasible value
            feasible = self.feasibility.fit(observations, rng=rng, previous=previous.get("feasibility"), avoid=avoid)
        return FittedStrategy(self, observations, decider, feasible, previous)


def _fit_report(report: Forecaster, valid: Observations, previous: Mapping[str, Any]) -> FittedForecaster:
    """With a generator of its own, so that it never changes decisions."""
    rng = np.random.default_rng(len(valid))
    known = {**(previous.get("surrogate") or {}), **(previous.get("report") or {})}  # both views share fits
    seen = replace(valid, scores=valid.report_scores)
    return report.fit(seen, rng=rng, previous=known, scored=previous.get("report_scores"))


def _report_state(fitted: FittedForecaster, state: Mapping[str, Any]) -> dict[str, Any]:
    """What is not part of the state of the decisions."""
    known = state.get("surrogate") or {}
    fits = {key: fit for key, fit in fitted.surrogate.state.items() if key not in known}
    return {"report": fits, "report_scores": fitted.scored.state}


@dataclass(frozen=True, eq=False)
class FittedStrategy:
    """The posterior of the objective, its calibration map, and the probability of feasibility."""

    strategy: Strategy
    observations: Observations

    decider: FittedForecaster | None
    """The view by which points are chosen; None before the first feasible value."""

    feasibility: FittedFeasibility
    previous: Mapping[str, Any]

    @property
    def deciding(self) -> FittedForecaster:
        """The view by which points are chosen."""
        if self.decider is None:
            raise InputError("A forecast must have a feasible value, but there is none yet.")
        return self.decider

    @cached_property
    def reporting(self) -> FittedForecaster:
        """The view for people."""
        deciding, report = self.deciding, self.strategy.report
        return deciding if report is None else _fit_report(report, self.observations.valid(), self._decided_state)

    @property
    def fitted(self) -> FittedSurrogate:
        """The surrogate that decides."""
        return self.deciding.surrogate

    @property
    def map(self) -> CalibrationMap:
        """The calibration map of decisions."""
        return NO_CORRECTION if self.decider is None else self.decider.map

    @property
    def _decided_state(self) -> dict[str, Any]:
        surrogate, scores = ({}, {}) if self.decider is None else (self.fitted.state, self.decider.scored.state)
        kept = {part: self.previous[part] for part in ("report", "report_scores") if part in self.previous}
        return {"surrogate": surrogate, "evidence": scores, "feasibility": self.feasibility.state, **kept}

    @property
    def state(self) -> Mapping[str, Any]:
        """See ``Proposal.state``."""
        state = self._decided_state
        if self.strategy.report is not None and "reporting" in vars(self):  # it was used
            state |= _report_state(self.reporting, state)
        return state

    def forecast(self, x: Array, *, noise: bool = False) -> Forecast:
        """The reported posterior of the function at each point (n, d); with ``noise``, of an observation."""
        return self.reporting.forecast(x, noise=noise)

    def recommend(self, params: Sequence[Params], sign: float) -> Recommendation:
        """Recommend one of the feasible observations at ``params``; ``sign`` restores the user's direction."""
        x = self.observations.valid().x
        best = int(np.argmin(self.reporting.forecast_if_recommended(x).median))
        forecast = self.reporting.forecast_if_recommended(x[[best]])[0]
        observed = self.forecast(x[[best]], noise=True)[0]
        point = forecast if sign > 0.0 else forecast.negate()
        low, high = point.interval(0.9)
        noise = float(noise_between(observed.raw, forecast.raw))
        return Recommendation(params[best], float(point.median), (float(low), float(high)), noise)

    def propose(
        self,
        *,
        rng: np.random.Generator,
        fixed: Array | None = None,
        tried: Flags | None = None,
        rounded: Rounding = _exact,
    ) -> Proposal:
        """The next point (d,) to evaluate; it matches the non-NaN values of one row of ``fixed`` (b, d).

        It repeats none of the points flagged in ``tried`` (n + q,), by default all.
        """
        tried = np.ones(len(self.observations.all_points()), dtype=bool) if tried is None else tried
        with one_blas_thread():
            if self.decider is None:
                search = partial(self._search, self.feasibility, rng, fixed, self.observations.x[:0])
                x, repeated = _untried(search, self.observations, tried, apart=FAR_APART)
                return Proposal(rounded(x)[0], state=self.state, repeated=repeated)
            x, repeated, landscape = self._maximize_acquisition(rng, fixed, tried)
        x, again = self._settable(x, rounded(x), tried)
        record, report = self.make_records(x)
        if record is not None and landscape.aim is not None:
            record = replace(record, aim=landscape.aim)
        return Proposal(x, record, report, self.state, repeated or again)

    def _settable(self, x: Array, rounded: Sequence[Array], tried: Flags) -> tuple[Array, bool]:
        """The roughest ``rounded`` point that is new, or the next one if the model tells it from ``x``.

        If all were tried, the last, and True.
        """
        if len(rounded) == 1 and rounded[0] is x:
            return x, False
        known = self.observations.all_points()[self._not_again(tried)]
        new = [near for near in rounded if not (known == near).all(axis=1).any()]
        if len(new) < 2:
            return (new or rounded)[-1], not new
        forecast = self.deciding.forecast(np.array([x, new[0]]), noise=True)
        low, high = forecast.at_normal_score(ENDS)[:, 0]
        return new[int(abs(np.diff(forecast.median)[0]) > INDISTINCT * 0.5 * (high - low))], False

    def make_records(self, x: Array) -> tuple[Record | None, Record | None]:
        """The forecasts of an observation at ``x`` (d,) as they are stored: decided, and reported."""
        record = self.deciding.record(x)
        if self.strategy.report is None or len(self.observations.valid()) < REPORTED:
            return record, None
        return record, self.reporting.record(x)

    def probability_of_improvement(
        self, resolution: float, *, rng: np.random.Generator, fixed: Array | None = None, enough: float = 1.0
    ) -> float:
        """The probability that one of the most promising points improves on the best by more than ``resolution``.

        1 - prod_k (1 - p_k), where p_k is the highest probability over the space, given that the points before it did
        not improve. As soon as it is ``enough``, no further points are added.
        """
        surrogate, best = self.reporting.surrogate, self._best_reported
        criterion = ProbabilityCriterion(best - resolution, self.reporting.map)
        found, none = self.observations.x[:0], 1.0
        with one_blas_thread():
            for _ in range(PROMISING):
                x, chance = self._most_promising(surrogate, criterion, rng, fixed, found)
                none *= 1.0 - min(chance, 1.0)  # tie-breaking may add a little
                if 1.0 - none >= enough or chance < NEGLIGIBLE:
                    break
                found = np.concatenate([found, x[None]])
                surrogate = surrogate.condition(x[None], np.maximum(surrogate.posterior(x[None]).median, best))
        return 1.0 - none

    def expected_improvement(self, *, rng: np.random.Generator, fixed: Array | None = None) -> float:
        """The highest expected improvement over the space, in units of the value."""
        criterion = LogImprovementCriterion(self._best_reported, IDENTITY, self.reporting.map)
        with one_blas_thread():
            return self._most_promising(self.reporting.surrogate, criterion, rng, fixed, self.observations.x[:0])[1]

    @property
    def _best_reported(self) -> float:
        return float(self.reporting.surrogate.in_sample_mean(self.observations.valid().x).min())

    def _most_promising(
        self,
        surrogate: FittedSurrogate,
        criterion: Criterion,
        rng: np.random.Generator,
        fixed: Array | None,
        found: Array,
    ) -> tuple[Array, float]:
        """The point (d,) with the largest value of a criterion on a log scale, and exp of that value.

        It is not near one of those ``found`` (k, d) before.
        """
        landscape, cube = ForecastLandscape(surrogate, criterion), self.observations.cube
        objective = replace(self._objective(landscape), feasibility=self.feasibility)  # without a penalty
        x = self._search(objective, rng, fixed, self._anchors, excluded=lambda x: cube.among(x, found, FAR_APART))
        if x is None:  # there is no other point
            return self._anchors[0], 0.0
        return x, float(np.exp(objective.value(x[None])[0]))

    def reaches(self, optimum: Optimum) -> bool:
        """Whether the best noise-free value is within the tolerance of ``optimum``; False if that is refuted."""
        valid = self.observations.valid()
        least, tolerance, best = optimum.value, optimum.tolerance_for(valid.y), float(valid.y.min())
        noise_known = bool(np.any(valid.noise_std > 0.0))
        noisy = noise_known or self._is_noisy
        lucky = noise_known or (noisy and len(valid) >= FIRST)  # few outcomes cannot tell noise from a wrong optimum
        if surely_below(self.fitted, valid.x, least - tolerance) or (best < least - tolerance and not lucky):
            return False
        if noisy:
            best = float(self.forecast(valid.x).median.min())
        return best <= least + tolerance

    def _maximize_acquisition(
        self, rng: np.random.Generator, fixed: Array | None, tried: Flags
    ) -> tuple[Array, bool, Landscape]:
        """The point to evaluate, whether it was tried before, and the landscape whose maximum it is."""
        data, acquisition = self.observations, self.strategy.acquisition
        posterior = self.fitted.condition_on_mean(data.pending) if len(data.pending) else self.fitted
        by_map = acquisition.depends_on_map(constrained=bool(self.feasibility.parts)) and self._decides_calibrated
        landscape: Landscape | None = acquisition.prepare(
            data.valid(), posterior, self.map if by_map else NO_CORRECTION
        )
        tried = self._not_again(tried)
        while landscape is not None:
            searched = landscape
            search = partial(self._search, self._objective(searched), rng, fixed, self._anchors)
            x, repeated = _untried(search, data, tried)
            landscape = searched.fallback(x)
        return x, repeated, searched

    @property
    def _decides_calibrated(self) -> bool:
        mode = self.strategy.decide
        return mode == "always" or (mode == "noise" and self._noise_share >= EXACT)

    def _not_again(self, tried: Flags) -> Flags:
        """The points not to repeat: with noise, a feasible one may be worth it."""
        again = self.observations.feasible & self._is_noisy
        again = np.concatenate([again, np.zeros(len(self.observations.pending), dtype=bool)])
        return np.asarray(tried & ~again)

    def _objective(self, landscape: Landscape) -> WeightedLandscape:
        feasible = self.feasibility.cautious() if landscape.scale in ("log", "gain") else self.feasibility
        return WeightedLandscape(landscape, feasible, spread(self.observations.valid().y) or 1.0)

    def _search(
        self, objective: Any, rng: np.random.Generator, fixed: Array | None, anchors: Array, *, excluded: Any
    ) -> Any:
        cube = self.observations.cube
        fixed = np.full((1, len(cube)), np.nan) if fixed is None else fixed
        return self.strategy.search.maximize(objective, cube, rng=rng, anchors=anchors, fixed=fixed, excluded=excluded)

    @cached_property
    def _anchors(self) -> Array:
        """(a, d) the best points, to search around."""
        x = self.observations.valid().x
        return x[np.argsort(self.fitted.in_sample_mean(x), kind="stable")[:ANCHORS]]

    @property
    def _is_noisy(self) -> bool:
        return self._noise_share >= NOISY

    @cached_property
    def _noise_share(self) -> float:
        """The standard deviation of the noise at good points, in spreads of the outcomes, on the scale of the model."""
        y = self.observations.valid().y
        observed, function = (self.fitted.posterior(self._anchors, noise=noise) for noise in (True, False))
        spreads = np.array([spread(transform(y)) for transform in observed.transforms])[:, None]
        if not np.all(spreads > 0.0):
            return 0.0
        known = np.minimum(function.scale / observed.scale, 1.0)
        return float(observed.weights @ (observed.scale / spreads * np.sqrt(1.0 - np.square(known))).mean(axis=1))


def _untried(search: Any, observations: Observations, tried: Flags, apart: float = APART) -> tuple[Array, bool]:
    """The best point that was not ``tried`` (n + q,) and is not near a pending one, and whether it was tried before.

    If there is no such point, the best of all.
    """
    cube, known = observations.cube, observations.all_points()[tried]
    pending = observations.pending[tried[len(observations) :]]
    x = search(excluded=lambda x: cube.among(x, known) | cube.among(x, pending, apart))
    if x is None:
        x = search(excluded=_nothing)
    return x, bool(cube.among(x[None], known)[0])


def _nothing(x: Array) -> Flags:
    return np.zeros(len(x), dtype=bool)
