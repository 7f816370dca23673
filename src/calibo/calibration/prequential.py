"""Prequential scores: of the forecasts really made, before their outcomes were known."""

from dataclasses import dataclass
from math import isfinite

import numpy as np

from calibo.calibration.base import FittedModel, ScoredOutcomes, ScoreSource, held_out_scores
from calibo.parts import Cache, identity, register

REPLAYED = Cache(20_000)  # scores by digest: whoever cannot store them replays once


@register("stream")
@dataclass(frozen=True)
class Prequential(ScoreSource):
    """The forecasts really made, CAL24 Eq. (7): the only ones at points that an acquisition chose.

    An outcome whose forecast was not recorded, or was another model's, is scored by replay: the surrogate is fitted
    to what came before it. The first few outcomes, as many as a design has, are not scored.
    """

    @property
    def is_prequential(self) -> bool:
        return True

    def scores(self, model: FittedModel) -> ScoredOutcomes:
        observations, n = model.observations, len(model.observations)
        scores = np.full(n, np.nan) if observations.scores is None else observations.scores.copy()
        missing = np.flatnonzero(np.isnan(scores) & (np.arange(n) >= observations.first_scorable()))
        if not len(missing):
            return ScoredOutcomes(scores)
        digests = observations.digests(identity(model.surrogate))
        state: dict[str, float] = {}
        fits = model.fitted.state
        for j in missing:
            score = model.previous.get(digests[j], REPLAYED.get(digests[j]))
            if not isinstance(score, float) or not isfinite(score):
                before = model.surrogate.fit(observations.head(int(j)), rng=model.rng, previous=fits)
                fits = before.state  # the next fit begins where this one ended
                score = float(held_out_scores(before, observations, np.arange(n) == j)[0])
                REPLAYED.put(digests[j], score)
            scores[j] = state[digests[j]] = score
        return ScoredOutcomes(scores, state)
