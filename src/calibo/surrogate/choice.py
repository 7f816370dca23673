"""Model choice: several recipes side by side, each believed as far as its forecasts have deserved.

| symbol | meaning |
|---|---|
| L_m | log evidence of the outcomes under model m, in their units, Jacobians included |
| l_mj | log density that m, fitted to the outcomes before the j-th, gave to it: the stream |
| w_m | weight of m, proportional to exp(a L_m + (1 - a) sum_j memory^(n - 1 - j) l_mj - handicap), the first without |
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, Literal

import numpy as np

from calibo.design import design_size
from calibo.errors import InputError
from calibo.forecasts import Forecast
from calibo.observations import Observations, spread
from calibo.parts import identity, register
from calibo.surrogate.gaussian import GaussianProcess
from calibo.surrogate.mixture import Mixture
from calibo.surrogate.outcomes import LearnedAsinh, LearnedYeoJohnson
from calibo.surrogate.protocols import Surrogate
from calibo.types import Array

__all__ = ["FittedChoice", "ModelChoice"]

CAP = 5.0  # nats that one outcome can speak against a model
LEAST = 1e-3  # weight below which a model is left out of a mixture

SCALES: tuple[tuple[str, Surrogate], ...] = (
    ("values", GaussianProcess()),
    ("log values", GaussianProcess(transform=LearnedAsinh())),
    ("powers of values", GaussianProcess(transform=LearnedYeoJohnson())),
)
"""The scales of the outcome among which the default chooses."""


@register("model-choice")
@dataclass(frozen=True)
class ModelChoice:
    """A recipe made of others, which need not agree on the scale of the outcomes."""

    recipes: tuple[tuple[str, Surrogate], ...] = SCALES
    """Names and recipes; the first is preferred while little is known."""

    mode: Literal["hard", "mixture"] = "hard"
    """The best model alone, or all by their weights."""

    trust: float = 0.5
    """The share a of the log evidence; the rest is the stream's."""

    memory: float = 0.95
    """Weight of an outcome of the stream relative to that of the next one."""

    handicap: float = 2.0
    """Nats by which every model but the first must be better: by chance one is, while outcomes are few."""

    def __post_init__(self) -> None:
        names = [name for name, _ in self.recipes]
        if not names or len(set(names)) < len(names):
            raise InputError(f"`recipes` must have names that differ, but got {names}.")
        if self.mode not in ("hard", "mixture"):
            raise InputError(f"`mode` must be 'hard' or 'mixture', but got {self.mode!r}.")
        if not 0.0 <= self.trust <= 1.0:
            raise InputError(f"`trust` must lie in [0, 1], but got {self.trust!r}.")
        if not 0.0 < self.memory <= 1.0:
            raise InputError(f"`memory` must lie in (0, 1], but got {self.memory!r}.")
        if not np.isfinite(self.handicap):
            raise InputError(f"`handicap` must be a finite number, but got {self.handicap!r}.")

    def fit(
        self, observations: Observations, *, rng: np.random.Generator, previous: Mapping[str, Any] | None = None
    ) -> "FittedChoice":
        earlier = previous or {}
        fitted = [recipe.fit(observations, rng=rng, previous=_part(earlier, name)) for name, recipe in self.recipes]
        stream = self._stream(observations, earlier, rng)
        evidence = np.array([model.log_evidence for model in fitted])
        total = self.trust * evidence + (1.0 - self.trust) * self._discounted(list(stream.values()))
        total[1:] -= self.handicap
        refuted = np.array([getattr(model, "refuted", False) for model in fitted])
        if not refuted.all():
            total[refuted] = -np.inf  # what it was told is wrong
        weights = np.exp(total - total.max())
        weights /= weights.sum()
        state = {
            f"{name}/{key}": fit
            for (name, _), model in zip(self.recipes, fitted, strict=True)
            for key, fit in model.state.items()
        }
        kept = [int(np.argmax(weights))] if self.mode == "hard" else np.flatnonzero(weights >= LEAST).tolist()
        names = [name for name, _ in self.recipes]
        members, believed = tuple(fitted[m] for m in kept), weights[kept] / weights[kept].sum()
        models = dict(zip(names, weights.tolist(), strict=True))
        return FittedChoice(members, believed, tuple(names[m] for m in kept), models, {**state, **stream})

    def refit(self, observations: Observations, fitted: "FittedChoice") -> "FittedChoice":
        recipes = dict(self.recipes)
        members = zip(fitted.names, fitted.members, strict=True)
        refitted = tuple(recipes[name].refit(observations, member) for name, member in members)
        return replace(fitted, members=refitted, state={})

    def _stream(
        self, observations: Observations, earlier: Mapping[str, Any], rng: np.random.Generator
    ) -> dict[str, Any]:
        """For every outcome after the first few its log density under each model that did not know it, by name."""
        found: dict[str, Any] = {}
        fits = [_part(earlier, name) for name, _ in self.recipes]
        names = observations.names(identity(self.recipes))
        for j in range(design_size(observations.cube), len(observations)):
            if spread(observations.y[:j]) == 0.0:
                continue  # there is no scale to be right or wrong on
            name = f"stream-{names[j]}"
            if not _usable(earlier.get(name), len(self.recipes)):
                densities = []
                for m, (_, recipe) in enumerate(self.recipes):
                    before = recipe.fit(observations.head(j), rng=rng, previous=fits[m])
                    fits[m] = {**fits[m], **before.state}
                    forecast = before.predict(observations.x[[j]], observations.noise_std[[j]])
                    densities.append(float(forecast.log_density(observations.y[[j]])[0]))
                found[name] = densities
            else:
                found[name] = earlier[name]
        return found

    def _discounted(self, stream: list[list[float]]) -> Array:
        """(m,) what the stream says for each model."""
        densities = np.array(stream).reshape(-1, len(self.recipes))
        behind = np.minimum(densities.max(axis=1, keepdims=True) - densities, CAP)
        return np.asarray(-(self.memory ** np.arange(len(densities) - 1, -1, -1.0)) @ behind)


@dataclass(frozen=True, eq=False)
class FittedChoice(Mixture):
    """The models that were kept, by how much each is believed."""

    names: tuple[str, ...]

    models: Mapping[str, float]
    """How much each model is believed, also those that are left out."""

    state: Mapping[str, Any]

    @property
    def log_evidence(self) -> float:
        evidence = np.array([member.log_evidence for member in self.members])
        top = float(evidence.max())
        return top + float(np.log(self.weights @ np.exp(evidence - top)))

    @property
    def optimum(self) -> float | None:
        """The least value, where the one model that is believed knows it."""
        return getattr(self.members[0], "optimum", None) if len(self.members) == 1 else None

    def leave_one_out(self) -> Forecast:
        return self._joined([member.leave_one_out() for member in self.members])

    def one_step_ahead(self) -> Forecast:
        return self._joined([member.one_step_ahead() for member in self.members])

    def smoothed(self) -> Array:
        return np.asarray(self.weights @ np.stack([member.smoothed() for member in self.members]))


def _usable(stored: Any, count: int) -> bool:
    """Whether what is stored are the densities of so many models: storages are open to others."""
    return (
        isinstance(stored, list) and len(stored) == count and all(isinstance(v, float) and isfinite(v) for v in stored)
    )


def _part(state: Mapping[str, Any], name: str) -> dict[str, Any]:
    """What of a state belongs to one of the recipes."""
    return {key[len(name) + 1 :]: value for key, value in state.items() if key.startswith(f"{name}/")}
