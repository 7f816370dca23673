"""A known least value: the distance above it is half a square, f = f* + g^2 / 2, and g is a Gaussian process [OPT20].

| symbol | meaning |
|---|---|
| f* | the least value of the function, in the unit of the outcomes |
| u, v | a unit of the outcomes; v = (y - f*) / u, so that g = sqrt(2 u v) |
| m, s | mean and standard deviation of sqrt(v): (g's) / sqrt(2 u) |

Rows of a forecast of g become rows of f, by linearising at m or by the exact moments:

    linear: f* + u m^2,          2 u |m| s                       [OPT20, Eq. 5 and 6, with sigma for its square]
    exact:  f* + u (m^2 + s^2),  u sqrt(4 m^2 s^2 + 2 s^4)

Where m is 0 the linear sigma is, too, whatever s is: a point nobody has seen looks certain and optimal there. The exact
one is not. Both are floored.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from calibo.errors import InputError, demand_number
from calibo.forecasts import Forecast
from calibo.gp.likelihood import Belief
from calibo.observations import Observations
from calibo.surrogate.fitted import LEAST_NOISE, FittedGaussianProcess
from calibo.surrogate.gaussian import GaussianProcess
from calibo.transforms import IDENTITY, BoxCox
from calibo.types import Array

__all__ = ["FittedKnownOptimum", "KnownOptimum", "SquareRoot", "reachable"]

SLACK = 1e-3  # of the range of the outcomes: by so much an outcome may lie below the least value
MARGIN = 0.05  # of the same, by which a least value that was wrong is put below the best outcome
FLOOR = 1e-6  # of the unit: below it the square root goes on as a straight line
LEAST = 1e-6  # standard deviation of a row, in units

Moments = Literal["linear", "exact"]


def reachable(optimum: float, y: Array, tolerance: float | None = None) -> float:
    """The least value as far as outcomes allow: where one lies below it by more than the tolerance, it was wrong."""
    span = float(np.ptp(y)) if len(y) else 0.0
    slack = SLACK * span if tolerance is None else tolerance
    best = float(y.min(initial=np.inf))
    return optimum if best >= optimum - slack else best - MARGIN * (span or abs(best) or 1.0)


@dataclass(frozen=True)
class SquareRoot:
    """The square root of the distance above a least value, at or above which outcomes lie; nothing is learned."""

    optimum: float
    beliefs: tuple[Belief, ...] = ()

    def at(self, phi: Array, y: Array) -> BoxCox:
        unit = float(np.median(y)) - self.optimum
        return BoxCox(0.5, self.optimum, unit if unit > 0.0 else 1.0, FLOOR)

    def partials(self, phi: Array, y: Array) -> tuple[Array, Array]:
        return np.empty((0, len(y))), np.empty((0, len(y)))


@dataclass(frozen=True)
class KnownOptimum:
    """A recipe for functions whose least value is known."""

    optimum: float
    """In the unit of the outcomes, to be minimised."""

    recipe: GaussianProcess = field(default_factory=GaussianProcess)
    """Of the square root; its own transform is not used."""

    moments: Moments = "linear"

    tolerance: float | None = None
    """By how much an outcome may lie below the optimum; a thousandth of their range if not given."""

    def __post_init__(self) -> None:
        demand_number("optimum", self.optimum, "a finite number")
        if self.moments not in ("linear", "exact"):
            raise InputError(f"`moments` must be 'linear' or 'exact', but got {self.moments!r}.")
        if self.tolerance is not None:
            demand_number("tolerance", self.tolerance, "a number of at least 0", least=0.0)

    def fit(
        self, observations: Observations, *, rng: np.random.Generator, previous: Mapping[str, Any] | None = None
    ) -> "FittedKnownOptimum":
        root, data = self._rooted(observations)
        return FittedKnownOptimum(root.fit(data, rng=rng, previous=previous), self.moments)

    def refit(self, observations: Observations, fitted: "FittedKnownOptimum") -> "FittedKnownOptimum":
        root, data = self._rooted(observations)
        return FittedKnownOptimum(root.refit(data, fitted.inner), self.moments)

    def _rooted(self, observations: Observations) -> tuple[GaussianProcess, Observations]:
        """The recipe for the root, and outcomes of which none lies below the optimum: what does is noise."""
        least = reachable(self.optimum, observations.y, self.tolerance)
        recipe = replace(self.recipe, transform=SquareRoot(least))
        return recipe, replace(observations, y=np.maximum(observations.y, least))


@dataclass(frozen=True, eq=False)
class FittedKnownOptimum:
    """What is believed of the function, row by row."""

    inner: FittedGaussianProcess
    moments: Moments

    @property
    def state(self) -> Any:
        return self.inner.state

    @property
    def models(self) -> Mapping[str, float]:
        return {}

    @property
    def log_evidence(self) -> float:
        return self.inner.log_evidence

    @property
    def optimum(self) -> float:
        """The least value that the outcomes allow."""
        return self._root.origin

    @property
    def _root(self) -> BoxCox:
        transform = self.inner.transform
        assert isinstance(transform, BoxCox)
        return transform

    def predict(self, x: Array, noise_std: Array | None = None) -> Forecast:
        return self._squared(self.inner.predict(x, noise_std))[0]

    def latent(self, x: Array) -> Forecast:
        return self._squared(self.inner.latent(x))[0]

    def latent_with_gradient(self, x: Array) -> tuple[Forecast, Array, Array]:
        root, d_m, d_s = self.inner.latent_with_gradient(x)
        forecast, (loc_by_m, loc_by_s, scale_by_m, scale_by_s) = self._squared(root)
        d_loc = loc_by_m[..., None] * d_m + loc_by_s[..., None] * d_s
        return forecast, d_loc, scale_by_m[..., None] * d_m + scale_by_s[..., None] * d_s

    def leave_one_out(self) -> Forecast:
        return self._squared(self.inner.leave_one_out())[0]

    def one_step_ahead(self) -> Forecast:
        return self._squared(self.inner.one_step_ahead())[0]

    def smoothed(self) -> Array:
        return self.inner.smoothed()

    def given(self, x: Array, y: Array) -> "FittedKnownOptimum":
        return replace(self, inner=self.inner.given(x, np.maximum(y, self.optimum)))

    def believing(self, x: Array) -> "FittedKnownOptimum":
        """Conditioned on the mean of f, which exactly is the square of more than the root's mean."""
        if self.moments == "linear":
            return replace(self, inner=self.inner.believing(x))
        inner, processes = self.inner, []
        for p in inner.processes:
            (mean, variance), noise = p.predict(x), np.full(len(x), LEAST_NOISE)
            _, left = p.given(x, mean, noise).predict(x)
            m, gone = 0.5 * (inner.center + inner.spread * mean) + 1.0, 0.25 * inner.spread**2 * (variance - left)
            root = np.where(m < 0.0, -1.0, 1.0) * np.sqrt(np.square(m) + np.maximum(gone, 0.0))
            processes.append(p.given(x, (2.0 * root - 2.0 - inner.center) / inner.spread, noise))
        return replace(self, inner=replace(inner, processes=tuple(processes)))

    def _squared(self, root: Forecast) -> tuple[Forecast, tuple[Array, Array, Array, Array]]:
        """The rows of f, and the derivatives of their loc and scale by those of the root's."""
        unit, origin = self._root.width, self._root.origin
        # the transform is 2 sqrt(v) - 2
        m, s = 0.5 * root.loc + 1.0, 0.5 * root.scale
        if self.moments == "linear":
            mean, spread = np.square(m), 2.0 * np.abs(m) * s
            by_m, by_s = 2.0 * np.sign(m) * s, 2.0 * np.abs(m)
            mean_by_s = np.zeros_like(m)
        else:
            whole = np.sqrt(4.0 * np.square(m) + 2.0 * np.square(s))
            mean, spread = np.square(m) + np.square(s), s * whole
            by_m, by_s = 4.0 * m * s / whole, whole + 2.0 * np.square(s) / whole
            mean_by_s = 2.0 * s
        moving = spread > LEAST
        scale = unit * np.maximum(spread, LEAST)
        forecast = Forecast(origin + unit * mean, scale, root.weights, (IDENTITY,) * len(m))
        half = 0.5 * unit  # of m and s by those of the root
        return forecast, (2.0 * half * m, half * mean_by_s, half * by_m * moving, half * by_s * moving)
