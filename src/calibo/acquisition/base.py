"""What an acquisition is: a recipe for a landscape over the cube, which most make by reading forecasts."""

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
"""The logarithm of a gain, a gain (not negative), or a bound on outcomes: says how feasibility enters."""


class Criterion(ABC):
    """How good it would be to evaluate where a forecast stands; larger is better."""

    scale: Scale

    @abstractmethod
    def partials(self, forecast: Forecast) -> tuple[Array, Array, Array]:
        """Value (n,) and its derivatives by loc and by scale (S, n)."""

    def value(self, forecast: Forecast) -> Array:
        """(n,)"""
        return self.partials(forecast)[0]

    def screen(self, forecast: Forecast) -> Array:
        """(n,) high where the value is, and cheap: it chooses where to look closely."""
        return self.value(forecast)


class Landscape(ABC):
    """How good it would be to evaluate at each point; larger is better."""

    scale: Scale

    aim: Aim | None = None
    """Where an optimum is known, whether it is aimed at."""

    @abstractmethod
    def value(self, x: Array) -> Array:
        """(n,)"""

    @abstractmethod
    def value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        """(n,) and (n, d)"""

    def screen(self, x: Array) -> Array:
        """(n,) high where the value is, and cheap: it chooses where to look closely."""
        return self.value(x)

    def fallback(self, x: Array) -> "Landscape | None":
        """The landscape to search instead, where the maximum of this one, found at ``x`` (d,), is not to be trusted."""
        return None


@dataclass(frozen=True, eq=False)
class ForecastLandscape(Landscape):
    """What a criterion makes of a posterior: where the chain rule joins both."""

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
    """A recipe for a landscape: a registered frozen dataclass. Only ``prepare`` is needed."""

    @abstractmethod
    def prepare(self, observations: Observations, fitted: FittedSurrogate, map: CalibrationMap) -> Landscape:
        """Given the feasible observations, the posterior, and the map that calibrates it."""

    def check(self, surrogate: Surrogate, recalibrator: Recalibrator) -> None:  # noqa: B027
        """Raise InputError where it cannot be used with them; a strategy asks before anything is evaluated."""

    reads_one_model: ClassVar[bool] = False
    """Whether it looks into one Gaussian process, so that no other model may stand beside it."""

    def depends_on_map(self, *, constrained: bool) -> bool:
        """Whether calibration can move its maximum."""
        return True

    needs_optimum: ClassVar[bool] = False
    """Whether it must be given a known optimum."""

    @property
    def lacks_optimum(self) -> bool:
        """Whether it needs a known optimum and has none yet."""
        return False

    @property
    def may_be_bounded(self) -> bool:
        """Whether bounded improvement may replace it where the optimum is known."""
        return False

    def with_side_information(self, info: "SideInformation") -> "Acquisition":
        """The acquisition that also uses a known optimum."""
        return info.aim(self)

    def require_several_models(self, name: str) -> None:
        """Raise where the argument ``name`` brings in further models and it reads one only."""
        if self.reads_one_model:
            raise InputError(f"`{name}` needs an acquisition that reads several models, but got {type(self).__name__}.")


def require_finite(name: str, value: Any) -> None:
    if not np.isfinite(value):
        raise InputError(f"`{name}` must be a finite number, but got {value!r}.")
