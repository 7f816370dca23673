"""The schema of a study: every key, its value, and how it is read. See docs/storage.md.

Each value is one attribute, written whole. JSON is read by key. Unknown fields and invalid values are ignored, because
other programs may write to a storage. Studies of the first version split long values into pieces, under "key:0",
"key:1" and so on; these are read, and never written.
"""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isclose
from typing import Any, get_args
from uuid import uuid4

from optuna.study import Study
from optuna.trial import FrozenTrial

from calibo.arrays import pack, unpack
from calibo.calibration import Record
from calibo.cube import Warp
from calibo.errors import InputError
from calibo.optimum import Optimum
from calibo.optuna.internals import RETRIES, set_study_attribute, set_trial_attribute, stored_trial, study_attributes
from calibo.parts import build, identity, spec
from calibo.presets import first_strategy, label
from calibo.space import Space
from calibo.strategy import Strategy

VERSION = 2

# user attributes of a study
SCHEMA = "calibo:schema"  # the version
SPACE, SEED = "calibo:space", "calibo:seed"
WARPS, OPTIMUM = "calibo:warp", "calibo:optimum"
STOPPED = "calibo:stopped"
"""Why `StopWhenUnlikely` stopped a study: its arguments, the probability it found, and the improvement expected."""

# system attributes of a study
STRATEGY = "calibo:strategy"  # the study's own; others that were used: calibo:strategy:IDENTITY
SOURCE = "calibo:source:"  # plus a digest: the outcomes of a prior study
IGNORED = "calibo:ignored:"  # plus the number of a trial that failed because of a bug in the objective
CORRECTION = "calibo:correction:"  # plus when and an id: a change of a finished trial, which Optuna cannot change
FIRST_SOURCES = "calibo:earlier"  # the first version: the digests, and the outcomes in pieces under each

# user attributes of a trial
NOISE = "calibo:noise"
"""The standard deviation of a trial's value, if known; users may set it."""

ERROR = "calibo:error"
"""Why a trial failed."""

# system attributes of a trial
TRIAL, FITS = "calibo:proposal", "calibo:fits"
FIRST_FITS = "calibo:state"  # the first version
INTERRUPTED = "calibo:set_aside"  # the evaluation was interrupted, which says nothing about the point


def _value(attributes: Mapping[str, Any], key: str) -> Any:
    """The value under a key, whole or in the pieces of the first version; None if it cannot be read."""
    if key in attributes:
        return attributes[key]
    parts: list[str] = []
    while (part := attributes.get(f"{key}:{len(parts)}")) is not None:
        parts.append(str(part))
    try:
        return json.JSONDecoder().raw_decode("".join(parts))[0]  # the rest of a longer one may follow
    except (ValueError, RecursionError):
        return None


# The study
@dataclass(frozen=True, eq=False)
class Settings:
    """The settings stored with a study."""

    space: Space | None
    """None if the objective suggests its own parameters."""

    seed: int | None
    warps: Mapping[str, Warp | None]
    """How axes may be warped, if specified."""

    optimum: Optimum | None
    """The known optimum, in the direction of the study."""

    strategy: Mapping[str, Any] | None
    """Spec, identity and label of the strategy that the study was created with."""

    others: Mapping[str, Mapping[str, Any]]
    """The same for other strategies that were used, by identity."""

    sources: Mapping[str, Mapping[str, Any]]
    """The outcomes of prior studies, by digest, in the order they were added."""

    ignored: frozenset[int] = frozenset()
    """Numbers of trials that failed because of a bug in the objective."""


def read_settings(study: Study) -> Settings:
    """Raises InputError if the stored space is not valid."""
    user, system = study_attributes(study)
    seed, warps, known, own = user.get(SEED), user.get(WARPS), user.get(OPTIMUM), system.get(STRATEGY)
    return Settings(
        _space(study, user),
        seed if isinstance(seed, int) else None,
        {name: warp for name, warp in warps.items() if warp is None or warp in get_args(Warp)}
        if isinstance(warps, Mapping)
        else {},
        None if known is None else Optimum.from_json(known),
        own if isinstance(own, Mapping) and isinstance(own.get("spec"), Mapping) else None,
        _others(system),
        _sources(system),
        _ignored(system),
    )


def _ignored(attributes: Mapping[str, Any]) -> frozenset[int]:
    numbers = (key.removeprefix(IGNORED) for key in attributes if key.startswith(IGNORED))
    return frozenset(int(number) for number in numbers if number.isdecimal())


def store_ignored(study: Study, numbers: Iterable[int]) -> None:
    """Ignore failed trials: they are kept, but say nothing about their points."""
    for number in numbers:  # one attribute each, so that no worker overwrites what another one stores
        set_study_attribute(study, f"{IGNORED}{number}", True)


@dataclass(frozen=True)
class Correction:
    """A change of a finished trial: dropped, or another value."""

    trial: int
    value: float | None
    """None if the trial was dropped."""

    was: str
    """The state or value before."""

    when: str


