"""Corrections of a study: dropped trials, amended values, wider spaces."""

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from datetime import datetime
from itertools import count
from numbers import Integral
from typing import Any

from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState, create_trial

from calibo.cube import Warp
from calibo.errors import InputError, require_number
from calibo.optuna.columns import to_distributions
from calibo.optuna.internals import FIXED, set_study_attribute, storage_of, study_attributes
from calibo.optuna.schema import (
    Correction,
    forecast_attributes,
    is_copied,
    read_settings,
    read_trial,
    records_of,
    store_corrections,
    store_space,
    store_warps,
)
from calibo.optuna.storages import load_or_create_study, storage_errors, study_names
from calibo.optuna.trials import current_trials, finish_order, finished_trials, is_ignored, require_one_objective
from calibo.space import Categorical, Choice, Parameter, Space

MOST_LISTED = 20  # trials in a message


def drop(study: Study, *numbers: int) -> None:
    """Ignore finished trials of a study or a result from now on: they are kept, but neither count nor inform any model.

    Optuna cannot change finished trials: its own ``best_value`` and its dashboard still show them.
    """
    study = _study(study)
    if not numbers:
        raise InputError("`numbers` must be those of the trials to drop, but there are none.")
    store_corrections(study, [_correction(study, number, None) for number in dict.fromkeys(numbers)])


def amend(study: Study, number: int, value: float) -> None:
    """Replace the value of a finished trial; a failed or dropped one counts as complete from now on.

    Optuna cannot change finished trials: its own ``best_value`` and its dashboard still show the old value.
    """
    require_number("value", value, "a finite number")
    study = _study(study)
    store_corrections(study, [_correction(study, number, float(value))])


def _study(given: Any) -> Study:
    """The study, also of a `Result`, whose layer is above this one."""
    study = getattr(given, "study", given)
    if not isinstance(study, Study):
        raise InputError(f"`study` must be an Optuna study or a Result, but got {given!r}.")
    return study


def _correction(study: Study, number: int, value: float | None) -> Correction:
    require_one_objective(study)
    finished = {trial.number for trial in study.get_trials(deepcopy=False) if trial.state.is_finished()}
    if not isinstance(number, Integral) or isinstance(number, bool) or number not in finished:
        among = f"one of {sorted(finished)}" if len(finished) <= MOST_LISTED else f"one of {len(finished)}"
        raise InputError(f"`trial` must be a finished trial of {study.study_name!r}, {among}, but got {number!r}.")
    trial = next((trial for trial in current_trials(study) if trial.number == number), None)
    if value is None and trial is None:
        raise InputError(f"`trial` must not be dropped yet, but {number} is.")
    if value is not None and trial is not None and is_ignored(trial, ()):
        raise InputError(f"`trial` must have been evaluated, but {number} was canceled. Tell the value as a new trial.")
    before = "dropped" if trial is None else trial.state.name.lower()
    was = repr(trial.values[0]) if trial is not None and trial.values else before
    return Correction(int(number), value, was, datetime.now().isoformat(timespec="seconds"))


def widen(
    study: Study, space: Space | Mapping[str, Any], *, fill: Mapping[str, Any] | None = None, name: str | None = None
) -> Study:
    """Let a study search a wider ``space``; returns the study.

    Wider bounds apply to the study itself. For new parameters or choices, which Optuna does not allow, the trials are
    copied to a new study, with corrections applied; it is called ``name``, by default that of the study and a number.
    ``fill`` has the values that the trials so far had for new parameters. Enqueued trials are copied, running ones are
    not. Programs that are at work with the narrow space keep it until they are started again.
    """
    study = _study(study)
    require_one_objective(study)
    if not isinstance(fill or {}, Mapping):
        raise InputError(f"`fill` must be a dictionary, but got {fill!r}.")
    stored, wanted = read_settings(study).space, space if isinstance(space, Space) else Space(space)
    if stored is None:
        raise InputError(
            f"`study` must have a declared space, but {study.study_name!r} has none. Widen the bounds in its objective."
        )
    lost = [known for known in stored if known not in wanted]
    if lost:
        raise InputError(f"`space` must contain every parameter of the study, but lacks {lost}.")
    for known, parameter in stored.items():
        _require_wider(known, parameter, wanted[known])
    added = [known for known in wanted if known not in stored]
    values = dict(fill or {})
    if set(values) != set(added):
        raise InputError(
            f"`fill` must have the values of the new parameters {added} in the trials so far, but got {list(values)}."
        )
    for known, value in values.items():
        values[known] = wanted.plain_value(known, value)
    if not added and all(_is_same_kind(parameter, wanted[known]) for known, parameter in stored.items()):
        if name is not None:
            raise InputError(f"`name` must not be given if only bounds change, but got {name!r}.")
        wider = Space({known: wanted[known] for known in stored})
        _store_space(study, stored, wider)
        study.sampler = _with_space(study.sampler, wider)
        return study
    return _copy(study, wanted, values, name)


