"""The marginal likelihood of outcomes on a scale that is learned with the hyper-parameters, and draws from them."""

from functools import cached_property
from math import log

import numpy as np

from calibo.errors import FitError
from calibo.gp.covariances import Covariance
from calibo.gp.likelihood import LogMarginal, Prior
from calibo.gp.slice import Reference, sample_near
from calibo.observations import Observations, spread
from calibo.surrogate.outcomes import LearnedTransform
from calibo.transforms import Transform
from calibo.types import Array

__all__ = ["MOST_NOISE", "Posterior", "TransformedEvidence", "standardized"]

MOST_NOISE = 1e6  # in spreads of the outcomes: an outcome with more says nothing
STEP = 1e-4  # of differences between gradients
UPDATES = 6  # on ellipses, and as many along lines, between two draws
UNEVEN = 0.1  # of the largest second derivative: more is rounding, as where jitter is added at some points alone
WIDER = 1.3  # than the density is at its mode: it has heavier tails
WIDEST = 3.0  # standard deviation of a reference, along a direction of which nothing is known


class TransformedEvidence:
    """The log marginal likelihood of outcomes as a function of hyper-parameters and of the transform's parameters.

    L(theta, phi) = log p(t | theta) + sum log T'(y) - n log s, where t = (T(y) - m) / s has mean 0 and spread 1. So
    dL/dphi = sum_i dL/dt_i dt_i/dphi + sum_i dlogT'_i/dphi - n ds/dphi / s, and dL/dt = -K^-1 (t - mean).
    """

    def __init__(self, kernel: Covariance, observations: Observations, transform: LearnedTransform) -> None:
        self.transform, self.y, self.noise_std = transform, observations.y, observations.noise_std
        self.k = len(transform.beliefs)
        t, noise, _, _ = standardized(self.y, self.noise_std, transform.at(_centers(transform), self.y))
        self.marginal = LogMarginal(kernel, observations.x, t, noise)

    def at(self, theta: Array) -> LogMarginal:
        """The marginal likelihood of the outcomes on the scale of this setting, a function of the others alone."""
        t, noise, _, _ = standardized(self.y, self.noise_std, self.transform.at(theta[len(theta) - self.k :], self.y))
        return self.marginal.with_outcomes(t, noise)

    def __call__(self, theta: Array) -> tuple[float, Array]:
        if not self.k:
            return self.marginal(theta)
        theta, phi = theta[: -self.k], theta[-self.k :]
        T = self.transform.at(phi, self.y)
        t, noise, _, scale = standardized(self.y, self.noise_std, T)
        value, gradient, by_t, by_noise = self.marginal.of(theta, t, np.where(self.marginal.inferred, 0.0, noise))
        d_t, d_slope = self.transform.partials(phi, self.y)
        d_center = d_t.mean(axis=1, keepdims=True)
        d_scale = ((d_t - d_center) * t).mean(axis=1, keepdims=True)  # of the spread, as t has mean 0 and spread 1
        moved = (d_t - d_center) / scale - t * (d_scale / scale)
        relative = d_scale[:, 0] / scale
        # a known noise s_y becomes s_y T'(y) / s
        known = np.where(self.marginal.inferred, 0.0, by_noise * noise)
        by_phi = moved @ by_t + d_slope.sum(axis=1) - len(t) * relative
        by_phi += 2.0 * (d_slope @ known - relative * known.sum())
        value += float(T.log_slope(self.y).sum()) - len(t) * log(scale)
        return value, np.concatenate([gradient, by_phi])


class Posterior:
    """The posterior density of hyper-parameters; the transform is that of the ``mode``, the likeliest setting."""

    def __init__(self, evidence: TransformedEvidence, prior: Prior, mode: Array) -> None:
        size = len(mode) - evidence.k
        self.mode, self.rest = mode[:size], mode[size:]
        self.marginal = evidence.at(mode)
        self.center, self.precision = prior.center[:size], prior.precision[:size]
        self.low, self.high = (np.array(side)[:size] for side in zip(*prior.bounds, strict=True))

    def __call__(self, theta: Array) -> float:
        """Its logarithm, up to a constant."""
        if np.any(theta < self.low) or np.any(theta > self.high):
            return -np.inf
        return self.marginal.value(theta) - 0.5 * float(self.precision @ np.square(theta - self.center))

    def draws(self, count: int, rng: np.random.Generator, start: Array | None = None, burn_in: int = 0) -> Array:
        """(count, k) of a chain from ``start``, or from the mode, each with the transform's parameters."""
        first = self.mode if start is None else start[: len(self.mode)]
        chain = sample_near(self, first, self.reference, rng, count, updates=UPDATES, burn_in=burn_in)
        return np.column_stack([chain.draws, np.tile(self.rest, (count, 1))])

    @cached_property
    def reference(self) -> Reference:
        """What the density is near to: as it bends at the mode, by differences of the gradient there."""
        bend = self._bend()
        values, vectors = np.linalg.eigh(0.5 * (bend + bend.T) + np.diag(self.precision))
        return Reference(self.mode, WIDER * vectors / np.sqrt(np.maximum(values, WIDEST**-2)))

    def _bend(self) -> Array:
        """Minus the second derivatives of the evidence; none where rounding hides them, and beliefs alone are left."""
        nothing = np.zeros((len(self.mode), len(self.mode)))
        try:
            here, *there = (self.marginal(self.mode + step)[1] for step in [nothing[0], *STEP * np.eye(len(nothing))])
        except FitError:
            return nothing
        bend = np.array([(here - slope) / STEP for slope in there])
        even = np.isfinite(bend).all() and np.abs(bend - bend.T).max() <= UNEVEN * max(np.abs(bend).max(), 1.0)
        return bend if even else nothing


def _centers(transform: LearnedTransform) -> Array:
    return np.array([belief.center for belief in transform.beliefs])


def standardized(y: Array, noise_std: Array, transform: Transform) -> tuple[Array, Array, float, float]:
    """Transformed outcomes of mean 0 and spread 1, noise variances on their scale, center, spread."""
    t = transform(y)
    scale = spread(t)
    largest = float(np.abs(t).max()) or 1.0
    center = largest * float((t / largest).mean())  # their sum may overflow
    if scale == 0.0:  # all the same: nothing to scale by
        scale = 1.0
        t = np.full_like(t, center)
    with np.errstate(over="ignore"):
        noise = np.minimum(noise_std * np.exp(transform.log_slope(y)) / scale, MOST_NOISE)
    return t / scale - center / scale, np.square(noise), center, scale
