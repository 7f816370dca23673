"""Observations: evaluated points, their outcomes, and pending points."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import numpy as np

from calibo.arrays import Array, Flags
from calibo.cube import Cube
from calibo.parts import identity

LARGEST = 1e300  # outcomes and constraints are clipped here, so that differences stay finite


@dataclass(frozen=True, eq=False)
class Observations:
    """An immutable data set in the unit cube, in order of arrival; smaller ``y`` is better."""

    cube: Cube

    x: Array
    """(n, d) evaluated points; NaN in inactive columns."""

    y: Array
    """(n,) outcomes; NaN where the evaluation failed."""

    noise_std: Array
    """(n,) known standard deviation of each outcome; NaN where unknown."""

    feasible: Flags
    """(n,) False where the evaluation failed or violated a constraint."""

    pending: Array
    """(q, d) pending points."""

    constraints: Array | None = None
    """(n, m) constraint values, positive if violated; NaN where not measured; None without constraints."""

    scores: Array | None = None
    """(n,) prequential normal score of each outcome; NaN where there was no forecast."""

    report_scores: Array | None = None
    """The same under reported forecasts."""

    def __len__(self) -> int:
        return len(self.y)

    def valid(self) -> "Observations":
        """The feasible observations, to which the surrogate of the objective is fitted."""
        return self if self.feasible.all() else self.take(self.feasible)

    def impute(self) -> "Observations":
        """The same observations with inactive columns at the center of the cube."""
        points = self.all_points()
        if not np.isnan(points).any():
            return self
        present = ~np.isnan(points) & self.cube.free & ~self.cube.categorical
        cube = replace(self.cube, width=max(int(present.sum(axis=1).max()), 1))
        return replace(self, cube=cube, x=self.cube.impute(self.x), pending=self.cube.impute(self.pending))

    def all_points(self) -> Array:
        """(n + q, d) evaluated and pending points."""
        return np.concatenate([self.x, self.pending])

    def head(self, n: int) -> "Observations":
        """The first ``n`` observations."""
        return self if n >= len(self) else self.take(np.arange(len(self)) < n)

    def first_scorable(self, first: int | None = None) -> int:
        """Index of the first outcome to score: ``first`` or after the initial design, once earlier outcomes differ."""
        varied = next((j for j in range(2, len(self)) if spread(self.y[:j]) > 0.0), len(self))
        return max(varied, self.cube.design_size if first is None else first)

    def digests(self, label: str) -> list[str]:
        """One digest per outcome, of ``label``, the cube, all observations before it, and itself."""
        digest = blake2b(f"{label} {identity(self.cube)}".encode(), digest_size=6)
        digests = []
        for row in np.ascontiguousarray(np.column_stack([self.x, self.y, self.noise_std])):
            digest.update(row.tobytes())
            digests.append(digest.hexdigest())
        return digests

    def take(self, rows: Flags) -> "Observations":
        """The observations at the flagged rows."""
        return replace(
            self,
            x=self.x[rows],
            y=self.y[rows],
            noise_std=self.noise_std[rows],
            feasible=self.feasible[rows],
            constraints=None if self.constraints is None else self.constraints[rows],
            scores=None if self.scores is None else self.scores[rows],
            report_scores=None if self.report_scores is None else self.report_scores[rows],
        )


def constraint_matrix(constraints: Sequence[Mapping[Any, float]]) -> Array | None:
    """The matrix (n, m) of constraints given by name for each of n evaluations; None if there are none."""
    names = list(dict.fromkeys(name for row in constraints for name in row))
    return np.array([[row.get(name, np.nan) for name in names] for row in constraints]) if names else None


def spread(y: Array) -> float:
    """The standard deviation of outcomes, 0 if they are constant up to rounding."""
    largest = float(np.abs(y).max(initial=0.0))
    if largest == 0.0:
        return 0.0
    share = float((y / largest).std())  # squares of outcomes beyond 1e154 would overflow
    return largest * share if share > 1e-14 and largest * share > 1e-290 else 0.0  # else quotients may overflow