def read_corrections(study: Study) -> list[Correction]:
    """All corrections of a study, oldest first."""
    attributes = study_attributes(study)[1]
    stored = [attributes[key] for key in sorted(attributes) if key.startswith(CORRECTION)]
    entries = [entry for entry in stored if isinstance(entry, Mapping)]
    return [
        Correction(entry["trial"], entry["value"], str(entry.get("was")), str(entry.get("when")))
        for entry in entries
        if isinstance(entry.get("trial"), int) and isinstance(entry.get("value", ""), int | float | None)
    ]


def store_corrections(study: Study, corrections: Iterable[Correction]) -> None:
    """Add to the corrections stored before."""
    for correction in corrections:
        key = f"{CORRECTION}{time.time_ns()}:{uuid4().hex[:8]}"
        set_study_attribute(study, key, asdict(correction))


@dataclass(frozen=True)
class Stopped:
    """Why a study was stopped before its budget was spent."""

    resolution: float
    alpha: float

    chance: float
    """The probability that one of the most promising points improves by more than the resolution."""

    left: float
    """The expected improvement at the most promising point."""

    trial: int


def store_stopped(study: Study, stopped: Stopped) -> None:
    """With the number of trials started: other workers go on while a rule is computed."""
    study.set_user_attr(STOPPED, {**asdict(stopped), "started": _started(study)})


def _started(study: Study) -> int:
    return sum(trial.datetime_start is not None for trial in study.get_trials(deepcopy=False))


def read_stopped(study: Study) -> Stopped | None:
    """None if the study was not stopped, or if a trial was started afterwards."""
    stored: Any = study.user_attrs.get(STOPPED)
    try:
        resolution, alpha, chance, left = (float(stored[name]) for name in ("resolution", "alpha", "chance", "left"))
        found, started = Stopped(resolution, alpha, chance, left, int(stored["trial"])), int(stored["started"])
    except (LookupError, OverflowError, TypeError, ValueError):
        return None
    return found if _started(study) <= started else None


