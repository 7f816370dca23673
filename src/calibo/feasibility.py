"""Where evaluations succeed: a surrogate of the labels "feasible" (-1) and "not" (+1)."""

from dataclasses import dataclass, replace
from math import log
from typing import Any

import numpy as np

from calibo.acquisition.improvement import ProbabilityCriterion
from calibo.acquisition.landscape import Landscape
from calibo.calibration import CalibrationMap
from calibo.gp.likelihood import Belief
from calibo.observations import Observations
from calibo.surrogate import GaussianProcess, Priors, Surrogate

__all__ = ["Feasibility"]


LABELS = Priors(
    lengthscale=Belief(log(0.5), 0.3, log(1e-2), log(1e2)),
    noise=Belief(log(0.01), 1.0, log(1e-3), log(1.0)),
)
"""A step is no smooth function: with free lengthscales a few labels at its edge would shrink them all."""


@dataclass(frozen=True)
class Feasibility:
    """A recipe for the log probability that an evaluation neither fails nor violates a constraint."""

    surrogate: Surrogate = GaussianProcess(priors=LABELS)

    def fit(self, observations: Observations, *, rng: np.random.Generator, previous: Any = None) -> Landscape:
        """Failures enter as labels only: what was measured there, if anything, is not a number to trust."""
        labels = replace(
            observations,
            y=np.where(observations.feasible, -1.0, 1.0),
            noise_std=np.full(len(observations.x), np.nan),
            feasible=np.ones(len(observations.x), dtype=bool),
        )
        fitted = self.surrogate.fit(labels, rng=rng, previous=previous)
        return Landscape(fitted, ProbabilityCriterion(0.0, CalibrationMap()))  # log P(label < 0)
