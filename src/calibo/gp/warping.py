"""Input warping: kernels of points whose columns are bent by the distribution function of a Beta variable.

| symbol | meaning |
|---|---|
| w(u) | BetaCDF(u; alpha, beta), an increasing bijection of [0, 1]; WARP14 Eq. (8) |
| phi | log alpha of every warped column, then log beta of every one |
| K(w(x), w(x')) | the warped kernel |

log alpha and log beta are Normal, WARP14 Eq. (9). The paper speaks of a variance of 0.75 and gives standard deviations
for its examples; its words "exponential" and "logarithmic" are here exchanged, so that a preset is named by what it
does to the axis: "log" stretches the low end, as taking logarithms does, since BetaCDF(u; 1, b) = 1 - (1 - u)^b.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from scipy.special import betainc, betaln

from calibo.gp.kernels import Cross, Geometry, Kernel, Pull, pulled_to_points
from calibo.gp.likelihood import Belief
from calibo.types import Array, Indices

__all__ = ["SHAPES", "Warped", "bent"]

EDGE = 1e-6  # nearer to 0 or 1 the slope is that at this distance: a density may be infinite there
STEP = 1e-5  # of differences by log alpha and log beta, which have no closed form
FARTHEST = 4.0  # |log alpha|, |log beta|


def _shape(alpha: tuple[float, float], beta: tuple[float, float]) -> tuple[Belief, Belief]:
    return Belief(*alpha, -FARTHEST, FARTHEST), Belief(*beta, -FARTHEST, FARTHEST)


SHAPES: Mapping[str, tuple[Belief, Belief]] = {
    "auto": _shape((0.0, sqrt(0.75)), (0.0, sqrt(0.75))),
    "identity": _shape((0.0, 0.5), (0.0, 0.5)),
    "log": _shape((0.0, 0.25), (1.0, 1.0)),
    "exp": _shape((1.0, 1.0), (0.0, 0.25)),
    "sigmoid": _shape((2.0, 0.5), (2.0, 0.5)),
}
"""Beliefs about log alpha and log beta, by what they do to an axis: "log" stretches the low end, "exp" the high end,
"sigmoid" the middle, "identity" little, "auto" whatever the outcomes ask for."""


def bent(u: Array, alpha: Array, beta: Array) -> tuple[Array, Array]:
    """w(u) and its slope, which is finite at 0 and 1, too."""
    inside = np.clip(u, EDGE, 1.0 - EDGE)
    log_slope = (alpha - 1.0) * np.log(inside) + (beta - 1.0) * np.log1p(-inside) - betaln(alpha, beta)
    return np.asarray(betainc(alpha, beta, np.clip(u, 0.0, 1.0)), dtype=float), np.exp(log_slope)


@dataclass(frozen=True)
class Warped:
    """A kernel of points whose ``columns`` are bent first; theta is phi, then that of the kernel."""

    kernel: Kernel
    columns: tuple[int, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        return (*("shape",) * (2 * len(self.columns)), *self.kernel.labels)

    def geometry(self, x: Array, first: Indices, second: Indices) -> Geometry:
        return x, first, second

    def paired(self, theta: Array, geometry: Geometry) -> tuple[Array, Pull]:
        x, first, second = geometry
        phi, inner = self._split(theta)
        z = self._bent(phi, x)[0]
        k, inner_pull = self.kernel.paired(inner, self.kernel.geometry(z, first, second))

        def pull(W: Array) -> Array:
            gradient = pulled_to_points(self.kernel, inner, z, first, second, W)[:, list(self.columns)]
            by_phi = [(gradient * self._by_shape(phi, x, side)).sum(axis=0) for side in (0, 1)]
            return np.concatenate([*by_phi, inner_pull(W)])

        return k, pull

    def cross(self, theta: Array, z: Array) -> Cross:
        phi, inner = self._split(theta)
        kernel = self.kernel.cross(inner, self._bent(phi, z)[0])

        def evaluate(x: Array) -> tuple[Array, Pull]:
            points, slope = self._bent(phi, x)
            k, pull = kernel(points)
            return k, lambda W: pull(W) * slope

        return evaluate

    def diagonal(self, theta: Array, x: Array) -> tuple[Array, Array]:
        phi, inner = self._split(theta)
        points, slope = self._bent(phi, x)
        value, gradient = self.kernel.diagonal(inner, points)
        return value, gradient * slope

    def warps(self, theta: Array, u: Array) -> Array:
        """(columns, m) each column's warp at the positions ``u`` (m,)."""
        alpha, beta = self._shapes(self._split(theta)[0])
        return bent(u, alpha[:, None], beta[:, None])[0]

    def _split(self, theta: Array) -> tuple[Array, Array]:
        return theta[: 2 * len(self.columns)], theta[2 * len(self.columns) :]

    def _shapes(self, phi: Array) -> tuple[Array, Array]:
        return np.exp(phi[: len(self.columns)]), np.exp(phi[len(self.columns) :])

    def _bent(self, phi: Array, x: Array) -> tuple[Array, Array]:
        """The points with their columns bent, and the slopes (n, d) of the warps, 1 where there is none."""
        columns = list(self.columns)
        points, slopes = x.copy(), np.ones_like(x)
        points[:, columns], slopes[:, columns] = bent(x[:, columns], *self._shapes(phi))
        return points, slopes

    def _by_shape(self, phi: Array, x: Array, side: int) -> Array:
        """(n, columns) derivatives of the warped columns by log alpha (side 0) or log beta (side 1)."""
        u = np.clip(x[:, list(self.columns)], 0.0, 1.0)
        step: Any = np.zeros(2)
        step[side] = STEP
        alpha, beta = self._shapes(phi)
        up, down = (betainc(alpha * np.exp(s * step[0]), beta * np.exp(s * step[1]), u) for s in (1.0, -1.0))
        return np.asarray((up - down) / (2.0 * STEP))
