"""What an Optuna study knows, in the terms of the engine."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from math import isclose, isfinite
from typing import Any, get_args

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from calibo.adapters.attributes import joined, pieces
from calibo.adapters.worker import alive
from calibo.calibration import Record, stream
from calibo.cube import Cube, Warp
from calibo.errors import CaliboWarning, InputError
from calibo.observations import Observations, excesses
from calibo.optimizer import LARGEST
from calibo.space import Categorical, Float, Int, Parameter, Space
from calibo.surrogate import Surrogate
from calibo.types import Array

__all__ = [
    "NOISE",
    "WARPS",
    "Columns",
    "History",
    "abandoned",
    "counted",
    "declaration",
    "distributions",
    "feasible",
    "read",
    "recorded",
    "set_aside",
    "sign_of",
    "stored_choice",
    "warps_of",
    "worker_of",
    "write",
]

NOISE = "calibo:noise"
"""User attribute of a trial: the standard deviation of its value, if known."""

WARPS = "calibo:warp"
"""User attribute of a study: how its axes may be bent."""

SET_ASIDE = "calibo:set_aside"  # the evaluation was stopped, which says nothing about the point
PROPOSAL, STATE = "calibo:proposal", "calibo:state"  # what a sampler stores with a trial
LOOP_PATIENCE = timedelta(minutes=10)  # with a trial of an optimization loop, however short the others were
HAND_PATIENCE = timedelta(days=1)  # with a trial asked for by hand
SLOWER = 5  # times the longest finished trial: no trial takes so long


@dataclass(frozen=True, eq=False)
class Columns:
    """Parameters as Optuna declares them, and their way into the cube and back."""

    distributions: Mapping[str, BaseDistribution]

    warps: Mapping[str, Warp | None] = field(default_factory=dict)
    """How an axis may be bent, where that is not "auto"."""

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        pairs = self.distributions.items()
        return {name: _parameter(name, distribution, self.warps.get(name, "auto")) for name, distribution in pairs}

    @cached_property
    def cube(self) -> Cube:
        return Cube(tuple(parameter.axis for parameter in self.parameters.values()))

    def encode(self, params: Mapping[str, Any]) -> Array | None:
        """The point (d,), NaN in columns that ``params`` lack; None where one of the values lies outside."""
        try:
            return self._positions(params)
        except (InputError, ValueError):
            return None

    def point(self, params: Mapping[str, Any]) -> Array:
        """The same, with an error that says what is wrong."""
        if not isinstance(params, Mapping):
            raise InputError(f"`params` must be a dictionary of {list(self.parameters)}, but got {params!r}.")
        for name, value in params.items():
            if name not in self.distributions:
                raise InputError(f"`params` must name only {list(self.parameters)}, but got {name!r}.")
            if self.encode({name: value}) is None:
                raise InputError(f"`{name}` must lie in {self.distributions[name]}, but got {value!r}.")
        return self._positions(params)

    def decode(self, x: Array) -> dict[str, Any]:
        """The parameters at ``x`` (d,), without those that are NaN."""
        pairs = zip(self.parameters, x, strict=True)
        return {name: self._value(name, float(position)) for name, position in pairs if not np.isnan(position)}

    def _positions(self, params: Mapping[str, Any]) -> Array:
        places = [self._position(name, params[name]) if name in params else np.nan for name in self.parameters]
        return np.array(places, dtype=float)

    def _position(self, name: str, value: Any) -> float:
        distribution = self.distributions[name]
        if isinstance(distribution, CategoricalDistribution):
            value = int(distribution.to_internal_repr(value))
        return self.parameters[name].encode(value)

    def _value(self, name: str, position: float) -> Any:
        distribution, value = self.distributions[name], self.parameters[name].decode(position)
        if isinstance(distribution, CategoricalDistribution) and isinstance(value, int):
            return distribution.choices[value]
        if isinstance(value, float) and isinstance(distribution, IntDistribution | FloatDistribution):
            return _stepped(distribution, value)
        return value


def _parameter(name: str, distribution: BaseDistribution, warp: Warp | None) -> Parameter:
    if isinstance(distribution, CategoricalDistribution):
        return Categorical(range(len(distribution.choices)))  # choices may be any objects
    if not isinstance(distribution, FloatDistribution | IntDistribution):
        raise InputError(f"`{name}` must be a float, an int or a categorical, but got {distribution!r}.")
    kind = Float if isinstance(distribution, FloatDistribution) else Int
    try:
        return kind(distribution.low, distribution.high, distribution.log, distribution.step, warp)  # type: ignore[arg-type]
    except InputError:  # more values than there are floats: continuous, and rounded on the way back
        return Float(distribution.low, distribution.high, distribution.log, warp=warp)


def _stepped(distribution: FloatDistribution | IntDistribution, value: float) -> float:
    """A value of a continuous column as its distribution wants it."""
    low, high, step = distribution.low, distribution.high, distribution.step
    if step is not None and not (isinstance(distribution, FloatDistribution) and distribution._contains(value)):
        value = low + round((value - low) / step) * step
    return min(max(int(value) if isinstance(distribution, IntDistribution) else value, low), high)


def warps_of(study: Study) -> dict[str, Warp | None]:
    """How the axes of a study may be bent, as its sampler has said; what cannot be read was never said."""
    stored = study._storage.get_study_user_attrs(study._study_id).get(WARPS)  # a pruner may hand over half a study
    if not isinstance(stored, Mapping):
        return {}
    return {name: warp for name, warp in stored.items() if warp is None or warp in get_args(Warp)}


def declaration(space: Space) -> dict[str, BaseDistribution]:
    """The parameters of a space, as Optuna declares them."""
    return {name: _distribution(name, parameter) for name, parameter in space.items()}


def _distribution(name: str, parameter: Parameter) -> BaseDistribution:
    if isinstance(parameter, Float):
        return FloatDistribution(parameter.low, parameter.high, log=parameter.log, step=parameter.step)
    if isinstance(parameter, Int):
        return IntDistribution(parameter.low, parameter.high, log=parameter.log, step=parameter.step)
    if len(set(parameter.choices)) < len(parameter.choices):
        raise InputError(
            f"`{name}` must have choices that Optuna can tell apart, but got {parameter.choices!r}, of which some are "
            "equal in Python. Write them as strings."
        )
    return CategoricalDistribution(parameter.choices)


def distributions(trials: Iterable[FrozenTrial]) -> dict[str, BaseDistribution]:
    """Every parameter that can vary, as its latest finished trial declared it, in the order of appearance."""
    latest: dict[str, BaseDistribution] = {}
    for trial in trials:
        if trial.state.is_finished():
            latest.update(trial.distributions)
    return {name: distribution for name, distribution in latest.items() if not distribution.single()}


@dataclass(frozen=True, eq=False)
class History:
    """The trials of a study that tell something about points of ``columns``."""

    columns: Columns
    sign: float
    """1 where the study minimises, -1 where it maximises."""

    trials: tuple[FrozenTrial, ...]
    """Finished, in the order of finishing; those whose values lie outside the columns are left out."""

    observations: Observations

    running: tuple[FrozenTrial, ...]
    """Being evaluated, by whoever it is."""

    state: Mapping[str, Mapping[str, Any]]
    """Fits that were stored with the trials."""

    @cached_property
    def records(self) -> tuple[Record | None, ...]:
        """What was forecast of each trial's value before it was known."""
        return tuple(recorded(trial) for trial in self.trials)

    def judged(self, surrogate: Surrogate) -> "History":
        """With the scores of the outcomes under the forecasts of this surrogate."""
        known = self.observations
        scores = stream(self.records, known.y, known.noise_std, surrogate)
        return replace(self, observations=replace(known, scores=scores))

    @classmethod
    def of(cls, study: Study, columns: Columns | None = None) -> "History":
        """Everything known of ``columns``, or of all parameters of the study."""
        demand_one_objective(study)
        everything = study.get_trials(deepcopy=False)
        columns = columns or Columns(distributions(everything), warps_of(study))
        # the order of finishing only grows at its end, so that earlier fits stay valid
        finished = sorted(counted(everything), key=_finishing)
        rows = [(trial, x) for trial in finished if (x := columns.encode(_of(trial, columns))) is not None]
        rows = [(trial, x) for trial, x in rows if not np.isnan(x).all()]  # a trial without parameters says nothing
        sign = sign_of(study)
        trials = tuple(trial for trial, _ in rows)
        points = np.array([x for _, x in rows]).reshape(len(rows), len(columns.cube))
        observations = _observations(columns.cube, trials, points, sign)
        return cls(columns, sign, trials, observations, _running(everything), _fits(everything))

    def having(self, name: str) -> "History":
        """Only the trials that had that parameter."""
        rows = ~np.isnan(self.observations.x[:, list(self.columns.parameters).index(name)])
        trials = tuple(trial for trial, has in zip(self.trials, rows, strict=True) if has)
        return replace(self, trials=trials, observations=self.observations.take(rows))


