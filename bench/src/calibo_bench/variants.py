"""Strategies without a name in calibo: other defaults, other recalibration."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import log
from typing import Any, Literal

import numpy as np

from calibo.acquisition import LowerBound
from calibo.arrays import Array
from calibo.calibration import Gate, Prequential, Recalibrator, ScoreSource, ShiftScaleRecalibrator
from calibo.models import FittedGaussianProcess, GaussianProcess, Surrogate
from calibo.observations import Observations
from calibo.parts import register
from calibo.presets import PRESETS
from calibo.priors import HyperPriors
from calibo.research import (
    EmpiricalRecalibrator,
    GPRecalibrator,
    MLPRecalibrator,
    OnlineRecalibrator,
    RefittedLeaveOneOut,
    RefittedTimeSeries,
    SigmaScaleRecalibrator,
)
from calibo.search import Search
from calibo.strategy import Strategy

__all__ = ["CHOICES", "CORRECTIONS", "RECALIBRATORS", "SCORE_SOURCES", "VARIANTS", "Variant", "choice", "correction"]


@dataclass(frozen=True)
class Variant:
    """A strategy, and how it is run."""

    strategy: Callable[[int], Strategy]
    """For a number of parameters."""

    batch: int = 1
    """Points per ask."""

    task: Literal["transfer", "joint"] | str | None = None
    optimum: Literal["known", "bound"] | str | None = None
    """Side information: see `calibo_bench.clients`."""

    off: float = 0.0
    """Error of the given minimum value, as a share of the range."""


# Defaults

PLAIN = PRESETS["plain"]


@register("imagining")
@dataclass(frozen=True)
class Fantasizing(Surrogate):
    """The plain surrogate, with other fantasy outcomes of pending points."""

    how: str
    recipe: GaussianProcess = field(default_factory=GaussianProcess)

    def fit(self, observations: Observations, *, rng: np.random.Generator, previous: Any = None) -> Any:
        fitted = self.recipe.fit(observations, rng=rng, previous=previous)
        return FittedFantasizing(**vars(fitted), how=self.how, y=observations.y, rng=rng)

    def refit(self, observations: Observations, fitted: Any) -> Any:
        return self.recipe.refit(observations, fitted)


@dataclass(frozen=True, eq=False)
class FittedFantasizing(FittedGaussianProcess):
    """A fitted ``Fantasizing``."""

    how: str = ""
    y: Array = field(default_factory=lambda: np.empty(0))
    rng: np.random.Generator = field(default_factory=np.random.default_rng)

    def condition_on_mean(self, x: Array) -> Any:
        if self.how == "draw":  # one joint sample from the posterior
            fitted: FittedGaussianProcess = self
            for row in x:
                fitted = fitted.condition(
                    row[None], fitted.posterior(row[None]).at_normal_score(self.rng.standard_normal(1))
                )
            return fitted
        imagined = {"lowest": self.y.min(), "mean": self.y.mean(), "highest": self.y.max()}[self.how]
        return self.condition(x, np.full(len(x), imagined))


def _surrogate(surrogate: Any, batch: int = 1) -> Variant:
    return Variant(lambda _: replace(PLAIN, surrogate=surrogate), batch)


def _lengthscales(center: float, std: float) -> Variant:
    prior = replace(HyperPriors().lengthscale, center=log(center), std=std)
    return _surrogate(GaussianProcess(priors=HyperPriors(lengthscale=prior)))


CHOICES: Mapping[str, Variant] = {
    "plain": Variant(lambda _: PLAIN),
    "lengthscale 0.1, sd 1": _lengthscales(0.1, 1.0),
    "lengthscale 0.25, sd 1": _lengthscales(0.25, 1.0),
    "lengthscale 0.5, sd 1": _lengthscales(0.5, 1.0),
    "lengthscale 0.15, sd 0.7": _lengthscales(0.15, 0.7),
    "lengthscale 0.15, sd 1.4": _lengthscales(0.15, 1.4),
    "noise 1e-4, sd 2": _surrogate(
        GaussianProcess(priors=HyperPriors(noise=replace(HyperPriors().noise, center=log(1e-4), std=2.0)))
    ),
    "refit every step": _surrogate(GaussianProcess(growth=0.0)),
    "search 512, 6 starts": Variant(lambda _: replace(PLAIN, search=Search(candidates=512, starts=6))),
    "search 2048, 12 starts": Variant(
        lambda _: replace(PLAIN, search=Search(candidates=2048, starts=12, iterations=100))
    ),
    "initial 4": Variant(lambda _: replace(PLAIN, initial=4)),
    "initial 2 d": Variant(lambda d: replace(PLAIN, initial=2 * d)),
    "four at a time: own mean": Variant(lambda _: PLAIN, batch=4),
    "four at a time: lowest": _surrogate(Fantasizing("lowest"), 4),
    "four at a time: mean": _surrogate(Fantasizing("mean"), 4),
    "four at a time: highest": _surrogate(Fantasizing("highest"), 4),
    "four at a time: a draw": _surrogate(Fantasizing("draw"), 4),
}
"""Alternatives to the defaults, one changed at a time."""


def choice(label: str) -> str:
    """The name of one of CHOICES in result files."""
    return f"choices/{label}"


# Score sources and recalibrators on the papers' base

BASE = replace(PRESETS["papers-base"], acquisition=LowerBound(2.0))

SCORE_SOURCES: Mapping[str, ScoreSource] = {
    "RefittedLeaveOneOut": RefittedLeaveOneOut(),
    "RefittedTimeSeries": RefittedTimeSeries(),
    "Prequential": Prequential(),
}

RECALIBRATORS: Mapping[str, Recalibrator] = {
    "sigma scale (empirical)": SigmaScaleRecalibrator(),
    "sigma scale (GP)": SigmaScaleRecalibrator(GPRecalibrator()),
    "GP": GPRecalibrator(),
    "MLP": MLPRecalibrator(),
    "empirical": EmpiricalRecalibrator(),
    "shift-scale": ShiftScaleRecalibrator(),
    "online": OnlineRecalibrator(),
    "gate (shift-scale)": Gate(),
}


def correction(source: str | None, recalibrator: str | None) -> str:
    """The name of one of CORRECTIONS in result files; None for none."""
    stored = {None: "none", "Prequential": "Stream"}  # its name in older rows
    return f"corrections/{stored.get(source, source)}/{recalibrator or 'none'}"


def _corrected(source: ScoreSource, recalibrator: Recalibrator) -> Variant:
    return Variant(lambda _: replace(BASE, score_source=source, recalibrator=recalibrator))


CORRECTIONS: Mapping[str, Variant] = {
    correction(None, None): Variant(lambda _: BASE),
    **{correction(s, r): _corrected(SCORE_SOURCES[s], RECALIBRATORS[r]) for s in SCORE_SOURCES for r in RECALIBRATORS},
}
"""Every score source with every recalibrator."""

VARIANTS: Mapping[str, Variant] = {**{choice(label): made for label, made in CHOICES.items()}, **CORRECTIONS}
