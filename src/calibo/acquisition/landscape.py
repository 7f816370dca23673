"""A criterion as a function of points: where forecasts and what is read from them meet."""

from dataclasses import dataclass

import numpy as np

from calibo.acquisition.protocols import Criterion, Scale
from calibo.surrogate import FittedSurrogate
from calibo.types import Array

__all__ = ["ForecastLandscape"]


@dataclass(frozen=True, eq=False)
class ForecastLandscape:
    """What a criterion makes of the function that a surrogate believes in."""

    fitted: FittedSurrogate
    criterion: Criterion

    @property
    def scale(self) -> Scale:
        return self.criterion.scale

    def value(self, x: Array) -> Array:
        """(n,)"""
        return self.criterion.value(self.fitted.latent(x))

    def screened(self, x: Array) -> Array:
        """(n,)"""
        return self.criterion.screened(self.fitted.latent(x))

    def value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        """(n,) and (n, d), by the chain rule."""
        forecast, d_loc, d_scale = self.fitted.latent_with_gradient(x)
        value, by_loc, by_scale = self.criterion.partials(forecast)
        return value, np.einsum("sn,snd->nd", by_loc, d_loc) + np.einsum("sn,snd->nd", by_scale, d_scale)
