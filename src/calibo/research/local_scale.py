"""Input-dependent recalibration: wider uncertainty where the surrogate was wrong nearby."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from calibo.arrays import Array
from calibo.cube import Cube
from calibo.errors import InputError, require_number
from calibo.forecasts import Forecast
from calibo.models.base import FittedSurrogate, Noise, Surrogate, WrappedSurrogate
from calibo.models.gaussian_process import GaussianProcess
from calibo.observations import Observations
from calibo.parts import register


@register("local-scale", retired={"errors": "leave-one-out"})
@dataclass(frozen=True)
class LocalScale(Surrogate):
    """A model whose forecasts are widened or narrowed by its errors near each point.

    c(x)^2 = (w0 + sum_i w_i(x) z_i^2) / (w0 + sum_i w_i(x)), w_i(x) = exp(-r_i^2 / (2 reach^2)), where z_i is the
    leave-one-out score of outcome i, and r_i the distance to it in the cube. Different categories are at distance 1.
    Unlike a global factor, this changes the maximizer of the probability of improvement.
    """

    recipe: Surrogate = field(default_factory=GaussianProcess)

    reach: float = 0.2
    """In units of the cube, times the square root of the number of varying columns."""

    weight: float = 1.0
    """w0: pseudo-count of the prior at c = 1."""

    def __post_init__(self) -> None:
        if self.recipe.lacks_optimum:
            raise InputError("`recipe` must not require a known optimum, but got a KnownOptimum.")
        for name in ("reach", "weight"):
            require_number(name, getattr(self, name), "a positive number", above=0.0)

    def fit(self, observations: Observations, *, rng: np.random.Generator, previous: Any = None) -> "FittedLocalScale":
        return self._scaled(self.recipe.fit(observations, rng=rng, previous=previous), observations)

    def refit(self, observations: Observations, fitted: "FittedLocalScale") -> "FittedLocalScale":
        return self._scaled(self.recipe.refit(observations, fitted.inner), observations)

    def _scaled(self, fitted: FittedSurrogate, observations: Observations) -> "FittedLocalScale":
        cube = observations.cube
        reach = self.reach * np.sqrt(max(int(cube.free.sum()), 1))
        squares = np.minimum(np.square(fitted.leave_one_out().normal_score(observations.y)), MOST)
        return FittedLocalScale(fitted, cube, observations.x, squares, reach, self.weight)


MOST = 1e4  # squared scores are clipped here, so that a single outlier does not dominate


@dataclass(frozen=True, eq=False)
class FittedLocalScale(WrappedSurrogate):
    """A fitted surrogate with its squared leave-one-out scores.

    Forecasts of ``leave_one_out`` are out-of-sample in their centre, but not in their scale, which uses errors of
    neighbours that depend on the outcome. To evaluate the scale, use prequential forecasts or refits.
    """

    cube: Cube
    x: Array
    squares: Array
    reach: float
    weight: float

    def posterior(self, x: Array, *, noise: Noise = False) -> Forecast:
        return _widen(self.inner.posterior(x, noise=noise), np.sqrt(self._square(x)[0]))

    def posterior_with_gradient(self, x: Array) -> tuple[Forecast, Array, Array]:
        forecast, d_loc, d_scale = self.inner.posterior_with_gradient(x)
        square, below, w = self._square(x)
        factor = np.sqrt(square)
        G = w * (self.squares - square[:, None])
        slope = -(x * G.sum(axis=1)[:, None] - G @ self.x) / (self.reach**2 * below[:, None])
        slope[:, self.cube.categorical] = 0.0
        d_factor = 0.5 * slope / factor[:, None]
        return _widen(forecast, factor), d_loc, d_scale * factor[:, None] + forecast.scale[..., None] * d_factor

    def leave_one_out(self) -> Forecast:
        forecast, w = self.inner.leave_one_out(), self._weights(self.x)
        w = w - np.diag(np.diag(w))
        factor = np.sqrt((self.weight + w @ self.squares) / (self.weight + w.sum(axis=1)))
        return _widen(forecast, np.append(factor, np.ones(len(forecast) - len(self.x))))

    def _square(self, x: Array) -> tuple[Array, Array, Array]:
        """c^2 (m,) at each point, its denominator, and the weights (m, n)."""
        w = self._weights(x)
        below = self.weight + w.sum(axis=1)
        return (self.weight + w @ self.squares) / below, below, w

    def _weights(self, x: Array) -> Array:
        """(m, n)"""
        a, b = self._coordinates(x), self._coordinates(self.x)
        r2 = np.square(a).sum(axis=1)[:, None] + np.square(b).sum(axis=1) - 2.0 * (a @ b.T)
        return np.asarray(np.exp(-0.5 * np.maximum(r2, 0.0) / self.reach**2))

    def _coordinates(self, x: Array) -> Array:
        """Numeric columns, centred for accuracy; one-hot encoded categories, at distance 1 from each other."""
        columns = [x[:, self.cube.free & ~self.cube.categorical] - 0.5]
        for j in np.flatnonzero(self.cube.free & self.cube.categorical):
            axis = self.cube.axes[j]
            columns.append(np.sqrt(0.5) * (axis.index(x[:, j])[:, None] == np.arange(axis.cells)))
        return np.concatenate(columns, axis=1)


def _widen(forecast: Forecast, factor: Array) -> Forecast:
    return replace(forecast, scale=forecast.scale * factor)
