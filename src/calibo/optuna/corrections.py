"""Corrections of a study: dropped trials, amended values, wider spaces."""

from collections.abc import Mapping
from datetime import datetime
from itertools import count
from math import isfinite
from typing import Any

from optuna.study import Study
from optuna.trial import FrozenTrial, create_trial

from calibo.errors import InputError
from calibo.optuna.columns import to_distributions
from calibo.optuna.internals import set_study_attribute, storage_of, study_attributes
from calibo.optuna.schema import (
    Correction,
    TrialEntry,
    forecast_attributes,
    is_copied,
    read_settings,
    read_trial,
    record_of,
    store_corrections,
    store_space,
)
from calibo.optuna.storages import load_or_create_study, storage_errors, study_names
from calibo.optuna.trials import current_trials, finish_order, finished_trials, require_one_objective
from calibo.space import Categorical, Choice, Parameter, Space


def drop(study: Study, *numbers: int) -> None:
    """Ignore finished trials from now on: they are kept, but neither count nor inform any model.

    Optuna cannot change finished trials: its own ``best_value`` and its dashboard still show them.
    """
    store_corrections(study, [_correction(study, number, None) for number in numbers])


def amend(study: Study, number: int, value: float) -> None:
    """Replace the value of a finished trial; a failed one counts as complete from now on.

    Optuna cannot change finished trials: its own ``best_value`` and its dashboard still show the old value.
    """
    if not isinstance(value, int | float) or isinstance(value, bool) or not isfinite(value):
        raise InputError(f"`value` must be a finite number, but got {value!r}. Use `drop` to ignore the trial.")
    store_corrections(study, [_correction(study, number, float(value))])


def _correction(study: Study, number: int, value: float | None) -> Correction:
    require_one_objective(study)
    shown = {trial.number: trial for trial in current_trials(study)}
    known = shown | {trial.number: trial for trial in study.get_trials(deepcopy=False) if trial.number not in shown}
    trial = known.get(number) if isinstance(number, int) and not isinstance(number, bool) else None
    if trial is None or not trial.state.is_finished():
        finished = sorted(n for n, each in known.items() if each.state.is_finished())
        raise InputError(f"`trial` must be a finished trial of {study.study_name!r}, {finished}, but got {number!r}.")
    was = "dropped" if number not in shown else repr(trial.values[0]) if trial.values else trial.state.name.lower()
    return Correction(number, value, was, datetime.now().isoformat(timespec="seconds"))


def widen(
    study: Study, space: Space | Mapping[str, Any], *, fill: Mapping[str, Any] | None = None, name: str | None = None
) -> Study:
    """Let a study search a wider ``space``; returns the study.

    Wider bounds apply to the study itself. For new parameters or choices, which Optuna does not allow, the trials are
    copied to a new study, with corrections applied; it is called ``name``, by default that of the study and a number.
    ``fill`` has the values that the trials so far had for new parameters.
    """
    require_one_objective(study)
    stored, wanted = read_settings(study).space, space if isinstance(space, Space) else Space(space)
    if stored is None:
        raise InputError(
            f"`study` must have a declared space, but {study.study_name!r} has none. Widen the bounds in its objective."
        )
    for lost in (parameter for parameter in stored if parameter not in wanted):
        raise InputError(f"`space` must contain every parameter of the study, but lacks {lost!r}.")
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
        store_space(study, Space({known: wanted[known] for known in stored}))
        return study
    return _copy(study, wanted, values, name)


def _require_wider(name: str, old: Parameter, new: Parameter) -> None:
    """Raise unless every value of one parameter is a value of the other."""
    if isinstance(old, Categorical) and isinstance(new, Categorical):
        inside: bool = all(any(_same(choice, other) for other in new.choices) for choice in old.choices)
    elif type(old) is type(new) and not isinstance(old, Categorical) and not isinstance(new, Categorical):
        inside = new.low <= old.low and old.high <= new.high and _keeps_steps(old, new)
    else:
        inside = False
    if not inside:
        raise InputError(f"`{name}` must allow every value of {old!r}, but got {new!r}.")


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
            direction="minimize" if study.direction.name == "MINIMIZE" else "maximize",
        )
        user, system = study_attributes(study)
        for known, value in user.items():
            set_study_attribute(made, known, value, user=True)
        for known, value in system.items():
            if is_copied(known):
                set_study_attribute(made, known, value)
        store_space(made, space)
        for trial in sorted(finished_trials(current_trials(study), settings.ignored), key=finish_order):
            made.add_trial(_moved(trial, space, fill))
    return made


def _moved(trial: FrozenTrial, space: Space, fill: Mapping[str, Any]) -> FrozenTrial:
    """The same outcome and forecast in another space."""
    params = {**trial.params, **fill}
    known = {**trial.distributions, **to_distributions(space)}
    chosen = {name: float(known[name].to_internal_repr(params[name])) for name in params if not known[name].single()}
    entry = read_trial(trial)
    record = record_of(trial, entry)
    made = create_trial(
        state=trial.state,
        values=trial.values,
        params=params,
        distributions={name: known[name] for name in params},
        user_attrs=trial.user_attrs,
        system_attrs={
            **{name: value for name, value in trial.system_attrs.items() if is_copied(name)},
            **({} if record is None else forecast_attributes(TrialEntry(chosen, None, entry.strategy, record))),
        },
        intermediate_values=trial.intermediate_values,
    )
    made.datetime_start, made.datetime_complete = trial.datetime_start, trial.datetime_complete
    return made
