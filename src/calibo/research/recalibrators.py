"""Recalibrators from the papers: regression and empirical maps, sigma scaling, and an online one with a guarantee.

| symbol | meaning |
|---|---|
| z, u | score of an outcome, its PIT u = Phi(z) |
| N, n0 | number of scores, pseudo-count of the identity |
| Phat(p) | empirical CDF of the PITs: the papers fit a map to the pairs (u, Phat(u)) |
| q(p) | online: the level at which the p-quantile is read, so that R(p) = q(p) |
| eta | online: step size |
"""

import warnings
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import ndtr, ndtri

from calibo.arrays import Array
from calibo.calibration.base import Recalibrator
from calibo.calibration.recalibrators import NARROWEST, WIDEST
from calibo.cube import Axis, Cube
from calibo.errors import InputError
from calibo.forecasts import CalibrationMap, usable_scores
from calibo.gp.kernels import RBF
from calibo.models import GaussianProcess
from calibo.observations import Observations
from calibo.parts import register
from calibo.priors import FLAT

LEVELS = np.linspace(0.025, 0.975, 39)  # at which a regression map is evaluated
MOST_BEYOND = 10  # additional knots outside the levels, on each side
APART = 0.02  # minimum distance of such knots
SHORT = 0.3  # step size for runs of some forty outcomes
SATURATED = 8.2  # beyond this score, PITs are 0 or 1 in float64


@register("empirical")
@dataclass(frozen=True)
class EmpiricalRecalibrator(Recalibrator):
    """The smoothed empirical CDF of the PITs, shrunk towards the identity."""

    prior: float = 20.0
    """Pseudo-count of the identity."""

    def __post_init__(self) -> None:
        if not self.prior >= 0.0:
            raise InputError(f"`prior` must be a number of at least 0, but got {self.prior!r}.")

    def fit(self, scores: Array) -> CalibrationMap:
        z = np.sort(usable_scores(scores))
        total = self.prior + len(z)
        if not len(z) or np.isinf(total):
            return CalibrationMap()
        points, first, counts = np.unique(z, return_index=True, return_counts=True)
        # the middle of each jump of Phat; linear in scores in between and beyond
        smooth = CalibrationMap.through(points, ndtri((first + 0.5 * counts) / len(z)))
        knots = _knots(z)
        if self.prior == 0.0:
            return CalibrationMap.through(knots, smooth(knots))
        below, above = (  # both tails, to avoid cancellation
            (self.prior * ndtr(side * knots) + len(z) * ndtr(side * smooth(knots))) / total for side in (1.0, -1.0)
        )
        return CalibrationMap.through(knots, np.where(below < above, ndtri(below), -ndtri(above)))


def _knots(z: Array) -> Array:
    """Knots of the map: all levels, and beyond them as far as the sorted ``z`` reach."""
    levels = ndtri(LEVELS)
    return np.concatenate([-_outward(-z[::-1], levels[-1])[::-1], levels, _outward(z, levels[-1])])


def _outward(z: Array, edge: float) -> Array:
    """Some of the sorted ``z`` above ``edge``, kept apart so that slopes are not noise."""
    beyond = z[z > edge + APART]
    if len(beyond) > MOST_BEYOND:
        beyond = beyond[np.linspace(0, len(beyond) - 1, MOST_BEYOND).round().astype(int)]
    return np.asarray(beyond[np.diff(beyond, prepend=edge) > APART])


@dataclass(frozen=True)
class RegressedRecalibrator(Recalibrator):
    """A regressor fitted to the pairs (u, Phat(u)), made monotone; CAL21 Alg. 2, CAL23 Alg. 3, CAL24 Alg. 1."""

    def fit(self, scores: Array) -> CalibrationMap:
        pits = np.sort(ndtr(usable_scores(scores)))
        n = len(pits)
        if not n:
            return CalibrationMap()
        shares = np.searchsorted(pits, pits, side="right") / n
        # C(0) = 0 and C(1) = 1 hold exactly
        regressed = self._regress(np.concatenate([[0.0], pits, [1.0]]), np.concatenate([[0.0], shares, [1.0]]))
        increasing = isotonic_regression(regressed).x
        finest = 0.5 / (n + 1)  # resolution of n outcomes near 0 and 1
        return CalibrationMap.through(ndtri(LEVELS), ndtri(np.clip(increasing, finest, 1.0 - finest)))

    @abstractmethod
    def _regress(self, pits: Array, shares: Array) -> Array:
        """The regression of ``shares`` on ``pits``, evaluated at LEVELS; the first and last pairs are exact."""


