"""Hyper-parameters by the evidence: log marginal likelihood, priors, and the best theta.

| symbol | meaning |
|---|---|
| theta | kernel's hyper-parameters, then log noise variance, then constant mean |
| K, U | kernel matrix plus noise on the diagonal; its root, K = U'U |
| alpha | K^-1 (y - mean) |
| L | log p(y | theta) = -1/2 (y - mean)' alpha - 1/2 log det K - n/2 log 2 pi [RW06, Eq. 2.30] |
| dL | 1/2 tr((alpha alpha' - K^-1) dK) [RW06, Eq. 5.9] |
"""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from math import log, pi

import numpy as np
from scipy.optimize import minimize

from calibo.errors import FitError
from calibo.gp import linalg
from calibo.gp.covariances import Covariance
from calibo.parts import register
from calibo.types import Array

__all__ = ["Belief", "LogMarginal", "Prior", "maximum"]


@register("normal")
@dataclass(frozen=True)
class Belief:
    """What is believed of one hyper-parameter: Normal on its own scale (the logarithm of positive ones)."""

    center: float
    std: float = float("inf")
    """Infinite for no belief: with it the maximum is that of the likelihood."""

    low: float = -float("inf")
    high: float = float("inf")


@dataclass(frozen=True, eq=False)
class Prior:
    """Independent beliefs about every entry of theta."""

    center: Array
    precision: Array
    bounds: tuple[tuple[float, float], ...]

    @classmethod
    def of(cls, beliefs: Sequence[Belief]) -> "Prior":
        return cls(
            np.array([belief.center for belief in beliefs]),
            np.array([belief.std**-2.0 for belief in beliefs]),
            tuple((belief.low, belief.high) for belief in beliefs),
        )

    def log_density(self, theta: Array) -> tuple[float, Array]:
        """Up to a constant, with its gradient."""
        gap = self.precision * (theta - self.center)
        return -0.5 * float(gap @ (theta - self.center)), -gap


class LogMarginal:
    """The log marginal likelihood of one data set as a function of theta; the geometry is computed once."""

    def __init__(self, kernel: Covariance, x: Array, y: Array, noise: Array) -> None:
        """``noise`` (n,) holds known variances, NaN where the noise is to be inferred."""
        self.kernel, self.y = kernel, y
        self.inferred = np.isnan(noise)
        self.known = np.where(self.inferred, 0.0, noise)
        rows, columns, self.on_diagonal = linalg.pairs(len(x))
        self.geometry = kernel.geometry(x, rows, columns)

    def root(self, theta: Array) -> tuple[Array, float]:
        """The root of K and the jitter it took."""
        k, _ = self.kernel.paired(theta[:-2], self.geometry)
        return linalg.cholesky(k, self.variances(theta))

    def variances(self, theta: Array) -> Array:
        """(n,) of the noise."""
        return np.asarray(np.where(self.inferred, np.exp(theta[-2]), self.known))

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """L and its gradient."""
        value, gradient, _, _ = self.of(theta, self.y, self.known)
        return value, gradient

    def value(self, theta: Array) -> float:
        """L alone, which is cheaper; -inf where the covariance cannot be factored."""
        try:
            root, _ = self.root(theta)
        except FitError:
            return -np.inf
        residual = linalg.solve_root(root, (self.y - theta[-1])[:, None])[:, 0]
        return -0.5 * (float(residual @ residual) + linalg.log_determinant(root) + len(residual) * log(2.0 * pi))

    def with_outcomes(self, y: Array, noise: Array) -> "LogMarginal":
        """The same points with other outcomes and known noises."""
        other = copy(self)
        other.y, other.known = y, np.where(self.inferred, 0.0, noise)
        return other

    def of(self, theta: Array, y: Array, known: Array) -> tuple[float, Array, Array, Array]:
        """L of other outcomes and known noises, and its derivatives by theta, by y (n,) and by those noises (n,)."""
        k, pull = self.kernel.paired(theta[:-2], self.geometry)
        root, _ = linalg.cholesky(k, np.where(self.inferred, np.exp(theta[-2]), known))
        residual = y - theta[-1]
        alpha = linalg.solve(root, residual)
        value = -0.5 * (float(residual @ alpha) + linalg.log_determinant(root) + len(residual) * log(2.0 * pi))
        W = linalg.packed_difference(linalg.inverse(root), alpha)
        W[self.on_diagonal] *= 0.5  # a packed sum counts off-diagonal pairs once, the trace counts them twice
        diagonal = W[self.on_diagonal]
        by_noise = np.exp(theta[-2]) * float(diagonal @ self.inferred)
        by_known = np.where(self.inferred, 0.0, diagonal)
        return value, np.concatenate([pull(W), [by_noise, alpha.sum()]]), -alpha, by_known


def maximum(
    evidence: Callable[[Array], tuple[float, Array]], prior: Prior, starts: Sequence[Array]
) -> tuple[Array, float]:
    """The theta of highest posterior density found from ``starts``, and the log density there."""

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
            options={"maxiter": 100, "ftol": 1e-6, "gtol": 1e-3},  # a thousandth in log density decides nothing
        )
        for start in starts
    ]
    best = min(runs, key=lambda run: float(run.fun))
    if not np.all(np.isfinite(best.x)) or not np.isfinite(best.fun):
        raise FitError("The hyper-parameters must be finite, but the fit diverged. Check the data for extreme values.")
    return np.asarray(best.x), -float(best.fun)