def sign_of(study: Study) -> float:
    """By which its values become such as are minimised."""
    return 1.0 if study.direction == StudyDirection.MINIMIZE else -1.0


def demand_one_objective(study: Study) -> None:
    if len(study.directions) != 1:
        raise InputError(
            f"`study` must have one direction, but got {len(study.directions)}. "
            "For several objectives use one of Optuna's own samplers, NSGAIISampler for one."
        )


def write(study: Study, trial: FrozenTrial, key: str, value: Mapping[str, Any]) -> None:
    """Store something with a trial."""
    for name, piece in pieces(key, value).items():
        study._storage.set_trial_system_attr(trial._trial_id, name, piece)


def read(trial: FrozenTrial, key: str) -> dict[str, Any]:
    """What was stored with a trial; empty where there is nothing."""
    value = joined(trial.system_attrs, key)
    return value if isinstance(value, dict) else {}


def set_aside(study: Study, trial_id: int) -> None:
    """Note that a trial was stopped from outside: its end says nothing about its point."""
    study._storage.set_trial_system_attr(trial_id, SET_ASIDE, True)


def counted(trials: Iterable[FrozenTrial]) -> list[FrozenTrial]:
    """The trials that came to an end by themselves."""
    trials = list(trials)
    histories = [trial.system_attrs.get("retry_history") for trial in trials]
    retried = {number for history in histories if isinstance(history, list) for number in history}
    return [t for t in trials if t.state.is_finished() and not _says_nothing(t, retried)]