@register("gp-regression")
@dataclass(frozen=True)
class GPRecalibrator(RegressedRecalibrator):
    """The papers' regressor: a Gaussian process with an RBF kernel, fitted by maximum likelihood."""

    def _regress(self, pits: Array, shares: Array) -> Array:
        known = np.full(len(pits), np.nan)
        known[[0, -1]] = 0.0
        line = Cube((Axis("continuous"),))
        everything = np.ones(len(pits), dtype=bool)
        pairs = Observations(line, pits[:, None], shares, known, everything, np.empty((0, 1)))
        fitted = GaussianProcess(RBF(), FLAT, growth=0.0).fit(pairs, rng=np.random.default_rng(0))
        return np.asarray(fitted.posterior(LEVELS[:, None]).loc[0])


@register("mlp-regression")
@dataclass(frozen=True)
class MLPRecalibrator(RegressedRecalibrator):
    """A small neural network as the regressor, CAL24 Table 4; needs scikit-learn."""

    hidden: tuple[int, ...] = (16,)

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", tuple(self.hidden))  # a list would not be hashable

    def _regress(self, pits: Array, shares: Array) -> Array:
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
            warnings.simplefilter("ignore", ConvergenceWarning)  # full convergence does not matter
            network.fit(pits[:, None], shares)
        return np.asarray(network.predict(LEVELS[:, None]))


@register("sigma-scale")
@dataclass(frozen=True)
class SigmaScaleRecalibrator(Recalibrator):
    """The papers' Gaussian form: the same mean, and the width that best fits the quantiles of another map."""

    recalibrator: Recalibrator = field(default_factory=lambda: EmpiricalRecalibrator(0.0))

    def fit(self, scores: Array) -> CalibrationMap:
        levels = ndtri(LEVELS)
        # Phi^-1(R(p)), clipped where R(p) is 0 or 1
        wanted = np.clip(self.recalibrator.fit(scores).inverse(levels), -SATURATED, SATURATED)
        # c = argmin sum (Phi^-1(R(p)) - c Phi^-1(p))^2
        scale = float(wanted @ levels / (levels @ levels))
        return CalibrationMap.shift_scale(0.0, float(np.clip(scale, NARROWEST, WIDEST)))


@register("online")
@dataclass(frozen=True)
class OnlineRecalibrator(Recalibrator):
    """Gradient descent on the pinball loss of each level, one step per outcome; CAL24 Sec. 4, Eq. (9).

    The guarantee holds for any sequence of outcomes, even an adversarial one: see ``bound``. With eta = 0.03 it says
    nothing before the 34th outcome; for a short run use a larger step, such as ``SHORT``. Raw states of different
    levels may cross. The returned map sorts, clips and interpolates them: it preserves the coverage averaged over
    levels, but not the bound for each level.
    """

    eta: float = 0.03
    """Step size."""

    levels: int = 39
    """Number of levels, evenly spaced between 0 and 1."""

    start: Literal["identity", "zero"] = "identity"
    """Initial q(p): p, or 0 as in the paper."""

    def __post_init__(self) -> None:
        if not 0.0 < self.eta < np.inf:
            raise InputError(f"`eta` must be a positive number, but got {self.eta!r}.")
        if not isinstance(self.levels, int) or self.levels < 1:
            raise InputError(f"`levels` must be a whole number of at least 1, but got {self.levels!r}.")
        if self.start not in ("identity", "zero"):
            raise InputError(f"`start` must be 'identity' or 'zero', but got {self.start!r}.")

    @property
    def p(self) -> Array:
        """(levels,)"""
        return np.arange(1, self.levels + 1) / (self.levels + 1)

    def fit(self, scores: Array) -> CalibrationMap:
        z = usable_scores(scores)
        if not len(z):
            return CalibrationMap()
        outermost = 0.25 / (self.levels + 1)  # a quarter of the first level
        inside = np.clip(np.sort(self.states(ndtr(z))[-1]), outermost, 1.0 - outermost)
        return CalibrationMap.through(ndtri(inside), ndtri(self.p))  # linear in scores, with slope 1 outside

    def bound(self, outcomes: int) -> float:
        """How much the share of outcomes below a level's raw state may differ from p after so many outcomes; 1 if
        nothing is guaranteed.

        CAL24 Thm. 2 has (1 + eta) / (eta T); started from the identity it is max(1, eta) / (eta T).
        """
        most = max(1.0, self.eta) if self.start == "identity" else 1.0 + self.eta
        return min(most / (self.eta * outcomes), 1.0) if outcomes > 0 else 1.0

    def states(self, pits: Array) -> Array:
        """(T + 1, levels) raw q before each outcome and after the last; outside [0, 1] the quantile is infinite."""
        q, p = np.empty((len(pits) + 1, self.levels)), self.p
        q[0] = p if self.start == "identity" else 0.0
        for t, u in enumerate(pits):
            # descent: the papers' plus sign would ascend
            q[t + 1] = q[t] - self.eta * ((u <= q[t]) - p)
        return q
