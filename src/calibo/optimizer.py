"""Optimizer: the ask-and-tell interface. The only mutable object."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import isfinite
from typing import Any, Literal, SupportsFloat, overload

import numpy as np

from calibo.arrays import Array
from calibo.calibration import Record
from calibo.cube import SAME
from calibo.errors import REPEATED, InputError, JournalError, warn
from calibo.forecaster import Recalibrate
from calibo.forecasts import Forecast
from calibo.journal import Journal, json_number
from calibo.observations import LARGEST, Observations, constraint_matrix
from calibo.optimum import Optimum
from calibo.parts import build, spec
from calibo.presets import first_strategy, get_strategy
from calibo.side_information import SideInformation
from calibo.space import Digits, Params, Space, check_digits
from calibo.strategy import FittedStrategy, Recommendation, Strategy

ROUNDING_TOLERANCE = 0.01  # fraction of each range by which the evaluated point may differ from the one asked for


@dataclass(frozen=True)
class Trial:
    """One finished evaluation, in the user's units."""

    params: Params
    value: float
    """NaN if the evaluation failed."""

    noise: float | None = None
    """Known standard deviation of the value."""

    constraints: tuple[float, ...] = ()
    """The trial is feasible if all are at most 0."""

    record: Record | None = field(default=None, repr=False, compare=False)
    """The forecast made before the evaluation, by which the point was chosen, if it was asked for."""

    report: Record | None = field(default=None, repr=False, compare=False)
    """The forecast reported before the evaluation."""

    @property
    def failed(self) -> bool:
        """True if the value is not finite."""
        return not isfinite(self.value)

    @property
    def feasible(self) -> bool:
        """True if the evaluation succeeded and satisfies all constraints."""
        return not self.failed and all(constraint <= 0 for constraint in self.constraints)


