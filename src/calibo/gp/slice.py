"""Slice sampling of an unnormalized density; the width is the only tuning parameter [NEA03].

| symbol | meaning |
|---|---|
| theta | (k,) the current point; L its log density |
| height | L(theta) - Exponential(1): the slice is the set where L is higher |
| width | initial width of the slice along a direction |

An update takes a bounded number of evaluations: at most STEPS steps out and SHRINKS shrinkages. If these find no
point, the current one is kept, which also leaves the density invariant.

Axis-aligned updates mix slowly if hyperparameters are correlated. If the density is close to a reference, such as an
approximation at its mode, elliptical slice sampling moves far in one update [NMA14]. Otherwise, updates along the
principal axes of the reference do.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calibo.arrays import Array

STEPS, SHRINKS = 8, 40
DEGREES_OF_FREEDOM = 20.0  # degrees of freedom of the reference's t distribution, for heavier tails
LINES = 2.5  # width of a slice along an axis of the reference, in its standard deviations

LogDensity = Callable[[Array], float]


def update(
    density: LogDensity, theta: Array, value: float, direction: Array, rng: np.random.Generator
) -> tuple[Array, float]:
    """One draw along ``direction``, whose norm is the width, from theta with log density ``value`` [NEA03, Fig. 3]."""
    height = value - rng.exponential()
    low = -rng.random()
    high = low + 1.0
    below = int(rng.integers(STEPS))  # random split of the steps keeps the density invariant
    for _ in range(below):
        if density(theta + low * direction) <= height:
            break
        low -= 1.0
    for _ in range(STEPS - 1 - below):
        if density(theta + high * direction) <= height:
            break
        high += 1.0
    for _ in range(SHRINKS):
        shift = low + (high - low) * rng.random()
        proposed = theta + shift * direction
        found = density(proposed)
        if found > height:
            return proposed, found
        if shift < 0.0:
            low = shift
        else:
            high = shift
    return theta, value


@dataclass(frozen=True, eq=False)
class Reference:
    """A t distribution with DEGREES_OF_FREEDOM degrees of freedom: theta = center + root z, z spherical."""

    center: Array
    root: Array

    def standard(self, theta: Array) -> Array:
        """The standardized z of a point."""
        return np.asarray(np.linalg.solve(self.root, theta - self.center))

    def log_density(self, z: Array) -> float:
        """Up to a constant."""
        return -0.5 * (DEGREES_OF_FREEDOM + len(z)) * float(np.log1p(z @ z / DEGREES_OF_FREEDOM))


def elliptical_update(
    density: LogDensity, theta: Array, value: float, reference: Reference, rng: np.random.Generator
) -> tuple[Array, float]:
    """One draw on the ellipse through theta, with log density ``value``, and a reference draw [NMA14, Alg. 2].

    A t distribution is a scale mixture of Normals: the scale given theta is drawn first. The slice is of the ratio of
    the density to the reference's, so any reference leaves the density invariant.
    """
    z = reference.standard(theta)
    scale = 0.5 * (DEGREES_OF_FREEDOM + float(z @ z)) / rng.gamma(0.5 * (DEGREES_OF_FREEDOM + len(z)))
    other = np.sqrt(scale) * rng.standard_normal(len(z))
    height = value - reference.log_density(z) - rng.exponential()
    angle = 2.0 * np.pi * rng.random()
    low, high = angle - 2.0 * np.pi, angle
    for _ in range(SHRINKS):
        moved = z * np.cos(angle) + other * np.sin(angle)
        proposed = reference.center + reference.root @ moved
        found = density(proposed)
        if found - reference.log_density(moved) > height:
            return proposed, found
        low, high = (angle, high) if angle < 0.0 else (low, angle)
        angle = low + (high - low) * rng.random()
    return theta, value


def sample(
    density: LogDensity,
    start: Array,
    reference: Reference,
    rng: np.random.Generator,
    draws: int,
    *,
    updates: int = 1,
    burn_in: int = 0,
) -> Array:
    """(draws, k) of one chain, after discarding ``burn_in`` draws.

    Each draw takes ``updates`` elliptical updates, each followed by one along an axis of the reference.
    """
    theta, value = start, density(start)
    if not np.isfinite(value):
        raise ValueError("`start` must have a finite log density.")
    found = np.empty((draws, len(start)))
    for s in range(-burn_in, draws):
        for _ in range(updates):
            theta, value = elliptical_update(density, theta, value, reference, rng)
            axis = LINES * reference.root[:, rng.integers(len(theta))]
            theta, value = update(density, theta, value, axis, rng)
        if s >= 0:
            found[s] = theta
    return found


def effective_sample_size(chains: Array) -> Array:
    """(k,) effective sample size of draws (c, s, k) from c chains, by initial positive sequences [GEY92]."""
    c, s, k = chains.shape
    sizes = np.empty(k)
    for j in range(k):
        centred = chains[:, :, j] - chains[:, :, j].mean(axis=1, keepdims=True)
        power = np.abs(np.fft.rfft(centred, 2 * s, axis=1)) ** 2
        covariances = np.fft.irfft(power, axis=1)[:, :s].mean(axis=0) / s
        if covariances[0] <= 0.0:
            sizes[j] = c * s
            continue
        rho = covariances / covariances[0]
        pairs = rho[0 : s - s % 2].reshape(-1, 2).sum(axis=1)
        positive = pairs[: int(np.argmax(pairs <= 0.0)) if (pairs <= 0.0).any() else len(pairs)]
        sizes[j] = c * s / max(2.0 * np.minimum.accumulate(positive).sum() - 1.0, 1.0 / (c * s))
    return np.asarray(np.minimum(sizes, c * s))


def split_rhat(chains: Array) -> Array:
    """(k,) split R-hat of the draws (c, s, k): near 1 if the chains agree [GR92]."""
    c, s, k = chains.shape
    halves = chains[:, : s - s % 2].reshape(2 * c, s // 2, k)
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = halves.mean(axis=1).var(axis=0, ddof=1)
    moving = within > 0.0
    ratio = np.sqrt((within * (1.0 - 2.0 / s) + between) / np.where(moving, within, 1.0))
    return np.asarray(np.where(moving, ratio, np.where(between > 0.0, np.inf, 1.0)))
