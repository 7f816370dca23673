"""Forecaster: a surrogate and its recalibration. A strategy decides with one, and may report with another."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np

from calibo.arrays import Array
from calibo.calibration import (
    Experience,
    FittedModel,
    Gate,
    NoRecalibration,
    NoScores,
    Prequential,
    Recalibrator,
    Record,
    ScoredOutcomes,
    ScoreSource,
    experience_of,
)
from calibo.errors import InputError
from calibo.forecasts import CalibrationMap, Forecast
from calibo.models import FittedSurrogate, ModelChoice, Surrogate
from calibo.observations import Observations, spread
from calibo.parts import identity, register
from calibo.threads import one_blas_thread

Recalibrate = Literal["auto", "always", "never"]

PARTS = {"surrogate": Surrogate, "score_source": ScoreSource, "recalibrator": Recalibrator}


@register("forecaster")
@dataclass(frozen=True)
class Forecaster:
    """How forecasts are made."""

    surrogate: Surrogate = field(default_factory=ModelChoice)
    score_source: ScoreSource = Prequential()
    recalibrator: Recalibrator = Gate()

    def __post_init__(self) -> None:
        for name, kind in PARTS.items():
            if not isinstance(getattr(self, name), kind):
                raise InputError(f"`{name}` must be of type {kind.__name__}, but got {getattr(self, name)!r}.")

    def with_recalibration(self, mode: Recalibrate) -> "Forecaster":
        """The same forecaster that recalibrates "always", "never", or, if "auto", as far as it improved forecasts."""
        if mode not in get_args(Recalibrate):
            raise InputError(f"`recalibrate` must be one of {list(get_args(Recalibrate))}, but got {mode!r}.")
        if mode == "never":
            return replace(self, score_source=NoScores(), recalibrator=NoRecalibration())
        source = self.score_source if self.score_source.gives_scores else Prequential()
        gate = Gate.around(self.recalibrator)
        return replace(self, score_source=source, recalibrator=gate if mode == "auto" else gate.recalibrator)

    def fit(
        self,
        observations: Observations,
        *,
        rng: np.random.Generator,
        previous: Mapping[str, Any] | None = None,
        scored: Mapping[str, Any] | None = None,
    ) -> "FittedForecaster":
        """Fitted to feasible observations; ``previous`` and ``scored`` are states of an earlier fit and its scores."""
        with one_blas_thread():
            fitted = self.surrogate.fit(observations, rng=rng, previous=previous)
            found, map = self.fit_recalibration(FittedModel(self.surrogate, fitted, observations, rng, scored or {}))
        return FittedForecaster(self, observations, fitted, found, map)

    def fit_recalibration(self, model: FittedModel) -> tuple[ScoredOutcomes, CalibrationMap]:
        """The scores and the map: what earlier runs have taught, then what this one has.

        A gate tests the map on prequential scores, even if it was fitted to others.
        """
        scored, source, first = self.score_source.scores(model), self.score_source, self.experience
        prequential = None if source.is_prequential else lambda: first.corrected(Prequential().scores(model).scores)
        map = self.recalibrator.fit_and_test(first.corrected(scored.scores), prequential)
        return scored, map.after(first.map(len(model.observations)))

    @property
    def experience(self) -> Experience:
        """Of earlier runs; empty if the model has none, or if forecasts are not corrected."""
        return experience_of(identity(self.surrogate)) if self.recalibrator.corrects else Experience()


@dataclass(frozen=True, eq=False)
class FittedForecaster:
    """The posterior of the objective and its calibration map."""

    recipe: Forecaster
    observations: Observations
    surrogate: FittedSurrogate
    scored: ScoredOutcomes
    map: CalibrationMap

    def forecast(self, x: Array, *, noise: bool = False) -> Forecast:
        """The calibrated posterior of the function at each point (n, d); with ``noise``, of an observation."""
        return self._posterior(x, noise).calibrated(self.map)

    def forecast_if_recommended(self, x: Array) -> Forecast:
        """The posterior of the function at points (n, d) to recommend one of; a run never sees these values, so its
        outcomes correct it only if earlier runs have taught nothing.
        """
        experience = self.recipe.experience
        map = experience.map_of_recommended(len(self.observations)) if experience.recommended else self.map
        return self._posterior(x, False).calibrated(map)

    def _posterior(self, x: Array, noise: bool) -> Forecast:
        with one_blas_thread():
            return self.surrogate.posterior(self.observations.cube.impute(x), noise=bool(noise))

    def record(self, x: Array) -> Record | None:
        """The forecast of an observation at ``x`` (d,) as it is stored; None if all outcomes are equal."""
        if spread(self.observations.y) == 0.0:
            return None
        forecast, latent = (self.forecast(x[None], noise=noise)[0] for noise in (True, False))
        return Record.from_forecast(forecast, self.recipe.surrogate, latent, self.surrogate.models)