class Optimizer:
    """Bayesian optimization with an ask-and-tell interface.

    The same seed and the same history of asks and tells give the same points, in any process.
    ``strategy`` is a `Strategy` or the name of a preset. ``recalibrate`` corrects forecasts "always", "never", or, if
    "auto", as far as that improved past forecasts. ``known_optimum`` is the best possible value, in the user's units
    and direction. With ``optimum_is_bound`` it need not be attainable. ``reached`` is True once the best value is
    within ``optimum_tolerance`` of it.
    """

    def __init__(
        self,
        space: Space | Mapping[str, Any],
        *,
        direction: Literal["minimize", "maximize"] = "minimize",
        strategy: str | Strategy | None = None,
        seed: int | None = None,
        recalibrate: Recalibrate | None = None,
        known_optimum: float | None = None,
        optimum_is_bound: bool = False,
        optimum_tolerance: float | None = None,
    ) -> None:
        if direction not in ("minimize", "maximize"):
            raise InputError(f"`direction` must be 'minimize' or 'maximize', but got {direction!r}.")
        if seed is not None and (not isinstance(seed, int | np.integer) or seed < 0):
            raise InputError(f"`seed` must be None or a whole number of at least 0, but got {seed!r}.")
        self.space = space if isinstance(space, Space) else Space(space)
        self.direction = direction
        self._requested = get_strategy(strategy, recalibrate)
        self._sign = 1.0 if direction == "minimize" else -1.0
        self.optimum = Optimum.from_arguments(known_optimum, optimum_is_bound, optimum_tolerance)
        self.strategy = self.with_optimum(self._requested)
        self.seed = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else int(seed)
        self._trials: list[Trial] = []
        self._points: list[Array] = []
        self._pending: list[_PendingTrial] = []
        self._queue: list[Params] = []
        self._counterexample: float | None = None  # value that refutes the known optimum
        self._state: Mapping[str, Any] | None = None
        self._fitted: FittedStrategy | None = None
        self._journal: Journal | None = None

    def __repr__(self) -> str:
        feasible = [trial for trial in self._trials if trial.feasible]
        best = f", best_value={self.best.value:.6g}" if feasible else ""
        return f"Optimizer({list(self.space)}, {self.direction}, {len(self._trials)} trials{best})"

    def with_optimum(self, strategy: Strategy) -> Strategy:
        """The strategy with the known optimum of this optimizer, if there is one."""
        if self.optimum is not None:
            strategy.acquisition.require_several_models("known_optimum")
            strategy = strategy.with_side_information(SideInformation(optimum=self.optimum.with_sign(self._sign)))
        strategy.require_optimum()
        return strategy

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Every finished evaluation, in the order told."""
        return tuple(replace(trial, params=dict(trial.params)) for trial in self._trials)

    @property
    def pending(self) -> tuple[Params, ...]:
        """Parameters asked for, and neither told nor canceled yet."""
        return tuple(dict(asked.params) for asked in self._pending)

    @property
    def best(self) -> Trial:
        """The feasible trial with the best value."""
        feasible = [trial for trial in self.trials if trial.feasible]
        if not feasible:
            raise InputError("`best` must have a feasible value, but none was told yet.")
        return min(feasible, key=lambda trial: self._sign * trial.value)

    @overload
    def ask(  # type: ignore[overload-overlap]
        self, n: Literal[1] = 1, *, fixed: Mapping[str, Any] | None = None, digits: Digits = None
    ) -> Params: ...
    @overload
    def ask(self, n: int, *, fixed: Mapping[str, Any] | None = None, digits: Digits = None) -> list[Params]: ...

    def ask(
        self, n: int = 1, *, fixed: Mapping[str, Any] | None = None, digits: Digits = None
    ) -> Params | list[Params]:
        """The parameters to evaluate next: a dictionary, or for n > 1 a batch of ``n`` as a list.

        Parameters in ``fixed`` keep their given value. With ``digits``, the others are rounded to that many digits of
        their range (of their value, on a log scale), for a person who sets them by hand; with "auto", to three digits,
        or to four if the model would notice the difference. Points are pending until told.
        """
        check_digits(digits)
        if not isinstance(n, int | np.integer) or isinstance(n, bool) or n < 1:
            raise InputError(f"`n` must be a whole number of at least 1, but got {n!r}.")
        held, queue = self._plain(fixed or {}), list(self._queue)
        asked: list[_PendingTrial] = []
        events = []
        for _ in range(n):
            # the first enqueued point that agrees with the fixed parameters
            agreeing = [i for i, params in enumerate(queue) if all(held.get(k, v) == v for k, v in params.items())]
            turn = agreeing[0] if agreeing else None
            given = {**held, **(queue.pop(turn) if turn is not None else {})}
            asked.append(self._complete_params(given, asked, digits))
            events.append(_ask_event(asked[-1], turn))
        self._log(*events, keep=False)  # an ask that raises changes nothing
        self._queue, self._pending = queue, self._pending + asked
        return dict(asked[0].params) if n == 1 else [dict(each.params) for each in asked]

    def tell(
        self,
        params: Mapping[str, Any],
        value: SupportsFloat,
        *,
        noise: SupportsFloat | None = None,
        constraints: Sequence[SupportsFloat] = (),
    ) -> None:
        """Report the value measured at ``params``, asked for or not.

        A pending point counts as told if ``params`` match its categories and integers, and all other parameters are
        within 1 % of their range: values may be rounded. ``noise`` is the standard deviation of the value, if known.
        The trial is feasible if all ``constraints`` are at most 0. A NaN or infinite value is recorded as a failure.
        """
        known = None if noise is None else number_of("noise", noise)
        if known is not None and not 0.0 <= known < np.inf:
            raise InputError(f"`noise` must be a standard deviation of at least 0, but got {noise!r}.")
        limits = _floats("constraints", constraints)
        trial = Trial(self.space.plain(params), number_of("value", value), known, limits)
        self._record(trial)
        if self.optimum is not None:
            known_best, valid = self.optimum.with_sign(self._sign), self._observations().valid()
            witness, before = known_best.counterexample(valid.y, valid.noise_std), self._counterexample
            self._counterexample = witness
            if witness is not None and witness != before:
                warn(known_best.refutation(witness, valid.y, self._sign))

    def tell_failed(self, params: Mapping[str, Any]) -> None:
        """Report that the evaluation at ``params`` failed: its region will be avoided."""
        self._record(Trial(self.space.plain(params), np.nan))

    def cancel(self, params: Mapping[str, Any]) -> None:
        """Drop the pending ``params``; they may be proposed again."""
        if self._pop_pending(self.space.to_cube(params), SAME) is None:
            raise InputError(f"`params` must be pending, but got {dict(params)!r}. See `pending`.")
        self._log({"cancel": self.space.plain(params)})

    def enqueue(self, params: Mapping[str, Any]) -> None:
        """Make ``params`` the next point to ask for; missing parameters are chosen then.

        They stay in the queue while ``ask`` is called with ``fixed`` values that contradict them.
        """
        self._queue.append(self._plain(params))
        self._log({"enqueue": self._queue[-1]})

    def forecast(self, params: Mapping[str, Any], *, noise: bool = False) -> Forecast:
        """The calibrated forecast of the value at ``params``; with ``noise``, of a new noisy measurement."""
        forecast = self._fit().forecast(self.space.to_cube(params)[None], noise=noise)[0]
        return forecast if self._sign > 0.0 else forecast.negate()

    def recommend(self) -> Recommendation:
        """The feasible evaluated point with the best posterior median; prefer it to ``best`` if values are noisy."""
        return self._fit().recommend([t.params for t in self.trials if t.feasible], self._sign)

    @property
    def reached(self) -> bool:
        """Whether the best value (under noise, posterior median) is within the tolerance of the known optimum."""
        known = None if self.optimum is None else self.optimum.with_sign(self._sign)
        near = known is not None and known.is_reached_by(self._observations().valid().y)
        return near and known is not None and self._fit().reaches(known)

    def history(self) -> tuple[Observations, list[Record | None], list[Record | None]]:
        """The observations, minimized in the unit cube, and the forecasts recorded for each: decided, and reported."""
        return self._observations(), [trial.record for trial in self._trials], [trial.report for trial in self._trials]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to a new journal file, and from now on log each event before its call returns."""
        journal = Journal(path)
        settings = {"direction": self.direction, "seed": self.seed, "strategy": spec(self._requested)}
        known = {} if self.optimum is None else {"optimum": asdict(self.optimum)}
        journal.create(
            {"space": self.space.to_json(), **settings, **known},
            *[{**_tell_event(trial), **_stored(trial)} for trial in self._trials],
            *[_ask_event(asked, None) for asked in self._pending],
            *[{"enqueue": params} for params in self._queue],
        )
        self._journal = journal

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        strategy: str | Strategy | None = None,
        recalibrate: Recalibrate | None = None,
    ) -> "Optimizer":
        """Resume from a journal file; further events are appended to it.

        ``strategy`` overrides the one stored in the journal. Register custom parts before loading.
        """
        journal = Journal(path)
        header, *events = journal.read()
        if strategy is None:
            strategy, recalibrate = _strategy_in(header, path), recalibrate or header.get("recalibrate")
        try:
            space, direction, seed = Space.from_json(header["space"]), header["direction"], header["seed"]
            optimum = _optimum_in(header)
        except (InputError, KeyError, TypeError) as error:
            raise JournalError(f"Line 1 of the journal {str(path)!r} is not valid: {error}") from error
        optimizer = cls(space, direction=direction, strategy=strategy, seed=seed, recalibrate=recalibrate, **optimum)
        for line, event in enumerate(events, start=2):
            try:
                optimizer._replay(event)
            except (InputError, LookupError, TypeError, ValueError) as error:
                raise JournalError(f"Line {line} of the journal {str(path)!r} is not valid: {error}") from error
        optimizer._journal = journal
        return optimizer

    def _complete_params(self, given: Params, asked: "list[_PendingTrial]", digits: Digits) -> "_PendingTrial":
        """All parameters: those given, and proposed values for the others, with ``asked`` pending as well."""
        held = np.array([self.space.encode(name, given[name]) if name in given else np.nan for name in self.space])
        if not np.isnan(held).any():
            return _PendingTrial({name: given[name] for name in self.space}, *self._recorded(held))
        observations = self._observations([each.params for each in self._pending + asked])

        def rounded(x: Array) -> list[Params]:
            return [{**params, **given} for params in self.space.rounded(self.space.from_cube(x), digits)]

        proposal = self.strategy.propose(
            observations,
            seed=self.seed,
            previous=self._state,
            fixed=held,
            rounded=lambda x: [x] if digits is None else [self.space.to_cube(params) for params in rounded(x)],
        )
        self._state = proposal.state
        if proposal.repeated:
            warn(REPEATED)
        near = rounded(proposal.x)  # without the rounding errors of the cube
        same = (params for params in near if np.allclose(self.space.to_cube(params), proposal.x, rtol=0.0, atol=1e-9))
        chosen = next(same, near[-1])
        return _PendingTrial(chosen, *map(Record.through_storage, (proposal.record, proposal.report)))

    def _recorded(self, x: Array) -> tuple[Record | None, Record | None]:
        """The forecasts at a point that the user chose: decided, and reported; None before the first model."""
        feasible = sum(trial.feasible for trial in self._trials)
        if feasible < max(self.strategy.initial_size(self.space.cube), 1):
            record, report = None, self.strategy.report_at(x, self._observations(), self._state)
        else:
            record, report = self._fit().make_records(x)
        return Record.through_storage(record), Record.through_storage(report)

    def _plain(self, params: Mapping[str, Any]) -> Params:
        """Some of the parameters, as plain Python types."""
        if not isinstance(params, Mapping):
            raise InputError(f"`params` must be a dictionary of some of {list(self.space)}, but got {params!r}.")
        return {name: self.space.plain_value(name, value) for name, value in params.items()}

    def _observations(self, pending: Sequence[Params] = ()) -> Observations:
        n, d = len(self._trials), len(self.space)
        y = np.clip([self._sign * t.value if t.feasible else np.nan for t in self._trials], -LARGEST, LARGEST)
        noise = np.array([np.nan if t.noise is None else t.noise for t in self._trials])
        decided, reported = self.strategy.scores([(t.record, t.report) for t in self._trials], y, noise)
        return Observations(
            self.space.cube,
            np.array(self._points).reshape(n, d),
            y,
            noise,
            np.array([t.feasible for t in self._trials], dtype=bool),
            np.array([self.space.to_cube(params) for params in pending]).reshape(-1, d),
            constraint_matrix([dict(enumerate(trial.constraints)) for trial in self._trials]),
            decided,
            reported,
        )

    def _fit(self) -> FittedStrategy:
        """The strategy fitted to the trials told so far; cached until the next is told."""
        if self._fitted is None:
            observations = self._observations()
            if not observations.feasible.any():
                raise InputError("A forecast must have a feasible value, but none was told yet.")
            rng = np.random.default_rng([self.seed, len(observations)])
            self._fitted = self.strategy.fit(observations, rng=rng, previous=self._state)
            self._state = self._fitted.state
        return self._fitted

    def _record(self, trial: Trial) -> None:
        x = self.space.to_cube(trial.params)
        asked = self._pop_pending(x, ROUNDING_TOLERANCE)
        if asked is not None and self._same(asked.params, x):  # the forecast holds only for the point asked for
            trial = replace(trial, record=asked.record, report=asked.report)
        self._trials.append(trial)
        self._points.append(x)
        self._fitted = None
        self._log(_tell_event(trial))

    def _pop_pending(self, x: Array, tolerance: float) -> "_PendingTrial | None":
        """Remove and return the pending point nearest to ``x``, if within ``tolerance``."""
        waiting = np.array([self.space.to_cube(asked.params) for asked in self._pending]).reshape(-1, len(x))
        near = np.flatnonzero(self.space.cube.among(waiting, x[None], tolerance))
        return self._pending.pop(near[np.argmin(np.abs(waiting[near] - x).max(axis=1))]) if len(near) else None

    def _same(self, params: Params, x: Array) -> bool:
        return bool(self.space.cube.among(self.space.to_cube(params)[None], x[None], SAME)[0])

    def _log(self, *events: Mapping[str, Any], keep: bool = True) -> None:
        if self._journal is not None:
            self._journal.append(*events, keep=keep)

    def _replay(self, event: Mapping[str, Any]) -> None:
        if "tell" in event:
            limits = tuple(float(limit) for limit in event["constraints"])
            value, noise = event["value"], event["noise"]
            record, report = _recorded_in(event)
            value, noise = np.nan if value is None else float(value), None if noise is None else float(noise)
            self._record(Trial(self.space.plain(event["tell"]), value, noise, limits, record, report))
        elif "ask" in event:
            self._pending.append(_PendingTrial(self.space.plain(event["ask"]), *_recorded_in(event)))
            if event["turn"] is not None:
                del self._queue[event["turn"]]
        elif "cancel" in event:
            self._pop_pending(self.space.to_cube(event["cancel"]), SAME)
        else:
            self._queue.append(self._plain(event["enqueue"]))


