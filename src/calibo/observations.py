"""Observations: evaluated points, their outcomes, and points under evaluation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import numpy as np

from calibo.arrays import Array, Flags
from calibo.cube import Cube
from calibo.parts import identity

LARGEST = 1e300  # of outcomes and constraints: larger ones count as it, so that differences stay finite


@dataclass(frozen=True, eq=False)
class Observations:
    """A frozen data set in the unit cube, in the order of arrival; smaller ``y`` is better."""

    cube: Cube

    x: Array
    """(n, d) evaluated points; NaN where a point has no such column."""

    y: Array
    """(n,) outcomes; NaN where the evaluation failed."""

    noise_std: Array
    """(n,) known standard deviation of each outcome; NaN where unknown."""

    feasible: Flags
    """(n,) False where the evaluation failed or violated a constraint."""

    pending: Array
    """(q, d) points under evaluation."""

    constraints: Array | None = None
    """(n, m) by how much each limit is exceeded; NaN where that was not measured; None where there are no limits."""

    scores: Array | None = None
    """(n,) normal score of each outcome under the forecast made before it was known; NaN where there was none."""

    def __len__(self) -> int:
        return len(self.y)

    def valid(self) -> "Observations":
        """The feasible outcomes: what a surrogate of the objective learns from."""
        return self if self.feasible.all() else self.take(self.feasible)

    def impute(self) -> "Observations":
        """The same observations with the center of the cube for columns that points do not have."""
        points = self.all_points()
        if not np.isnan(points).any():
            return self
        present = ~np.isnan(points) & self.cube.free & ~self.cube.categorical
        cube = replace(self.cube, width=max(int(present.sum(axis=1).max()), 1))
        return replace(self, cube=cube, x=self.cube.impute(self.x), pending=self.cube.impute(self.pending))

    def all_points(self) -> Array:
        """(n + q, d) every point evaluated or under evaluation."""
        return np.concatenate([self.x, self.pending])

    def head(self, n: int) -> "Observations":
        """The first ``n`` outcomes."""
        return self if n >= len(self) else self.take(np.arange(len(self)) < n)

    def first_scorable(self) -> int:
        """The first outcome whose forecast can be scored: after a design, and once the outcomes before it differ."""
        varied = next((j for j in range(2, len(self)) if spread(self.y[:j]) > 0.0), len(self))
        return max(varied, self.cube.design_size)

    def digests(self, label: str) -> list[str]:
        """One for each outcome, of ``label``, the cube, everything that came before it, and itself."""
        digest = blake2b(f"{label} {identity(self.cube)}".encode(), digest_size=6)
        digests = []
        for row in np.ascontiguousarray(np.column_stack([self.x, self.y, self.noise_std])):
            digest.update(row.tobytes())
            digests.append(digest.hexdigest())
        return digests

    def take(self, rows: Flags) -> "Observations":
        """The outcomes at the flagged rows."""
        return replace(
            self,
            x=self.x[rows],
            y=self.y[rows],
            noise_std=self.noise_std[rows],
            feasible=self.feasible[rows],
            constraints=None if self.constraints is None else self.constraints[rows],
            scores=None if self.scores is None else self.scores[rows],
        )


def constraint_matrix(constraints: Sequence[Mapping[Any, float]]) -> Array | None:
    """The table (n, m) of constraints given by name for each of n evaluations; None where there are none."""
    names = list(dict.fromkeys(name for row in constraints for name in row))
    return np.array([[row.get(name, np.nan) for name in names] for row in constraints]) if names else None


def spread(y: Array) -> float:
    """The standard deviation of outcomes, 0 where they are the same up to rounding."""
    largest = float(np.abs(y).max(initial=0.0))
    if largest == 0.0:
        return 0.0
    share = float((y / largest).std())  # squares of outcomes beyond 1e154 would overflow
    return largest * share if share > 1e-14 and largest * share > 1e-290 else 0.0  # nor may quotients overflow
