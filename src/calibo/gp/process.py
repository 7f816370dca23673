"""Gaussian process regression: log marginal likelihood, MAP hyperparameters, and the posterior given data.

| symbol | meaning |
|---|---|
| theta | kernel hyperparameters, then log noise variance, then constant mean |
| K, U | kernel matrix plus noise on the diagonal; its Cholesky factor, K = U'U |
| alpha | K^-1 (y - mean) |
| L | log p(y | theta) = -1/2 (y - mean)' alpha - 1/2 log det K - n/2 log 2 pi [RW06, Eq. 2.30] |
| dL | 1/2 tr((alpha alpha' - K^-1) dK) [RW06, Eq. 5.9] |
| k | (m, n) covariance of new points with the data |
| v | U'^-1 k', so that the variance is k(x, x) - sum v^2 |
"""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from math import log, pi

import numpy as np
from scipy.optimize import minimize

from calibo.arrays import Array
from calibo.errors import FitError
from calibo.gp import linalg
from calibo.gp.kernels import Covariance, Cross
from calibo.priors import JointPrior


class LogMarginal:
    """The log marginal likelihood of a data set as a function of theta; the geometry is computed once."""

    def __init__(self, kernel: Covariance, x: Array, y: Array, noise: Array) -> None:
        """``noise`` (n,) are known variances, NaN where the noise is inferred."""
        self.kernel, self.y = kernel, y
        self.inferred = np.isnan(noise)
        self.known = np.where(self.inferred, 0.0, noise)
        rows, columns, self.on_diagonal = linalg.pairs(len(x))
        self.geometry = kernel.geometry(x, rows, columns)

    def root(self, theta: Array) -> tuple[Array, float]:
        """The Cholesky factor of K and the jitter added."""
        k, _ = self.kernel.pairwise(theta[:-2], self.geometry)
        return linalg.cholesky(k, self.variances(theta))

    def variances(self, theta: Array) -> Array:
        """(n,) noise variances."""
        return np.asarray(np.where(self.inferred, np.exp(theta[-2]), self.known))

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """L and its gradient."""
        value, gradient, _, _ = self.of(theta, self.y, self.known)
        return value, gradient

    def value(self, theta: Array) -> float:
        """L without its gradient, which is cheaper; -inf if the Cholesky factorization fails."""
        try:
            root, _ = self.root(theta)
        except FitError:
            return -np.inf
        residual = linalg.solve_root(root, (self.y - theta[-1])[:, None])[:, 0]
        return -0.5 * (float(residual @ residual) + linalg.log_determinant(root) + len(residual) * log(2.0 * pi))

    def with_outcomes(self, y: Array, noise: Array) -> "LogMarginal":
        """The same points with other outcomes and known noise variances."""
        other = copy(self)
        other.y, other.known = y, np.where(self.inferred, 0.0, noise)
        return other

    def of(self, theta: Array, y: Array, known: Array) -> tuple[float, Array, Array, Array]:
        """L for other outcomes and known noise variances, and its derivatives w.r.t. theta, y (n,) and noise (n,)."""
        k, pullback = self.kernel.pairwise(theta[:-2], self.geometry)
        root, _ = linalg.cholesky(k, np.where(self.inferred, np.exp(theta[-2]), known))
        residual = y - theta[-1]
        alpha = linalg.solve(root, residual)
        value = -0.5 * (float(residual @ alpha) + linalg.log_determinant(root) + len(residual) * log(2.0 * pi))
        W = linalg.pack_difference(linalg.inverse(root), alpha)
        W[self.on_diagonal] *= 0.5  # the packed sum counts off-diagonal pairs once, the trace twice
        diagonal = W[self.on_diagonal]
        by_noise = np.exp(theta[-2]) * float(diagonal @ self.inferred)
        by_known = np.where(self.inferred, 0.0, diagonal)
        return value, np.concatenate([pullback(W), [by_noise, alpha.sum()]]), -alpha, by_known


def maximum_a_posteriori(
    evidence: Callable[[Array], tuple[float, Array]], prior: JointPrior, starts: Sequence[Array]
) -> tuple[Array, float]:
    """The MAP estimate of theta found from ``starts``, and its log posterior density."""

    def loss(theta: Array) -> tuple[float, Array]:
        value, gradient = evidence(theta)
        density, slope = prior.log_density(theta)
        return -value - density, -gradient - slope

    runs = [
        minimize(
            loss,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=prior.bounds,
            options={"maxiter": 100, "ftol": 1e-6, "gtol": 1e-3},  # 1e-3 in log density does not matter
        )
        for start in starts
    ]
    best = min(runs, key=lambda run: float(run.fun))
    if not np.all(np.isfinite(best.x)) or not np.isfinite(best.fun):
        raise FitError("The hyperparameters must be finite, but the fit diverged. Check the data for extreme values.")
    return np.asarray(best.x), -float(best.fun)


