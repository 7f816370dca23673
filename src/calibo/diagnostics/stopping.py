"""Stopping rules: stop a study when further improvement is unlikely or impossible."""

from dataclasses import dataclass
from math import isfinite, nan

import numpy as np
from optuna.study import Study
from optuna.trial import FrozenTrial

from calibo.conditional import ConditionalParameters
from calibo.errors import InputError
from calibo.observations import spread
from calibo.optimum import Optimum
from calibo.optuna.reader import read_study
from calibo.optuna.schema import Stopped, read_settings, store_stopped
from calibo.optuna.trials import require_one_objective, sign_of
from calibo.presets import get_strategy
from calibo.strategy import Strategy
from calibo.study import reached


@dataclass(frozen=True)
class StopWhenUnlikely:
    """Optuna callback that stops the study when an improvement by more than ``resolution`` has become unlikely.

    After each trial it searches for the most promising points, and computes the probability, under the reported
    forecast of the function, that one of them improves on the best known value by more than ``resolution``, the
    smallest difference that matters, in the units of the value. If that is below ``alpha``, the study stops; a later
    call of `optimize` continues. `Result.stopped` says why. The probability is as reliable as the forecasts are: see
    `audit`.
    """

    resolution: float
    alpha: float = 0.05

    strategy: str | Strategy | None = None
    """By default that of the study."""

    def __post_init__(self) -> None:
        if not (_number(self.resolution) and isfinite(self.resolution) and self.resolution > 0.0):
            raise InputError(
                f"`resolution` must be a positive number, but got {self.resolution!r}. "
                "Pass the smallest improvement that is worth another trial, in the units of the value."
            )
        if not (_number(self.alpha) and 0.0 < self.alpha < 1.0):
            raise InputError(f"`alpha` must lie between 0 and 1, but got {self.alpha!r}.")
        if self.strategy is not None:
            get_strategy(self.strategy)

    def __call__(self, study: Study, trial: FrozenTrial) -> None:
        found = self._found(study)
        if found is not None and found[0] < self.alpha:
            study.stop()
            store_stopped(study, Stopped(self.resolution, self.alpha, *found, trial.number))

    def probability(self, study: Study) -> float | None:
        """The probability of such an improvement, or a lower bound of it that is not below ``alpha``.

        None if too little is known: during the initial design, and while all values are equal.
        """
        found = self._found(study)
        return None if found is None else found[0]

    def _found(self, study: Study) -> tuple[float, float] | None:
        """The probability and, if it is below alpha, the expected improvement of the most promising point."""
        data = read_study(study, self.strategy)
        observations = data.observations
        if observations.feasible.sum() < max(data.strategy.initial_size(observations.cube), 1):
            return None
        if spread(observations.valid().y) == 0.0:  # nothing is known of the function yet
            return None
        rng = np.random.default_rng(len(data.trials))
        free = np.full(len(observations.cube), np.nan)
        fixed = ConditionalParameters.learn(observations, free, rng).fixed
        fitted = data.fit()
        chance = fitted.probability_of_improvement(self.resolution, rng=rng, fixed=fixed, enough=self.alpha)
        return chance, fitted.expected_improvement(rng=rng, fixed=fixed) if chance < self.alpha else nan


@dataclass(frozen=True)
class StopAtOptimum:
    """Optuna callback that stops the study when its best value is within the tolerance of the known optimum.

    If values are noisy, the best posterior median counts. The optimum is the one given here, or that of the study's
    sampler. `optimize` applies this rule automatically.
    """

    known_optimum: float | None = None
    optimum_tolerance: float | None = None

    def __post_init__(self) -> None:
        Optimum.from_arguments(self.known_optimum, tolerance=self.optimum_tolerance)

    def __call__(self, study: Study, trial: FrozenTrial) -> None:
        require_one_objective(study)
        given = Optimum.from_arguments(self.known_optimum, tolerance=self.optimum_tolerance)
        optimum = None if given is None else given.with_sign(sign_of(study))
        if optimum is None and read_settings(study).optimum is None:
            raise InputError("`known_optimum` must be given here or to the sampler, but the study has none.")
        if reached(study, optimum=optimum):
            study.stop()


def _number(value: object) -> bool:
    return isinstance(value, int | float | np.floating) and not isinstance(value, bool)
