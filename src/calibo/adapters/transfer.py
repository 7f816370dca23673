"""Earlier studies as tasks to learn from, joined with a study on the parameters they share."""

import os
import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import optuna
from optuna.study import Study
from optuna.trial import FrozenTrial

from calibo.adapters.history import Columns, History, demand_one_objective
from calibo.adapters.storage import guarded, opened, study_names
from calibo.branches import middle
from calibo.errors import CaliboWarning, InputError
from calibo.observations import spread
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
    if not isinstance(transfer_from, Study | str | os.PathLike | Sequence):
        raise InputError(f"`transfer_from` must be a list of studies or storages, but got {transfer_from!r}.")
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


def transferring(strategy: Strategy, studies: Sequence[Study], columns: Columns, target: Study) -> Strategy:
    """The strategy with one more model, which also knows what earlier studies have found.

    How well it forecasts decides whether it is used: a study that misleads costs little.
    """
    others = [study for study in studies if not _same(study, target)]
    sources = tuple(source for study in others if (source := _source(study, columns)) is not None)
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


def _same(study: Study, target: Study) -> bool:
    """Whether they are one study, maybe opened twice: of one name, and with the same first trial or none yet."""
    firsts = [next(iter(one.get_trials(deepcopy=False)), None) for one in (study, target)]
    begun = {None if first is None else first.datetime_start for first in firsts}
    return study.study_name == target.study_name and (len(begun) == 1 or None in begun)


def _source(study: Study, columns: Columns) -> Source | None:
    """The outcomes of a study at points of ``columns``; None, with a warning, where they say nothing."""
    name = study.study_name
    try:
        history = History.of(study)
    except KeyError:
        raise InputError(f"`transfer_from` must hold studies that exist, but {name!r} has been deleted.") from None
    known, theirs, ours = history.observations, set(history.columns.parameters), set(columns.parameters)
    points = [_point(trial, columns) for trial in history.trials]
    rows = [i for i, x in enumerate(points) if known.feasible[i] and x is not None and not np.isnan(x).all()]
    y = known.y[rows]
    if len(rows) < FEWEST or spread(y) == 0.0:
        _say(
            f"The study {name!r} is not learned from: it has {len(rows)} outcomes that lie inside the bounds of "
            f"{sorted(theirs & ours) or 'parameters they share'}, too few or all the same."
        )
        return None
    if theirs != ours:
        alone = (("it", theirs - ours), ("this one", ours - theirs))
        parts = [f"only {word} has {sorted(names)}" for word, names in alone if names]
        _say(f"The study {name!r} is joined with this one on {sorted(theirs & ours)}: {', and '.join(parts)}.")
    return Source(name, _whole(np.array([points[i] for i in rows]), columns), y, known.noise_std[rows])


def _point(trial: FrozenTrial, columns: Columns) -> Array | None:
    """(d,) NaN in columns that it lacks; None where a value lies outside its column."""
    return columns.encode({name: value for name, value in trial.params.items() if name in columns.distributions})


def _whole(x: Array, columns: Columns) -> Array:
    """A column that only some points have stands still in the others, where it does so in the target."""
    partly = np.isnan(x).any(axis=0) & ~np.isnan(x).all(axis=0)
    return np.where(np.isnan(x) & partly, middle(columns.cube), x)


_said: set[str] = set()


def _say(text: str) -> None:
    """Once in a process: a sampler asks for every trial."""
    if text not in _said:
        _said.add(text)
        warnings.warn(text, CaliboWarning, stacklevel=2)
