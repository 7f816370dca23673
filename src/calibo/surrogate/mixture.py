"""Fitted surrogates side by side: the rows of one mixture."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from calibo.forecasts import Forecast
from calibo.surrogate.protocols import FittedSurrogate
from calibo.types import Array

__all__ = ["Mixture"]


@dataclass(frozen=True, eq=False)
class Mixture:
    """What several fitted surrogates believe together."""

    members: tuple[FittedSurrogate, ...]
    weights: Array

    def predict(self, x: Array, noise_std: Array | None = None) -> Forecast:
        return self._joined([member.predict(x, noise_std) for member in self.members])

    def latent(self, x: Array) -> Forecast:
        return self._joined([member.latent(x) for member in self.members])

    def latent_with_gradient(self, x: Array) -> tuple[Forecast, Array, Array]:
        forecasts, d_loc, d_scale = zip(*[member.latent_with_gradient(x) for member in self.members], strict=True)
        return self._joined(forecasts), np.concatenate(d_loc), np.concatenate(d_scale)

    def given(self, x: Array, y: Array) -> Self:
        return replace(self, members=tuple(member.given(x, y) for member in self.members))

    def believing(self, x: Array) -> Self:
        return replace(self, members=tuple(member.believing(x) for member in self.members))

    def _joined(self, forecasts: Sequence[Forecast]) -> Forecast:
        if len(forecasts) == 1:
            return forecasts[0]
        weights = [share * forecast.weights for share, forecast in zip(self.weights, forecasts, strict=True)]
        return Forecast(
            np.concatenate([forecast.loc for forecast in forecasts]),
            np.concatenate([forecast.scale for forecast in forecasts]),
            np.concatenate(weights),
            tuple(transform for forecast in forecasts for transform in forecast.transforms),
        )
