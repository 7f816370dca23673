"""Transforms of the outcome whose parameters are learned with the hyper-parameters, by likelihood with Jacobian.

| symbol | meaning |
|---|---|
| phi | parameters of a transform, each without units and with a belief |
| T, log T' | the transformed outcomes and the logarithm of the slope at them |
| low, unit | the least outcome, and how far the median lies above it: the units of phi |
"""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from calibo.errors import demand_number
from calibo.gp.likelihood import Belief
from calibo.observations import spread
from calibo.parts import register
from calibo.transforms import IDENTITY, Asinh, BoxCox, TanhSum, Transform, YeoJohnson
from calibo.types import Array

__all__ = [
    "LearnedAsinh",
    "LearnedBoxCox",
    "LearnedTanh",
    "LearnedTransform",
    "LearnedYeoJohnson",
    "Logarithm",
    "Untransformed",
]


class LearnedTransform(Protocol):
    """A recipe for a transform."""

    @property
    def beliefs(self) -> tuple[Belief, ...]:
        """About each entry of phi."""
        ...

    def at(self, phi: Array, y: Array) -> Transform:
        """The transform with these parameters, for outcomes like ``y``."""
        ...

    def partials(self, phi: Array, y: Array) -> tuple[Array, Array]:
        """Derivatives (k, n) of T(y) and of log T'(y) by phi."""
        ...


@register("untransformed")
@dataclass(frozen=True)
class Untransformed:
    """Outcomes as they are."""

    beliefs: tuple[Belief, ...] = ()

    def at(self, phi: Array, y: Array) -> Transform:
        return IDENTITY

    def partials(self, phi: Array, y: Array) -> tuple[Array, Array]:
        return np.empty((0, len(y))), np.empty((0, len(y)))


@register("learned-asinh")
@dataclass(frozen=True)
class LearnedAsinh:
    """asinh((y - offset) / width): logarithmic far from the offset, and linear near it.

    With the offset at the least outcome it tells small differences near the optimum apart from large ones elsewhere.
    """

    offset: Belief = Belief(0.0, 0.3, -2.0, 2.0)
    """Above the least outcome, in units."""

    width: Belief = Belief(float(np.log(0.5)), 1.5, float(np.log(1e-3)), float(np.log(1e2)))
    """Its logarithm, in units."""

    @property
    def beliefs(self) -> tuple[Belief, ...]:
        return self.offset, self.width

    def at(self, phi: Array, y: Array) -> Asinh:
        low, unit = _units(y)
        return Asinh(float(low + unit * phi[0]), float(unit * np.exp(phi[1])))

    def partials(self, phi: Array, y: Array) -> tuple[Array, Array]:
        transform, (_, unit) = self.at(phi, y), _units(y)
        u = (y - transform.offset) / transform.width
        root = np.hypot(1.0, u)
        by_offset = unit / transform.width
        return np.stack([-by_offset / root, -u / root]), np.stack([by_offset * (u / root) / root, -1.0 / root / root])


@register("learned-yeo-johnson")
@dataclass(frozen=True)
class LearnedYeoJohnson:
    """A power on both sides of the median [YJ00]: below 1 it draws high outcomes together, above 1 low ones."""

    power: Belief = Belief(1.0, 0.5, 0.0, 2.0)

    @property
    def beliefs(self) -> tuple[Belief, ...]:
        return (self.power,)

    def at(self, phi: Array, y: Array) -> YeoJohnson:
        return YeoJohnson(float(phi[0]), float(np.median(y)), spread(y) or 1.0)

    def partials(self, phi: Array, y: Array) -> tuple[Array, Array]:
        transform = self.at(phi, y)
        u = (y - transform.center) / transform.width
        size, sign = np.log1p(np.abs(u)), np.where(u >= 0.0, 1.0, -1.0)
        p = np.where(u >= 0.0, transform.power, 2.0 - transform.power)
        # the lower side falls with 2 - power: two signs that cancel
        return _by_power(size, p)[None], (sign * size)[None]