def _store_space(study: Study, old: Space, new: Space) -> None:
    store_space(study, new)
    store_warps(study, {name: _warp(new[name]) for name in new if name in old and _warp(old[name]) != _warp(new[name])})


def _warp(parameter: Parameter) -> Warp | None:
    return None if isinstance(parameter, Categorical) else parameter.warp


def _with_space(sampler: BaseSampler, space: Space) -> BaseSampler:
    """The same sampler, which searches another space if it was given one."""
    made = copy(sampler)
    if getattr(made, "space", None) is not None:
        vars(made)["space"] = space
    return made


def _require_wider(name: str, old: Parameter, new: Parameter) -> None:
    """Raise unless every value of one parameter is a value of the other."""
    if isinstance(old, Categorical) and isinstance(new, Categorical):
        inside: bool = all(any(_same(choice, other) for other in new.choices) for choice in old.choices)
    elif type(old) is type(new) and not isinstance(old, Categorical) and not isinstance(new, Categorical):
        inside = new.low <= old.low and old.high <= new.high and _keeps_steps(old, new)
    else:
        inside = False
    if not inside:
        before = list(old.choices) if isinstance(old, Categorical) else f"{old.low} to {old.high}"
        raise InputError(f"`{name}` must allow every value that it had, {before}, but got {new!r}.")


def _keeps_steps(old: Any, new: Any) -> bool:
    if new.step is None:
        return True
    if old.step is None:
        return False
    try:
        return all(new.encode(value) is not None for value in (old.low, min(old.low + old.step, old.high), old.high))
    except InputError:
        return False


def _same(choice: Choice, other: Choice) -> bool:
    return type(choice) is type(other) and choice == other


def _is_same_kind(old: Parameter, new: Parameter) -> bool:
    """Whether Optuna allows both in one study."""
    if isinstance(old, Categorical) or isinstance(new, Categorical):
        return old == new
    return type(old) is type(new) and old.log == new.log


def _copy(study: Study, space: Space, fill: Mapping[str, Any], name: str | None) -> Study:
    storage = storage_of(study)
    with storage_errors(storage):
        taken, settings = study_names(storage), read_settings(study)
        if name in taken:
            raise InputError(f"`name` must be new, but there is a study {name!r} already.")
        free = (f"{study.study_name}-{number}" for number in count(2))
        made = load_or_create_study(
            storage,
            next(each for each in free if each not in taken) if name is None else name,
            sampler=_with_space(study.sampler, space),
            direction="minimize" if study.direction.name == "MINIMIZE" else "maximize",
        )
        user, system = study_attributes(study)
        for known, value in user.items():
            set_study_attribute(made, known, value, user=True)
        for known, value in system.items():
            if is_copied(known):
                set_study_attribute(made, known, value)
        _store_space(made, settings.space or space, space)
        for trial in sorted(finished_trials(current_trials(study), settings.ignored), key=finish_order):
            made.add_trial(_moved(trial, space, fill))
        for trial in study.get_trials(deepcopy=False, states=(TrialState.WAITING,)):
            made.enqueue_trial(trial.system_attrs.get(FIXED, {}))
    return made


def _moved(trial: FrozenTrial, space: Space, fill: Mapping[str, Any]) -> FrozenTrial:
    """The same outcome and forecast in another space."""
    params = {**trial.params, **fill}
    known = {**trial.distributions, **to_distributions(space)}
    chosen = {name: float(known[name].to_internal_repr(params[name])) for name in params if not known[name].single()}
    entry = read_trial(trial)
    record, report = records_of(trial, entry)
    kept = {} if record is report is None else forecast_attributes(replace(entry, chosen=chosen, worker=None))
    made = create_trial(
        state=trial.state,
        values=trial.values,
        params=params,
        distributions={name: known[name] for name in params},
        user_attrs=trial.user_attrs,
        system_attrs={
            **{name: value for name, value in trial.system_attrs.items() if is_copied(name)},
            **kept,
        },
        intermediate_values=trial.intermediate_values,
    )
    made.datetime_start, made.datetime_complete = trial.datetime_start, trial.datetime_complete
    return made
