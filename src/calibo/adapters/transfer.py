"""Earlier studies as tasks to learn from, joined with a study on the parameters they share.

What they have found is stored with the study that learns from them, so that every worker, a resumed run and whoever
reads the study believes the same, whatever becomes of them.
"""

import json
import os
import warnings
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import optuna
from optuna.study import Study

from calibo.adapters.attributes import joined, pieces
from calibo.adapters.history import Columns, History, demand_one_objective
from calibo.adapters.storage import guarded, opened, study_names
from calibo.branches import middle
from calibo.errors import CaliboWarning, InputError
from calibo.observations import spread
from calibo.strategy import Strategy
from calibo.surrogate import Source
from calibo.surrogate.transfer import FEWEST
from calibo.types import Array, Indices

__all__ = ["Earlier", "earlier_studies", "informed", "remember"]

Earlier = Study | str | os.PathLike[str]
SOURCES = "calibo:earlier"  # system attribute of a study: under which names the outcomes of others are stored with it
MOST = 200  # outcomes of all earlier studies together: their processes would grow too slow


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


def remember(study: Study, earlier: Sequence[Study]) -> None:
    """Store with a study what others have found up to now, but for those of which it knows already."""
    stored = _stored(study)
    known = [entry["name"] for entry in stored.values()]
    others = [other for other in earlier if not _same(other, study) and other.study_name not in known]
    if not others:
        return
    room = max(MOST // (len(others) + len(known)), 2 * FEWEST)
    names = list(stored)
    for other in others:
        entry = _outcomes(other, room)
        names.append(blake2b(json.dumps(entry).encode(), digest_size=6).hexdigest())
        for key, piece in pieces(f"{SOURCES}:{names[-1]}", entry).items():
            study._storage.set_study_system_attr(study._study_id, key, piece)
    study._storage.set_study_system_attr(study._study_id, SOURCES, names)  # last: what it names is there


def informed(strategy: Strategy, study: Study, columns: Columns) -> Strategy:
    """The strategy, which also learns from what is stored of earlier studies."""
    if hasattr(strategy.acquisition, "check"):  # it reads one model
        return strategy
    entries = _stored(study).items()
    sources = tuple(source for key, entry in entries if (source := _source(key, entry, columns)) is not None)
    return strategy.knowing(sources) if sources else strategy


def _same(study: Study, target: Study) -> bool:
    """Whether they are one study, maybe opened twice: of one name, and with the same first trial or none yet."""
    firsts = [next(iter(one.get_trials(deepcopy=False)), None) for one in (study, target)]
    begun = {None if first is None else first.datetime_start for first in firsts}
    return study.study_name == target.study_name and (len(begun) == 1 or None in begun)


def _outcomes(study: Study, room: int) -> dict[str, Any]:
    """What a study has found, to be stored: at most so many outcomes, half of them the best, the others spread out."""
    try:
        history = History.of(study)
    except KeyError:
        raise InputError(
            f"`transfer_from` must hold studies that exist, but {study.study_name!r} has been deleted."
        ) from None
    known = history.observations
    rows = _chosen(known.y, np.flatnonzero(known.feasible), room)
    if len(rows) < known.feasible.sum():
        _say(f"Of the {known.feasible.sum()} outcomes of {study.study_name!r}, {len(rows)} are learned from.")
    return {
        "name": study.study_name,
        "parameters": list(history.columns.parameters),
        "params": [{n: v for n, v in history.trials[i].params.items() if _plain(v)} for i in rows],
        "values": known.y[rows].tolist(),
        "noise": [None if np.isnan(noise) else noise for noise in known.noise_std[rows].tolist()],
    }


def _chosen(y: Array, rows: Indices, room: int) -> Indices:
    if len(rows) <= room:
        return rows
    order = rows[np.argsort(y[rows], kind="stable")]
    best, others = order[: room // 2], np.sort(order[room // 2 :])
    spaced = others[np.linspace(0, len(others) - 1, room - len(best)).astype(int)]
    return np.sort(np.concatenate([best, spaced]))


def _plain(value: Any) -> bool:
    """Whether it comes back from a storage as it was."""
    return value is None or isinstance(value, bool | int | float | str)


def _stored(study: Study) -> dict[str, dict[str, Any]]:
    """What is stored of earlier studies; storages are open to others, so that what cannot be read is left out."""
    attributes = study._storage.get_study_system_attrs(study._study_id)
    names = attributes.get(SOURCES)
    entries = {name: joined(attributes, f"{SOURCES}:{name}") for name in names} if isinstance(names, list) else {}
    return {name: entry for name, entry in entries.items() if _readable(entry)}


def _readable(entry: Any) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        return False
    parts = [entry.get(part) for part in ("params", "values", "noise")]
    return all(isinstance(part, list) and len(part) == len(parts[0] or ()) for part in parts)


def _source(key: str, entry: Mapping[str, Any], columns: Columns) -> Source | None:
    """The outcomes of a study at points of ``columns``; None, with a warning, where they say nothing."""
    name, theirs, ours = entry["name"], set(entry["parameters"]), set(columns.parameters)
    shared = columns.distributions
    points = [columns.encode({n: v for n, v in params.items() if n in shared}) for params in entry["params"]]
    rows = [i for i, x in enumerate(points) if x is not None and not np.isnan(x).all()]
    y = np.array([entry["values"][i] for i in rows], dtype=float)
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
    noise = np.array([entry["noise"][i] for i in rows], dtype=float)  # None is unknown: NaN
    return Source(name, _whole(np.array([points[i] for i in rows]), columns), y, noise, key)


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