SMALLEST = 1e-12  # relative to the prior variance: rounding error of k(x, x) - sum v^2 at a noise-free observation


@dataclass(frozen=True, eq=False)
class Process:
    """The posterior of the function given n observations."""

    kernel: Covariance
    theta: Array
    x: Array
    y: Array

    noise: Array
    """(n,) variances."""

    root: Array
    alpha: Array

    n_source: int = 0
    """Number of leading observations from other tasks; excluded from the typical noise."""

    @classmethod
    def from_data(cls, kernel: Covariance, theta: Array, x: Array, y: Array, noise: Array) -> "Process":
        """Given ``y`` at ``x``; ``noise`` (n,) are known variances, NaN to use the one in theta."""
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
        """Noise variance assumed for a new observation: the median so far."""
        return float(np.median(self.noise[self.n_source :] if len(self.noise) > self.n_source else self.noise))

    def posterior(self, x: Array) -> tuple[Array, Array]:
        """Mean and variance (m,) of the function [RW06, Alg. 2.1, lines 4-6]."""
        k, _ = self._cross(x)
        prior, _ = self.kernel.diagonal(self.theta[:-2], x)
        v = linalg.solve_root(self.root, k.T)
        variance = prior - np.einsum("nm,nm->m", v, v)
        return self.mean + k @ self.alpha, np.maximum(variance, self._floor)

    def posterior_with_gradient(self, x: Array) -> tuple[Array, Array, Array, Array]:
        """Mean and variance (m,) of the function, and their derivatives (m, d) w.r.t. ``x``.

        An observation has ``typical_noise`` added to the variance, and the same derivatives.
        """
        k, pullback = self._cross(x)
        prior, d_prior = self.kernel.diagonal(self.theta[:-2], x)
        v = linalg.solve_root(self.root, k.T)
        variance = prior - np.einsum("nm,nm->m", v, v)
        d_mean = pullback(self.alpha)  # the same weights for every row
        d_variance = d_prior - 2.0 * pullback(linalg.back_solve(self.root, v).T)
        d_variance[variance <= self._floor] = 0.0
        return self.mean + k @ self.alpha, np.maximum(variance, self._floor), d_mean, d_variance

    def log_marginal(self) -> float:
        """log p(y | theta) [RW06, Eq. 2.30]."""
        fit = float((self.y - self.mean) @ self.alpha)
        return -0.5 * (fit + linalg.log_determinant(self.root) + len(self.y) * log(2.0 * pi))

    def in_sample_mean(self) -> Array:
        """(n,) posterior mean of the function at the observations."""
        return self.y - self.noise * self.alpha

    def leave_one_out(self) -> tuple[Array, Array]:
        """Mean and variance (n,) of each observation given the n_source, with theta fixed [RW06, Eq. 5.12]."""
        precision = np.einsum("ii->i", linalg.inverse(self.root))
        return self.y - self.alpha / precision, 1.0 / precision

    def leave_one_out_with(self, x: Array) -> tuple[Array, Array, Array, Array, Array]:
        """Leave-one-out with one more observation at each of m points, u standard deviations above its mean.

        Mean and variance (m,) of the new observation. Then, for each of the n observations given the others and the
        new one, its score as intercept + slope u, both (m, n), and its precision (m, n). Uses the block inverse of K.
        """
        mean, variance = self.posterior(x)
        variance = variance + self.typical_noise
        k, _ = self._cross(x)
        V = linalg.solve(self.root, k.T).T
        precision = np.einsum("ii->i", linalg.inverse(self.root)) + np.square(V) / variance[:, None]
        root = np.sqrt(precision)
        return mean, variance, self.alpha / root, -V / (np.sqrt(variance)[:, None] * root), precision

    def condition(self, x: Array, y: Array, noise: Array) -> "Process":
        """Conditioned on further observations in O(n^2) each; ``noise`` (m,) is NaN for the typical noise."""
        variances = np.where(np.isnan(noise), self.typical_noise, noise)
        k, _ = self._cross(x)
        corner, _ = self.kernel.cross(self.theta[:-2], x)(x)
        root, jitter = linalg.extend_cholesky(self.root, k.T, corner + np.diag(variances))
        if jitter:
            linalg.warn_of_jitter(jitter)
        x, y = np.concatenate([self.x, x]), np.concatenate([self.y, y])
        variances = np.concatenate([self.noise, variances + jitter])
        alpha = linalg.solve(root, y - self.mean)
        return Process(self.kernel, self.theta, x, y, variances, root, alpha, self.n_source)

    @cached_property
    def _floor(self) -> float:
        prior, _ = self.kernel.diagonal(self.theta[:-2], self.x)
        return SMALLEST * float(prior.mean() + np.exp(self.theta[-2]))

    @cached_property
    def _cross(self) -> Cross:
        return self.kernel.cross(self.theta[:-2], self.x)
