"""Gaussian process classifier of labels that say only on which side of a boundary a point lies.

A latent function f is below 0 where evaluations run and above 0 where they fail:
P(failed | f > 0) = 1 - MISLABELED and P(failed | f < 0) = chance, the rate of failures that do not depend on the point.
The posterior of f is approximated by expectation propagation [RW06, Sec. 3.6], with all sites updated together.

| symbol | meaning |
|---|---|
| t | labels, +1 failed, -1 ran |
| cavity | the posterior of f at a point without its own label |
| z | mean of the cavity / its standard deviation |
| Z | probability of a label under its cavity: a + c Phi(t z) |
| tau, nu | precision of a site, and precision times mean |
"""

from dataclasses import dataclass
from functools import cache
from itertools import product
from math import log
from typing import Any

import numpy as np
from scipy.special import ndtr

from calibo.arrays import Array
from calibo.gp import linalg
from calibo.gp.kernels import Covariance
from calibo.gp.process import Process
from calibo.models.base import Surrogate
from calibo.models.gaussian_process import FITS, FittedGaussianProcess, GaussianProcess, fit_key, scheduled_size
from calibo.observations import Observations
from calibo.parts import register

PRIOR_MEAN = -1.0  # in prior standard deviations: before any label, 84 % of the cube is expected to run
MISLABELED = 1e-3  # rate at which an evaluation runs in a region that fails
CHANCES = {0.01: 0.6, 0.1: 0.2, 0.2: 0.15, 0.35: 0.05}  # rates of failures by chance, with their prior weights
SCALES = (0.25, 0.5, 1.0, 2.0)  # lengthscales to start from, times the square root of the dimension
ROUNDS, STEP = 2, log(2.0)  # of the search for single log lengthscales, and its step
MOST_SWEEPS, DAMPING, TOLERANCE = 60, 0.6, 1e-3
WEAKEST, STRONGEST = 1e-6, 1e10  # precisions of a site
LARGEST_FIT = 128  # labels to which hyperparameters are fitted


@register("label classifier")
@dataclass(frozen=True)
class LabelClassifier(Surrogate):
    """Forecasts a latent value, which is below 0 where labels are negative and above 0 where they are positive."""

    growth: float = 0.1
    """Hyperparameters are fitted again when the number of labels has grown by this fraction."""

    def fit(
        self, observations: Observations, *, rng: np.random.Generator, previous: Any = None
    ) -> FittedGaussianProcess:
        kernel = GaussianProcess().covariance(observations.cube)
        first = observations.head(min(scheduled_size(len(observations), self.growth), LARGEST_FIT))
        key = fit_key(self, first)
        fit = next((f for f in ((previous or {}).get(key), FITS.get(key)) if _usable(f, len(kernel.labels))), None)
        if fit is None:
            fit = Labels(kernel, first).choose_hyperparameters()
            FITS.put(key, fit)
        theta, chance = np.array(fit[:-1]), fit[-1]
        sites = Labels(kernel, observations).propagate(theta, chance)
        process = Process.from_data(kernel, theta, observations.x, sites.mean, sites.variance)
        return FittedGaussianProcess((process,), np.ones(1), 0.0, 1.0, {key: fit}, thetas=theta[None])


def _usable(fit: Any, size: int) -> bool:
    """Whether a stored fit is valid; a storage may hold anything."""
    numbers = isinstance(fit, list) and len(fit) == size + 3 and all(isinstance(v, float) for v in fit)
    return numbers and all(abs(v) < 50.0 for v in fit) and 0.0 < fit[-1] < 1.0


@dataclass(frozen=True, eq=False)
class Sites:
    """Gaussian approximations of the likelihoods of the labels: as if f had been observed, with noise."""

    mean: Array
    variance: Array
    log_evidence: float


