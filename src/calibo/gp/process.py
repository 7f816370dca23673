"""A Gaussian process conditioned on data: prediction, leave-one-out, and further conditioning.

| symbol | meaning |
|---|---|
| K, U | covariance of the data, noise included; its root, K = U'U |
| k | (m, n) covariance of new points with the data |
| v | U'^-1 k', so that the variance is k(x, x) - sum v^2 |
| alpha | K^-1 (y - mean) |
"""

from dataclasses import dataclass
from functools import cached_property
from math import log, pi

import numpy as np

from calibo.gp import linalg
from calibo.gp.covariances import Covariance, Cross
from calibo.gp.likelihood import LogMarginal
from calibo.types import Array

__all__ = ["Process"]

SMALLEST = 1e-12  # of the typical variance: what rounding leaves of k(x, x) - sum v^2 at a noise-free observation


@dataclass(frozen=True, eq=False)
class Process:
    """The posterior of the function given n observations; theta as in ``likelihood``."""

    kernel: Covariance
    theta: Array
    x: Array
    y: Array

    noise: Array
    """(n,) variances."""

    root: Array
    alpha: Array

    others: int = 0
    """How many of the first observations are of other tasks: their noise is not typical."""

    @classmethod
    def condition(cls, kernel: Covariance, theta: Array, x: Array, y: Array, noise: Array) -> "Process":
        """Given ``y`` at ``x``; ``noise`` (n,) holds known variances, NaN where theta has them."""
        evidence = LogMarginal(kernel, x, y, noise)
        root, jitter = evidence.root(theta)
        if jitter:
            linalg.warn_of_jitter(jitter)
        # [RW06, Alg. 2.1, lines 2-3]
        alpha = linalg.solve(root, y - theta[-1])
        return cls(kernel, theta, x, y, evidence.variances(theta) + jitter, root, alpha)

    @property
    def mean(self) -> float:
        return float(self.theta[-1])

    @cached_property
    def typical_noise(self) -> float:
        """The noise variance of a further observation of which none is known: that of most so far."""
        return float(np.median(self.noise[self.others :] if len(self.noise) > self.others else self.noise))

    def predict(self, x: Array) -> tuple[Array, Array]:
        """Mean and variance (m,) of the function [RW06, Alg. 2.1, lines 4-6]."""
        k, _ = self._cross(x)
        prior, _ = self.kernel.diagonal(self.theta[:-2], x)
        v = linalg.solve_root(self.root, k.T)
        variance = prior - np.einsum("nm,nm->m", v, v)
        return self.mean + k @ self.alpha, np.maximum(variance, self._floor)

    def predict_with_gradient(self, x: Array) -> tuple[Array, Array, Array, Array]:
        """Mean and variance (m,) of the function, and their derivatives (m, d) by ``x``.

        The variance of an observation is larger by ``typical_noise``; its derivatives are the same.
        """
        k, pull = self._cross(x)
        prior, d_prior = self.kernel.diagonal(self.theta[:-2], x)
        v = linalg.solve_root(self.root, k.T)
        variance = prior - np.einsum("nm,nm->m", v, v)
        d_mean = pull(self.alpha)  # the same weights for every row
        d_variance = d_prior - 2.0 * pull(linalg.back_solve(self.root, v).T)
        d_variance[variance <= self._floor] = 0.0
        return self.mean + k @ self.alpha, np.maximum(variance, self._floor), d_mean, d_variance

    def log_marginal(self) -> float:
        """log p(y | theta) [RW06, Eq. 2.30]."""
        fit = float((self.y - self.mean) @ self.alpha)
        return -0.5 * (fit + linalg.log_determinant(self.root) + len(self.y) * log(2.0 * pi))

    def smoothed(self) -> Array:
        """(n,) posterior mean of the function at the observations."""
        return self.y - self.noise * self.alpha

    def leave_one_out(self) -> tuple[Array, Array]:
        """Mean and variance (n,) of each observation given the others, theta unchanged [RW06, Eq. 5.12]."""
        precision = np.einsum("ii->i", linalg.inverse(self.root))
        return self.y - self.alpha / precision, 1.0 / precision

    def leave_one_out_with(self, x: Array) -> tuple[Array, Array, Array, Array, Array]:
        """What one more observation at each of m points, u standard deviations above its forecast, does to the others.

        Mean and variance (m,) of that observation; then, of each of the n known ones given the others and the new one,
        its score as intercept + slope u, (m, n) both, and its precision (m, n). By blocks of the inverse of K.
        """
        mean, variance = self.predict(x)
        variance = variance + self.typical_noise
        k, _ = self._cross(x)
        V = linalg.solve(self.root, k.T).T
        precision = np.einsum("ii->i", linalg.inverse(self.root)) + np.square(V) / variance[:, None]
        root = np.sqrt(precision)
        return mean, variance, self.alpha / root, -V / (np.sqrt(variance)[:, None] * root), precision

    def one_step_ahead(self) -> tuple[Array, Array]:
        """Mean and variance (n,) of each observation given those before it, theta unchanged."""
        # with K = U'U, U'^-1 (y - mean) are the independent innovations, and diag(U) their standard deviations
        deviations = np.einsum("ii->i", self.root)
        innovations = linalg.solve_root(self.root, (self.y - self.mean)[:, None])[:, 0]
        return self.y - deviations * innovations, np.square(deviations)

    def given(self, x: Array, y: Array, noise: Array) -> "Process":
        """Conditioned on further observations in O(n^2) each; ``noise`` (m,) is NaN where it is the typical one."""
        variances = np.where(np.isnan(noise), self.typical_noise, noise)
        k, _ = self._cross(x)
        corner, _ = self.kernel.cross(self.theta[:-2], x)(x)
        root, jitter = linalg.extended(self.root, k.T, corner + np.diag(variances))
        if jitter:
            linalg.warn_of_jitter(jitter)
        x, y = np.concatenate([self.x, x]), np.concatenate([self.y, y])
        variances = np.concatenate([self.noise, variances + jitter])
        alpha = linalg.solve(root, y - self.mean)
        return Process(self.kernel, self.theta, x, y, variances, root, alpha, self.others)

    @cached_property
    def _floor(self) -> float:
        prior, _ = self.kernel.diagonal(self.theta[:-2], self.x)
        return SMALLEST * float(prior.mean() + np.exp(self.theta[-2]))

    @cached_property
    def _cross(self) -> Cross:
        return self.kernel.cross(self.theta[:-2], self.x)
