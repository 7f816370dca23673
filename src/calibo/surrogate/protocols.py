"""What a surrogate is: a recipe that turns observations into something that forecasts."""

from collections.abc import Mapping
from typing import Any, Protocol, Self

import numpy as np

from calibo.forecasts import Forecast
from calibo.observations import Observations
from calibo.types import Array

__all__ = ["FittedSurrogate", "Surrogate"]


class FittedSurrogate(Protocol):
    """A belief about the objective everywhere in the cube."""

    @property
    def state(self) -> Mapping[str, Any]:
        """Values that can be stored as JSON, each named by all it depends on; they save the next fit work and never
        change what is fitted.
        """
        ...

    @property
    def log_evidence(self) -> float:
        """Of the outcomes, in their units."""
        ...

    @property
    def models(self) -> Mapping[str, float]:
        """How much each of several models is believed; empty where there is one."""
        ...

    def predict(self, x: Array, noise_std: Array | None = None) -> Forecast:
        """Of an observation at each point; ``noise_std`` (n,) is that of each where it is known, NaN elsewhere."""
        ...

    def latent(self, x: Array) -> Forecast:
        """Of the function at each point."""
        ...

    def latent_with_gradient(self, x: Array) -> tuple[Forecast, Array, Array]:
        """Of the function, with the derivatives (S, n, d) of loc and scale."""
        ...

    def leave_one_out(self) -> Forecast:
        """Of each outcome, from the others."""
        ...

    def one_step_ahead(self) -> Forecast:
        """Of each outcome, from those before it."""
        ...

    def smoothed(self) -> Array:
        """(n,) mean of the function at the observed points: the outcomes, freed from noise."""
        ...

    def given(self, x: Array, y: Array) -> Self:
        """Conditioned on further outcomes, not refitted."""
        ...

    def believing(self, x: Array) -> Self:
        """Each row conditioned on its own latent mean at ``x``: as if what it expects had happened."""
        ...


class Surrogate(Protocol):
    """A recipe for a fitted surrogate."""

    def fit(self, observations: Observations, *, rng: np.random.Generator, previous: Any = None) -> FittedSurrogate:
        """``previous`` is the state of an earlier fit, or None; what of it belongs to other data is not used."""
        ...

    def refit(self, observations: Observations, fitted: Any) -> FittedSurrogate:
        """A short fit that begins where ``fitted``, of much the same data, ended: for evidence that takes many."""
        ...
