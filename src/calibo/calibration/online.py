"""Recalibrators with a guarantee for any sequence of outcomes, even one chosen by an adversary; CAL24 Sec. 4, App. G.

| symbol | meaning |
|---|---|
| u, p | PIT of an outcome, level of a quantile |
| q(p) | what the p-quantile is read off at: the recalibrated quantile is Q(q(p)), so R(p) = q(p) |
| o | 1 where u <= q(p): the outcome fell below its recalibrated quantile |
| eta | step size |
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import ndtr, ndtri

from calibo.calibration.maps import CalibrationMap, usable
from calibo.errors import InputError
from calibo.parts import register
from calibo.types import Array

__all__ = ["LeaderRecalibrator", "OnlineRecalibrator"]


@dataclass(frozen=True)
class Levels:
    """What recalibrators that keep one number a level share."""

    eta: float = 0.03
    """Step size: how fast a level follows the outcomes."""

    levels: int = 39
    """How many, evenly spaced between 0 and 1."""

    start: Literal["identity", "zero"] = "identity"
    """Where q(p) begins: at p, or at 0 as in the paper."""

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

    def _begin(self) -> Array:
        return self.p if self.start == "identity" else np.zeros(self.levels)

    def _published(self, q: Array) -> CalibrationMap:
        """Increasing and inside (0, 1); between the levels linear in scores, outside of slope 1."""
        outermost = 0.25 / (self.levels + 1)  # a quarter of the first level: nothing is known beyond
        inside = np.clip(np.sort(q), outermost, 1.0 - outermost)
        return CalibrationMap.through(ndtri(inside), ndtri(self.p))


@register("online")
@dataclass(frozen=True)
class OnlineRecalibrator(Levels):
    """Gradient descent on the pinball loss of each level, one step an outcome; CAL24 Eq. (9).

    After T outcomes the share of them below a level's raw state differs from p by at most (1 + eta) / (eta T), or
    max(1, eta) / (eta T) from the identity start, whatever the outcomes were. Raw states of two levels may cross.
    The published map has them sorted, clipped and interpolated: it keeps the coverage averaged over the levels, but
    does not carry the bound of each.
    """

    def fit(self, scores: Array) -> CalibrationMap:
        z = usable(scores)
        return self._published(self.states(ndtr(z))[-1]) if len(z) else CalibrationMap()

    def states(self, pits: Array) -> Array:
        """(T + 1, levels) raw q before each outcome and after the last; outside [0, 1] the quantile is infinite."""
        q, p = np.empty((len(pits) + 1, self.levels)), self.p
        q[0] = self._begin()
        for t, u in enumerate(pits):
            # descent: the papers' plus sign climbs
            q[t + 1] = q[t] - self.eta * ((u <= q[t]) - p)
        return q


@register("leader")
@dataclass(frozen=True)
class LeaderRecalibrator(Levels):
    """The regularised leader on the loss itself: R(p) = argmin (q - start)^2 / (2 eta) + sum of pinball losses.

    CAL24 Eq. (6). It increases with p, and tends to the lower empirical quantile as eta grows, CAL24 Lemma 1. It has
    no guarantee against an adversary: outcomes just above q would leave its coverage at 0 for ever.
    """

    eta: float = 0.1

    def fit(self, scores: Array) -> CalibrationMap:
        z = usable(scores)
        return self._published(self.leader(ndtr(z))) if len(z) else CalibrationMap()

    def leader(self, pits: Array) -> Array:
        """(levels,) the minimisers."""
        k = np.arange(len(pits) + 1)[:, None]
        # the slope (q - start) / eta + #{u <= q} - N p is zero at this q while k PITs lie below it
        balanced = self._begin() - self.eta * (k - len(pits) * self.p)
        reached = np.concatenate([[-np.inf], np.sort(pits)])[:, None]
        return np.asarray(np.maximum(balanced, reached).min(axis=0))
