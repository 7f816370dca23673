"""The unit cube of the search: one axis per parameter, without names or units.

A continuous axis is the interval [0, 1]. An axis with ``cells`` has that many values, each with one cell of the
interval and one representative position in it. Cells have equal width, or, for a logarithmic axis of the integers
``origin, origin + 1, ...``, extend from v - 1/2 to v + 1/2 on the log scale.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import inf, log, prod
from typing import Literal

import numpy as np

from calibo.arrays import Array, Flags, Indices, read_only
from calibo.parts import register

Warp = Literal["auto", "identity", "log", "exp", "sigmoid"]

SAME = 1e-9  # on a continuous axis, points closer than this are identical


@register("axis")
@dataclass(frozen=True)
class Axis:
    """One column of the cube."""

    kind: Literal["continuous", "ordered", "categorical"] = "continuous"

    cells: int = 0
    """Number of values; 0 for a continuous axis."""

    origin: int = 0
    """First integer of a logarithmic axis; 0 for cells of equal width."""

    warp: Warp | None = "auto"
    """The warp prior, for a surrogate with input warping; None to never warp the axis."""

    def index(self, x: Array | float) -> Indices:
        """The cell of each position."""
        if self.origin:
            low, high = self._log_edges
            value = np.rint(np.exp(low + x * (high - low))) - self.origin
        else:
            value = np.floor(x * self.cells)
        return np.asarray(np.clip(value, 0, self.cells - 1), dtype=np.intp)

    def position(self, index: Indices | int) -> Array:
        """The position that represents each cell."""
        if self.origin:
            low, high = self._log_edges
            return np.asarray((np.log(self.origin + index) - low) / (high - low), dtype=float)
        return np.asarray((index + 0.5) / self.cells, dtype=float)

    def snap(self, x: Array) -> Array:
        """Each position moved to the representative of its cell."""
        return self.position(self.index(x)) if self.cells else np.clip(x, 0.0, 1.0)

    @cached_property
    def _log_edges(self) -> tuple[float, float]:
        return log(self.origin - 0.5), log(self.origin + self.cells - 0.5)


@register("cube")
@dataclass(frozen=True)
class Cube:
    """The axes of the unit cube, in the order of the columns of every ``x``."""

    axes: tuple[Axis, ...]

    width: int | None = None
    """Maximum number of numeric columns active in a point, if columns are conditional; otherwise None."""

    def __len__(self) -> int:
        return len(self.axes)

    def __iter__(self) -> Iterator[Axis]:
        return iter(self.axes)

    @cached_property
    def free(self) -> Flags:
        """(d,) which columns can vary."""
        return read_only(np.array([axis.cells != 1 for axis in self.axes], dtype=bool))

    @cached_property
    def categorical(self) -> Flags:
        """(d,) which columns are categorical."""
        return read_only(np.array([axis.kind == "categorical" for axis in self.axes], dtype=bool))

    @cached_property
    def discrete(self) -> Flags:
        """(d,) which columns have cells."""
        return read_only(np.array([axis.cells > 0 for axis in self.axes], dtype=bool))

    @cached_property
    def warped(self) -> tuple[int, ...]:
        """The columns that may be warped: numeric, with more than two values."""
        fits = [a.warp is not None and a.kind != "categorical" and (not a.cells or a.cells > 2) for a in self.axes]
        return tuple(int(j) for j in np.flatnonzero(fits))

    @cached_property
    def design_size(self) -> int:
        """Size of the initial design: the dimension, clipped to 4 to 10."""
        return int(np.clip(self.free.sum(), 4, 10))

    def snap(self, x: Array) -> Array:
        """Points (n, d) with every column moved to representative positions."""
        if not self.discrete.any():
            return np.clip(x, 0.0, 1.0)
        return np.column_stack([axis.snap(x[:, j]) for j, axis in enumerate(self.axes)])

    @cached_property
    def center(self) -> Array:
        """(d,) the middle of every column."""
        return read_only(np.asarray(self.snap(np.full((1, len(self)), 0.5))[0]))

    def impute(self, x: Array) -> Array:
        """Points (n, d) with NaN, i.e. inactive columns, replaced by the center."""
        return np.where(np.isnan(x), self.center, x)

    def count(self, fixed: Array) -> float:
        """Number of points that match the non-NaN columns of ``fixed`` (d,); infinite if a free one is continuous."""
        return prod(axis.cells or inf for axis, value in zip(self.axes, fixed, strict=True) if np.isnan(value))

    def points(self, fixed: Array) -> Array:
        """(count, d) all of these points."""
        # skip columns of one value: an array has at most 32 dimensions
        open = [j for j, axis in enumerate(self.axes) if np.isnan(fixed[j]) and axis.cells > 1]
        grids = np.meshgrid(*[self.axes[j].position(np.arange(self.axes[j].cells)) for j in open], indexing="ij")
        points = np.tile(np.where(np.isnan(fixed), 0.5, fixed), (grids[0].size if grids else 1, 1))
        for j, grid in zip(open, grids, strict=True):
            points[:, j] = grid.ravel()
        return self.snap(points)

    def among(self, x: Array, others: Array, tolerance: float = SAME) -> Flags:
        """(n,) which points are in ``others`` (k, d): same cells, and continuous columns within ``tolerance``."""
        same = np.ones((len(x), len(others)), dtype=bool)
        for j, axis in enumerate(self.axes):
            if axis.cells:
                same &= axis.index(x[:, j])[:, None] == axis.index(others[:, j])
            else:
                same &= np.abs(x[:, j, None] - others[:, j]) <= tolerance
        return np.asarray(same.any(axis=1))
