"""What an acquisition is: a recipe for a landscape over the cube, which most make by reading forecasts."""

from typing import Literal, Protocol

from calibo.calibration import CalibrationMap
from calibo.errors import InputError
from calibo.forecasts import Forecast
from calibo.observations import Observations
from calibo.surrogate import FittedSurrogate
from calibo.types import Array

__all__ = ["Acquisition", "Criterion", "Landscape", "Scale", "demand_several"]

Scale = Literal["log", "gain", "bound"]


class Criterion(Protocol):
    """How good it would be to evaluate where a forecast stands; larger is better."""

    @property
    def scale(self) -> Scale:
        """See ``Landscape``."""
        ...

    def value(self, forecast: Forecast) -> Array:
        """(n,)"""
        ...

    def screened(self, forecast: Forecast) -> Array:
        """(n,)"""
        ...

    def partials(self, forecast: Forecast) -> tuple[Array, Array, Array]:
        """Value (n,) and its derivatives by loc and by scale (S, n)."""
        ...


class Landscape(Protocol):
    """How good it would be to evaluate at each point; larger is better."""

    @property
    def scale(self) -> Scale:
        """A logarithm of a gain, a gain (not negative), or a bound on outcomes; says how feasibility enters."""
        ...

    def value(self, x: Array) -> Array:
        """(n,)"""
        ...

    def screened(self, x: Array) -> Array:
        """(n,) high where the value is, and cheap: it chooses where to look closely."""
        ...

    def value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        """(n,) and (n, d)"""
        ...


def demand_several(acquisition: "Acquisition", name: str) -> None:
    """Raise where an argument brings in further models and the acquisition reads one only."""
    if hasattr(acquisition, "check"):
        raise InputError(
            f"`{name}` needs an acquisition that reads several models, but got {type(acquisition).__name__}."
        )


class Acquisition(Protocol):
    """A recipe for a landscape, given what is known.

    One that cannot stand beside every surrogate and recalibrator has a method ``check(surrogate, recalibrator)``, which
    raises InputError; a strategy calls it when it is made, before anything is evaluated.
    """

    def prepare(self, observations: Observations, fitted: FittedSurrogate, map: CalibrationMap) -> Landscape: ...
