"""Base classes of score sources and recalibrators, and their null versions."""

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
    """A surrogate and its fit: the input of a score source."""

    surrogate: Surrogate
    fitted: FittedSurrogate
    """The surrogate fitted to all observations."""

    observations: Observations
    rng: np.random.Generator

    previous: Mapping[str, Any] = field(default_factory=dict)
    """The state returned with earlier scores."""


@dataclass(frozen=True, eq=False)
class ScoredOutcomes:
    """Out-of-sample normal scores of outcomes."""

    scores: Array
    """(n,) in order of arrival; NaN where there is no out-of-sample forecast."""

    state: Mapping[str, float] = field(default_factory=dict)
    """Can be stored and passed as ``previous`` to save work; results do not change."""


def held_out_scores(fitted: FittedSurrogate, observations: Observations, out: Flags) -> Array:
    """Normal scores of the outcomes flagged ``out`` under a surrogate that did not see them."""
    forecast = fitted.posterior(observations.x[out], noise=observations.noise_std[out])
    return forecast.normal_score(observations.y[out])


class ScoreSource(ABC):
    """The source of scores to which a recalibrator is fitted. CAL24 calls it CREATESPLITS."""

    @abstractmethod
    def scores(self, model: FittedModel) -> ScoredOutcomes: ...

    is_prequential: ClassVar[bool] = False
    """Whether its forecasts were made before the outcomes, at the points that the acquisition chose."""

    gives_scores: ClassVar[bool] = True


class Recalibrator(ABC):
    """Fits the map that would have made past normal scores standard normal."""

    @abstractmethod
    def fit(self, scores: Array) -> CalibrationMap:
        """Fit to scores in order of arrival; they may be NaN, infinite, tied, a single one or none."""

    def fit_and_test(self, scores: Array, prequential: Callable[[], Array] | None) -> CalibrationMap:
        """The map; a gate tests it on ``prequential`` scores if ``scores`` are of another kind."""
        return self.fit(scores)

    corrects: ClassVar[bool] = True
    """Whether it changes forecasts."""


@register("no-evidence")
@dataclass(frozen=True)
class NoScores(ScoreSource):
    """Scores no outcomes."""

    def scores(self, model: FittedModel) -> ScoredOutcomes:
        return ScoredOutcomes(np.full(len(model.observations), np.nan))

    gives_scores: ClassVar[bool] = False


@register("no-recalibration")
@dataclass(frozen=True)
class NoRecalibration(Recalibrator):
    """Leaves forecasts unchanged."""

    def fit(self, scores: Array) -> CalibrationMap:
        return CalibrationMap()

    corrects: ClassVar[bool] = False
