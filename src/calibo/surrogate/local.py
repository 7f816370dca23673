"""Uncertainty that is wider where the surrogate was wrong nearby: a correction that depends on the place."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from calibo.cube import Cube
from calibo.errors import InputError, demand_number
from calibo.forecasts import Forecast
from calibo.observations import Observations
from calibo.parts import register
from calibo.surrogate.gaussian import GaussianProcess
from calibo.surrogate.protocols import FittedSurrogate, Surrogate
from calibo.types import Array

__all__ = ["FittedLocalScale", "LocalScale"]


@register("local-scale")
@dataclass(frozen=True)
class LocalScale:
    """A recipe whose forecasts are made wider or narrower by how wrong it was near each point.

    c(x)^2 = (w0 + sum_i w_i(x) z_i^2) / (w0 + sum_i w_i(x)), w_i(x) = exp(-r_i^2 / (2 reach^2)), where z_i is the score
    of outcome i under a forecast that did not know it, and r_i the distance to it in the cube; categories that differ
    are at distance 1. One factor for all points would leave the place where improvement is most probable unchanged;
    this one does not.
    """

    recipe: Surrogate = field(default_factory=GaussianProcess)

    errors: Literal["leave-one-out", "one-step-ahead"] = "leave-one-out"
    """Which forecasts are judged."""

    reach: float = 0.2
    """In units of the cube, times the root of the number of its columns that vary."""

    weight: float = 1.0
    """Outcomes that the belief in the scale as it is, is worth."""

    def __post_init__(self) -> None:
        if self.errors not in ("leave-one-out", "one-step-ahead"):
            raise InputError(f"`errors` must be 'leave-one-out' or 'one-step-ahead', but got {self.errors!r}.")
        for name in ("reach", "weight"):
            demand_number(name, getattr(self, name), "a positive number", above=0.0)

    def fit(self, observations: Observations, *, rng: np.random.Generator, previous: Any = None) -> "FittedLocalScale":
        return self._scaled(self.recipe.fit(observations, rng=rng, previous=previous), observations)

    def refit(self, observations: Observations, fitted: "FittedLocalScale") -> "FittedLocalScale":
        return self._scaled(self.recipe.refit(observations, fitted.inner), observations)

    def _scaled(self, fitted: FittedSurrogate, observations: Observations) -> "FittedLocalScale":
        forecast = fitted.leave_one_out() if self.errors == "leave-one-out" else fitted.one_step_ahead()
        cube = observations.cube
        reach = self.reach * np.sqrt(max(int(cube.free.sum()), 1))
        squares = _squares(forecast, observations.y)
        return FittedLocalScale(fitted, cube, observations.x, observations.y, squares, reach, self.weight)


MOST = 1e4  # the square of a score that counts: one outcome beyond all belief must not make all others meaningless


def _squares(forecast: Forecast, y: Array) -> Array:
    return np.minimum(np.square(forecast.score(y)), MOST)


@dataclass(frozen=True, eq=False)
class FittedLocalScale:
    """A fitted surrogate, and how wrong it was where.

    What ``leave_one_out`` says of an outcome has the inner surrogate's centre, which does not know it, and a scale made
    of its neighbours' errors, which do: a judge of this scale needs forecasts really made, or refits.
    """

    inner: FittedSurrogate
    cube: Cube
    x: Array
    y: Array
    squares: Array
    reach: float
    weight: float

    @property
    def state(self) -> Mapping[str, Any]:
        return self.inner.state

    @property
    def log_evidence(self) -> float:
        return self.inner.log_evidence

    @property
    def models(self) -> Mapping[str, float]:
        return self.inner.models

    def predict(self, x: Array, noise_std: Array | None = None) -> Forecast:
        return _widened(self.inner.predict(x, noise_std), np.sqrt(self._square(x)[0]))

    def latent(self, x: Array) -> Forecast:
        return _widened(self.inner.latent(x), np.sqrt(self._square(x)[0]))

    def latent_with_gradient(self, x: Array) -> tuple[Forecast, Array, Array]:
        forecast, d_loc, d_scale = self.inner.latent_with_gradient(x)
        square, below, w = self._square(x)
        factor = np.sqrt(square)
        G = w * (self.squares - square[:, None])
        slope = -(x * G.sum(axis=1)[:, None] - G @ self.x) / (self.reach**2 * below[:, None])
        slope[:, self.cube.categorical] = 0.0
        d_factor = 0.5 * slope / factor[:, None]
        return _widened(forecast, factor), d_loc, d_scale * factor[:, None] + forecast.scale[..., None] * d_factor

    def leave_one_out(self) -> Forecast:
        forecast, n = self.inner.leave_one_out(), len(self.x)
        w = self._weights(self.x)
        factor = self._factor(w - np.diag(np.diag(w)), self.squares)
        return _widened(forecast, np.append(factor, np.ones(len(forecast) - n)))

    def one_step_ahead(self) -> Forecast:
        forecast, n = self.inner.one_step_ahead(), len(self.x)
        squares = np.minimum(np.square(forecast.score(np.append(self.y, forecast.median()[n:]))[:n]), MOST)
        factor = self._factor(np.tril(self._weights(self.x), -1), squares)  # from what came before alone
        return _widened(forecast, np.append(factor, np.ones(len(forecast) - n)))

    def smoothed(self) -> Array:
        return self.inner.smoothed()

    def given(self, x: Array, y: Array) -> "FittedLocalScale":
        return replace(self, inner=self.inner.given(x, y))

    def believing(self, x: Array) -> "FittedLocalScale":
        return replace(self, inner=self.inner.believing(x))

    def _square(self, x: Array) -> tuple[Array, Array, Array]:
        """c^2 (m,) at each point, its denominator, and the weights (m, n)."""
        w = self._weights(x)
        below = self.weight + w.sum(axis=1)
        return (self.weight + w @ self.squares) / below, below, w

    def _factor(self, w: Array, squares: Array) -> Array:
        return np.asarray(np.sqrt((self.weight + w @ squares) / (self.weight + w.sum(axis=1))))

    def _weights(self, x: Array) -> Array:
        """(m, n)"""
        a, b = self._places(x), self._places(self.x)
        r2 = np.square(a).sum(axis=1)[:, None] + np.square(b).sum(axis=1) - 2.0 * (a @ b.T)
        return np.asarray(np.exp(-0.5 * np.maximum(r2, 0.0) / self.reach**2))

    def _places(self, x: Array) -> Array:
        """Numbers, centred so that differences stay exact; of categories, which one, at distance 1 from another."""
        columns = [x[:, self.cube.free & ~self.cube.categorical] - 0.5]
        for j in np.flatnonzero(self.cube.free & self.cube.categorical):
            axis = self.cube.axes[j]
            columns.append(np.sqrt(0.5) * (axis.index(x[:, j])[:, None] == np.arange(axis.cells)))
        return np.concatenate(columns, axis=1)


def _widened(forecast: Forecast, factor: Array) -> Forecast:
    return replace(forecast, scale=forecast.scale * factor)
