"""Presets: the strategies that have a name, and the parts by which a name may be changed."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import reduce
from typing import Any

from calibo.acquisition import (
    AdaptiveLowerBound,
    BoundedImprovement,
    ConformalAcquisition,
    ExpectedImprovement,
    ExpectedRegret,
    ImprovementOnOptimum,
    KnownEntropySearch,
    LowerBound,
    ProbabilityOfImprovement,
    RegretBound,
)
from calibo.calibration import (
    Evidence,
    Gate,
    GPRecalibrator,
    MLPRecalibrator,
    NoEvidence,
    NoRecalibration,
    OnlineRecalibrator,
    Recalibrator,
    RefittedLeaveOneOut,
    RefittedTimeSeries,
    ShiftScaleRecalibrator,
    SigmaScaleRecalibrator,
    Stream,
)
from calibo.errors import InputError
from calibo.gp.kernels import RBF, Linear, Matern52, Periodic
from calibo.parts import identity
from calibo.strategy import Recalibrate, Strategy
from calibo.surrogate import (
    FLAT,
    Bagged,
    GaussianProcess,
    KnownOptimum,
    LearnedBoxCox,
    LearnedTanh,
    LocalScale,
    Logarithm,
    ModelChoice,
    Surrogate,
)

__all__ = ["PARTS", "PRESETS", "label", "named"]

PLAIN = Strategy(surrogate=GaussianProcess(), evidence=NoEvidence(), recalibrator=NoRecalibration())
PAPERS_BASE = replace(
    PLAIN, surrogate=GaussianProcess(RBF(), FLAT, growth=0.0), acquisition=ExpectedImprovement(), initial=3
)

PAPERS_MAP = SigmaScaleRecalibrator(GPRecalibrator())

PRESETS: Mapping[str, Strategy] = {
    "default": Strategy(),
    "plain": PLAIN,
    "ei": Strategy(acquisition=ExpectedImprovement()),
    "pi": Strategy(acquisition=ProbabilityOfImprovement()),
    "lcb": Strategy(acquisition=LowerBound()),
    "papers-base": PAPERS_BASE,
    "papers": replace(PAPERS_BASE, evidence=RefittedLeaveOneOut(), recalibrator=PAPERS_MAP),
}
"""The strategies that have a name. "plain" takes forecasts as they are; "papers-base" is the base of CAL21, CAL23 and
CAL24 (RBF, maximum likelihood), "papers" the same with their calibration."""


Change = Callable[[Strategy], Strategy]


def _with(**parts: Any) -> Change:
    return lambda strategy: replace(strategy, **parts)


def _corrected(evidence: Evidence, recalibrator: Recalibrator) -> Change:
    return _with(evidence=evidence, recalibrator=recalibrator)


def _process(**parts: Any) -> Change:
    """The same Gaussian process with other parts."""

    def change(strategy: Strategy) -> Strategy:
        if isinstance(strategy.surrogate, KnownOptimum):
            raise InputError("A kernel or a scale of outcomes can be changed before 'root', but stands behind it.")
        if not isinstance(strategy.surrogate, GaussianProcess):
            raise InputError(
                f"A kernel or a scale of outcomes can be changed in one GaussianProcess, but the surrogate is a "
                f"{type(strategy.surrogate).__name__}. Begin with 'plain' or 'papers-base', or put '+single' before."
            )
        return replace(strategy, surrogate=replace(strategy.surrogate, **parts))

    return change


def _rooted(strategy: Strategy) -> KnownOptimum:
    """The same Gaussian process of the root of the distance above a known optimum."""
    return KnownOptimum(recipe=strategy.surrogate)  # type: ignore[arg-type]  # it says what it needs


def _not_rooted(strategy: Strategy) -> Surrogate:
    if isinstance(strategy.surrogate, KnownOptimum):
        raise InputError("'bagged' and 'local' must stand on a model of the values, but got one of their root.")
    return strategy.surrogate


PARTS: Mapping[str, Change] = {
    # surrogates
    "single": _with(surrogate=GaussianProcess()),
    "choice": _with(surrogate=ModelChoice()),
    "rbf": _process(kernel=RBF()),
    "matern": _process(kernel=Matern52()),
    "linear": _process(kernel=Linear()),
    "periodic": _process(kernel=Periodic()),
    "tanh": _process(transform=LearnedTanh()),
    "boxcox": _process(transform=LearnedBoxCox()),
    "log": _process(transform=Logarithm()),
    "warped": _process(warped=True),
    "sampled": _process(samples=10),
    "bagged": lambda strategy: replace(strategy, surrogate=Bagged(_not_rooted(strategy))),
    "local": lambda strategy: replace(strategy, surrogate=LocalScale(_not_rooted(strategy))),
    "root": lambda strategy: replace(strategy, surrogate=_rooted(strategy)),
    "root-linear": lambda strategy: replace(strategy, surrogate=replace(_rooted(strategy), moments="linear")),
    # evidence and recalibrator
    "loo-sigma": _corrected(RefittedLeaveOneOut(), SigmaScaleRecalibrator()),
    "loo-gp": _corrected(RefittedLeaveOneOut(), GPRecalibrator()),
    "papers": _corrected(RefittedLeaveOneOut(), PAPERS_MAP),
    "time-series": _corrected(RefittedTimeSeries(), SigmaScaleRecalibrator()),
    **{f"splits{k}": _corrected(RefittedTimeSeries(k), PAPERS_MAP) for k in (1, 2, 3, 4)},
    "splits1-mlp": _corrected(RefittedTimeSeries(), SigmaScaleRecalibrator(MLPRecalibrator())),
    "online": _corrected(Stream(), OnlineRecalibrator()),
    "shift-scale": _corrected(Stream(), ShiftScaleRecalibrator()),
    "gate": _corrected(Stream(), Gate()),
    # acquisitions
    "ei": _with(acquisition=ExpectedImprovement()),
    "pi": _with(acquisition=ProbabilityOfImprovement()),
    "pi-mapped": _with(acquisition=ProbabilityOfImprovement(mapped=True)),
    **{f"lcb{kappa:g}": _with(acquisition=LowerBound(kappa)) for kappa in (0.5, 1.0, 1.5, 2.0, 3.0)},
    "adaptive": _with(acquisition=AdaptiveLowerBound()),
    "conformal-ei": _with(acquisition=ConformalAcquisition("improvement")),
    "conformal-lcb": _with(acquisition=ConformalAcquisition("bound")),
    # acquisitions for a known optimum
    "erm": _with(acquisition=ExpectedRegret()),
    "cbm": _with(acquisition=RegretBound()),
    "ei-known": _with(acquisition=ImprovementOnOptimum()),
    "mes-known": _with(acquisition=KnownEntropySearch()),
    "bounded": _with(acquisition=BoundedImprovement()),
}
"""Parts by which a preset may be changed: "plain+online" is the plain strategy with an online recalibrator."""


def named(strategy: str | Strategy | None, recalibrate: Recalibrate | None = None) -> Strategy:
    """A strategy by its name, itself, or the default; recalibrating as it does by itself, or as asked for."""
    if recalibrate is not None:
        return named(strategy).recalibrating(recalibrate)
    if strategy is None:
        return PRESETS["default"]
    if isinstance(strategy, Strategy):
        return strategy
    name, *parts = strategy.split("+") if isinstance(strategy, str) else [""]
    if name not in PRESETS or any(part not in PARTS for part in parts):
        raise InputError(
            f"`strategy` must be a Strategy or one of {sorted(PRESETS)}, with a plus and one of {sorted(PARTS)} "
            f"where a part shall be another, but got {strategy!r}."
        )
    return reduce(lambda before, part: PARTS[part](before), parts, PRESETS[name])


def label(strategy: Strategy) -> str:
    """How a strategy is called where a person reads it: the preset it is, or "custom" and its identity."""
    return next((name for name, preset in PRESETS.items() if preset == strategy), f"custom {identity(strategy)}")
