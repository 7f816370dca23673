"""Outcome transforms: a forecast is Gaussian on the scale of T(y).

The parameters phi of a learned transform are fitted jointly with the hyperparameters, by the marginal likelihood with
its Jacobian. phi is relative to `units`: the lowest outcome, and the distance of the median above it.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from calibo.arrays import Array
from calibo.observations import LARGEST, spread
from calibo.parts import register
from calibo.priors import NormalPrior


class Transform(Protocol):
    """A strictly increasing function of the outcome."""

    def __call__(self, y: Array) -> Array: ...

    def inverse(self, t: Array) -> Array:
        """The y with T(y) = t; finite for every finite t."""
        ...

    def log_slope(self, y: Array) -> Array:
        """The logarithm of T'(y)."""
        ...


class LearnedTransform(Protocol):
    """A family of transforms with parameters phi to be learned."""

    @property
    def priors(self) -> tuple[NormalPrior, ...]:
        """Prior of each entry of phi."""
        ...

    def at(self, phi: Array, y: Array) -> Transform:
        """The transform with these parameters, scaled to outcomes ``y``."""
        ...

    def partials(self, phi: Array, y: Array) -> tuple[Array, Array]:
        """Derivatives (k, n) of T(y) and log T'(y) w.r.t. phi."""
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


def _relative(y: Array, center: float, width: float) -> Array:
    """(y - center) / width, finite."""
    with np.errstate(over="ignore"):
        return np.clip((y - center) / width, -LARGEST, LARGEST)


def _absolute(u: Array, center: float, width: float) -> Array:
    """center + width u, finite."""
    with np.errstate(over="ignore"):
        return np.clip(center + width * u, -LARGEST, LARGEST)


@register("untransformed", stored_as={"priors": "beliefs"})
@dataclass(frozen=True)
class Untransformed:
    """No outcome transform."""

    priors: tuple[NormalPrior, ...] = ()

    def at(self, phi: Array, y: Array) -> Transform:
        return IDENTITY

    def partials(self, phi: Array, y: Array) -> tuple[Array, Array]:
        return np.empty((0, len(y))), np.empty((0, len(y)))


@dataclass(frozen=True)
class Negated:
    """-T(-y): the transform of -y, where T is that of y."""

    transform: Transform

    def __call__(self, y: Array) -> Array:
        return -self.transform(-y)

    def inverse(self, t: Array) -> Array:
        return -self.transform.inverse(-t)

    def log_slope(self, y: Array) -> Array:
        return self.transform.log_slope(-y)


def negate(transform: Transform) -> Transform:
    """The transform of -y."""
    if isinstance(transform, Negated):
        return transform.transform
    return transform if transform == IDENTITY else Negated(transform)


@register("asinh")
@dataclass(frozen=True)
class Asinh:
    """T(y) = asinh((y - offset) / width): linear near ``offset``, logarithmic far from it on both sides."""

    offset: float = 0.0
    width: float = 1.0

    def __call__(self, y: Array) -> Array:
        return np.asarray(np.arcsinh(_relative(y, self.offset, self.width)))

    def inverse(self, t: Array) -> Array:
        # sinh overflows beyond 710
        return _absolute(np.sinh(np.clip(t, -700.0, 700.0)), self.offset, self.width)

    def log_slope(self, y: Array) -> Array:
        # hypot, because the square of (y - offset) / width may overflow
        return np.asarray(-np.log(self.width) - np.log(np.hypot(1.0, _relative(y, self.offset, self.width))))


@register("learned-asinh")
@dataclass(frozen=True)
class LearnedAsinh:
    """asinh((y - offset) / width): logarithmic far from the offset, and linear near it.

    With the offset at the lowest outcome it resolves small differences near the optimum and large ones elsewhere.
    """

    offset: NormalPrior = NormalPrior(0.0, 0.3, -2.0, 2.0)
    """Prior of the offset above the lowest outcome, in units."""

    width: NormalPrior = NormalPrior(float(np.log(0.5)), 1.5, float(np.log(1e-3)), float(np.log(1e2)))
    """Prior of the log width, in units."""

    @property
    def priors(self) -> tuple[NormalPrior, ...]:
        return self.offset, self.width

    def at(self, phi: Array, y: Array) -> Asinh:
        low, unit = units(y)
        return Asinh(float(low + unit * phi[0]), float(unit * np.exp(phi[1])))

    def partials(self, phi: Array, y: Array) -> tuple[Array, Array]:
        transform, (_, unit) = self.at(phi, y), units(y)
        u = (y - transform.offset) / transform.width
        root = np.hypot(1.0, u)
        by_offset = unit / transform.width
        return np.stack([-by_offset / root, -u / root]), np.stack([by_offset * (u / root) / root, -1.0 / root / root])


