"""Where evaluations succeed: a surrogate of the labels "feasible" (+1) and "not" (-1)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import log
from typing import Any

import numpy as np
from scipy.special import log_ndtr

from calibo.acquisition.moments import log_ndtr_slope
from calibo.gp.likelihood import Belief
from calibo.observations import Observations
from calibo.surrogate import FittedSurrogate, GaussianProcess, Priors, Surrogate
from calibo.types import Array

__all__ = ["Feasibility", "FittedFeasibility"]


LABELS = Priors(
    lengthscale=Belief(log(0.5), 0.3, log(1e-2), log(1e2)),
    noise=Belief(log(0.01), 1.0, log(1e-3), log(1.0)),
)
"""A step is no smooth function: with free lengthscales a few labels at its edge would shrink them all."""


@dataclass(frozen=True)
class Feasibility:
    """A recipe for the probability that an evaluation neither fails nor violates a constraint."""

    surrogate: Surrogate = GaussianProcess(priors=LABELS)

    def fit(self, observations: Observations, *, rng: np.random.Generator, previous: Any = None) -> "FittedFeasibility":
        """Failures enter as labels only: what was measured there, if anything, is not a number to trust."""
        labels = replace(
            observations,
            y=np.where(observations.feasible, 1.0, -1.0),
            noise_std=np.full(len(observations.x), np.nan),
            feasible=np.ones(len(observations.x), dtype=bool),
        )
        return FittedFeasibility(self.surrogate.fit(labels, rng=rng, previous=previous))


@dataclass(frozen=True)
class FittedFeasibility:
    """log P(label > 0) everywhere in the cube: something to be maximised, or to weigh with."""

    labels: FittedSurrogate

    @property
    def state(self) -> Mapping[int, Any]:
        """See ``FittedSurrogate.state``."""
        return self.labels.state  # type: ignore[no-any-return]

    def value(self, x: Array) -> Array:
        """(n,)"""
        return np.asarray(log_ndtr(-self.labels.latent(x).score(np.zeros(len(x)))))

    def value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        """(n,) and (n, d)."""
        forecast, d_loc, d_scale = self.labels.latent_with_gradient(x)
        score, by_loc, by_scale, _ = forecast.score_partials(np.zeros(len(x)))
        gradient = np.einsum("sn,snd->nd", by_loc, d_loc) + np.einsum("sn,snd->nd", by_scale, d_scale)
        return np.asarray(log_ndtr(-score)), -log_ndtr_slope(-score)[:, None] * gradient
