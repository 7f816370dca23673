"""Conformal Bayesian optimization: the posterior, reweighted by a conformal prediction set [STA23].

At each point and for each candidate outcome y, all observations are scored by how well they conform with the others
and y. The y that conform better than a fraction alpha of the observations form the conformal set. The expected utility
is computed under the posterior reweighted to mass 1 - alpha inside the set and alpha outside. Observations are weighted
by the density ratio of query points to observed points.

| symbol | meaning |
|---|---|
| u | (g,) outcomes in standard scores of the forecast |
| s_i | log density of outcome i given all others and the new one; s of the new one |
| r | density ratio of a point, queries over observed; w its normalized weight |
| m | (points, g) membership in the set, 0 to 1 |

Our changes: leave-one-out densities instead of in-sample ones, which are all equal without noise; soft membership, so
that it is differentiable; logistic regression for r, on points drawn from the acquisition with r = 1; gradients by
finite differences.
"""

from dataclasses import dataclass, replace
from math import pi, sqrt
from typing import ClassVar, Literal

import numpy as np
from scipy.special import expit

from calibo.acquisition.base import Acquisition, Landscape, Scale
from calibo.acquisition.moments import log_h
from calibo.arrays import Array
from calibo.calibration import NoRecalibration, Recalibrator
from calibo.cube import Cube
from calibo.errors import InputError, require_number
from calibo.forecasts import CalibrationMap
from calibo.models import FittedGaussianProcess, FittedSurrogate, GaussianProcess, Surrogate
from calibo.observations import Observations
from calibo.parts import register
from calibo.search import shifted_net

NODES = np.linspace(-8.0, 8.0, 129)
MASS = np.exp(-0.5 * NODES**2) / np.exp(-0.5 * NODES**2).sum()
SOFT_SCORE, SOFT_SHARE = 0.1, 0.02  # softness of the comparisons: between scores, in nats; of a fraction with alpha
QUERIES = 256  # points drawn for the density ratio
MOST_RATIO = 20.0
RIDGE = 1.0
STEP = 1e-5
TRACE = -20.0  # log weight of plain EI, which is always added
CHUNK = 64  # points per batch: each needs an array of observations by outcomes


@register("conformal")
@dataclass(frozen=True)
class ConformalAcquisition(Acquisition):
    """Expected improvement, or a confidence bound, under a conformal posterior [STA23]; replaces recalibration."""

    utility: Literal["improvement", "bound"] = "improvement"

    kappa: float = 2.0
    """Of the bound: standard deviations below the mean, under the unmodified posterior."""

    alpha: float | None = None
    """The miscoverage rate of the set; None for 1 / sqrt(n), as in [STA23]."""

    def __post_init__(self) -> None:
        if self.utility not in ("improvement", "bound"):
            raise InputError(f"`utility` must be 'improvement' or 'bound', but got {self.utility!r}.")
        require_number("kappa", self.kappa, "a finite number")
        if self.alpha is not None:
            require_number("alpha", self.alpha, "None or a number between 0 and 1", above=0.0, below=1.0)

    reads_one_model: ClassVar[bool] = True

    def check(self, surrogate: Surrogate, recalibrator: Recalibrator) -> None:
        if not isinstance(surrogate, GaussianProcess) or surrogate.samples > 1:
            raise InputError(
                f"`surrogate` must be one GaussianProcess with MAP hyperparameters, but got {surrogate!r}. "
                "Start with 'plain' or 'papers-base', or add '+single' before it."
            )
        if not isinstance(recalibrator, NoRecalibration):
            raise InputError(
                f"`recalibrator` must be NoRecalibration(), because conformal sets correct forecasts by themselves, "
                f"but got a {type(recalibrator).__name__}. Start with 'plain' or 'papers-base'."
            )

    def prepare(self, observations: Observations, fitted: FittedSurrogate, map: CalibrationMap) -> Landscape:
        assert isinstance(fitted, FittedGaussianProcess), "see check"
        alpha = min(1.0 / sqrt(max(len(observations), 1)), 0.5) if self.alpha is None else self.alpha
        best = float(fitted.transform(np.asarray(fitted.in_sample_mean(observations.x).min())))
        first = ConformalLandscape(fitted, self.utility, self.kappa, alpha, best, len(observations))
        return _with_ratio(first, observations)


@dataclass(frozen=True, eq=False)
class DensityRatio:
    """The density ratio of query points to observed points: the odds of a logistic regression."""

    weights: Array
    cube: Cube

    def __call__(self, x: Array) -> Array:
        return np.asarray(
            np.exp(np.clip(_features(x, self.cube) @ self.weights, -np.log(MOST_RATIO), np.log(MOST_RATIO)))
        )

    @classmethod
    def between(cls, asked: Array, known: Array, cube: Cube) -> "DensityRatio":
        """Fit by Newton's method with a ridge penalty; both classes have equal weight, so that odds are ratios."""
        features = _features(np.concatenate([asked, known]), cube)
        label = np.concatenate([np.ones(len(asked)), np.zeros(len(known))])
        share = np.concatenate([np.full(len(asked), 0.5 / len(asked)), np.full(len(known), 0.5 / len(known))])
        share *= 2 * len(known)  # each class weighs as much as all observations
        weights = np.zeros(features.shape[1])
        for _ in range(25):
            p = expit(features @ weights)
            slope = features.T @ (share * (label - p)) - RIDGE * weights
            curve = (features * (share * p * (1.0 - p))[:, None]).T @ features + RIDGE * np.eye(len(weights))
            step = np.linalg.solve(curve, slope)
            weights = weights + step
            if np.abs(step).max() < 1e-8:
                break
        return cls(weights, cube)


