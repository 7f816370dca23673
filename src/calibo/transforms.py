"""Increasing transforms T of the outcome; a forecast is Gaussian on the scale of T(y)."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from calibo.types import Array

__all__ = ["IDENTITY", "Asinh", "Identity", "Transform"]


class Transform(Protocol):
    """A strictly increasing function of the outcome."""

    def __call__(self, y: Array) -> Array: ...

    def inverse(self, t: Array) -> Array:
        """The y with T(y) = t; finite for every finite t."""
        ...

    def log_slope(self, y: Array) -> Array:
        """The logarithm of T'(y)."""
        ...


@dataclass(frozen=True)
class Identity:
    """T(y) = y."""

    def __call__(self, y: Array) -> Array:
        return y

    def inverse(self, t: Array) -> Array:
        return t

    def log_slope(self, y: Array) -> Array:
        return np.zeros_like(y)


IDENTITY = Identity()


@dataclass(frozen=True)
class Asinh:
    """T(y) = asinh((y - offset) / width): linear near ``offset``, logarithmic far from it on both sides."""

    offset: float = 0.0
    width: float = 1.0

    def __call__(self, y: Array) -> Array:
        return np.asarray(np.arcsinh((y - self.offset) / self.width))

    def inverse(self, t: Array) -> Array:
        # sinh overflows beyond 710
        return np.asarray(self.offset + self.width * np.sinh(np.clip(t, -700.0, 700.0)))

    def log_slope(self, y: Array) -> Array:
        # hypot, because the square of (y - offset) / width may overflow
        return np.asarray(-np.log(self.width) - np.log(np.hypot(1.0, (y - self.offset) / self.width)))
