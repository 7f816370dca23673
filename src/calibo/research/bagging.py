"""Bagging: an ensemble of one model fitted to random subsets of the data [BRE96, LAK17]."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from calibo.arrays import Array, Flags
from calibo.errors import InputError
from calibo.forecasts import Forecast
from calibo.models.base import FittedSurrogate, Surrogate
from calibo.models.choice import Mixture
from calibo.models.gaussian_process import GaussianProcess
from calibo.observations import Observations, spread
from calibo.parts import register

SHARE = 1.0 - np.exp(-1.0)  # expected fraction of distinct outcomes in a bootstrap sample


@register("bagged")
@dataclass(frozen=True)
class Bagged(Surrogate):
    """An ensemble fitted to different subsets; where members disagree, the forecast is wide.

    Each outcome is in a bag with the probability that it is in a bootstrap sample, but at most once: a duplicate adds
    no information to a Gaussian process. The bags of an outcome depend only on its index, so bags only grow.
    """

    recipe: Surrogate = field(default_factory=GaussianProcess)

    bags: int = 5

    def __post_init__(self) -> None:
        if self.recipe.lacks_optimum:
            raise InputError("`recipe` must not require a known optimum, but got a KnownOptimum.")
        if not isinstance(self.bags, int | np.integer) or isinstance(self.bags, bool) or self.bags < 1:
            raise InputError(f"`bags` must be a whole number of at least 1, but got {self.bags!r}.")

    def fit(
        self, observations: Observations, *, rng: np.random.Generator, previous: Mapping[str, Any] | None = None
    ) -> "FittedBag":
        rows = self._rows(observations)
        members = [self.recipe.fit(observations.take(held), rng=rng, previous=previous) for held in rows]
        fits = {key: fit for member in members for key, fit in member.state.items()}
        return self._fitted(observations, rows, members, fits)

    def refit(self, observations: Observations, fitted: "FittedBag") -> "FittedBag":
        rows = self._rows(observations)
        pairs = zip(rows, fitted.members, strict=True)
        members = [self.recipe.refit(observations.take(held), member) for held, member in pairs]
        return self._fitted(observations, rows, members, {})

    def _fitted(
        self, observations: Observations, rows: Flags, members: list[FittedSurrogate], fits: Mapping[str, Any]
    ) -> "FittedBag":
        weights = np.full(self.bags, 1.0 / self.bags)
        return FittedBag(tuple(members), weights, observations, rows, fits)

    def _rows(self, observations: Observations) -> Flags:
        """(bags, n) which outcomes each bag holds; all of them if those in the bag are constant."""
        n = len(observations)
        draws = [np.random.default_rng(bag).random(n) for bag in range(self.bags)]
        rows: Flags = np.array(draws).reshape(self.bags, n) < SHARE
        nowhere = np.flatnonzero(~rows.any(axis=0))
        rows[nowhere % self.bags, nowhere] = True  # every outcome is in some bag
        for held in rows:
            if spread(observations.y[held]) == 0.0:
                held[:] = True
        return rows


@dataclass(frozen=True, eq=False)
class FittedBag(Mixture):
    """Fits of one model to several bags."""

    observations: Observations

    rows: Flags
    """(bags, n) which outcomes each member was fitted to."""

    fits: Mapping[str, Any]

    @property
    def state(self) -> Mapping[str, Any]:
        return self.fits

    @property
    def log_evidence(self) -> float:
        """The leave-one-out log density: members have different data, so there is no common evidence."""
        return float(self.leave_one_out().log_density(self.observations.y).sum())

    def leave_one_out(self) -> Forecast:
        data = self.observations
        outside = [member.posterior(data.x, noise=data.noise_std) for member in self.members]
        inside = [member.leave_one_out() for member in self.members]
        return self._join([_merge(*parts) for parts in zip(outside, inside, self.rows, strict=True)])

    def in_sample_mean(self, x: Array) -> Array:
        """Averaged over the members that were fitted to each outcome."""
        total, count = np.zeros(len(self.observations)), self.rows.sum(axis=0)
        for member, held in zip(self.members, self.rows, strict=True):
            total[held] += member.in_sample_mean(self.observations.x[held])
        return np.asarray(total / count)

    def condition(self, x: Array, y: Array) -> "FittedBag":
        return self._with(super().condition(x, y), x, y)

    def condition_on_mean(self, x: Array) -> "FittedBag":
        return self._with(super().condition_on_mean(x), x, self.posterior(x).median)

    def _with(self, fitted: "FittedBag", x: Array, y: Array) -> "FittedBag":
        """With outcomes added to every bag."""
        data, more = self.observations, len(x)
        known = replace(
            data,
            x=np.concatenate([data.x, x]),
            y=np.concatenate([data.y, y]),
            noise_std=np.append(data.noise_std, np.full(more, np.nan)),
            feasible=np.append(data.feasible, np.ones(more, dtype=bool)),
            constraints=None,
            scores=None,
            report_scores=None,
        )
        rows = np.column_stack([self.rows, np.ones((len(self.rows), more), dtype=bool)])
        return replace(fitted, observations=known, rows=rows)


def _merge(outside: Forecast, inside: Forecast, held: Flags) -> Forecast:
    """``outside``, replaced at the ``held`` points by ``inside``, which covers only those."""
    loc, scale = outside.loc.copy(), outside.scale.copy()
    loc[:, held], scale[:, held] = inside.loc, inside.scale
    return replace(outside, loc=loc, scale=scale)
