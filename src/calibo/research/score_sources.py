"""Score sources by cross-validation, as in CAL21, CAL23 and CAL24.

Each refits the hyperparameters without the outcome. Leave-one-out is unbiased for random points, but not for points
chosen by an acquisition; time-series splits are valid for both.
"""

from dataclasses import dataclass

import numpy as np

from calibo.arrays import Flags
from calibo.calibration.base import FittedModel, ScoredOutcomes, ScoreSource, held_out_scores
from calibo.errors import InputError
from calibo.observations import spread
from calibo.parts import register


@register("refitted-leave-one-out")
@dataclass(frozen=True)
class RefittedLeaveOneOut(ScoreSource):
    """Each outcome forecast from all others; CAL21, CAL23, CAL24."""

    def scores(self, model: FittedModel) -> ScoredOutcomes:
        n = len(model.observations)
        return _score_each(model, [(j, np.arange(n) != j) for j in range(n)])


@register("refitted-time-series")
@dataclass(frozen=True)
class RefittedTimeSeries(ScoreSource):
    """Each outcome after the first ``start``, forecast from those before it; CAL23, CAL24."""

    start: int = 1
    """Outcomes before the first scored one; fewer if none would be scored otherwise. "N - k splits" start at k."""

    def __post_init__(self) -> None:
        if not isinstance(self.start, int) or self.start < 1:
            raise InputError(f"`start` must be a whole number of at least 1, but got {self.start!r}.")

    def scores(self, model: FittedModel) -> ScoredOutcomes:
        n = len(model.observations)
        return _score_each(model, [(j, np.arange(n) < j) for j in range(max(min(self.start, n - 1), 1), n)])


def _score_each(model: FittedModel, splits: list[tuple[int, Flags]]) -> ScoredOutcomes:
    """Score outcome j under a refit to the flagged others, for each of the ``splits``."""
    observations = model.observations
    scores = np.full(len(observations), np.nan)
    for j, others in splits:
        if spread(observations.y[others]) > 0.0:  # otherwise the forecast has no scale
            # always warm-started from the fit to all: a chain of quick fits could stay in a poor local optimum
            refitted = model.surrogate.refit(observations.take(others), model.fitted)
            scores[j] = held_out_scores(refitted, observations, np.arange(len(observations)) == j)[0]
    return ScoredOutcomes(scores)