def _space(study: Study, attributes: Mapping[str, Any]) -> Space | None:
    entries = _value(attributes, SPACE)
    try:
        return None if entries is None else Space.from_json(entries)
    except (InputError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise InputError(f"The space stored with {study.study_name!r} is not valid: {error}.") from None


def _others(attributes: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    prefix = f"{STRATEGY}:"
    found = {key.removeprefix(prefix): value for key, value in attributes.items() if key.startswith(prefix)}
    return {name: value for name, value in found.items() if isinstance(value, Mapping)}


def _sources(attributes: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    found = {key.removeprefix(SOURCE): value for key, value in attributes.items() if key.startswith(SOURCE)}
    whole = {key: value for key, value in found.items() if isinstance(value, Mapping)}
    ordered = sorted(whole, key=lambda key: (_number(whole[key].get("number")), key))
    names = attributes.get(FIRST_SOURCES)
    first = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
    earlier = {name: _value(attributes, f"{FIRST_SOURCES}:{name}") for name in first if name not in whole}
    return {
        **{name: value for name, value in earlier.items() if isinstance(value, Mapping)},
        **{key: whole[key] for key in ordered},
    }


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and abs(value) < 1e9 else 0.0


def store_space(study: Study, space: Space) -> None:
    set_study_attribute(study, SPACE, space.to_json(), user=True)


def store_seed(study: Study, seed: int) -> None:
    set_study_attribute(study, SEED, seed, user=True)


def store_warps(study: Study, warps: Mapping[str, Warp | None]) -> None:
    """Add to the warps stored before."""
    stored = read_settings(study).warps
    if (wanted := {**stored, **warps}) != stored:
        set_study_attribute(study, WARPS, wanted, user=True)


def store_optimum(study: Study, optimum: Optimum) -> None:
    """Store the optimum in the direction of the study; it overrides an earlier one."""
    known = asdict(optimum)
    if study_attributes(study)[0].get(OPTIMUM) != known:
        set_study_attribute(study, OPTIMUM, known, user=True)


def store_source(study: Study, key: str, source: Mapping[str, Any], number: int) -> None:
    """Store the outcomes of a prior study, the ``number``-th."""
    set_study_attribute(study, f"{SOURCE}{key}", {**source, "number": number})


def store_strategy(study: Study, strategy: Strategy, *, own: bool) -> None:
    """Store the study's ``own`` strategy, or another one that was used."""
    name = identity(strategy)
    stored = {"schema": VERSION, "label": label(strategy), "identity": name, "spec": spec(strategy)}
    if own:
        set_study_attribute(study, SCHEMA, VERSION, user=True)
    set_study_attribute(study, STRATEGY if own else f"{STRATEGY}:{name}", stored)


def own_strategy(settings: Settings, trials: Sequence[FrozenTrial]) -> Strategy | None:
    """The strategy a study was created with; None if calibo did not create it. Raises if it cannot be built here."""
    if settings.strategy is not None:
        made = build(settings.strategy["spec"])
        return made if isinstance(made, Strategy) else None
    for trial in trials:  # the first version stored the name of a preset with each trial
        entry = _value(trial.system_attrs, TRIAL)
        if isinstance(entry, Mapping) and isinstance(entry.get("strategy"), str) and "recalibrate" in entry:
            return first_strategy(entry["strategy"], entry["recalibrate"])
    return None


# The trials
@dataclass(frozen=True, eq=False)
class TrialEntry:
    """What a sampler stores with a trial: the point it chose, its forecast, and the worker that evaluates it."""

    chosen: Mapping[str, float]
    """Parameters in Optuna's internal representation."""

    worker: str | None = None
    strategy: str | None = None
    """The identity of a strategy that is not the study's own."""

    record: Record | None = None
    """The forecast at the chosen point, even if the trial was evaluated at another."""

    report: Record | None = None
    """The same, as it was reported."""

    def to_json(self) -> dict[str, Any]:
        known = {
            "params": dict(self.chosen),
            "worker": self.worker,
            "strategy": self.strategy,
            "forecast": None if self.record is None else self.record.to_json(),
            "report": None if self.report is None else self.report.to_json(),
        }
        return {key: value for key, value in known.items() if value is not None}


def store_trial(study: Study, trial: FrozenTrial, entry: TrialEntry) -> None:
    set_trial_attribute(study, trial, TRIAL, entry.to_json())


def forecast_attributes(entry: TrialEntry) -> dict[str, Any]:
    """The system attributes of a trial that is added with this entry."""
    return {TRIAL: entry.to_json()}


def is_copied(attribute: str) -> bool:
    """Whether a system attribute of a study or a trial applies to a copy of it in another space, too."""
    return not attribute.startswith((IGNORED, CORRECTION)) and attribute not in (TRIAL, FITS, FIRST_FITS, RETRIES)


def read_trial(trial: FrozenTrial) -> TrialEntry:
    """The entry stored with a trial; empty if there is none."""
    stored = _value(trial.system_attrs, TRIAL)
    if not isinstance(stored, Mapping):
        return TrialEntry({})
    chosen, worker, strategy = (stored.get(key) for key in ("params", "worker", "strategy"))
    return TrialEntry(
        chosen if isinstance(chosen, Mapping) else {},
        # a retried trial has the attributes of the one whose worker died
        worker if isinstance(worker, str) and RETRIES not in trial.system_attrs else None,
        strategy if isinstance(strategy, str) else None,
        Record.from_json(stored.get("forecast")),
        Record.from_json(stored.get("report")),
    )


def records_of(trial: FrozenTrial, entry: TrialEntry) -> tuple[Record | None, Record | None]:
    """The forecasts stored with a trial, decided and reported, if the trial was evaluated at the chosen point."""
    return (entry.record, entry.report) if _evaluated_as_chosen(trial, entry) else (None, None)


def _evaluated_as_chosen(trial: FrozenTrial, entry: TrialEntry) -> bool:
    """Up to rounding errors of a log scale."""
    varying = {name: known for name, known in trial.distributions.items() if not known.single()}
    try:
        evaluated = {name: float(known.to_internal_repr(trial.params[name])) for name, known in varying.items()}
    except (TypeError, ValueError):
        return False
    if set(entry.chosen) != set(evaluated) or not all(isinstance(v, int | float) for v in entry.chosen.values()):
        return False
    try:
        return all(isclose(entry.chosen[n], v, rel_tol=1e-9, abs_tol=1e-300) for n, v in evaluated.items())
    except OverflowError:  # an integer beyond the range of floats
        return False


Fits = Mapping[str, Mapping[str, Any]]
"""Cached fits by part of a strategy and by key; the key identifies all inputs of the fit."""


def fits_in(trial: FrozenTrial) -> dict[str, dict[str, Any]]:
    """The fits stored with a trial."""
    found: dict[str, dict[str, Any]] = {}
    for key in (FIRST_FITS, FITS):
        stored = _value(trial.system_attrs, key)
        for part, fits in stored.items() if isinstance(stored, Mapping) else ():
            if isinstance(fits, Mapping):
                found.setdefault(part, {}).update({name: unpack(fit) for name, fit in fits.items()})
    return found


def store_fits(study: Study, trial: FrozenTrial, known: Fits, fits: Fits | None) -> None:
    """Store the fits made for a suggestion with its trial, for the next suggestion of any worker."""
    new = {
        part: {key: fit for key, fit in named.items() if key not in known.get(part, {})}
        for part, named in (fits or {}).items()
    }
    if any(new.values()):
        whole = fits_in(stored_trial(study, trial))
        for part, named in new.items():
            whole.setdefault(part, {}).update(named)
        texts = {part: {key: pack(fit) for key, fit in named.items()} for part, named in whole.items() if named}
        set_trial_attribute(study, trial, FITS, texts)


def mark_interrupted(study: Study, trial: Any) -> None:
    """Mark a trial as interrupted: its failure says nothing about its point."""
    set_trial_attribute(study, trial, INTERRUPTED, True)


def is_interrupted(trial: FrozenTrial) -> bool:
    return bool(trial.system_attrs.get(INTERRUPTED))
