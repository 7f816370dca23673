"""What earlier studies have found, as it is stored with the study that learns from them, and as tasks of a model."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import chain
from typing import Any

import numpy as np

from calibo.adapters.columns import Columns
from calibo.branches import middle
from calibo.observations import spread
from calibo.optimizer import LARGEST
from calibo.surrogate import Source
from calibo.surrogate.transfer import FEWEST
from calibo.types import Array

__all__ = ["Found", "sources_of"]


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
        return blake2b(json.dumps(self.as_json(), sort_keys=True).encode(), digest_size=6).hexdigest()

    def as_json(self) -> dict[str, Any]:
        parts = {part: list(getattr(self, part)) for part in ("params", "values", "noise")}
        return {"name": self.name, "begun": self.begun, **parts}

    def thinned(self, room: int) -> "Found":
        """At most so many outcomes, half of them the best, the others spread out over its course."""
        if len(self.values) <= room:
            return self
        order = np.argsort(self.values, kind="stable")
        best, others = order[: room // 2], np.sort(order[room // 2 :])
        spaced = others[np.linspace(0, len(others) - 1, room - len(best)).astype(int)]
        rows = np.sort(np.concatenate([best, spaced])).tolist()
        parts = {part: tuple(getattr(self, part)[i] for i in rows) for part in ("params", "values", "noise")}
        return replace(self, **parts)  # type: ignore[arg-type]

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> "Found | None":
        """From what a storage held, which is open to others; None where that is something else."""
        name, begun, params, values, noise = (stored.get(key) for key in ("name", "begun", "params", "values", "noise"))
        if not isinstance(name, str) or not isinstance(begun, str | None):
            return None
        if not (isinstance(params, list) and isinstance(values, list) and isinstance(noise, list)):
            return None
        if not len(params) == len(values) == len(noise) or not all(isinstance(point, dict) for point in params):
            return None
        numbers = all(_number(value) for value in values)
        noises = all(sigma is None or (_number(sigma) and sigma >= 0.0) for sigma in noise)
        return cls(name, begun, tuple(params), tuple(values), tuple(noise)) if numbers and noises else None


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST


def sources_of(
    stored: Mapping[str, Mapping[str, Any]], columns: Columns, say: Callable[[str], None]
) -> tuple[Source, ...]:
    """What is stored of earlier studies, at points of ``columns``; ``say`` is told what is left out, and why."""
    found = {key: entry for key, value in stored.items() if (entry := Found.read(value)) is not None}
    return tuple(source for key, entry in found.items() if (source := _source(key, entry, columns, say)) is not None)


def _source(key: str, found: Found, columns: Columns, say: Callable[[str], None]) -> Source | None:
    """The outcomes of a study at points of ``columns``; None where they say nothing."""
    theirs, ours = found.parameters, set(columns.parameters)
    points = [_point(params, columns) for params in found.params]
    rows = [i for i, x in enumerate(points) if x is not None and not np.isnan(x).all()]
    y = np.array([found.values[i] for i in rows], dtype=float)
    if len(rows) < FEWEST or spread(y) == 0.0:
        say(
            f"The study {found.name!r} is not learned from: it has {len(rows)} outcomes that lie inside the bounds of "
            f"{sorted(theirs & ours) or 'parameters they share'}, too few or all the same."
        )
        return None
    if theirs != ours:
        alone = (("it", theirs - ours), ("this one", ours - theirs))
        parts = [f"only {word} has {sorted(names)}" for word, names in alone if names]
        say(f"The study {found.name!r} is joined with this one on {sorted(theirs & ours)}: {', and '.join(parts)}.")
    noise = np.array([found.noise[i] for i in rows], dtype=float)  # None is unknown: NaN
    return Source(found.name, _whole(np.array([points[i] for i in rows]), columns), y, noise, key)


def _point(params: Mapping[str, Any], columns: Columns) -> Array | None:
    """(d,) NaN in columns that it lacks; None where a value lies outside its column."""
    return columns.encode({name: value for name, value in params.items() if name in columns.distributions})


def _whole(x: Array, columns: Columns) -> Array:
    """A column that only some points have stands still in the others, where it does so in the target."""
    partly = np.isnan(x).any(axis=0) & ~np.isnan(x).all(axis=0)
    return np.where(np.isnan(x) & partly, middle(columns.cube), x)
