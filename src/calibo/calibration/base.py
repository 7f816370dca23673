"""What score sources and recalibrators are; and the choice to do without."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from calibo.arrays import Array, Flags
from calibo.forecasts import CalibrationMap
from calibo.models.base import FittedSurrogate, Surrogate
from calibo.observations import Observations
from calibo.parts import register


@dataclass(frozen=True, eq=False)
class FittedModel:
    """A surrogate, fitted to observations: what a score source looks at."""

    surrogate: Surrogate
    fitted: FittedSurrogate
    """The surrogate fitted to all of the observations."""

    observations: Observations
    rng: np.random.Generator

    previous: Mapping[str, Any] = field(default_factory=dict)
    """The state of scores collected before."""


@dataclass(frozen=True, eq=False)
class ScoredOutcomes:
    """Normal scores of outcomes under forecasts that did not know them."""

    scores: Array
    """(n,) in the order of arrival; NaN where there is no such forecast."""

    state: Mapping[str, float] = field(default_factory=dict)
    """Storable; given back as ``previous`` it saves work and changes nothing."""


def held_out_scores(fitted: FittedSurrogate, observations: Observations, out: Flags) -> Array:
    """Normal scores of the outcomes flagged ``out`` under a surrogate that did not see them."""
    forecast = fitted.posterior(observations.x[out], noise=observations.noise_std[out])
    return forecast.normal_score(observations.y[out])


class ScoreSource(ABC):
    """Where recalibration learns from. CAL24 calls it CREATESPLITS."""

    @abstractmethod
    def scores(self, model: FittedModel) -> ScoredOutcomes: ...

    is_prequential: ClassVar[bool] = False
    """Whether its forecasts were made before their outcomes, at the points that were asked for."""

    gives_scores: ClassVar[bool] = True


class Recalibrator(ABC):
    """A recipe that turns normal scores into the map that would have made them standard normal."""

    @abstractmethod
    def fit(self, scores: Array) -> CalibrationMap:
        """From scores in the order of arrival, whatever they are: NaN, infinite, tied, one or none."""

    def fit_and_test(self, scores: Array, prequential: Callable[[], Array] | None) -> CalibrationMap:
        """The map; a gate tests it on ``prequential`` scores where ``scores`` are of another kind."""
        return self.fit(scores)

    corrects: ClassVar[bool] = True
    """Whether it changes forecasts at all."""


@register("no-evidence")
@dataclass(frozen=True)
class NoScores(ScoreSource):
    """No outcome is scored."""

    def scores(self, model: FittedModel) -> ScoredOutcomes:
        return ScoredOutcomes(np.full(len(model.observations), np.nan))

    gives_scores: ClassVar[bool] = False


@register("no-recalibration")
@dataclass(frozen=True)
class NoRecalibration(Recalibrator):
    """Forecasts are taken as they are."""

    def fit(self, scores: Array) -> CalibrationMap:
        return CalibrationMap()

    corrects: ClassVar[bool] = False
