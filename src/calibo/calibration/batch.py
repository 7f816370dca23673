"""Recalibrators that look at all scores at once.

| symbol | meaning |
|---|---|
| z, u | score of an outcome, its PIT u = Phi(z) |
| N, n0 | number of scores, prior weight of the identity in scores |
| Phat(p) | share of PITs up to p: the pairs (u, Phat(u)) are what the papers train a map on |
| b, c | bias and width of the scores: a calibrated model has b = 0, c = 1 |
"""

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import ndtr, ndtri

from calibo.calibration.maps import CalibrationMap, usable
from calibo.calibration.protocols import Recalibrator
from calibo.cube import Axis, Cube
from calibo.errors import InputError
from calibo.gp.kernels import RBF
from calibo.observations import Observations
from calibo.parts import register
from calibo.surrogate import FLAT, GaussianProcess
from calibo.types import Array

__all__ = [
    "EmpiricalRecalibrator",
    "GPRecalibrator",
    "MLPRecalibrator",
    "ShiftScaleRecalibrator",
    "SigmaScaleRecalibrator",
]

LEVELS = np.linspace(0.025, 0.975, 39)  # at which a regressed map is read off
MOST_BEYOND = 10  # scores outside the levels that are knots, too, on each side
APART = 0.02  # of such knots
SATURATED = 8.2  # scores whose PITs are 0 or 1 in float64
NARROWEST, WIDEST = 0.01, 100.0  # factors of a forecast's width: beyond, there is nothing left to correct


@register("empirical")
@dataclass(frozen=True)
class EmpiricalRecalibrator:
    """The distribution of the PITs themselves, smoothed, with the identity as ``prior``."""

    prior: float = 20.0
    """Scores that the identity counts for: few outcomes change little."""

    def __post_init__(self) -> None:
        _demand("prior", self.prior, self.prior >= 0.0, "a number of at least 0")

    def fit(self, scores: Array) -> CalibrationMap:
        z = np.sort(usable(scores))
        total = self.prior + len(z)
        if not len(z) or np.isinf(total):
            return CalibrationMap()
        points, first, counts = np.unique(z, return_index=True, return_counts=True)
        # at a jump of Phat the middle of it; between them and beyond smooth in scores
        smooth = CalibrationMap.through(points, ndtri((first + 0.5 * counts) / len(z)))
        knots = _knots(z)
        if self.prior == 0.0:
            return CalibrationMap.through(knots, smooth(knots))
        below, above = (  # each tail by itself, where the other would leave nothing of it
            (self.prior * ndtr(side * knots) + len(z) * ndtr(side * smooth(knots))) / total for side in (1.0, -1.0)
        )
        return CalibrationMap.through(knots, np.where(below < above, ndtri(below), -ndtri(above)))


def _knots(z: Array) -> Array:
    """Scores at which a map is read off: all levels, and beyond them as far as the sorted ``z`` reach."""
    levels = ndtri(LEVELS)
    return np.concatenate([-_outward(-z[::-1], levels[-1])[::-1], levels, _outward(z, levels[-1])])


def _outward(z: Array, edge: float) -> Array:
    """Some of the sorted ``z`` above ``edge``; closer together they would make a slope of what is chance."""
    beyond = z[z > edge + APART]
    if len(beyond) > MOST_BEYOND:
        beyond = beyond[np.linspace(0, len(beyond) - 1, MOST_BEYOND).round().astype(int)]
    return np.asarray(beyond[np.diff(beyond, prepend=edge) > APART])


@dataclass(frozen=True)
class RegressedRecalibrator(ABC):
    """A regressor trained on the pairs (u, Phat(u)), made increasing; CAL21 Alg. 2, CAL23 Alg. 3, CAL24 Alg. 1."""

    def fit(self, scores: Array) -> CalibrationMap:
        pits = np.sort(ndtr(usable(scores)))
        n = len(pits)
        if not n:
            return CalibrationMap()
        shares = np.searchsorted(pits, pits, side="right") / n
        # C(0) = 0 and C(1) = 1 are known
        regressed = self._regressed(np.concatenate([[0.0], pits, [1.0]]), np.concatenate([[0.0], shares, [1.0]]))
        increasing = isotonic_regression(regressed).x
        finest = 0.5 / (n + 1)  # closer to 0 and 1 than that, n outcomes cannot tell
        return CalibrationMap.through(ndtri(LEVELS), ndtri(np.clip(increasing, finest, 1.0 - finest)))

    @abstractmethod
    def _regressed(self, pits: Array, shares: Array) -> Array:
        """The regression of ``shares`` on ``pits``, whose first and last are certain, at LEVELS."""