def _optimum_in(header: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that describe the known optimum; empty if there is none."""
    stored = header.get("optimum")
    known = Optimum.from_json(stored)
    if stored is not None and known is None:
        raise InputError(f"`optimum` must have a value, but got {stored!r}.")
    return {} if known is None else known.arguments


def _strategy_in(header: Mapping[str, Any], path: str | os.PathLike[str]) -> Strategy:
    """The stored strategy; journals of the first version store the name of a preset."""
    stored = header.get("strategy")
    if stored is None:
        raise InputError(f"`strategy` must be given, because {str(path)!r} stores none.")
    made = first_strategy(stored) if isinstance(stored, str) else build(stored)
    if not isinstance(made, Strategy):
        raise InputError(f"`strategy` must be given, because the one in {str(path)!r} is not valid.")
    return made


@dataclass(frozen=True, eq=False)
class _PendingTrial:
    """A pending point."""

    params: Params
    record: Record | None = None
    report: Record | None = None


def _ask_event(asked: _PendingTrial, turn: int | None) -> dict[str, Any]:
    return {"ask": asked.params, "turn": turn, **_stored(asked)}


def _stored(entry: Trial | _PendingTrial) -> dict[str, Any]:
    """The forecasts of a trial."""
    report = {} if entry.report is None else {"report": entry.report.to_json()}
    return {"forecast": None if entry.record is None else entry.record.to_json(), **report}


def _recorded_in(event: Mapping[str, Any]) -> tuple[Record | None, Record | None]:
    return Record.from_json(event.get("forecast")), Record.from_json(event.get("report"))


def _tell_event(trial: Trial) -> dict[str, Any]:
    constraints = [json_number(constraint) for constraint in trial.constraints]
    return {
        "tell": trial.params,
        "value": json_number(trial.value),
        "noise": json_number(trial.noise),
        "constraints": constraints,
    }


def number_of(name: str, value: object) -> float:
    """The value as a float, from any numeric type; NaN and infinities are allowed."""
    if not isinstance(value, str | bytes | complex | np.complexfloating) and hasattr(value, "__float__"):
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError):
            pass
    raise InputError(f"`{name}` must be a number, but got {value!r}. Report a failed evaluation with `tell_failed`.")


def _floats(name: str, values: object) -> tuple[float, ...]:
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise InputError(f"`{name}` must be a sequence of numbers, but got {values!r}. Write {name}=({values!r},).")
    return tuple(number_of(name, value) for value in values)
