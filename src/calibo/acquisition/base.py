"""Base classes of acquisitions: each prepares a landscape over the cube, usually a criterion of the posterior."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from calibo.arrays import Array
from calibo.calibration.base import Recalibrator
from calibo.errors import InputError
from calibo.forecasts import CalibrationMap, Forecast
from calibo.models.base import FittedSurrogate, Surrogate
from calibo.observations import Observations
from calibo.optimum import Aim

if TYPE_CHECKING:
    from calibo.side_information import SideInformation

Scale = Literal["log", "gain", "bound"]
"""The logarithm of a gain, a non-negative gain, or a bound on outcomes: determines how feasibility enters."""


class Criterion(ABC):
    """The utility of evaluating a point, given its forecast; larger is better."""

    scale: Scale

    @abstractmethod
    def partials(self, forecast: Forecast) -> tuple[Array, Array, Array]:
        """Value (n,) and its derivatives w.r.t. loc and scale (S, n)."""

    def value(self, forecast: Forecast) -> Array:
        """(n,)"""
        return self.partials(forecast)[0]

    def screen(self, forecast: Forecast) -> Array:
        """(n,) a cheap approximation of the value, to screen candidates."""
        return self.value(forecast)


class Landscape(ABC):
    """The utility of evaluating each point; larger is better."""

    scale: Scale

    aim: Aim | None = None
    """If an optimum is known, whether it is used, or why not."""

    @abstractmethod
    def value(self, x: Array) -> Array:
        """(n,)"""

    @abstractmethod
    def value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        """(n,) and (n, d)"""

    def screen(self, x: Array) -> Array:
        """(n,) a cheap approximation of the value, to screen candidates."""
        return self.value(x)

    def fallback(self, x: Array) -> "Landscape | None":
        """The landscape to search instead if the maximum of this one, at ``x`` (d,), is unreliable; else None."""
        return None


@dataclass(frozen=True, eq=False)
class ForecastLandscape(Landscape):
    """A criterion applied to a posterior, with gradients by the chain rule."""

    fitted: FittedSurrogate
    criterion: Criterion

    @property
    def scale(self) -> Scale:  # type: ignore[override]
        return self.criterion.scale

    def value(self, x: Array) -> Array:
        return self.criterion.value(self.fitted.posterior(x))

    def screen(self, x: Array) -> Array:
        return self.criterion.screen(self.fitted.posterior(x))

    def value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        forecast, d_loc, d_scale = self.fitted.posterior_with_gradient(x)
        value, by_loc, by_scale = self.criterion.partials(forecast)
        return value, np.einsum("sn,snd->nd", by_loc, d_loc) + np.einsum("sn,snd->nd", by_scale, d_scale)


class Acquisition(ABC):
    """An acquisition function: a registered frozen dataclass. Only ``prepare`` is abstract."""

    @abstractmethod
    def prepare(self, observations: Observations, fitted: FittedSurrogate, map: CalibrationMap) -> Landscape:
        """The landscape, given the feasible observations, the posterior, and its calibration map."""

    def check(self, surrogate: Surrogate, recalibrator: Recalibrator) -> None:  # noqa: B027
        """Raise InputError if it cannot be used with them; a strategy calls this before any evaluation."""

    reads_one_model: ClassVar[bool] = False
    """Whether it needs access to a single Gaussian process, which excludes mixtures of models."""

    def depends_on_map(self, *, constrained: bool) -> bool:
        """Whether calibration can change its maximizer."""
        return True

    needs_optimum: ClassVar[bool] = False
    """Whether it requires a known optimum."""

    @property
    def lacks_optimum(self) -> bool:
        """Whether it requires a known optimum and has none yet."""
        return False

    @property
    def may_be_bounded(self) -> bool:
        """Whether bounded improvement may replace it if the optimum is known."""
        return False

    def with_side_information(self, info: "SideInformation") -> "Acquisition":
        """The acquisition that also uses a known optimum."""
        return info.aim(self)

    def require_several_models(self, name: str) -> None:
        """Raise if the argument ``name`` adds further models but it supports only one."""
        if self.reads_one_model:
            raise InputError(f"`{name}` needs an acquisition that takes several models, but got {type(self).__name__}.")


def require_finite(name: str, value: Any) -> None:
    if not np.isfinite(value):
        raise InputError(f"`{name}` must be a finite number, but got {value!r}.")
