"""Maps: how a forecast is bent to what really happened.

A map acts on normal scores: z' = m(z), increasing on the whole line. On probabilities that is
C(p) = Phi(m(Phi^-1(p))), and the calibrated CDF is C(F). Scores do not saturate where
probabilities do, some eight standard deviations from the median. On levels the same map is
R = C^-1: the calibrated quantile at p is Q(R(p)), the raw outcome at score m^-1(Phi^-1(p)).
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from calibo.types import Array, read_only

__all__ = ["CalibrationMap", "usable"]

APART = 1e-6  # of neighbouring knots and values: keeps both the map and its inverse strictly increasing
FARTHEST = 100.0  # a forecast that is a hundred of its standard deviations off is simply wrong


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

    strength: float | None = None
    """The share of the correction that a gate let through; None where no gate decided."""

    @classmethod
    def shift_scale(cls, shift: float, scale: float) -> "CalibrationMap":
        """m(z) = (z - shift) / scale: removes a bias of ``shift`` and a width of ``scale``."""
        return cls(left=1.0 / scale, right=1.0 / scale, intercept=-shift / scale)

    @classmethod
    def through(cls, knots: Array, values: Array, left: float = 1.0, right: float = 1.0) -> "CalibrationMap":
        """The map through points that do not decrease; those that coincide are moved a little apart."""
        return cls(_apart(knots), _apart(values), left, right) if len(knots) else cls()

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
            return read_only(np.array([self.left]))
        inner = np.diff(self.values) / np.diff(self.knots)
        return read_only(np.concatenate([[self.left], inner, [self.right]]))

    def log_gain(self, z: Array) -> Array:
        """By how much the map raises the log density of outcomes with raw scores ``z``."""
        bent = self(z)
        return np.asarray(0.5 * (z - bent) * (z + bent) + np.log(self.slope(z)))

    def mirrored(self) -> "CalibrationMap":
        """The map -m(-z), which calibrates the forecast of -y."""
        return CalibrationMap(-self.knots[::-1], -self.values[::-1], self.right, self.left, -self.intercept)

    def weakened(self, strength: float) -> "CalibrationMap":
        """z + strength (m(z) - z): the identity at 0, the map at 1."""

        def mixed(raw: Array, bent: Array) -> Array:
            return raw + strength * (bent - raw)

        left, right = (1.0 + strength * (slope - 1.0) for slope in (self.left, self.right))
        values = mixed(self.knots, self.values)
        return CalibrationMap(self.knots, values, left, right, strength * self.intercept, strength)

    @cached_property
    def _inverted(self) -> "CalibrationMap":
        return CalibrationMap(self.values, self.knots, 1.0 / self.left, 1.0 / self.right, -self.intercept / self.left)


def usable(scores: Array) -> Array:
    """The scores that are known, none beyond a hundred: a map must stay finite whatever happened."""
    return np.clip(scores[~np.isnan(scores)], -FARTHEST, FARTHEST)


def _apart(points: Array) -> Array:
    step = max(APART, 8.0 * float(np.spacing(np.abs(points).max())))  # large ones have large neighbours
    steps = step * np.arange(len(points))
    return np.asarray(np.maximum.accumulate(points - steps) + steps)