@register("gp-regression")
@dataclass(frozen=True)
class GPRecalibrator(RegressedRecalibrator):
    """The papers' choice of a regressor: a Gaussian process, RBF, by maximum likelihood."""

    def _regressed(self, pits: Array, shares: Array) -> Array:
        known = np.full(len(pits), np.nan)
        known[[0, -1]] = 0.0
        line = Cube((Axis("continuous"),))
        everything = np.ones(len(pits), dtype=bool)
        pairs = Observations(line, pits[:, None], shares, known, everything, np.empty((0, 1)))
        fitted = GaussianProcess(RBF(), FLAT, growth=0.0).fit(pairs, rng=np.random.default_rng(0))
        return np.asarray(fitted.latent(LEVELS[:, None]).loc[0])


@register("mlp-regression")
@dataclass(frozen=True)
class MLPRecalibrator(RegressedRecalibrator):
    """A small neural network as the regressor, CAL24 Table 4; needs scikit-learn."""

    hidden: tuple[int, ...] = (16,)

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", tuple(self.hidden))  # a list would not be hashable

    def _regressed(self, pits: Array, shares: Array) -> Array:
        try:
            from sklearn.exceptions import ConvergenceWarning
            from sklearn.neural_network import MLPRegressor
        except ImportError:
            raise InputError(
                "MLPRecalibrator needs scikit-learn, which is not installed. Run `pip install calibo[sklearn]`."
            ) from None
        effort = {"solver": "lbfgs", "alpha": 1e-3, "max_iter": 500}
        network = MLPRegressor(hidden_layer_sizes=self.hidden, activation="tanh", random_state=0, **effort)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the last digits of a smooth curve decide nothing
            network.fit(pits[:, None], shares)
        return np.asarray(network.predict(LEVELS[:, None]))


@register("sigma-scale")
@dataclass(frozen=True)
class SigmaScaleRecalibrator:
    """The papers' Gaussian form: the same mean, and the width that comes nearest to the quantiles of another map."""

    recalibrator: Recalibrator = field(default_factory=lambda: EmpiricalRecalibrator(0.0))

    def fit(self, scores: Array) -> CalibrationMap:
        levels = ndtri(LEVELS)
        # Phi^-1(R(p)), clipped where R(p) is 0 or 1
        wanted = np.clip(self.recalibrator.fit(scores).inverse(levels), -SATURATED, SATURATED)
        # c = argmin sum (Phi^-1(R(p)) - c Phi^-1(p))^2
        scale = float(wanted @ levels / (levels @ levels))
        return CalibrationMap.shift_scale(0.0, float(np.clip(scale, NARROWEST, WIDEST)))


@register("shift-scale")
@dataclass(frozen=True)
class ShiftScaleRecalibrator:
    """z' = (z - b) / c: a bias and a width, the two numbers that a handful of outcomes can tell.

    Scores are taken for Normal(b, c^2) with a conjugate prior around b = 0, c = 1 (normal-inverse-gamma), of
    which this is the posterior mean of b and of c^2.
    """

    shift_prior: float = 4.0
    """Scores that b = 0 counts for; infinite for no shift."""

    scale_prior: float = 8.0
    """Scores that c = 1 counts for; infinite for no scaling."""

    memory: float = 0.95
    """Weight of a score relative to that of the next one: models grow better, and old errors fade."""

    cap: float = 4.0
    """Scores beyond count as this: one outcome must not decide everything."""

    def __post_init__(self) -> None:
        _demand("shift_prior", self.shift_prior, self.shift_prior > 0.0, "a positive number")
        _demand("scale_prior", self.scale_prior, self.scale_prior > 0.0, "a positive number")
        _demand("memory", self.memory, 0.0 < self.memory <= 1.0, "a number in (0, 1]")
        _demand("cap", self.cap, self.cap > 0.0, "a positive number")

    def fit(self, scores: Array) -> CalibrationMap:
        z = np.clip(usable(scores), -self.cap, self.cap)
        weights = self.memory ** np.arange(len(z) - 1, -1, -1.0)
        count, total = float(weights.sum()), float(weights @ z)
        shift = total / (count + self.shift_prior)
        # sum w (z - b)^2 + n_b b^2 = sum w z^2 - b sum w z; written as a difference from 1, so that infinity means 1
        excess = float(weights @ np.square(z)) - shift * total - count
        variance = 1.0 + excess / (count + self.scale_prior)
        return CalibrationMap.shift_scale(shift, float(np.clip(np.sqrt(max(variance, 0.0)), NARROWEST, WIDEST)))


def _demand(name: str, value: float, holds: bool, wanted: str) -> None:
    if not holds:  # NaN holds nothing
        raise InputError(f"`{name}` must be {wanted}, but got {value!r}.")
