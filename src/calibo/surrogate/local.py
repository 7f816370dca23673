"""Uncertainty that is wider where the surrogate was wrong nearby: a correction that depends on the place."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any, Literal

import numpy as np

from calibo.errors import InputError
from calibo.forecasts import Forecast
from calibo.observations import Observations
from calibo.surrogate.gaussian import GaussianProcess
from calibo.surrogate.protocols import FittedSurrogate, Surrogate
from calibo.types import Array

__all__ = ["FittedLocalScale", "LocalScale"]


@dataclass(frozen=True)
class LocalScale:
    """A recipe whose forecasts are made wider or narrower by how wrong it was near each point.

    c(x)^2 = (w0 + sum_i w_i(x) z_i^2) / (w0 + sum_i w_i(x)), w_i(x) = exp(-|x - x_i|^2 / (2 reach^2)), where z_i is the
    score of outcome i under a forecast that did not know it. One factor for all points would leave the place where
    improvement is most probable unchanged; this one does not.
    """

    recipe: Surrogate = field(default_factory=GaussianProcess)

    errors: Literal["leave-one-out", "one-step-ahead"] = "leave-one-out"
    """Which forecasts are judged."""

    reach: float = 0.2
    """In units of the cube, times the root of its dimension."""

    weight: float = 1.0
    """Outcomes that the belief in the scale as it is, is worth."""

    def __post_init__(self) -> None:
        if self.errors not in ("leave-one-out", "one-step-ahead"):
            raise InputError(f"`errors` must be 'leave-one-out' or 'one-step-ahead', but got {self.errors!r}.")
        for name in ("reach", "weight"):
            value = getattr(self, name)
            if not (isfinite(value) and value > 0.0):
                raise InputError(f"`{name}` must be a positive number, but got {value!r}.")

    def fit(self, observations: Observations, *, rng: np.random.Generator, previous: Any = None) -> "FittedLocalScale":
        return self._scaled(self.recipe.fit(observations, rng=rng, previous=previous), observations)

    def refit(self, observations: Observations, fitted: "FittedLocalScale") -> "FittedLocalScale":
        return self._scaled(self.recipe.refit(observations, fitted.inner), observations)

    def _scaled(self, fitted: FittedSurrogate, observations: Observations) -> "FittedLocalScale":
        forecast = fitted.leave_one_out() if self.errors == "leave-one-out" else fitted.one_step_ahead()
        squares = np.minimum(np.square(forecast.score(observations.y)), MOST)
        reach = self.reach * np.sqrt(max(observations.x.shape[1], 1))
        return FittedLocalScale(fitted, observations.x, squares, reach, self.weight)


MOST = 1e4  # the square of a score that counts: one outcome beyond all belief must not make all others meaningless


@dataclass(frozen=True, eq=False)
class FittedLocalScale:
    """A fitted surrogate, and how wrong it was where."""

    inner: FittedSurrogate
    x: Array
    squares: Array
    reach: float
    weight: float

    @property
    def state(self) -> Any:
        return self.inner.state

    @property
    def log_evidence(self) -> float:
        return self.inner.log_evidence

    @property
    def models(self) -> Mapping[str, float]:
        return self.inner.models

    def predict(self, x: Array, noise_std: Array | None = None) -> Forecast:
        return _widened(self.inner.predict(x, noise_std), self._factor(x)[0])

    def latent(self, x: Array) -> Forecast:
        return _widened(self.inner.latent(x), self._factor(x)[0])

    def latent_with_gradient(self, x: Array) -> tuple[Forecast, Array, Array]:
        forecast, d_loc, d_scale = self.inner.latent_with_gradient(x)
        factor, d_factor = self._factor(x)
        return _widened(forecast, factor), d_loc, d_scale * factor[:, None] + forecast.scale[..., None] * d_factor

    def leave_one_out(self) -> Forecast:
        return _widened(self.inner.leave_one_out(), self._factor_without())

    def one_step_ahead(self) -> Forecast:
        return _widened(self.inner.one_step_ahead(), self._factor_without(before=True))

    def smoothed(self) -> Array:
        return self.inner.smoothed()

    def given(self, x: Array, y: Array) -> "FittedLocalScale":
        return replace(self, inner=self.inner.given(x, y))

    def believing(self, x: Array) -> "FittedLocalScale":
        return replace(self, inner=self.inner.believing(x))

    def _factor(self, x: Array) -> tuple[Array, Array]:
        """c (m,) at each point, and its derivatives (m, d)."""
        gaps = x[:, None] - self.x[None]
        w = np.exp(-0.5 * np.square(gaps).sum(axis=2) / self.reach**2)
        below = self.weight + w.sum(axis=1)
        square = (self.weight + w @ self.squares) / below
        slope = np.einsum("mn,mnd->md", w * (self.squares - square[:, None]), -gaps / self.reach**2) / below[:, None]
        factor = np.sqrt(square)
        return factor, 0.5 * slope / factor[:, None]

    def _factor_without(self, *, before: bool = False) -> Array:
        """c (n,) at each outcome, from the others or from those before it."""
        gaps = self.x[:, None] - self.x[None]
        w = np.exp(-0.5 * np.square(gaps).sum(axis=2) / self.reach**2)
        w = np.tril(w, -1) if before else w - np.diag(np.diag(w))
        return np.asarray(np.sqrt((self.weight + w @ self.squares) / (self.weight + w.sum(axis=1))))


def _widened(forecast: Forecast, factor: Array) -> Forecast:
    return replace(forecast, scale=forecast.scale * factor)
