"""Evidence: where scores come from. CAL24 calls it CREATESPLITS.

| name | forecasts | fits | honest? |
|---|---|---|---|
| Stream | really made before the outcome was known, at the points that were asked for | none | yes |
| RefittedLeaveOneOut | of each outcome from all others | n short ones | for random points, not for chosen ones |
| KFold | of each fold from the others | k short ones | the same |
| RefittedTimeSeries | of each outcome from those before it | n short ones | yes, for points as they came |
| LeaveOneOut | in closed form | none | no: the hyper-parameters have seen the outcome |
| TimeSeries | of each outcome from those before it, in closed form | none | no: blind to a wrong overall width |
"""

from dataclasses import dataclass
from math import isfinite

import numpy as np

from calibo.cache import Cache
from calibo.calibration.protocols import Fit, Scored
from calibo.design import design_size
from calibo.errors import InputError
from calibo.observations import Observations, spread
from calibo.parts import identity, register
from calibo.surrogate import FittedSurrogate
from calibo.types import Array, Flags, Indices

__all__ = ["KFold", "LeaveOneOut", "RefittedLeaveOneOut", "RefittedTimeSeries", "Stream", "TimeSeries"]


@register("stream")
@dataclass(frozen=True)
class Stream:
    """The forecasts really made, CAL24 Eq. (7): the only ones at points that an acquisition chose.

    An outcome whose forecast was not recorded, or was another model's, is scored by replay: the surrogate is fitted
    to what came before it. The first few outcomes, as many as a design has, are not.
    """

    def scores(self, fit: Fit) -> Scored:
        observations, n = fit.observations, len(fit.observations)
        scores = np.full(n, np.nan) if observations.scores is None else observations.scores.copy()
        first = next((j for j in range(2, n) if spread(observations.y[:j]) > 0.0), n)
        first = max(first, design_size(observations.cube))
        missing = np.flatnonzero(np.isnan(scores) & (np.arange(n) >= first))
        if not len(missing):
            return Scored(scores)
        names = observations.names(identity(fit.surrogate))
        state: dict[str, float] = {}
        fits = fit.fitted.state
        for j in missing:
            score = fit.previous.get(names[j], REPLAYED.get(names[j]))
            if not isinstance(score, float) or not isfinite(score):
                before = fit.surrogate.fit(observations.head(int(j)), rng=fit.rng, previous=fits)
                fits = before.state  # the next fit begins where this one ended
                score = float(_held_out(before, observations, np.arange(n) == j)[0])
                REPLAYED.put(names[j], score)
            scores[j] = state[names[j]] = score
        return Scored(scores, state)


REPLAYED = Cache(20_000)  # scores by their names: whoever cannot store them replays once


@register("leave-one-out")
@dataclass(frozen=True)
class LeaveOneOut:
    """Each outcome from all others, with hyper-parameters that knew it [RW06, Eq. 5.12]."""

    def scores(self, fit: Fit) -> Scored:
        return Scored(fit.fitted.leave_one_out().score(fit.observations.y))


@register("time-series")
@dataclass(frozen=True)
class TimeSeries:
    """Each outcome from those before it, with hyper-parameters that knew it.

    Where a free factor scales the whole covariance, the mean square of these scores is 1 at the maximum of the
    evidence by construction: a wrong overall width does not show; bias, drift and the shape of the tails do.
    """

    def scores(self, fit: Fit) -> Scored:
        return Scored(fit.fitted.one_step_ahead().score(fit.observations.y))


@register("refitted-leave-one-out")
@dataclass(frozen=True)
class RefittedLeaveOneOut:
    """Each outcome from all others, hyper-parameters refitted without it; CAL21, CAL23, CAL24."""

    def scores(self, fit: Fit) -> Scored:
        return Scored(_split(fit, np.arange(len(fit.observations))))


@register("k-fold")
@dataclass(frozen=True)
class KFold:
    """Each of ``folds`` random parts from the others, hyper-parameters refitted without it."""

    folds: int = 5

    def __post_init__(self) -> None:
        if not isinstance(self.folds, int) or self.folds < 2:
            raise InputError(f"`folds` must be a whole number of at least 2, but got {self.folds!r}.")

    def scores(self, fit: Fit) -> Scored:
        n = len(fit.observations)
        return Scored(_split(fit, fit.rng.permutation(n) % min(self.folds, n)))


@register("refitted-time-series")
@dataclass(frozen=True)
class RefittedTimeSeries:
    """Each outcome after the first ``start`` from those before it, hyper-parameters refitted to them; CAL23, CAL24."""

    start: int = 1
    """Outcomes before the first that is scored; fewer where otherwise none would be. "N - k splits" start at k."""

    def __post_init__(self) -> None:
        if not isinstance(self.start, int) or self.start < 1:
            raise InputError(f"`start` must be a whole number of at least 1, but got {self.start!r}.")

    def scores(self, fit: Fit) -> Scored:
        observations, n = fit.observations, len(fit.observations)
        scores = np.full(n, np.nan)
        for j in range(max(min(self.start, n - 1), 1), n):
            if spread(observations.y[:j]) == 0.0:
                continue  # nothing says how far off a forecast may be
            # from the whole, for every split alike: a chain of short fits could stay in a bad place
            before = fit.surrogate.refit(observations.head(j), fit.fitted)
            scores[j] = _held_out(before, observations, np.arange(n) == j)[0]
        return Scored(scores)


def _split(fit: Fit, part: Indices) -> Array:
    """(n,) scores, those of each part by a refit to the other parts."""
    observations = fit.observations
    scores = np.full(len(observations), np.nan)
    for k in np.unique(part):
        out = part == k
        if spread(observations.y[~out]) == 0.0:
            continue  # nothing says how far off a forecast may be
        scores[out] = _held_out(fit.surrogate.refit(observations.take(~out), fit.fitted), observations, out)
    return scores


def _held_out(fitted: FittedSurrogate, observations: Observations, out: Flags) -> Array:
    """Scores of the outcomes flagged ``out`` under a surrogate that did not see them."""
    return fitted.predict(observations.x[out], observations.noise_std[out]).score(observations.y[out])