class Labels:
    """The labels of a data set, and their evidence for hyperparameters."""

    def __init__(self, kernel: Covariance, observations: Observations) -> None:
        self.kernel, self.t = kernel, np.where(observations.y > 0.0, 1.0, -1.0)
        dimension = observations.cube.width or max(kernel.labels.count("lengthscale"), 1)
        self.unit = 0.5 * log(dimension)  # log lengthscale that a cube of this dimension suggests
        rows, columns, _ = linalg.pairs(len(self.t))
        self.geometry = kernel.geometry(observations.x, rows, columns)
        self.scales = [j for j, label in enumerate(kernel.labels) if label in ("lengthscale", "decay")]

    def choose_hyperparameters(self) -> list[float]:
        """Theta and the rate of failures by chance: the best of a grid, then one lengthscale at a time."""
        score = cache(lambda fit: self._score(np.array(fit[:-1]), fit[-1]))
        best = max(((*self._theta(scale), chance) for scale, chance in product(SCALES, CHANCES)), key=score)
        for _, j, step in product(range(ROUNDS), self.scales, (STEP, -STEP)):
            best = max(best, (*best[:j], best[j] + step, *best[j + 1 :]), key=score)
        return [float(value) for value in best]

    def _theta(self, scale: float) -> list[float]:
        kernel = [self.unit + log(scale) if label == "lengthscale" else 0.0 for label in self.kernel.labels]
        return [*kernel, log(WEAKEST), PRIOR_MEAN]

    def _score(self, theta: Array, chance: float) -> float:
        """Log evidence plus log prior, which is one standard normal shared by all log lengthscales."""
        center = [self.unit if self.kernel.labels[j] == "lengthscale" else 0.0 for j in self.scales]
        away = theta[self.scales] - center
        prior = -0.5 * float(np.square(away).mean()) if len(away) else 0.0
        return self.propagate(theta, chance).log_evidence + prior + log(CHANCES[chance])

    def propagate(self, theta: Array, chance: float) -> Sites:
        """Expectation propagation: the tilted moments of all sites [RW06, Eq. 3.58], then a new posterior."""
        t, n, mean = self.t, len(self.t), float(theta[-1])
        packed, _ = self.kernel.pairwise(theta[:-2], self.geometry)
        upper = linalg.unpack(packed, n)
        K = upper + np.triu(upper, 1).T
        a, c = np.where(t > 0.0, chance, MISLABELED), 1.0 - chance - MISLABELED
        tau, nu = np.full(n, WEAKEST), np.full(n, WEAKEST * mean)
        for sweep in range(MOST_SWEEPS):
            root, jitter = linalg.cholesky(packed, 1.0 / tau)
            alpha, v = linalg.solve(root, nu / tau - mean), linalg.solve_root(root, K)
            loc, variance = mean + K @ alpha, np.maximum(np.diag(K) - np.einsum("ij,ij->j", v, v), 1e-12)
            # the cavity: without the site itself [RW06, Eq. 3.56]
            precision = np.maximum(1.0 / variance - tau, 1e-10)
            cavity, sigma = (loc / variance - nu) / precision, 1.0 / np.sqrt(precision)
            z = cavity / sigma
            Z = a + c * ndtr(t * z)
            slope = c * t * np.exp(-0.5 * np.square(z)) / (np.sqrt(2.0 * np.pi) * Z * sigma)  # d log Z / d cavity
            curvature = np.square(slope) + slope * z / sigma  # -d^2 log Z / d cavity^2
            tilted = cavity + slope / precision
            if sweep == MOST_SWEEPS - 1 or np.abs(tilted - loc).max() < TOLERANCE:
                break  # before the update: the evidence needs sites, cavities and root of the same sweep
            matched = curvature / np.maximum(1.0 - curvature / precision, 1e-12)
            matched = np.clip(matched, WEAKEST, STRONGEST)  # labels that contradict their cavity would be negative
            tau = tau + DAMPING * (matched - tau)
            nu = nu + DAMPING * (tilted * (matched + precision) - cavity * precision - nu)
        # log Z_EP [RW06, Eq. 3.65]
        both, gap = 1.0 / tau + 1.0 / precision, nu / tau - cavity
        sites = np.log(Z) + 0.5 * np.log(both) + 0.5 * np.square(gap) / both
        fit = float((nu / tau - mean) @ alpha)
        evidence = float(sites.sum()) - 0.5 * (fit + linalg.log_determinant(root))
        return Sites(nu / tau, 1.0 / tau + jitter, evidence)