def abandoned(trials: Iterable[FrozenTrial]) -> list[FrozenTrial]:
    """Trials that run no more, because the process that evaluated them has ended."""
    running = [trial for trial in trials if trial.state == TrialState.RUNNING]
    return [trial for trial in running if (worker := worker_of(trial)) is not None and alive(worker) is False]


def _says_nothing(trial: FrozenTrial, retried: set[Any]) -> bool:
    failed = trial.state == TrialState.FAIL
    return failed and (bool(trial.system_attrs.get(SET_ASIDE)) or trial.number in retried)


def worker_of(trial: FrozenTrial) -> str | None:
    """The process that evaluates a trial, if it said so."""
    if "retry_history" in trial.system_attrs:  # it carries the attributes of the trial whose worker died
        return None
    worker = read(trial, PROPOSAL).get("worker")
    return worker if isinstance(worker, str) else None


def _finishing(trial: FrozenTrial) -> tuple[datetime, int]:
    end = trial.datetime_complete
    return datetime.min if end is None else _naive(end), trial.number


def _of(trial: FrozenTrial, columns: Columns) -> dict[str, Any]:
    return {name: value for name, value in trial.params.items() if name in columns.distributions}


def stored_choice(trial: FrozenTrial) -> dict[str, Any]:
    """What was stored as chosen for a trial, as the storage represents it."""
    stored = read(trial, PROPOSAL).get("params")
    return stored if isinstance(stored, dict) else {}


