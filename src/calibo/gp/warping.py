"""Input warping: kernels on inputs whose columns are warped by Beta CDFs.

| symbol | meaning |
|---|---|
| w(u) | BetaCDF(u; alpha, beta), an increasing bijection of [0, 1]; WARP14 Eq. (8) |
| K(w(x), w(x')) | the warped kernel |

log alpha and log beta have Normal priors, WARP14 Eq. (9). The paper states a variance of 0.75, and standard deviations
for its examples. Its terms "exponential" and "logarithmic" are swapped here, so that a preset is named after its effect
on the axis: "log" stretches the low end, as taking logarithms does, since BetaCDF(u; 1, b) = 1 - (1 - u)^b.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np
from scipy.special import betainc, betaln

from calibo.arrays import Array, Indices
from calibo.gp.kernels import Covariance, Cross, Geometry, Pullback
from calibo.priors import NormalPrior

EDGE = 1e-6  # closer to 0 or 1 the slope is clipped to the one at this distance: it may be infinite
STEP = 1e-7  # finite-difference step w.r.t. log alpha and log beta, which have no closed form
FARTHEST = 4.0  # bound on |log alpha|, |log beta|


def _shape(alpha: tuple[float, float], beta: tuple[float, float]) -> tuple[NormalPrior, NormalPrior]:
    return NormalPrior(*alpha, -FARTHEST, FARTHEST), NormalPrior(*beta, -FARTHEST, FARTHEST)


WARP_PRIORS: Mapping[str, tuple[NormalPrior, NormalPrior]] = {
    "auto": _shape((0.0, sqrt(0.75)), (0.0, sqrt(0.75))),
    "identity": _shape((0.0, 0.5), (0.0, 0.5)),
    "log": _shape((0.0, 0.25), (1.0, 1.0)),
    "exp": _shape((1.0, 1.0), (0.0, 0.25)),
    "sigmoid": _shape((2.0, 0.5), (2.0, 0.5)),
}
"""Priors of log alpha and log beta, by their effect on an axis: "log" stretches the low end, "exp" the high end,
"sigmoid" the middle, "identity" hardly any, "auto" wherever the data suggest."""


def beta_cdf(u: Array, alpha: Array, beta: Array) -> Array:
    """w(u)."""
    return np.asarray(betainc(alpha, beta, np.minimum(np.maximum(u, 0.0), 1.0)), dtype=float)


def slope(u: Array, alpha: Array, beta: Array, log_beta: Array | None = None) -> Array:
    """dw/du, clipped to be finite at 0 and 1; ``log_beta`` is the log Beta function, if precomputed."""
    inside = np.minimum(np.maximum(u, EDGE), 1.0 - EDGE)
    log_beta = betaln(alpha, beta) if log_beta is None else log_beta
    return np.asarray(np.exp((alpha - 1.0) * np.log(inside) + (beta - 1.0) * np.log1p(-inside) - log_beta))


@dataclass(frozen=True)
class WarpedCovariance(Covariance):
    """A kernel on inputs whose ``columns`` are warped first, with separate warps for each task.

    theta is log alpha of the columns in the first task, the second, ..., then log beta likewise, then the kernel's
    theta.
    """

    kernel: Covariance
    columns: tuple[int, ...]

    task: int | None = None
    """The column with the task index; None for a single task."""

    tasks: int = 1

    @property
    def labels(self) -> tuple[str, ...]:
        return (*("shape",) * (2 * self._size), *self.kernel.labels)

    @property
    def _size(self) -> int:
        return self.tasks * len(self.columns)

    def geometry(self, x: Array, first: Indices, second: Indices) -> Geometry:
        return x, first, second

    def pairwise(self, theta: Array, geometry: Geometry) -> tuple[Array, Pullback]:
        x, first, second = geometry
        inner = theta[2 * self._size :]
        z = self._warp(x, self._of_points(theta, x))
        k, inner_pullback = self.kernel.pairwise(inner, self.kernel.geometry(z, first, second))

        def pullback(W: Array) -> Array:
            gradient = pull_to_points(self.kernel, inner, z, first, second, W)[:, list(self.columns)]
            tasks, by_shape = self._tasks(x), []
            for side in (0, 1):
                moved = gradient * self._by_shape(theta, x, z, side)
                by_shape += [moved[tasks == t].sum(axis=0) for t in range(self.tasks)]
            return np.concatenate([*by_shape, inner_pullback(W)])

        return k, pullback

    def cross(self, theta: Array, z: Array) -> Cross:
        kernel = self.kernel.cross(theta[2 * self._size :], self._warp(z, self._of_points(theta, z)))
        shared = None if self.task is not None else self._shapes(theta)  # by all points; computed once
        log_beta = None if shared is None else betaln(*shared)

        def evaluate(x: Array) -> tuple[Array, Pullback]:
            shapes = shared or self._of_points(theta, x)
            k, pullback = kernel(self._warp(x, shapes))
            slopes: list[Array] = []

            def pulled(W: Array) -> Array:
                if not slopes:  # shared by mean and variance
                    slopes.append(self._slopes(x, shapes, log_beta))
                return pullback(W) * slopes[0]

            return k, pulled

        return evaluate

    def diagonal(self, theta: Array, x: Array) -> tuple[Array, Array]:
        if self.kernel.stationary:
            return self.kernel.diagonal(theta[2 * self._size :], x)
        shapes = self._of_points(theta, x)
        value, gradient = self.kernel.diagonal(theta[2 * self._size :], self._warp(x, shapes))
        return value, gradient * self._slopes(x, shapes)

    def warps(self, theta: Array, u: Array, task: int = 0) -> Array:
        """(columns, m) warp of each column in a task at the positions ``u`` (m,)."""
        alpha, beta = (part[task] for part in self._shapes(theta))
        return beta_cdf(u, alpha[:, None], beta[:, None])

    def _tasks(self, x: Array) -> Indices:
        numbers = np.zeros(len(x)) if self.task is None else x[:, self.task]
        return np.asarray(np.rint(numbers), dtype=np.intp)

    def _shapes(self, theta: Array) -> tuple[Array, Array]:
        """(tasks, columns) alpha and beta."""
        shapes = np.exp(theta[: 2 * self._size]).reshape(2, self.tasks, len(self.columns))
        return shapes[0], shapes[1]

    def _of_points(self, theta: Array, x: Array) -> tuple[Array, Array]:
        """alpha and beta of the columns at each point, (n, columns), or (1, columns) for a single task."""
        alpha, beta = self._shapes(theta)
        return (alpha, beta) if self.task is None else (alpha[tasks := self._tasks(x)], beta[tasks])

    @cached_property
    def _where(self) -> Any:
        """The columns, as a slice if contiguous, which is faster."""
        first, last = self.columns[0], self.columns[-1]
        return slice(first, last + 1) if self.columns == tuple(range(first, last + 1)) else list(self.columns)

    def _placed(self, x: Array, values: Array) -> Array:
        """``x`` with the warped columns replaced by ``values``."""
        if values.shape == x.shape and isinstance(self._where, slice):
            return values
        points = x.copy()
        points[:, self._where] = values
        return points

    def _warp(self, x: Array, shapes: tuple[Array, Array]) -> Array:
        """The points with their columns warped."""
        return self._placed(x, beta_cdf(x[:, self._where], *shapes))

    def _slopes(self, x: Array, shapes: tuple[Array, Array], log_beta: Array | None = None) -> Array:
        """(n, d) slopes of the warps, 1 for columns without one."""
        return self._placed(np.ones_like(x), slope(x[:, self._where], *shapes, log_beta))

    def _by_shape(self, theta: Array, x: Array, z: Array, side: int) -> Array:
        """(n, columns) derivatives of the warped columns of z w.r.t. log alpha (side 0) or log beta (side 1)."""
        columns, shapes = list(self.columns), list(self._of_points(theta, x))
        shapes[side] = shapes[side] * np.exp(STEP)
        return np.asarray((beta_cdf(x[:, columns], *shapes) - z[:, columns]) / STEP)


def pull_to_points(kernel: Covariance, theta: Array, z: Array, first: Indices, second: Indices, W: Array) -> Array:
    """(n, d) derivative of sum(W * K) w.r.t. the points; K is symmetric, so both points of a pair contribute."""
    n = len(z)
    weights = np.asarray(np.bincount(first * n + second, W, n * n), dtype=float).reshape(n, n)
    _, by_points = kernel.cross(theta, z)(z)
    return by_points(weights + weights.T)
