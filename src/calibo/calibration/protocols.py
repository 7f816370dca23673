"""What evidence and recalibrators are; and the choice to do without."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from calibo.calibration.maps import CalibrationMap
from calibo.observations import Observations
from calibo.surrogate import FittedSurrogate, Surrogate
from calibo.types import Array

__all__ = ["Evidence", "NoEvidence", "NoRecalibration", "Recalibrator", "Scored"]


@dataclass(frozen=True, eq=False)
class Scored:
    """Outcomes, judged by forecasts that did not know them."""

    scores: Array
    """(n,) in the order of arrival; NaN where there is no such forecast."""

    state: Mapping[str, float] = field(default_factory=dict)
    """Storable; given back as ``previous`` it saves work and changes nothing."""


class Evidence(Protocol):
    """Where calibration learns from: a recipe for normal scores of outcomes."""

    def scores(
        self,
        surrogate: Surrogate,
        fitted: FittedSurrogate,
        observations: Observations,
        *,
        rng: np.random.Generator,
        previous: Mapping[str, float] | None = None,
    ) -> Scored:
        """``fitted`` is the ``surrogate`` fitted to all of the ``observations``."""
        ...


class Recalibrator(Protocol):
    """A recipe that turns scores into the map that would have made them standard normal."""

    def fit(self, scores: Array) -> CalibrationMap:
        """From scores in the order of arrival, whatever they are: NaN, infinite, tied, one or none."""
        ...


@dataclass(frozen=True)
class NoEvidence:
    """No outcome is scored."""

    def scores(
        self,
        surrogate: Surrogate,
        fitted: FittedSurrogate,
        observations: Observations,
        *,
        rng: np.random.Generator,
        previous: Mapping[str, float] | None = None,
    ) -> Scored:
        return Scored(np.full(len(observations), np.nan))


@dataclass(frozen=True)
class NoRecalibration:
    """The forecast is taken as it is."""

    def fit(self, scores: Array) -> CalibrationMap:
        return CalibrationMap()
