"""Bagging: the same recipe fitted to parts of the outcomes drawn at random, side by side [BRE96, LAK17]."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from calibo.errors import InputError
from calibo.forecasts import Forecast
from calibo.observations import Observations, spread
from calibo.parts import register
from calibo.surrogate.gaussian import GaussianProcess
from calibo.surrogate.mixture import Mixture
from calibo.surrogate.protocols import FittedSurrogate, Surrogate
from calibo.types import Array, Flags

__all__ = ["Bagged", "FittedBag"]

SHARE = 1.0 - np.exp(-1.0)  # of n outcomes, those that n draws with replacement hold: the others are doubles


@register("bagged")
@dataclass(frozen=True)
class Bagged:
    """An ensemble whose members know different outcomes; where they disagree, the forecast is wide.

    A bag holds each outcome with the probability that a bootstrap sample does, once: a second copy tells a process
    nothing new. Which bags an outcome falls into depends on its place in the order alone, so that bags only grow.
    """

    recipe: Surrogate = field(default_factory=GaussianProcess)

    bags: int = 5

    def __post_init__(self) -> None:
        if not isinstance(self.bags, int | np.integer) or isinstance(self.bags, bool) or self.bags < 1:
            raise InputError(f"`bags` must be a whole number of at least 1, but got {self.bags!r}.")

    def fit(
        self, observations: Observations, *, rng: np.random.Generator, previous: Mapping[str, Any] | None = None
    ) -> "FittedBag":
        rows = self._rows(observations)
        members = [self.recipe.fit(observations.take(held), rng=rng, previous=previous) for held in rows]
        state = {key: fit for member in members for key, fit in member.state.items()}
        return self._fitted(observations, rows, members, state)

    def refit(self, observations: Observations, fitted: "FittedBag") -> "FittedBag":
        rows = self._rows(observations)
        pairs = zip(rows, fitted.members, strict=True)
        members = [self.recipe.refit(observations.take(held), member) for held, member in pairs]
        return self._fitted(observations, rows, members, {})

    def _fitted(
        self, observations: Observations, rows: Flags, members: list[FittedSurrogate], state: Mapping[str, Any]
    ) -> "FittedBag":
        weights = np.full(self.bags, 1.0 / self.bags)
        return FittedBag(tuple(members), weights, self.recipe, observations, rows, state)

    def _rows(self, observations: Observations) -> Flags:
        """(bags, n) which outcomes each bag holds; all of them where it would hold none that differ."""
        n = len(observations)
        draws = [np.random.default_rng(bag).random(n) for bag in range(self.bags)]
        rows: Flags = np.array(draws).reshape(self.bags, n) < SHARE
        nowhere = np.flatnonzero(~rows.any(axis=0))
        rows[nowhere % self.bags, nowhere] = True  # no outcome is lost
        for held in rows:
            if spread(observations.y[held]) == 0.0:
                held[:] = True
        return rows


@dataclass(frozen=True, eq=False)
class FittedBag(Mixture):
    """Fits of one recipe to several bags."""

    recipe: Surrogate
    observations: Observations

    rows: Flags
    """(bags, n) which outcomes each member knows."""

    state: Mapping[str, Any]

    @property
    def log_evidence(self) -> float:
        """The log density of each outcome under forecasts from the others: members know different outcomes."""
        return float(self.leave_one_out().log_density(self.observations.y).sum())

    @property
    def models(self) -> Mapping[str, float]:
        return {}

    def leave_one_out(self) -> Forecast:
        data = self.observations
        outside = [member.predict(data.x, data.noise_std) for member in self.members]
        inside = [member.leave_one_out() for member in self.members]
        return self._joined([_merged(*parts) for parts in zip(outside, inside, self.rows, strict=True)])

    def one_step_ahead(self) -> Forecast:
        data, joined = self.observations, []
        for member, held in zip(self.members, self.rows, strict=True):
            inside = member.one_step_ahead()
            # of what a bag lacks: by what it held before, or, where that says nothing, as of its first
            outside = [_column(inside, 0)] * len(data)
            for j in np.flatnonzero(~held):
                before = held & (np.arange(len(data)) < j)
                if spread(data.y[before]) > 0.0:
                    outside[j] = self.recipe.refit(data.take(before), member).predict(data.x[[j]], data.noise_std[[j]])
            joined.append(_merged(_in_a_row(outside), inside, held))
        return self._joined(joined)

    def smoothed(self) -> Array:
        """Of each outcome by the members that know it."""
        total, count = np.zeros(len(self.observations)), self.rows.sum(axis=0)
        for member, held in zip(self.members, self.rows, strict=True):
            total[held] += member.smoothed()
        return np.asarray(total / count)

    def given(self, x: Array, y: Array) -> "FittedBag":
        return self._with(super().given(x, y), x, y)

    def believing(self, x: Array) -> "FittedBag":
        return self._with(super().believing(x), x, self.latent(x).median())

    def _with(self, fitted: "FittedBag", x: Array, y: Array) -> "FittedBag":
        """Told to every member."""
        data, more = self.observations, len(x)
        known = replace(
            data,
            x=np.concatenate([data.x, x]),
            y=np.concatenate([data.y, y]),
            noise_std=np.append(data.noise_std, np.full(more, np.nan)),
            feasible=np.append(data.feasible, np.ones(more, dtype=bool)),
            constraints=None,
            scores=None,
        )
        rows = np.column_stack([self.rows, np.ones((len(self.rows), more), dtype=bool)])
        return replace(fitted, observations=known, rows=rows)


def _merged(outside: Forecast, inside: Forecast, held: Flags) -> Forecast:
    """``outside``, and at the ``held`` points ``inside``, which has those alone."""
    loc, scale = outside.loc.copy(), outside.scale.copy()
    loc[:, held], scale[:, held] = inside.loc, inside.scale
    return replace(outside, loc=loc, scale=scale)


def _column(forecast: Forecast, j: int) -> Forecast:
    return replace(forecast, loc=forecast.loc[:, [j]], scale=forecast.scale[:, [j]])


def _in_a_row(forecasts: list[Forecast]) -> Forecast:
    loc, scale = (np.concatenate([getattr(f, name) for f in forecasts], axis=1) for name in ("loc", "scale"))
    return replace(forecasts[0], loc=loc, scale=scale)
