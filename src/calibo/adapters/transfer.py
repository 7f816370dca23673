"""Earlier studies as tasks to learn from, joined with a study on the parameters they share.

What they have found is stored with the study that learns from them, so that every worker, a resumed run and whoever
reads the study believes the same, whatever becomes of them.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from itertools import chain
from typing import Any

import numpy as np
import optuna
from optuna.study import Study
from optuna.trial import FrozenTrial

from calibo.adapters.attributes import joined, pieces
from calibo.adapters.history import Columns, History, demand_one_objective
from calibo.adapters.storage import guarded, opened, study_names
from calibo.branches import middle
from calibo.errors import InputError, warn_once
from calibo.observations import spread
from calibo.optimizer import LARGEST
from calibo.surrogate import Source
from calibo.surrogate.transfer import FEWEST
from calibo.types import Array

__all__ = ["Earlier", "Found", "found_by", "remember", "sources_of"]

Earlier = Study | str | os.PathLike[str]
SOURCES = "calibo:earlier"  # system attribute of a study: under which names the outcomes of others are stored with it
MOST_OUTCOMES = 200  # of all earlier studies together: a process of more is too slow
MOST_STUDIES = 8  # every pair of them has a correlation of its own


@dataclass(frozen=True)
class Found:
    """What a study has found, to be minimised; a plain value that can be stored."""

    name: str
    begun: str | None
    """When its first trial was begun: names are not unique."""

    params: tuple[dict[str, Any], ...]
    values: tuple[float, ...]
    noise: tuple[float | None, ...]

    @property
    def parameters(self) -> set[str]:
        return set(chain.from_iterable(self.params))

    @property
    def key(self) -> str:
        """Names it, by all it knows."""
        return blake2b(repr(asdict(self)).encode(), digest_size=6).hexdigest()

    def of(self, study: Study) -> bool:
        """Whether it is this study; one of the two may have been looked at before its first trial."""
        begun = _begun(study)
        return self.name == study.study_name and (begun == self.begun or None in (begun, self.begun))

    def thinned(self, room: int) -> "Found":
        """At most so many outcomes, half of them the best, the others spread out over its course."""
        if len(self.values) <= room:
            return self
        warn_once(f"Of the {len(self.values)} outcomes of {self.name!r}, {room} are learned from.")
        order = np.argsort(self.values, kind="stable")
        best, others = order[: room // 2], np.sort(order[room // 2 :])
        spaced = others[np.linspace(0, len(others) - 1, room - len(best)).astype(int)]
        rows = np.sort(np.concatenate([best, spaced])).tolist()
        parts = {part: tuple(getattr(self, part)[i] for i in rows) for part in ("params", "values", "noise")}
        return replace(self, **parts)  # type: ignore[arg-type]

    @classmethod
    def read(cls, stored: Any) -> "Found | None":
        """From what a storage held, which is open to others; None where that is something else."""
        if not isinstance(stored, dict) or set(stored) != {"name", "begun", "params", "values", "noise"}:
            return None
        params, values, noise = (stored[part] for part in ("params", "values", "noise"))
        named = isinstance(stored["name"], str) and isinstance(stored["begun"], str | None)
        lists = all(isinstance(part, list) and len(part) == len(values) for part in (params, values, noise))
        if not named or not lists or not all(isinstance(point, dict) for point in params):
            return None
        numbers = all(_number(value) for value in values)
        noises = all(sigma is None or (_number(sigma) and sigma >= 0.0) for sigma in noise)
        if not numbers or not noises:
            return None
        return cls(stored["name"], stored["begun"], tuple(params), tuple(values), tuple(noise))


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST


def found_by(transfer_from: Sequence[Earlier] | Earlier) -> tuple[Found, ...]:
    """What studies have found up to now, and all of every storage named."""
    if not isinstance(transfer_from, Study | str | os.PathLike | Sequence):
        raise InputError(f"`transfer_from` must be a list of studies or storages, but got {transfer_from!r}.")
    given = [transfer_from] if isinstance(transfer_from, Study | str | os.PathLike) else list(transfer_from)
    found: list[Found] = []
    for item in given:
        if isinstance(item, Study):
            found.append(_found(item))
            continue
        if not isinstance(item, str | os.PathLike):
            raise InputError(f"`transfer_from` must hold studies or storages, but got {item!r}.")
        store = opened(item, create=False)
        with guarded(store):
            names = study_names(store)
            found += [_found(optuna.load_study(study_name=name, storage=store)) for name in names]
        if not names:
            raise InputError(f"`transfer_from` must hold studies, but there is none in {os.fspath(item)!r}.")
    return tuple(found)


def _found(study: Study) -> Found:
    demand_one_objective(study)
    try:
        history = History.of(study)
    except KeyError:
        raise InputError(
            f"`transfer_from` must hold studies that exist, but {study.study_name!r} has been deleted."
        ) from None
    known = history.observations
    rows = [i for i in np.flatnonzero(known.feasible).tolist() if _plain(history.trials[i])]
    if len(rows) < known.feasible.sum():
        warn_once(f"Of {study.study_name!r}, trials are left out whose categories are neither numbers, words nor None.")
    return Found(
        study.study_name,
        _begun(study),
        tuple(history.trials[i].params for i in rows),
        tuple(known.y[rows].tolist()),
        tuple(None if np.isnan(sigma) else sigma for sigma in known.noise_std[rows].tolist()),
    )


def _plain(trial: FrozenTrial) -> bool:
    """Whether its parameters come back from a storage as they were."""
    return all(value is None or isinstance(value, bool | int | float | str) for value in trial.params.values())


def _begun(study: Study) -> str | None:
    first = next(iter(study.get_trials(deepcopy=False)), None)
    return None if first is None or first.datetime_start is None else first.datetime_start.isoformat()


def remember(study: Study, earlier: Sequence[Found]) -> None:
    """Store with a study what others have found, but for those of which it knows already."""
    stored = _stored(study)
    known = {(other.name, other.begun) for other in stored.values()}
    others = [other for other in earlier if (other.name, other.begun) not in known and not other.of(study)]
    others = [other for other in others if _tells(other)]
    room = MOST_OUTCOMES - sum(len(other.values) for other in stored.values())
    taken = others[: max(min(MOST_STUDIES - len(stored), room // FEWEST), 0)]
    if len(taken) < len(others):
        left = [other.name for other in others[len(taken) :]]
        most = f"{MOST_STUDIES} others and {MOST_OUTCOMES} outcomes"
        warn_once(f"There is no room for {left}: a study learns from {most} at most.")
    if not taken:
        return
    new = {(kept := other.thinned(room // len(taken))).key: kept for other in taken}
    for key, kept in new.items():
        for name, piece in pieces(f"{SOURCES}:{key}", asdict(kept)).items():
            study._storage.set_study_system_attr(study._study_id, name, piece)
    # last, as what it names is there; another worker may have added some meanwhile
    names = list(dict.fromkeys([*_stored(study), *new]))
    study._storage.set_study_system_attr(study._study_id, SOURCES, names)


def _tells(other: Found) -> bool:
    if len(other.values) >= FEWEST and spread(np.array(other.values)) > 0.0:
        return True
    warn_once(
        f"The study {other.name!r} is not learned from: it has {len(other.values)} outcomes, too few or all the same."
    )
    return False


def _stored(study: Study) -> dict[str, Found]:
    """What is stored of earlier studies, by their keys."""
    attributes = study._storage.get_study_system_attrs(study._study_id)
    names = attributes.get(SOURCES)
    keys = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
    entries = {key: Found.read(joined(attributes, f"{SOURCES}:{key}")) for key in keys}
    return {key: entry for key, entry in entries.items() if entry is not None}


def sources_of(study: Study, columns: Columns) -> tuple[Source, ...]:
    """What is stored of earlier studies, at points of ``columns``."""
    entries = _stored(study).items()
    return tuple(source for key, entry in entries if (source := _source(key, entry, columns)) is not None)


def _source(key: str, found: Found, columns: Columns) -> Source | None:
    """The outcomes of a study at points of ``columns``; None, with a warning, where they say nothing."""
    theirs, ours = found.parameters, set(columns.parameters)
    points = [_point(params, columns) for params in found.params]
    rows = [i for i, x in enumerate(points) if x is not None and not np.isnan(x).all()]
    y = np.array([found.values[i] for i in rows], dtype=float)
    if len(rows) < FEWEST or spread(y) == 0.0:
        warn_once(
            f"The study {found.name!r} is not learned from: it has {len(rows)} outcomes that lie inside the bounds of "
            f"{sorted(theirs & ours) or 'parameters they share'}, too few or all the same."
        )
        return None
    if theirs != ours:
        alone = (("it", theirs - ours), ("this one", ours - theirs))
        parts = [f"only {word} has {sorted(names)}" for word, names in alone if names]
        warn_once(
            f"The study {found.name!r} is joined with this one on {sorted(theirs & ours)}: {', and '.join(parts)}."
        )
    noise = np.array([found.noise[i] for i in rows], dtype=float)  # None is unknown: NaN
    return Source(found.name, _whole(np.array([points[i] for i in rows]), columns), y, noise, key)


def _point(params: Mapping[str, Any], columns: Columns) -> Array | None:
    """(d,) NaN in columns that it lacks; None where a value lies outside its column."""
    return columns.encode({name: value for name, value in params.items() if name in columns.distributions})


def _whole(x: Array, columns: Columns) -> Array:
    """A column that only some points have stands still in the others, where it does so in the target."""
    partly = np.isnan(x).any(axis=0) & ~np.isnan(x).all(axis=0)
    return np.where(np.isnan(x) & partly, middle(columns.cube), x)