@dataclass(frozen=True, eq=False)
class ConformalLandscape(Landscape):
    """The expected utility under the conformal posterior."""

    fitted: FittedGaussianProcess
    utility: Literal["improvement", "bound"]
    kappa: float
    alpha: float
    best: float
    """On the transformed scale."""

    known: int
    """Number of observed outcomes; those after them are fantasies at pending points."""

    ratio: DensityRatio | None = None

    @property
    def scale(self) -> Scale:  # type: ignore[override]
        return "log" if self.utility == "improvement" else "bound"

    def value(self, x: Array) -> Array:
        parts = [self._value(x[i : i + CHUNK]) for i in range(0, len(x), CHUNK)]
        return np.concatenate(parts) if parts else np.empty(0)

    def value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        d = x.shape[1]
        steps = STEP * np.concatenate([np.eye(d), -np.eye(d)])
        around = self.value((x[:, None] + steps).reshape(-1, d)).reshape(len(x), 2, d)
        return self.value(x), (around[:, 0] - around[:, 1]) / (2.0 * STEP)

    def _value(self, x: Array) -> Array:
        mean, variance, weights = self._reweighted(x)
        loc, scale = self.fitted.center + self.fitted.spread * mean, self.fitted.spread * np.sqrt(variance)
        if self.utility == "improvement":
            gains = np.maximum(self.best - (loc[:, None] + scale[:, None] * NODES), 0.0)
            with np.errstate(divide="ignore"):
                gain = np.log(np.einsum("mg,mg->m", weights, gains))
            # zero beyond the nodes: adding a small multiple of plain EI avoids plateaus
            plain = np.log(scale) + log_h((self.best - loc) / scale)[0]
            return np.asarray(np.logaddexp(gain, plain + TRACE))
        # E|u| = sqrt(2 / pi) under the unmodified posterior
        bound = loc - self.kappa * sqrt(0.5 * pi) * scale * (weights @ np.abs(NODES))
        return np.asarray(-self.fitted.transform.inverse(bound))

    def _reweighted(self, x: Array) -> tuple[Array, Array, Array]:
        mean, variance, member = self.conformal_sets(x)
        inside, outside = MASS * member, MASS * (1.0 - member)
        within, without = (np.maximum(part.sum(axis=1, keepdims=True), 1e-12) for part in (inside, outside))
        weights = (1.0 - self.alpha) * inside / within + self.alpha * outside / without
        return mean, variance, weights / weights.sum(axis=1, keepdims=True)

    def conformal_sets(self, x: Array) -> tuple[Array, Array, Array]:
        """Mean and variance (points,) of an observation, and membership (points, g) of each outcome in the set."""
        mean, variance, intercept, slope, precision = self.fitted.processes[0].leave_one_out_with(x)
        known = 0.5 * np.log(precision)[..., None] - 0.5 * np.square(intercept[..., None] + slope[..., None] * NODES)
        new = -0.5 * np.log(variance)[:, None] - 0.5 * np.square(NODES)
        r = np.ones(len(x)), np.ones(precision.shape[1])
        if self.ratio is not None:
            r = self.ratio(x), self.ratio(self.fitted.processes[0].x)
        r[1][self.known :] = 0.0
        total = r[0] + r[1].sum()
        worse = np.einsum("mng,n->mg", expit((new[:, None] - known) / SOFT_SCORE), r[1])
        share = (worse + r[0][:, None]) / total[:, None]
        return mean, variance, expit((share - self.alpha) / SOFT_SHARE)


def _with_ratio(landscape: ConformalLandscape, observations: Observations) -> ConformalLandscape:
    """The landscape with the density ratio of queries drawn from the acquisition."""
    rng = np.random.default_rng(len(observations))
    net = observations.cube.snap(shifted_net(observations.x.shape[1], QUERIES, rng))
    value = landscape.value(net)
    if landscape.utility == "bound":
        value = value / landscape.fitted.spread
    odds = np.exp(value - value.max())
    asked = net[rng.choice(len(net), QUERIES, p=odds / odds.sum())]
    ratio = DensityRatio.between(asked, observations.x, observations.cube)
    return replace(landscape, ratio=ratio)


def _features(x: Array, cube: Cube) -> Array:
    """Numeric columns and their squares; one-hot encoded categories."""
    numeric = 2.0 * x[:, ~cube.categorical] - 1.0
    columns = [np.ones(len(x)), numeric, np.square(numeric)]
    for j in np.flatnonzero(cube.categorical):
        columns.append(1.0 * (cube.axes[j].index(x[:, j])[:, None] == np.arange(cube.axes[j].cells)))
    return np.column_stack(columns)
