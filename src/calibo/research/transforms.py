"""Outcome transforms that the default does not use: Box-Cox, a logarithm, sums of tanh."""

from dataclasses import dataclass, replace

import numpy as np

from calibo.arrays import Array
from calibo.errors import require_number
from calibo.observations import spread
from calibo.parts import register
from calibo.priors import NormalPrior
from calibo.transforms import by_power, power, units, unpower


@register("box-cox")
@dataclass(frozen=True)
class BoxCox:
    """(v^p - 1) / p of v = (y - origin) / width, a logarithm for ``power`` 0; linear below v = ``floor`` [BC64].

    Outcomes lie above the origin; the linear piece covers forecast values below it.
    """

    power: float = 0.0
    origin: float = 0.0
    width: float = 1.0
    floor: float = 0.05

    def __call__(self, y: Array) -> Array:
        v = (y - self.origin) / self.width
        curved = power(np.log(np.maximum(v, self.floor)), self.power)
        return np.asarray(curved + self.floor ** (self.power - 1.0) * np.minimum(v - self.floor, 0.0))

    def inverse(self, t: Array) -> Array:
        t = np.asarray(t, dtype=float)
        edge = float(power(np.log(np.array(self.floor)), self.power))
        curved = np.exp(unpower(np.maximum(t, edge), self.power))
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
        # |T(u) - u| is at most the sum of the heights and the slope at least 1: Newton's method within that bracket
        t, reach = np.asarray(t, dtype=float), sum(self.heights)
        low, high, u, move = t - reach, t + reach, t.copy(), np.full(np.shape(t), 2.0 * reach)
        for _ in range(200):
            value, slope = self._bent(u)
            low, high = np.where(value <= t, u, low), np.where(value >= t, u, high)
            step = u - (value - t) / slope
            # bisect if Newton leaves the bracket or does not halve its step: it may cycle over a steep piece
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


@register("learned-box-cox")
@dataclass(frozen=True)
class LearnedBoxCox:
    """A power of the distance above the lowest outcome [BC64]; a logarithm at 0."""

    power: NormalPrior = NormalPrior(0.5, 0.5, 0.0, 1.0)

    shift: float = 0.1
    """Distance of the origin below the lowest outcome, in units: a logarithm needs positive values."""

    def __post_init__(self) -> None:
        require_number("shift", self.shift, "a positive number", above=0.0)

    @property
    def priors(self) -> tuple[NormalPrior, ...]:
        return (self.power,)

    def at(self, phi: Array, y: Array) -> BoxCox:
        low, unit = units(y)
        return BoxCox(float(phi[0]), low - self.shift * unit, unit, 0.5 * self.shift)

    def partials(self, phi: Array, y: Array) -> tuple[Array, Array]:
        transform = self.at(phi, y)
        v = (y - transform.origin) / transform.width
        size = np.log(np.maximum(v, transform.floor))
        below = np.minimum(v - transform.floor, 0.0)
        straight = transform.floor ** (transform.power - 1.0) * np.log(transform.floor) * below
        return (by_power(size, np.full(len(y), transform.power)) + straight)[None], size[None]


@register("logarithm", stored_as={"priors": "beliefs"})
@dataclass(frozen=True)
class Logarithm:
    """The logarithm of the distance above an origin slightly below the lowest outcome; nothing is learned."""

    shift: float = 0.1
    """Distance below, in units."""

    priors: tuple[NormalPrior, ...] = ()

    def __post_init__(self) -> None:
        require_number("shift", self.shift, "a positive number", above=0.0)

    def at(self, phi: Array, y: Array) -> BoxCox:
        low, unit = units(y)
        return BoxCox(0.0, low - self.shift * unit, unit, 0.5 * self.shift)

    def partials(self, phi: Array, y: Array) -> tuple[Array, Array]:
        return np.empty((0, len(y))), np.empty((0, len(y)))


@register("learned-tanh")
@dataclass(frozen=True)
class LearnedTanh:
    """A sum of smooth steps [SNE04, Eq. 9]: u + sum_i a_i tanh(b_i (u + c_i)), u the standardized outcome."""

    height: NormalPrior = NormalPrior(float(np.log(0.3)), 1.0, float(np.log(1e-3)), float(np.log(1e2)))
    """Prior of log a_i."""

    steepness: NormalPrior = NormalPrior(0.0, 0.7, float(np.log(0.05)), float(np.log(20.0)))
    """Prior of log b_i."""

    place: NormalPrior = NormalPrior(0.0, 1.0, -4.0, 4.0)
    """Prior of c_i, around the initial position of its step."""

    steps: tuple[float, ...] = (-1.0, 0.0, 1.0)
    """Initial positions of the steps, one per step."""

    @property
    def priors(self) -> tuple[NormalPrior, ...]:
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
        by_place = -2.0 * a * np.square(b) * bump * wave  # derivative of the slope
        d_value = np.concatenate([a * wave, a * b * (u + c) * bump, a * b * bump])
        d_slope = np.concatenate([a * b * bump, a * b * bump + (u + c) * by_place, by_place])
        return d_value, d_slope / slope
