"""Slice sampling: draws from a density known up to a constant, with nothing to tune but a width [NEA03].

| symbol | meaning |
|---|---|
| theta | (k,) the point; L its log density |
| height | L(theta) - Exponential(1): the slice is where L is higher |
| width | first guess of how wide the slice is, along a direction |

An update takes a bounded number of evaluations: the slice is stepped out at most STEPS times, and shrunk at most
SHRINKS times; where that finds nothing, the point stays, which leaves the density invariant, too.

Along lines, an update cannot go far where hyper-parameters are correlated. Where the density is near to one that is
known, as it is near its mode, ellipses through that one's draws go far in one update [NMA14]; where it is not, lines
along the axes of that one do.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calibo.arrays import Array

STEPS, SHRINKS = 8, 40
FREEDOM = 20.0  # degrees of the t distribution of a reference: its tails are heavier than most
LINES = 2.5  # width of a slice along an axis of a reference, in its standard deviations

LogDensity = Callable[[Array], float]


def update(
    density: LogDensity, theta: Array, value: float, direction: Array, rng: np.random.Generator
) -> tuple[Array, float]:
    """One draw along ``direction``, whose length is the width, from theta of log density ``value`` [NEA03, Fig. 3]."""
    height = value - rng.exponential()
    low = -rng.random()
    high = low + 1.0
    below = int(rng.integers(STEPS))  # the steps are shared out at random: this keeps the density invariant
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
    """A t distribution with FREEDOM degrees: theta = center + root z, z spherical."""

    center: Array
    root: Array

    def standard(self, theta: Array) -> Array:
        """z of a point."""
        return np.asarray(np.linalg.solve(self.root, theta - self.center))

    def log_density(self, z: Array) -> float:
        """Up to a constant."""
        return -0.5 * (FREEDOM + len(z)) * float(np.log1p(z @ z / FREEDOM))


def elliptical_update(
    density: LogDensity, theta: Array, value: float, reference: Reference, rng: np.random.Generator
) -> tuple[Array, float]:
    """One draw on an ellipse through theta, of log density ``value``, and a draw of the reference [NMA14, Alg. 2].

    A t distribution is a mixture of Normals: the scale of the one that theta came from is drawn first. What decides is
    the ratio of the density to that of the reference, so that any reference leaves the density invariant.
    """
    z = reference.standard(theta)
    scale = 0.5 * (FREEDOM + float(z @ z)) / rng.gamma(0.5 * (FREEDOM + len(z)))
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
    """(draws, k) one after another, the first ``burn_in`` of them left out.

    Between two draws stand ``updates`` on an ellipse, each followed by one along an axis of the reference.
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


def effective_size(chains: Array) -> Array:
    """(k,) how many independent draws those (c, s, k) of c chains are worth, by initial positive sequences [GEY92]."""
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


def potential_reduction(chains: Array) -> Array:
    """(k,) R-hat of the draws (c, s, k), every chain split in two: near 1 where the chains agree [GR92]."""
    c, s, k = chains.shape
    halves = chains[:, : s - s % 2].reshape(2 * c, s // 2, k)
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = halves.mean(axis=1).var(axis=0, ddof=1)
    moving = within > 0.0
    ratio = np.sqrt((within * (1.0 - 2.0 / s) + between) / np.where(moving, within, 1.0))
    return np.asarray(np.where(moving, ratio, np.where(between > 0.0, np.inf, 1.0)))
