"""Answers: what is believed, in the units of the user."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from calibo.calibration import CalibrationMap, Recalibrated
from calibo.errors import InputError
from calibo.forecasts import Forecast
from calibo.space import Params
from calibo.strategy import FittedStrategy

__all__ = ["PointForecast", "Recommendation"]


@dataclass(frozen=True, eq=False)
class PointForecast:
    """What is believed of the value at one point, recalibrated, in the units of the user."""

    params: Params
    raw: Forecast
    map: CalibrationMap
    sign: float

    @property
    def median(self) -> float:
        return self.quantile(0.5)

    def quantile(self, p: float) -> float:
        """The value not exceeded with probability ``p``."""
        if not 0.0 < p < 1.0:
            raise InputError(f"`p` must lie between 0 and 1, but got {p!r}.")
        # under maximisation the raw forecast is that of -value
        return self.sign * float(Recalibrated(self.raw, self.map).at_score(self.sign * ndtri(p)))

    def interval(self, level: float = 0.9) -> tuple[float, float]:
        """The central interval that holds the value with probability ``level``."""
        if not 0.0 < level < 1.0:
            raise InputError(f"`level` must lie between 0 and 1, but got {level!r}.")
        return self.quantile(0.5 - 0.5 * level), self.quantile(0.5 + 0.5 * level)


@dataclass(frozen=True)
class Recommendation:
    """The evaluated point believed to be the best, and how sure that is."""

    params: Params
    median: float
    interval: tuple[float, float]
    """Holds the noise-free value with probability 0.9."""

    @classmethod
    def of(cls, belief: FittedStrategy, params: Sequence[Params], sign: float) -> "Recommendation":
        """From what is believed, and the ``params`` of its feasible observations."""
        x = belief.observations.valid().x
        chosen = int(np.argmin(belief.forecast(x).at_score(belief.map.inverse(0.0))))
        point = PointForecast(params[chosen], belief.forecast(x[[chosen]]), belief.map, sign)
        return cls(params[chosen], point.median, point.interval(0.9))
