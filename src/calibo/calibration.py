"""Calibration: how forecasts are bent to what really happened.

A map acts on normal scores: z' = m(z), increasing on the whole line. On probabilities that is
C(p) = Phi(m(Phi^-1(p))), and the calibrated CDF is C(F). Scores do not saturate where
probabilities do, some eight standard deviations from the median.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np

from calibo.observations import Observations
from calibo.surrogate import FittedSurrogate, Surrogate
from calibo.types import Array

__all__ = ["CalibrationMap", "Evidence", "NoEvidence", "NoRecalibration", "Recalibrator"]


@dataclass(frozen=True, eq=False)
class CalibrationMap:
    """A piecewise-linear increasing function of normal scores through ``knots``, a straight line without any."""

    knots: Array = field(default_factory=lambda: np.empty(0))
    """(k,) increasing scores."""

    values: Array = field(default_factory=lambda: np.empty(0))
    """(k,) the map there."""

    left: float = 1.0
    """Slope below the first knot, positive; of the whole line where there is no knot."""

    right: float = 1.0
    """Slope above the last knot, positive; equal to ``left`` where there is no knot."""

    intercept: float = 0.0
    """The map at score 0 where there is no knot."""

    @classmethod
    def shift_scale(cls, shift: float, scale: float) -> "CalibrationMap":
        """m(z) = (z - shift) / scale: removes a bias of ``shift`` and a width of ``scale``."""
        return cls(left=1.0 / scale, right=1.0 / scale, intercept=-shift / scale)

    @property
    def is_identity(self) -> bool:
        return self.is_line and self.left == 1.0 and self.intercept == 0.0

    @property
    def is_line(self) -> bool:
        return len(self.knots) == 0

    def __call__(self, z: Array | float) -> Array:
        z = np.asarray(z, dtype=float)
        if self.is_line:
            return np.asarray(self.intercept + self.left * z)
        inside = np.interp(z, self.knots, self.values)
        # the two lines are zero inside the knots; infinite scores stay infinite
        below, above = np.minimum(z - self.knots[0], 0.0), np.maximum(z - self.knots[-1], 0.0)
        return np.asarray(inside + self.left * below + self.right * above)

    def inverse(self, z: Array | float) -> Array:
        """The scores that the map sends to ``z``."""
        return self._inverted(z)

    def slope(self, z: Array | float) -> Array:
        """The derivative of the map; at a knot that of the piece above it."""
        z = np.asarray(z, dtype=float)
        return np.asarray(self.slopes[np.searchsorted(self.knots, z, side="right")])

    @cached_property
    def slopes(self) -> Array:
        """(k + 1,) of the pieces, from the lowest up."""
        if self.is_line:
            return np.array([self.left])
        return np.concatenate([[self.left], np.diff(self.values) / np.diff(self.knots), [self.right]])

    def mirrored(self) -> "CalibrationMap":
        """The map -m(-z), which calibrates the forecast of -y."""
        return CalibrationMap(-self.knots[::-1], -self.values[::-1], self.right, self.left, -self.intercept)

    @cached_property
    def _inverted(self) -> "CalibrationMap":
        return CalibrationMap(self.values, self.knots, 1.0 / self.left, 1.0 / self.right, -self.intercept / self.left)


class Evidence(Protocol):
    """Where calibration learns from: a recipe for normal scores of outcomes."""

    def scores(
        self, surrogate: Surrogate, fitted: FittedSurrogate, observations: Observations, *, rng: np.random.Generator
    ) -> Array:
        """(n,) scores of outcomes under forecasts that did not know them."""
        ...


class Recalibrator(Protocol):
    """A recipe that turns scores into the map that would have made them standard normal."""

    def fit(self, scores: Array) -> CalibrationMap: ...


@dataclass(frozen=True)
class NoEvidence:
    """No outcome is scored."""

    def scores(
        self, surrogate: Surrogate, fitted: FittedSurrogate, observations: Observations, *, rng: np.random.Generator
    ) -> Array:
        return np.empty(0)


@dataclass(frozen=True)
class NoRecalibration:
    """The forecast is taken as it is."""

    def fit(self, scores: Array) -> CalibrationMap:
        return CalibrationMap()
