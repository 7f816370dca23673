"""Increasing transforms T of the outcome; a forecast is Gaussian on the scale of T(y)."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from calibo.parts import register
from calibo.types import Array

__all__ = ["IDENTITY", "Asinh", "BoxCox", "Identity", "TanhSum", "Transform", "YeoJohnson"]


class Transform(Protocol):
    """A strictly increasing function of the outcome."""

    def __call__(self, y: Array) -> Array: ...

    def inverse(self, t: Array) -> Array:
        """The y with T(y) = t; finite for every finite t."""
        ...

    def log_slope(self, y: Array) -> Array:
        """The logarithm of T'(y)."""
        ...


@register("identity")
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


@register("asinh")
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


@register("yeo-johnson")
@dataclass(frozen=True)
class YeoJohnson:
    """A power transform of u = (y - center) / width on both sides of 0 [YJ00]; straight for ``power`` 1.

    u >= 0: ((1 + u)^p - 1) / p;  u < 0: -((1 - u)^(2 - p) - 1) / (2 - p). With p in [0, 2] it takes every value.
    """

    power: float = 1.0
    center: float = 0.0
    width: float = 1.0

    def __call__(self, y: Array) -> Array:
        u = (y - self.center) / self.width
        size = np.log1p(np.abs(u))
        return np.where(u >= 0.0, _power(size, self.power), -_power(size, 2.0 - self.power))

    def inverse(self, t: Array) -> Array:
        t = np.asarray(t, dtype=float)
        above, below = (_unpower(np.maximum(part, 0.0), p) for part, p in ((t, self.power), (-t, 2.0 - self.power)))
        return np.asarray(self.center + self.width * np.where(t >= 0.0, np.expm1(above), -np.expm1(below)))

    def log_slope(self, y: Array) -> Array:
        u = (y - self.center) / self.width
        return np.asarray((self.power - 1.0) * np.sign(u) * np.log1p(np.abs(u)) - np.log(self.width))


@register("box-cox")
@dataclass(frozen=True)
class BoxCox:
    """(v^p - 1) / p of v = (y - origin) / width, a logarithm for ``power`` 0; straight below v = ``floor``.

    [BC64]. Outcomes lie above the origin; what a forecast gives to values below it falls on the straight piece.
    """

    power: float = 0.0
    origin: float = 0.0
    width: float = 1.0
    floor: float = 0.05

    def __call__(self, y: Array) -> Array:
        v = (y - self.origin) / self.width
        curved = _power(np.log(np.maximum(v, self.floor)), self.power)
        return np.asarray(curved + self.floor ** (self.power - 1.0) * np.minimum(v - self.floor, 0.0))

    def inverse(self, t: Array) -> Array:
        t = np.asarray(t, dtype=float)
        edge = float(_power(np.log(np.array(self.floor)), self.power))
        curved = np.exp(_unpower(np.maximum(t, edge), self.power))
        straight = self.floor ** (1.0 - self.power) * np.minimum(t - edge, 0.0)
        return np.asarray(self.origin + self.width * (curved + straight))

    def log_slope(self, y: Array) -> Array:
        v = np.maximum((y - self.origin) / self.width, self.floor)
        return np.asarray((self.power - 1.0) * np.log(v) - np.log(self.width))


@register("tanh-sum")
@dataclass(frozen=True)
class TanhSum:
    """u + sum_i a_i tanh(b_i (u + c_i)) of u = (y - center) / width, with a, b >= 0: the warp of [SNE04, Eq. 9]."""

    heights: tuple[float, ...] = ()
    steepness: tuple[float, ...] = ()
    places: tuple[float, ...] = ()
    center: float = 0.0
    width: float = 1.0

    def __call__(self, y: Array) -> Array:
        return self._bent((y - self.center) / self.width)[0]

    def inverse(self, t: Array) -> Array:
        # the sum moves t by no more than the heights, and its slope is 1 at least: Newton's step, kept in between
        t, reach = np.asarray(t, dtype=float), sum(self.heights)
        low, high, u, move = t - reach, t + reach, t.copy(), np.full(np.shape(t), 2.0 * reach)
        for _ in range(200):
            value, slope = self._bent(u)
            low, high = np.where(value <= t, u, low), np.where(value >= t, u, high)
            step = u - (value - t) / slope
            # bisect where Newton leaves the bracket or does not halve its step: over a steep piece it goes in circles
            good = (step > low) & (step < high) & (np.abs(step - u) <= 0.5 * np.abs(move))
            following = np.where(good, step, low + 0.5 * (high - low))
            move = following - u
            if np.all(np.abs(move) <= 1e-15 * (1.0 + np.abs(u))):
                break
            u = following
        return np.asarray(self.center + self.width * u)

    def log_slope(self, y: Array) -> Array:
        return np.asarray(np.log(self._bent((y - self.center) / self.width)[1]) - np.log(self.width))

    def _bent(self, u: Array) -> tuple[Array, Array]:
        """The sum and its slope."""
        value, slope = np.array(u, dtype=float), np.ones_like(u, dtype=float)
        for a, b, c in zip(self.heights, self.steepness, self.places, strict=True):
            wave = np.tanh(b * (u + c))
            value += a * wave
            slope += a * b * (1.0 - np.square(wave))
        return value, slope


def _power(size: Array, p: float) -> Array:
    """(exp(p size) - 1) / p, which is ``size`` for p = 0."""
    return size * _growth(p * size)


def _growth(a: Array) -> Array:
    """(exp(a) - 1) / a, 1 at 0."""
    small = np.abs(a) < 1e-8
    safe = np.where(small, 1.0, np.minimum(a, 700.0))  # exp overflows beyond
    return np.where(small, 1.0 + 0.5 * a, np.expm1(safe) / safe)


def _unpower(t: Array, p: float) -> Array:
    """The size whose power is ``t``: log(1 + p t) / p, at most 700, beyond which its exponential overflows."""
    if abs(p) < 1e-8:
        return np.minimum(t, 700.0)
    return np.minimum(np.log1p(np.maximum(p * t, -1.0 + 1e-300)) / p, 700.0)