@register("learned-box-cox")
@dataclass(frozen=True)
class LearnedBoxCox:
    """A power of the distance above the least outcome [BC64]; a logarithm at 0."""

    power: Belief = Belief(0.5, 0.5, 0.0, 1.0)

    shift: float = 0.1
    """How far the origin lies below the least outcome, in units: a logarithm needs something positive."""

    def __post_init__(self) -> None:
        demand_number("shift", self.shift, "a positive number", above=0.0)

    @property
    def beliefs(self) -> tuple[Belief, ...]:
        return (self.power,)

    def at(self, phi: Array, y: Array) -> BoxCox:
        low, unit = _units(y)
        return BoxCox(float(phi[0]), low - self.shift * unit, unit, 0.5 * self.shift)

    def partials(self, phi: Array, y: Array) -> tuple[Array, Array]:
        transform = self.at(phi, y)
        v = (y - transform.origin) / transform.width
        size = np.log(np.maximum(v, transform.floor))
        below = np.minimum(v - transform.floor, 0.0)
        straight = transform.floor ** (transform.power - 1.0) * np.log(transform.floor) * below
        return (_by_power(size, np.full(len(y), transform.power)) + straight)[None], size[None]


@register("logarithm")
@dataclass(frozen=True)
class Logarithm:
    """The logarithm of the distance above an origin that lies a little below the least outcome; nothing is learned."""

    shift: float = 0.1
    """How far below, in units."""

    beliefs: tuple[Belief, ...] = ()

    def __post_init__(self) -> None:
        demand_number("shift", self.shift, "a positive number", above=0.0)

    def at(self, phi: Array, y: Array) -> BoxCox:
        low, unit = _units(y)
        return BoxCox(0.0, low - self.shift * unit, unit, 0.5 * self.shift)

    def partials(self, phi: Array, y: Array) -> tuple[Array, Array]:
        return np.empty((0, len(y))), np.empty((0, len(y)))


@register("learned-tanh")
@dataclass(frozen=True)
class LearnedTanh:
    """A sum of smooth steps [SNE04, Eq. 9]: u + sum_i a_i tanh(b_i (u + c_i)), u the standardized outcome."""

    height: Belief = Belief(float(np.log(0.3)), 1.0, float(np.log(1e-3)), float(np.log(1e2)))
    """Of log a_i."""

    steepness: Belief = Belief(0.0, 0.7, float(np.log(0.05)), float(np.log(20.0)))
    """Of log b_i."""

    place: Belief = Belief(0.0, 1.0, -4.0, 4.0)
    """Of c_i, around where its step begins."""

    steps: tuple[float, ...] = (-1.0, 0.0, 1.0)
    """Where the steps begin: their number is that of these."""

    @property
    def beliefs(self) -> tuple[Belief, ...]:
        places = [replace(self.place, center=self.place.center - at) for at in self.steps]
        return (*(self.height,) * len(self.steps), *(self.steepness,) * len(self.steps), *places)

    def at(self, phi: Array, y: Array) -> TanhSum:
        logs = np.exp(phi[: 2 * len(self.steps)]).tolist()
        places = phi[2 * len(self.steps) :].tolist()
        center = float(np.median(y))
        return TanhSum(tuple(logs[: len(places)]), tuple(logs[len(places) :]), tuple(places), center, spread(y) or 1.0)

    def partials(self, phi: Array, y: Array) -> tuple[Array, Array]:
        T = self.at(phi, y)
        u = (y - T.center) / T.width
        a, b, c = (np.array(part)[:, None] for part in (T.heights, T.steepness, T.places))
        wave = np.tanh(b * (u + c))
        bump = 1.0 - np.square(wave)
        slope = 1.0 + (a * b * bump).sum(axis=0)
        by_place = -2.0 * a * np.square(b) * bump * wave  # of the slope
        moved = np.concatenate([a * wave, a * b * (u + c) * bump, a * b * bump])
        bent = np.concatenate([a * b * bump, a * b * bump + (u + c) * by_place, by_place])
        return moved, bent / slope


def _units(y: Array) -> tuple[float, float]:
    """The least outcome, and how far the median lies above it, or what comes next where that is nothing."""
    low = float(y.min())
    above = float(np.median(y)) - low
    # fractions of it must be numbers, too
    return low, above if 1e-290 < above < np.inf else spread(y) or 1.0


def _by_power(size: Array, p: Array) -> Array:
    """Derivative of (exp(p size) - 1) / p by p: size^2 (a e^a - e^a + 1) / a^2 with a = p size."""
    a = np.minimum(p * size, 700.0)
    small = np.abs(a) < 1e-3  # the difference loses what the series keeps
    safe = np.where(small, 1.0, a)
    exact = (np.exp(safe) * (safe - 1.0) + 1.0) / np.square(safe)
    return np.asarray(np.square(size) * np.where(small, 0.5 + a / 3.0 + np.square(a) / 8.0, exact))
