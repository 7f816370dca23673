"""Multi-task Gaussian processes: K((x, t), (x', t')) = K_T[t, t'] K(w_t(x), w_t'(x')), WARP14 Eq. (5) and Sec. 3.2.

| symbol | meaning |
|---|---|
| t | the task of a point, an integer in a separate column |
| R | (T, T) correlations between tasks, R = L L' |
| L | lower triangular with unit-norm rows: l_ij = cos(a_ij) prod_{k<j} sin(a_ik), l_ii = prod_{k<i} sin(a_ik) [PB96] |
| phi | logits of the angles: a = pi / (1 + exp(-phi)); phi = 0 is correlation 0, -inf is correlation 1 |
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from calibo.arrays import Array, Indices
from calibo.gp.kernels import Covariance, Cross, Geometry, Pullback
from calibo.gp.warping import pull_to_points


def task_correlations(phi: Array, count: int) -> tuple[Array, Array]:
    """R (T, T) and its derivatives (k, T, T) w.r.t. the logits, in row-major order."""
    L, d_L = np.eye(count), np.zeros((len(phi), count, count))
    angle, first = np.pi * expit(phi), 0
    slope = np.pi * expit(phi) * expit(-phi)
    for i in range(1, count):
        a, part = angle[first : first + i], slice(first, first + i)
        sines = np.concatenate([[1.0], np.cumprod(np.sin(a))])  # products of the preceding sines
        L[i, :i], L[i, i] = np.cos(a) * sines[:-1], sines[-1]
        for j in range(i):
            rest = np.concatenate([np.cos(a[j + 1 :]), [1.0]]) * np.concatenate([[1.0], np.cumprod(np.sin(a[j + 1 :]))])
            d_L[first + j, i, j] = -np.sin(a[j]) * sines[j]
            d_L[first + j, i, j + 1 : i + 1] = np.cos(a[j]) * sines[j] * rest
        d_L[part] *= slope[part, None, None]
        first += i
    return L @ L.T, d_L @ L.T + L @ np.swapaxes(d_L, 1, 2)


def _task(x: Array, column: int) -> Indices:
    return np.asarray(np.rint(x[:, column]), dtype=np.intp)


@dataclass(frozen=True)
class TaskCovariance(Covariance):
    """The correlation between the tasks of two points."""

    column: int
    count: int

    @property
    def labels(self) -> tuple[str, ...]:
        return ("angle",) * (self.count * (self.count - 1) // 2)

    def geometry(self, x: Array, first: Indices, second: Indices) -> Geometry:
        tasks = _task(x, self.column)
        return tasks[first], tasks[second]

    def pairwise(self, theta: Array, geometry: Geometry) -> tuple[Array, Pullback]:
        R, d_R = task_correlations(theta, self.count)
        places = geometry[0] * self.count + geometry[1]

        def pullback(W: Array) -> Array:
            sums = np.bincount(places, W, self.count**2).reshape(self.count, self.count)
            return np.asarray(np.einsum("kij,ij->k", d_R, sums))

        return R[geometry], pullback

    def cross(self, theta: Array, z: Array) -> Cross:
        R, _ = task_correlations(theta, self.count)
        theirs = _task(z, self.column)

        def evaluate(x: Array) -> tuple[Array, Pullback]:
            return R[np.ix_(_task(x, self.column), theirs)], lambda _: np.zeros_like(x)

        return evaluate


@dataclass(frozen=True)
class TaskNoiseCovariance(Covariance):
    """Extra noise of each task but the first, on top of the shared noise: nonzero only on the diagonal."""

    column: int
    count: int

    @property
    def labels(self) -> tuple[str, ...]:
        return ("excess",) * (self.count - 1)

    def geometry(self, x: Array, first: Indices, second: Indices) -> Geometry:
        tasks = np.where(first == second, _task(x, self.column)[first], 0)
        return np.stack([tasks == t for t in range(1, self.count)]).astype(float)

    def pairwise(self, theta: Array, geometry: Geometry) -> tuple[Array, Pullback]:
        variance = np.exp(theta)
        return variance @ geometry, lambda W: variance * (geometry @ W)

    def cross(self, theta: Array, z: Array) -> Cross:
        return lambda x: (np.zeros((len(x), len(z))), lambda _: np.zeros_like(x))

    def diagonal(self, theta: Array, x: Array) -> tuple[Array, Array]:
        return np.zeros(len(x)), np.zeros_like(x)


@dataclass(frozen=True)
class MissingColumnsCovariance(Covariance):
    """A kernel for tasks that lack some columns: a missing column has one constant value per task, which is learned.

    theta is the logit of that value for each of ``gaps`` (task, column), then the kernel's theta. A factor of 1 for
    pairs in which one point lacks the column would not be positive definite: two points far apart in it would each
    be fully correlated with a third.
    """

    kernel: Covariance
    gaps: tuple[tuple[int, int], ...]
    column: int

    @property
    def labels(self) -> tuple[str, ...]:
        return (*("missing",) * len(self.gaps), *self.kernel.labels)

    def geometry(self, x: Array, first: Indices, second: Indices) -> Geometry:
        return x, first, second

    def pairwise(self, theta: Array, geometry: Geometry) -> tuple[Array, Pullback]:
        x, first, second = geometry
        places, inner = expit(theta[: len(self.gaps)]), theta[len(self.gaps) :]
        z = self._filled(places, x)
        k, inner_pullback = self.kernel.pairwise(inner, self.kernel.geometry(z, first, second))

        def pullback(W: Array) -> Array:
            gradient, tasks = pull_to_points(self.kernel, inner, z, first, second, W), _task(x, self.column)
            by_place = np.array([gradient[tasks == t, j].sum() for t, j in self.gaps])
            return np.concatenate([by_place * places * (1.0 - places), inner_pullback(W)])

        return k, pullback

    def cross(self, theta: Array, z: Array) -> Cross:
        places, inner = expit(theta[: len(self.gaps)]), theta[len(self.gaps) :]
        kernel = self.kernel.cross(inner, self._filled(places, z))
        return lambda x: kernel(self._filled(places, x))

    def diagonal(self, theta: Array, x: Array) -> tuple[Array, Array]:
        places, inner = expit(theta[: len(self.gaps)]), theta[len(self.gaps) :]
        return self.kernel.diagonal(inner, self._filled(places, x))

    def _filled(self, places: Array, x: Array) -> Array:
        z, tasks = x.copy(), _task(x, self.column)
        for place, (t, j) in zip(places, self.gaps, strict=True):
            z[tasks == t, j] = place
        return z
