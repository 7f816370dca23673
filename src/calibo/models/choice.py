"""Model choice: several surrogates, weighted by log evidence and prequential log scores.

| symbol | meaning |
|---|---|
| L_m | log evidence of the outcomes under model m, in their units, Jacobians included |
| l_mj | prequential log density of outcome j under m, fitted to the outcomes before it |
| w_m | weight, proportional to exp(a L_m + (1 - a) sum_j memory^(n - 1 - j) l_mj - handicap); no handicap for m = 0 |
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from calibo.arrays import Array
from calibo.errors import InputError
from calibo.forecasts import Forecast
from calibo.models.base import FittedSurrogate, Noise, Surrogate
from calibo.models.gaussian_process import GaussianProcess
from calibo.observations import Observations
from calibo.parts import identity, register
from calibo.transforms import LearnedAsinh, LearnedYeoJohnson

if TYPE_CHECKING:
    from calibo.side_information import SideInformation

CAP = 5.0  # nats that one outcome can cost a model
LEAST = 1e-3  # weight below which a model is dropped from a mixture

SCALES: tuple[tuple[str, GaussianProcess], ...] = (
    ("values", GaussianProcess()),
    ("log values", GaussianProcess(transform=LearnedAsinh())),
    ("powers of values", GaussianProcess(transform=LearnedYeoJohnson())),
)
"""The outcome scales among which the default chooses."""


@register("model-choice", stored_as={"evidence_weight": "trust"})
@dataclass(frozen=True)
class ModelChoice(Surrogate):
    """A choice between models, which may transform the outcomes differently."""

    recipes: tuple[tuple[str, Surrogate], ...] = SCALES
    """Names and models; the first is preferred when data are scarce."""

    mode: Literal["hard", "mixture"] = "hard"
    """Only the best model, or all of them by weight."""

    evidence_weight: float = 0.5
    """The weight a of the log evidence; the rest is on the prequential log scores."""

    memory: float = 0.95
    """Discount factor of older outcomes: the weight of one relative to the next."""

    handicap: float = 2.0
    """Nats by which every other model must beat the first: with few outcomes, one does so by chance."""

    def __post_init__(self) -> None:
        names = [name for name, _ in self.recipes]
        if not names or len(set(names)) < len(names):
            raise InputError(f"`recipes` must have unique names, but got {names}.")
        if self.mode not in ("hard", "mixture"):
            raise InputError(f"`mode` must be 'hard' or 'mixture', but got {self.mode!r}.")
        if not 0.0 <= self.evidence_weight <= 1.0:
            raise InputError(f"`evidence_weight` must lie in [0, 1], but got {self.evidence_weight!r}.")
        if not 0.0 < self.memory <= 1.0:
            raise InputError(f"`memory` must lie in (0, 1], but got {self.memory!r}.")
        if not np.isfinite(self.handicap):
            raise InputError(f"`handicap` must be a finite number, but got {self.handicap!r}.")

    @property
    def transforms_outcomes(self) -> bool:
        return any(model.transforms_outcomes for _, model in self.recipes)

    def with_side_information(self, info: "SideInformation") -> "Surrogate":
        return info.add_to(self)

    def fit(
        self, observations: Observations, *, rng: np.random.Generator, previous: Mapping[str, Any] | None = None
    ) -> "FittedChoice":
        earlier, names = previous or {}, [name for name, _ in self.recipes]
        fitted = [recipe.fit(observations, rng=rng, previous=of_model(earlier, name)) for name, recipe in self.recipes]
        prequential = self._log_densities(observations, earlier, rng)
        evidence = np.array([model.log_evidence for model in fitted])
        share, discounted = self.evidence_weight, self._discounted(list(prequential.values()))
        total = share * evidence + (1.0 - share) * discounted
        total[1:] -= self.handicap
        refuted = np.array([model.refuted for model in fitted])
        if not refuted.all():
            total[refuted] = -np.inf
        weights = np.exp(total - total.max())
        weights /= weights.sum()
        kept = [int(np.argmax(weights))] if self.mode == "hard" else np.flatnonzero(weights >= LEAST).tolist()
        members, shares = tuple(fitted[m] for m in kept), weights[kept] / weights[kept].sum()
        pairs = list(zip(names, fitted, strict=True))
        fits = {f"{name}/{key}": fit for name, model in pairs for key, fit in model.state.items()}
        by_name = dict(zip(names, weights.tolist(), strict=True))
        return FittedChoice(members, shares, tuple(names[m] for m in kept), by_name, {**fits, **prequential})

    def refit(self, observations: Observations, fitted: "FittedChoice") -> "FittedChoice":
        recipes = dict(self.recipes)
        members = zip(fitted.names, fitted.members, strict=True)
        refitted = tuple(recipes[name].refit(observations, member) for name, member in members)
        return replace(fitted, members=refitted, fits={})

    def _log_densities(
        self, observations: Observations, earlier: Mapping[str, Any], rng: np.random.Generator
    ) -> dict[str, Any]:
        """Prequential log densities of every outcome after the first few, one per model, by stored name."""
        found: dict[str, Any] = {}
        fits = [of_model(earlier, name) for name, _ in self.recipes]
        digests = observations.digests(identity(self.recipes))
        for j in range(observations.first_scorable(), len(observations)):
            name = f"stream-{digests[j]}"  # the stored name
            if _are_densities(earlier.get(name), len(self.recipes)):
                found[name] = earlier[name]
                continue
            densities = []
            for m, (_, recipe) in enumerate(self.recipes):
                before = recipe.fit(observations.head(j), rng=rng, previous=fits[m])
                fits[m] = {**fits[m], **before.state}
                forecast = before.posterior(observations.x[[j]], noise=observations.noise_std[[j]])
                densities.append(float(forecast.log_density(observations.y[[j]])[0]))
            found[name] = densities
        return found

    def _discounted(self, prequential: list[list[float]]) -> Array:
        """(m,) discounted log score of each model relative to the best one."""
        densities = np.array(prequential).reshape(-1, len(self.recipes))
        behind = np.minimum(densities.max(axis=1, keepdims=True) - densities, CAP)
        return np.asarray(-(self.memory ** np.arange(len(densities) - 1, -1, -1.0)) @ behind)


@dataclass(frozen=True, eq=False)
class Mixture(FittedSurrogate):
    """Several fitted surrogates as components of one mixture."""

    members: tuple[Any, ...]
    weights: Array

    def posterior(self, x: Array, *, noise: Noise = False) -> Forecast:
        return self._join([member.posterior(x, noise=noise) for member in self.members])

    def posterior_with_gradient(self, x: Array) -> tuple[Forecast, Array, Array]:
        forecasts, d_loc, d_scale = zip(*[member.posterior_with_gradient(x) for member in self.members], strict=True)
        return self._join(forecasts), np.concatenate(d_loc), np.concatenate(d_scale)

    def condition(self, x: Array, y: Array) -> Self:
        return replace(self, members=tuple(member.condition(x, y) for member in self.members))

    def condition_on_mean(self, x: Array) -> Self:
        return replace(self, members=tuple(member.condition_on_mean(x) for member in self.members))

    def _join(self, forecasts: Sequence[Forecast]) -> Forecast:
        if len(forecasts) == 1:
            return forecasts[0]
        weights = [share * forecast.weights for share, forecast in zip(self.weights, forecasts, strict=True)]
        return Forecast(
            np.concatenate([forecast.loc for forecast in forecasts]),
            np.concatenate([forecast.scale for forecast in forecasts]),
            np.concatenate(weights),
            tuple(transform for forecast in forecasts for transform in forecast.transforms),
        )


@dataclass(frozen=True, eq=False)
class FittedChoice(Mixture):
    """The selected models and their weights."""

    names: tuple[str, ...]

    by_name: Mapping[str, float]
    """The weights of all models, including dropped ones."""

    fits: Mapping[str, Any]

    @property
    def state(self) -> Mapping[str, Any]:
        return self.fits

    @property
    def models(self) -> Mapping[str, float]:
        return self.by_name

    @property
    def log_evidence(self) -> float:
        evidence = np.array([member.log_evidence for member in self.members])
        top = float(evidence.max())
        return top + float(np.log(self.weights @ np.exp(evidence - top)))

    @property
    def optimum(self) -> float | None:  # type: ignore[override]
        return self.members[0].optimum if len(self.members) == 1 else None

    def leave_one_out(self) -> Forecast:
        return self._join([member.leave_one_out() for member in self.members])

    def in_sample_mean(self, x: Array) -> Array:
        rows = [member.in_sample_mean(x) for member in self.members]
        known = min(map(len, rows))  # some models also return the points that they were conditioned on
        return np.asarray(self.weights @ np.stack([row[:known] for row in rows]))


def _are_densities(stored: Any, count: int) -> bool:
    """Whether the stored value is a list of ``count`` densities; a storage may hold anything."""
    return (
        isinstance(stored, list) and len(stored) == count and all(isinstance(v, float) and isfinite(v) for v in stored)
    )


def of_model(state: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The part of a state that belongs to one model."""
    return {key[len(name) + 1 :]: value for key, value in state.items() if key.startswith(f"{name}/")}