@register("yeo-johnson")
@dataclass(frozen=True)
class YeoJohnson:
    """A power transform of u = (y - center) / width on both sides of 0 [YJ00]; linear for ``power`` 1.

    u >= 0: ((1 + u)^p - 1) / p;  u < 0: -((1 - u)^(2 - p) - 1) / (2 - p). With p in [0, 2] its range is all reals.
    """

    power: float = 1.0
    center: float = 0.0
    width: float = 1.0

    def __call__(self, y: Array) -> Array:
        u = _relative(y, self.center, self.width)
        size = np.log1p(np.abs(u))
        return np.where(u >= 0.0, power(size, self.power), -power(size, 2.0 - self.power))

    def inverse(self, t: Array) -> Array:
        t = np.asarray(t, dtype=float)
        above, below = (unpower(np.maximum(part, 0.0), p) for part, p in ((t, self.power), (-t, 2.0 - self.power)))
        return _absolute(np.where(t >= 0.0, np.expm1(above), -np.expm1(below)), self.center, self.width)

    def log_slope(self, y: Array) -> Array:
        u = _relative(y, self.center, self.width)
        return np.asarray((self.power - 1.0) * np.sign(u) * np.log1p(np.abs(u)) - np.log(self.width))


@register("learned-yeo-johnson")
@dataclass(frozen=True)
class LearnedYeoJohnson:
    """A power on both sides of the median [YJ00]: below 1 it compresses high outcomes, above 1 low ones."""

    power: NormalPrior = NormalPrior(1.0, 0.5, 0.0, 2.0)

    @property
    def priors(self) -> tuple[NormalPrior, ...]:
        return (self.power,)

    def at(self, phi: Array, y: Array) -> YeoJohnson:
        return YeoJohnson(float(phi[0]), float(np.median(y)), spread(y) or 1.0)

    def partials(self, phi: Array, y: Array) -> tuple[Array, Array]:
        transform = self.at(phi, y)
        u = (y - transform.center) / transform.width
        size, sign = np.log1p(np.abs(u)), np.where(u >= 0.0, 1.0, -1.0)
        p = np.where(u >= 0.0, transform.power, 2.0 - transform.power)
        # the lower side decreases in 2 - power: the two signs cancel
        return by_power(size, p)[None], (sign * size)[None]


def units(y: Array) -> tuple[float, float]:
    """The lowest outcome, and the distance of the median above it, or the standard deviation if that is zero."""
    low = float(y.min())
    above = float(np.median(y)) - low
    # fractions of it must not underflow
    return low, above if 1e-290 < above < np.inf else spread(y) or 1.0


def power(size: Array, p: float) -> Array:
    """(exp(p size) - 1) / p, which is ``size`` for p = 0."""
    return size * _growth(p * size)


def _growth(a: Array) -> Array:
    """(exp(a) - 1) / a, 1 at 0."""
    small = np.abs(a) < 1e-8
    safe = np.where(small, 1.0, np.minimum(a, 700.0))  # exp overflows beyond
    return np.where(small, 1.0 + 0.5 * a, np.expm1(safe) / safe)


def unpower(t: Array, p: float) -> Array:
    """Inverse of ``power``: log(1 + p t) / p, clipped at 700, beyond which its exponential overflows."""
    if abs(p) < 1e-8:
        return np.minimum(t, 700.0)
    return np.minimum(np.log1p(np.maximum(p * t, -1.0 + 1e-300)) / p, 700.0)


def by_power(size: Array, p: Array) -> Array:
    """Derivative of (exp(p size) - 1) / p w.r.t. p: size^2 (a e^a - e^a + 1) / a^2 with a = p size."""
    a = np.minimum(p * size, 700.0)
    small = np.abs(a) < 1e-3  # the series avoids cancellation
    safe = np.where(small, 1.0, a)
    exact = (np.exp(safe) * (safe - 1.0) + 1.0) / np.square(safe)
    return np.asarray(np.square(size) * np.where(small, 0.5 + a / 3.0 + np.square(a) / 8.0, exact))
