"""Prior studies as they are stored with the study that learns from them, and as source tasks of a model."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import chain
from typing import Any

import numpy as np

from calibo.arrays import Array
from calibo.models import SourceTask
from calibo.models.transfer import FEWEST
from calibo.observations import LARGEST, spread
from calibo.optuna.columns import Columns


@dataclass(frozen=True)
class PriorStudy:
    """The outcomes of a study, minimized, in a form that can be stored."""

    name: str
    begun: str | None
    """When its first trial was started: names are not unique."""

    params: tuple[dict[str, Any], ...]
    values: tuple[float, ...]
    noise: tuple[float | None, ...]

    @property
    def parameters(self) -> set[str]:
        return set(chain.from_iterable(self.params))

    @property
    def key(self) -> str:
        """A digest of all that is stored."""
        return blake2b(json.dumps(self.to_json(), sort_keys=True).encode(), digest_size=6).hexdigest()

    def to_json(self) -> dict[str, Any]:
        parts = {part: list(getattr(self, part)) for part in ("params", "values", "noise")}
        return {"name": self.name, "begun": self.begun, **parts}

    def subsample(self, most: int) -> "PriorStudy":
        """At most ``most`` outcomes: half of them the best, the others evenly spaced over the study."""
        if len(self.values) <= most:
            return self
        order = np.argsort(self.values, kind="stable")
        best, others = order[: most // 2], np.sort(order[most // 2 :])
        spaced = others[np.linspace(0, len(others) - 1, most - len(best)).astype(int)]
        rows = np.sort(np.concatenate([best, spaced])).tolist()
        parts = {part: tuple(getattr(self, part)[i] for i in rows) for part in ("params", "values", "noise")}
        return replace(self, **parts)  # type: ignore[arg-type]

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "PriorStudy | None":
        """None if it is not valid: other programs may write to a storage."""
        name, begun, params, values, noise = (stored.get(key) for key in ("name", "begun", "params", "values", "noise"))
        if not isinstance(name, str) or not isinstance(begun, str | None):
            return None
        if not (isinstance(params, list) and isinstance(values, list) and isinstance(noise, list)):
            return None
        if not len(params) == len(values) == len(noise) or not all(isinstance(point, dict) for point in params):
            return None
        numbers = all(_is_number(value) for value in values)
        noises = all(sigma is None or (_is_number(sigma) and sigma >= 0.0) for sigma in noise)
        return cls(name, begun, tuple(params), tuple(values), tuple(noise)) if numbers and noises else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST


def source_tasks(
    stored: Mapping[str, Mapping[str, Any]], columns: Columns, warn: Callable[[str], None]
) -> tuple[SourceTask, ...]:
    """The stored prior studies at points of ``columns``; ``warn`` is called with what is left out and why."""
    found = {key: entry for key, value in stored.items() if (entry := PriorStudy.from_json(value)) is not None}
    return tuple(source for key, entry in found.items() if (source := _source(key, entry, columns, warn)) is not None)


def _source(key: str, found: PriorStudy, columns: Columns, warn: Callable[[str], None]) -> SourceTask | None:
    """The outcomes of a study at points of ``columns``; None if there is nothing to learn from them."""
    theirs, ours = found.parameters, set(columns.parameters)
    points = [_point(params, columns) for params in found.params]
    rows = [i for i, x in enumerate(points) if x is not None and not np.isnan(x).all()]
    y = np.array([found.values[i] for i in rows], dtype=float)
    if len(rows) < FEWEST or spread(y) == 0.0:
        warn(
            f"The prior study {found.name!r} is ignored: it has {len(rows)} outcomes within the bounds of "
            f"{sorted(theirs & ours) or 'shared parameters'}, too few or all equal."
        )
        return None
    if theirs != ours:
        alone = (("it", theirs - ours), ("this one", ours - theirs))
        parts = [f"only {word} has {sorted(names)}" for word, names in alone if names]
        warn(f"The prior study {found.name!r} is used only on {sorted(theirs & ours)}: {', and '.join(parts)}.")
    noise = np.array([found.noise[i] for i in rows], dtype=float)  # None is unknown: NaN
    return SourceTask(found.name, _impute(np.array([points[i] for i in rows]), columns), y, noise, key)


def _point(params: Mapping[str, Any], columns: Columns) -> Array | None:
    """(d,) NaN in missing columns; None if a value is out of bounds."""
    return columns.encode({name: value for name, value in params.items() if name in columns.distributions})


def _impute(x: Array, columns: Columns) -> Array:
    """Impute columns that only some points have."""
    partly = np.isnan(x).any(axis=0) & ~np.isnan(x).all(axis=0)
    return np.where(np.isnan(x) & partly, columns.cube.center, x)
