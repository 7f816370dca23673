"""Earlier studies as tasks to learn from, joined with a study on the parameters they share."""

import os
import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import optuna
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial

from calibo.adapters.history import Columns, History, demand_one_objective, distributions
from calibo.adapters.storage import guarded, opened, study_names
from calibo.errors import CaliboWarning, InputError
from calibo.strategy import Strategy
from calibo.surrogate import GaussianProcess, ModelChoice, Source, Transfer
from calibo.surrogate.transfer import FEWEST
from calibo.types import Array

__all__ = ["Earlier", "earlier_studies", "transferring"]

Earlier = Study | str | os.PathLike[str]
EARLIER = "earlier studies"  # the name of the model that knows them
INITIAL = 2  # evaluations before the first model, where there is something to begin with


def earlier_studies(transfer_from: Sequence[Earlier] | Earlier) -> tuple[Study, ...]:
    """The studies themselves, and all of every storage named."""
    given = [transfer_from] if isinstance(transfer_from, Study | str | os.PathLike) else list(transfer_from)
    found: list[Study] = []
    for item in given:
        if isinstance(item, Study):
            found.append(item)
            continue
        if not isinstance(item, str | os.PathLike):
            raise InputError(f"`transfer_from` must hold studies or storages, but got {item!r}.")
        store = opened(item, create=False)
        with guarded(store):
            names = study_names(store)
            found += [optuna.load_study(study_name=name, storage=store) for name in names]
        if not names:
            raise InputError(f"`transfer_from` must hold studies, but there is none in {os.fspath(item)!r}.")
    for study in found:
        demand_one_objective(study)
    return tuple(found)


def transferring(strategy: Strategy, studies: Sequence[Study], columns: Columns) -> Strategy:
    """The strategy with one more model, which also knows what earlier studies have found.

    How well it forecasts decides whether it is used: a study that misleads costs little.
    """
    sources = tuple(source for study in studies if (source := _source(study, columns)) is not None)
    if not sources:
        return strategy
    surrogate = strategy.surrogate
    alone = surrogate.recipes if isinstance(surrogate, ModelChoice) else (("alone", surrogate),)
    settings = surrogate if isinstance(surrogate, ModelChoice) else ModelChoice()
    like = surrogate if isinstance(surrogate, GaussianProcess) else GaussianProcess()
    recipe = replace(like, transform=GaussianProcess().transform)
    joined = replace(settings, recipes=(*alone, (EARLIER, Transfer(sources, recipe))))
    initial = INITIAL if strategy.initial is None else strategy.initial
    return replace(strategy, surrogate=joined, initial=initial)


def _source(study: Study, columns: Columns) -> Source | None:
    """The outcomes of a study at points of ``columns``; None, with a warning, where they say nothing."""
    trials = History.of(study).trials
    theirs, ours = set(distributions(study.get_trials(deepcopy=False))), set(columns.parameters)
    name = study.study_name
    if not theirs & ours:
        raise InputError(
            f"`transfer_from` must share parameters with the study, but {name!r} has {sorted(theirs)} and not one of "
            f"{sorted(ours)}."
        )
    rows = [(trial, x) for trial in trials if _succeeded(trial) and (x := _point(trial, columns)) is not None]
    sign = 1.0 if study.direction == StudyDirection.MINIMIZE else -1.0
    y = np.array([sign * float(trial.value or 0.0) for trial, _ in rows])
    if len(rows) < FEWEST or np.ptp(y) == 0.0:
        _say(f"The study {name!r} is not learned from: it has {len(rows)} outcomes inside the bounds that differ.")
        return None
    if theirs != ours:
        parts = [
            f"only {word} has {sorted(names)}"
            for word, names in (("it", theirs - ours), ("this one", ours - theirs))
            if names
        ]
        _say(f"The study {name!r} is joined with this one on {sorted(theirs & ours)}: {', and '.join(parts)}.")
    return Source(name, _whole(np.array([x for _, x in rows])), y, np.full(len(y), np.nan))


def _point(trial: FrozenTrial, columns: Columns) -> Array | None:
    """(d,) NaN in columns that it lacks; None where a value lies outside its column."""
    return columns.encode({name: value for name, value in trial.params.items() if name in columns.distributions})


def _whole(x: Array) -> Array:
    """A column that only some points have stands still at its middle in the others."""
    partly = np.isnan(x).any(axis=0) & ~np.isnan(x).all(axis=0)
    return np.where(np.isnan(x) & partly, 0.5, x)


def _succeeded(trial: FrozenTrial) -> bool:
    return trial.state.name == "COMPLETE" and trial.value is not None and bool(np.isfinite(trial.value))


_said: set[str] = set()


def _say(text: str) -> None:
    """Once in a process: a sampler asks for every trial."""
    if text not in _said:
        _said.add(text)
        warnings.warn(text, CaliboWarning, stacklevel=2)