def recorded(trial: FrozenTrial) -> Record | None:
    """The forecast stored with a trial, if the trial was then evaluated at the point that was chosen."""
    varying = {name: known for name, known in trial.distributions.items() if not known.single()}
    try:
        evaluated = {name: float(known.to_internal_repr(trial.params[name])) for name, known in varying.items()}
    except (TypeError, ValueError):
        return None
    proposal = read(trial, PROPOSAL)
    return Record.of(proposal.get("forecast")) if _agree(stored_choice(trial), evaluated) else None


def _agree(chosen: Mapping[str, Any], evaluated: Mapping[str, float]) -> bool:
    """Whether two points are the same, up to the last digits that a log scale costs."""
    if set(chosen) != set(evaluated):
        return False
    numbers = all(isinstance(value, int | float) for value in chosen.values())
    return numbers and all(isclose(chosen[n], v, rel_tol=1e-9, abs_tol=1e-300) for n, v in evaluated.items())


def feasible(trial: FrozenTrial) -> bool:
    """Whether there is a number to learn from: pruned trials, as failed ones, only say where not to look."""
    if trial.state != TrialState.COMPLETE or trial.value is None or not isfinite(trial.value):
        return False
    return all(constraint <= 0.0 for constraint in trial.constraints.values())


def _fits(trials: Iterable[FrozenTrial]) -> dict[str, dict[str, Any]]:
    """All fits stored, by whoever: they are named by what they belong to."""
    merged: dict[str, dict[str, Any]] = {}
    for trial in trials:
        for part, fits in read(trial, STATE).items():
            if isinstance(fits, dict):
                merged.setdefault(part, {}).update(fits)
    return merged


def _observations(cube: Cube, trials: Sequence[FrozenTrial], x: Array, sign: float) -> Observations:
    known = np.array([feasible(trial) for trial in trials], dtype=bool)
    values = [sign * (t.value or 0.0) if ok else np.nan for t, ok in zip(trials, known, strict=True)]
    noise = np.array([_noise(trial) for trial in trials], dtype=float)
    y = np.clip(np.array(values, dtype=float), -LARGEST, LARGEST)
    limits = excesses([trial.constraints for trial in trials])
    return Observations(cube, x, y, noise, known, np.empty((0, len(cube))), limits)


def _noise(trial: FrozenTrial) -> float:
    noise = trial.user_attrs.get(NOISE)
    if noise is None:
        return np.nan
    if isinstance(noise, int | float) and 0.0 <= noise <= LARGEST:
        return float(noise)
    warnings.warn(
        f"The user attribute {NOISE!r} must be a standard deviation of at least 0, but got {noise!r} in "
        f"trial {trial.number}. It is not used.",
        CaliboWarning,
        stacklevel=2,
    )
    return np.nan


def _running(trials: Sequence[FrozenTrial]) -> tuple[FrozenTrial, ...]:
    """Those being evaluated. One whose worker has ended is not, nor one that takes much longer than any before."""
    running = [trial for trial in trials if trial.state == TrialState.RUNNING]
    if not running:
        return ()
    longest = max((_duration(trial) for trial in trials if trial.state.is_finished()), default=timedelta())
    return tuple(trial for trial in running if not _stale(trial, longest))


def _duration(trial: FrozenTrial) -> timedelta:
    start, end = trial.datetime_start, trial.datetime_complete
    return timedelta() if start is None or end is None else _naive(end) - _naive(start)


def _naive(moment: datetime) -> datetime:
    """In local time, as Optuna stores it; trials added by hand may say otherwise."""
    return moment if moment.tzinfo is None else moment.astimezone().replace(tzinfo=None)


def age(trial: FrozenTrial) -> timedelta:
    """How long ago a trial was begun."""
    return timedelta() if trial.datetime_start is None else datetime.now() - _naive(trial.datetime_start)


def _stale(trial: FrozenTrial, longest: timedelta) -> bool:
    worker = worker_of(trial)
    if worker is not None and alive(worker) is False:
        return True
    if longest < timedelta(seconds=1) and worker is None:  # results entered by hand took no time: nothing to compare
        return False
    patience = max(HAND_PATIENCE if worker is None else LOOP_PATIENCE, SLOWER * longest)
    return age(trial) > patience
