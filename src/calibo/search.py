"""Maximize a function over the cube: quasi-random candidates, then local search from the best of them.

Continuous and ordered columns are optimized jointly by one L-BFGS-B run over all starts. Then ordered columns are
snapped to their cells, and discrete columns are changed one at a time while that improves the value.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
from scipy.optimize import minimize

from calibo.arrays import Array, Flags, Indices, read_only
from calibo.cube import SAME, Cube
from calibo.parts import register

Excluded = Callable[[Array], Flags]  # which points (n, d) may not be proposed

ENUMERABLE = 4096  # a cube of at most this many points is evaluated exhaustively
FALLBACKS = 16  # further nets of candidates to try if every ascent ended on an excluded point
ROUNDS = 8  # of discrete local search; each round costs one batch
NEIGHBORS = 8  # maximum number of other cells of one column tried per round


class Objective(Protocol):
    """The function to maximize."""

    def value(self, x: Array) -> Array:
        """(n,)"""
        ...

    def screen(self, x: Array) -> Array:
        """(n,) a cheap approximation of the value, to choose starting points."""
        ...

    def value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        """(n,) and (n, d)."""
        ...


@register("search")
@dataclass(frozen=True)
class Search:
    """The budget of one maximization."""

    candidates: int = 256
    """Quasi-random (Sobol) candidates evaluated first."""

    local: int = 20
    """Candidates around each anchor."""

    starts: int = 4
    """Candidates from which the joint ascent starts."""

    iterations: int = 50
    """Maximum number of L-BFGS-B iterations."""

    def maximize(
        self,
        objective: Objective,
        cube: Cube,
        *,
        rng: np.random.Generator,
        anchors: Array,
        fixed: Array,
        excluded: Excluded,
    ) -> Array | None:
        """The best point (d,) found that is not ``excluded``, or None if there is none left.

        ``anchors`` (a, d) are points around which to sample locally. Each row of ``fixed`` (b, d) is one assignment of
        fixed columns, NaN elsewhere; the point agrees with one of the rows.
        """
        if sum(cube.count(row) for row in fixed) <= ENUMERABLE:
            return _best(objective, np.concatenate([cube.points(row) for row in fixed]), excluded)

        def net() -> tuple[Array, Array]:
            return shifted_net(len(cube), self.candidates, rng), fixed[np.arange(self.candidates) % len(fixed)]

        def placed(points: Array, held: Array) -> Array:
            return cube.snap(np.where(np.isnan(held), points, held))

        points, held = net()
        held = np.concatenate([held, np.repeat(_agreeing(fixed, anchors), self.local, axis=0)])
        x = placed(np.concatenate([points, self._around(cube, anchors, rng)]), held)
        values = _finite(objective.screen(x))
        chosen, unit = self._spread(x, values), _height(values)
        candidates, x, free = x, x[chosen], cube.free & np.isnan(held[chosen])
        x = cube.snap(self._ascend(objective, x, free & ~cube.categorical, unit))
        if (cube.discrete & free).any():
            x = self._exchange(objective, cube, x, free, excluded, rng)
            x = np.concatenate([x, self._ascend(objective, x, free & ~cube.discrete, unit)])
        found = _best(objective, x, excluded)
        for again in range(1 + FALLBACKS):
            if found is not None:
                break
            found = _best(objective, placed(*net()) if again else candidates, excluded)
        return found

    def _around(self, cube: Cube, anchors: Array, rng: np.random.Generator) -> Array:
        """(a * local, d) random neighbours at distances from 0.001 to about 0.3."""
        a, d = anchors.shape
        width = 10.0 ** rng.uniform(-3.0, -0.5, size=(a, self.local, 1))
        moved = rng.random((a, self.local, d)) < max(0.5, 1.0 / d)
        near = anchors[:, None] + np.where(moved, width * rng.standard_normal((a, self.local, d)), 0.0)
        # clip to the boundary: optima often lie there
        near = np.clip(near, 0.0, 1.0)
        anew = cube.categorical & (rng.random((a, self.local, d)) < 0.2)
        return np.where(anew, rng.random((a, self.local, d)), near).reshape(-1, d)

    def _spread(self, x: Array, values: Array) -> Indices:
        """Indices of the best candidates that are far apart; fewer if the best are clustered."""
        order = np.argsort(-values, kind="stable")[: 16 * self.starts]
        chosen = [order[0]]
        for i in order[1:]:
            if len(chosen) == self.starts:
                break
            # 0.1 apart in one column may be another local maximum; closer ones converge to the same
            if np.abs(x[chosen] - x[i]).max(axis=1).min() > 0.1:
                chosen.append(i)
        return np.array(chosen)

    def _ascend(self, objective: Objective, x: Array, movable: Flags, unit: tuple[float, float]) -> Array:
        """Ascent from every row in its ``movable`` (n, d) columns, in one run; ``unit`` normalizes the tolerances."""
        zero, one = unit
        if not movable.any() or not self.iterations:
            return x

        def loss(flat: Array) -> tuple[float, Array]:
            points = x.copy()
            points[movable] = flat
            value, gradient = objective.value_and_gradient(points)
            if not np.all(np.isfinite(value)):
                return np.inf, np.zeros_like(flat)
            return float((zero - value).sum()) / one, gradient[movable] / -one

        start = x[movable]
        run = minimize(
            loss,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, 1.0)] * start.size,
            options={"maxiter": self.iterations, "ftol": 1e-4, "gtol": 1e-3},
        )
        climbed = x.copy()
        climbed[movable] = np.clip(run.x, 0.0, 1.0)
        return climbed

    def _exchange(
        self, objective: Objective, cube: Cube, x: Array, free: Flags, excluded: Excluded, rng: np.random.Generator
    ) -> Array:
        """Move each row to its best neighbour in one discrete column, until none is better."""

        def worth(points: Array) -> Array:
            return np.where(excluded(points), -np.inf, _finite(objective.value(points)))

        values = worth(x)
        for _ in range(ROUNDS):
            groups = [_neighbors(cube, row, may, rng) for row, may in zip(x, free, strict=True)]
            owners = np.repeat(np.arange(len(x)), [len(group) for group in groups])
            neighbors = np.concatenate(groups)
            gains = worth(neighbors)
            moved = False
            for i in range(len(x)):
                mine = np.flatnonzero(owners == i)
                if not len(mine):
                    continue
                best = mine[np.argmax(gains[mine])]
                if gains[best] > values[i]:
                    x[i], values[i], moved = neighbors[best], gains[best], True
            if not moved:
                break
        return x


def shifted_net(d: int, count: int, rng: np.random.Generator) -> Array:
    """(count, d) points of a Sobol net with a random shift, modulo 1 (Cranley-Patterson rotation)."""
    return np.asarray((_net(d, 1 << (count - 1).bit_length())[:count] + rng.random(d)) % 1.0)


@lru_cache(maxsize=8)
def _net(d: int, count: int) -> Array:
    from scipy.stats import qmc  # takes 0.3 s: deferred to the first suggestion

    return read_only(np.asarray(qmc.Sobol(d, scramble=False).random(count)))


def _neighbors(cube: Cube, row: Array, free: Flags, rng: np.random.Generator) -> Array:
    """(k, d) copies of ``row`` with one discrete column changed."""
    copies = []
    for j in np.flatnonzero(cube.discrete & free):
        axis = cube.axes[j]
        here = int(axis.index(row[j]))
        if axis.cells <= NEIGHBORS + 1:
            others = [i for i in range(axis.cells) if i != here]
        elif axis.kind == "ordered":
            others = [i for i in (here - 1, here + 1) if 0 <= i < axis.cells]
        else:
            others = [int(i) for i in rng.choice(axis.cells, NEIGHBORS, replace=False) if i != here]
        for i in others:
            copy = row.copy()
            copy[j] = axis.position(i)
            copies.append(copy)
    return np.array(copies).reshape(-1, len(row))


def _agreeing(fixed: Array, anchors: Array) -> Array:
    """(a, d) for each anchor the first row of ``fixed`` that it agrees with, or the first of all."""
    agrees = np.isnan(fixed) | (np.abs(anchors[:, None] - fixed) <= SAME)
    return np.asarray(fixed[np.argmax(agrees.all(axis=2), axis=1)])


def _height(values: Array) -> tuple[float, float]:
    """The maximum of the values, and its distance to their 90% quantile."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return 0.0, 1.0
    top = float(finite.max())
    return top, (top - float(np.quantile(finite, 0.9))) or 1.0


def _best(objective: Objective, x: Array, excluded: Excluded) -> Array | None:
    x = x[~excluded(x)]
    return x[np.argmax(_finite(objective.value(x)))] if len(x) else None


def _finite(values: Array) -> Array:
    """With NaN as -inf: argmax would pick NaN."""
    return np.where(np.isnan(values), -np.inf, values)
