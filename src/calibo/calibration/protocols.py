"""What evidence and recalibrators are; and the choice to do without."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from calibo.calibration.maps import CalibrationMap
from calibo.observations import Observations
from calibo.parts import register
from calibo.surrogate import FittedSurrogate, Surrogate
from calibo.types import Array

__all__ = ["Evidence", "Fit", "NoEvidence", "NoRecalibration", "Recalibrator", "Scored"]


@dataclass(frozen=True, eq=False)
class Fit:
    """What evidence looks at: a surrogate fitted to observations."""

    surrogate: Surrogate
    fitted: FittedSurrogate
    """The surrogate fitted to all of the observations."""

    observations: Observations
    rng: np.random.Generator

    previous: Mapping[str, Any] = field(default_factory=dict)
    """The state of evidence collected before."""


@dataclass(frozen=True, eq=False)
class Scored:
    """Outcomes, judged by forecasts that did not know them."""

    scores: Array
    """(n,) in the order of arrival; NaN where there is no such forecast."""

    state: Mapping[str, float] = field(default_factory=dict)
    """Storable; given back as ``previous`` it saves work and changes nothing."""


class Evidence(Protocol):
    """Where calibration learns from: a recipe for normal scores of outcomes."""

    def scores(self, fit: Fit) -> Scored: ...


class Recalibrator(Protocol):
    """A recipe that turns scores into the map that would have made them standard normal."""

    def fit(self, scores: Array) -> CalibrationMap:
        """From scores in the order of arrival, whatever they are: NaN, infinite, tied, one or none."""
        ...


@register("no-evidence")
@dataclass(frozen=True)
class NoEvidence:
    """No outcome is scored."""

    def scores(self, fit: Fit) -> Scored:
        return Scored(np.full(len(fit.observations), np.nan))


@register("no-recalibration")
@dataclass(frozen=True)
class NoRecalibration:
    """The forecast is taken as it is."""

    def fit(self, scores: Array) -> CalibrationMap:
        return CalibrationMap()
