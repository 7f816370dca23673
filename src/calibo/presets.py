"""Presets: named strategies, and named parts that modify them."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import reduce
from typing import Any

from calibo.acquisition import (
    BoundedImprovement,
    ExpectedImprovement,
    ExpectedRegret,
    LowerBound,
    ProbabilityOfImprovement,
)
from calibo.calibration import (
    Gate,
    NoRecalibration,
    NoScores,
    Prequential,
    Recalibrator,
    ScoreSource,
    ShiftScaleRecalibrator,
)
from calibo.errors import InputError
from calibo.forecaster import Recalibrate
from calibo.gp.kernels import RBF, Linear, Matern52, Periodic
from calibo.models import GaussianProcess, IntegratedProcess, KnownOptimum, ModelChoice, Surrogate
from calibo.parts import identity
from calibo.priors import FLAT
from calibo.research.adaptive import AdaptiveLowerBound
from calibo.research.bagging import Bagged
from calibo.research.conformal import ConformalAcquisition
from calibo.research.known_optimum import ImprovementOnOptimum, KnownEntropySearch, RegretBound
from calibo.research.local_scale import LocalScale
from calibo.research.recalibrators import (
    SHORT,
    GPRecalibrator,
    MLPRecalibrator,
    OnlineRecalibrator,
    SigmaScaleRecalibrator,
)
from calibo.research.score_sources import RefittedLeaveOneOut, RefittedTimeSeries
from calibo.research.transforms import LearnedBoxCox, LearnedTanh, Logarithm
from calibo.strategy import REPORT, Strategy

PLAIN = Strategy(GaussianProcess(), NoScores(), NoRecalibration(), report=None, decide="always")
PAPERS_BASE = replace(
    PLAIN, surrogate=GaussianProcess(RBF(), FLAT, growth=0.0), acquisition=ExpectedImprovement(), initial=3
)

PAPERS_MAP = SigmaScaleRecalibrator(GPRecalibrator())
PAPERS_ONLINE = OnlineRecalibrator(SHORT, start="zero")

PRESETS: Mapping[str, Strategy] = {
    "default": Strategy(),
    "plain": PLAIN,
    "ei": Strategy(acquisition=ExpectedImprovement()),
    "pi": Strategy(acquisition=ProbabilityOfImprovement()),
    "lcb": Strategy(acquisition=LowerBound()),
    "papers-base": PAPERS_BASE,
    "papers": replace(PAPERS_BASE, score_source=RefittedLeaveOneOut(), recalibrator=PAPERS_MAP),
    "papers-online": replace(PAPERS_BASE, score_source=RefittedLeaveOneOut(), recalibrator=PAPERS_ONLINE),
}
"""Named strategies. "plain" does not recalibrate; "papers-base" is the baseline of CAL21, CAL23 and CAL24 (RBF,
maximum likelihood), "papers" the same with their calibration, "papers-online" with that of CAL24 Alg. 3 and 4 and
Eq. (11). With leave-one-out scores, as in Alg. 4, the bound of Thm. 2 does not apply to the outcomes of the run."""


Change = Callable[[Strategy], Strategy]


def _with(**parts: Any) -> Change:
    return lambda strategy: replace(strategy, **parts)


def _recalibrated(source: ScoreSource, recalibrator: Recalibrator) -> Change:
    return _with(score_source=source, recalibrator=recalibrator, decide="always")


def _process(**parts: Any) -> Change:
    """Replace parts of the Gaussian process."""
    return lambda strategy: replace(strategy, surrogate=strategy.surrogate.with_process(**parts))


def _around(wrap: Callable[[Any], Surrogate]) -> Change:
    """Wrap the surrogate in another one."""
    return lambda strategy: replace(strategy, surrogate=wrap(strategy.surrogate))


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
    "bagged": _around(Bagged),
    "local": _around(LocalScale),
    "root": _around(lambda process: KnownOptimum(recipe=process)),
    "root-linear": _around(lambda process: KnownOptimum(recipe=process, moments="linear")),
    "integrated": _with(surrogate=IntegratedProcess()),
    # the view for people
    "reported": _with(report=REPORT),
    "unreported": _with(report=None),
    # score sources and recalibrators
    "loo-sigma": _recalibrated(RefittedLeaveOneOut(), SigmaScaleRecalibrator()),
    "loo-gp": _recalibrated(RefittedLeaveOneOut(), GPRecalibrator()),
    "papers": _recalibrated(RefittedLeaveOneOut(), PAPERS_MAP),
    "time-series": _recalibrated(RefittedTimeSeries(), SigmaScaleRecalibrator()),
    **{f"splits{k}": _recalibrated(RefittedTimeSeries(k), PAPERS_MAP) for k in (1, 2, 3, 4)},
    "splits1-mlp": _recalibrated(RefittedTimeSeries(), SigmaScaleRecalibrator(MLPRecalibrator())),
    "online": _recalibrated(Prequential(), OnlineRecalibrator()),
    "online-short": _recalibrated(Prequential(), OnlineRecalibrator(SHORT)),
    "shift-scale": _recalibrated(Prequential(), ShiftScaleRecalibrator()),
    "gate": _with(score_source=Prequential(), recalibrator=Gate()),
    # when decisions read calibrated forecasts
    "decide-always": _with(decide="always"),
    "decide-noise": _with(decide="noise"),
    "decide-never": _with(decide="never"),
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
"""Parts that modify a preset: "plain+online" is the plain strategy with an online recalibrator."""


def get_strategy(strategy: str | Strategy | None, recalibrate: Recalibrate | None = None) -> Strategy:
    """The strategy, by name or as given; None is the default preset. ``recalibrate`` overrides its recalibration."""
    if recalibrate is not None:
        return get_strategy(strategy).with_recalibration(recalibrate)
    if strategy is None:
        return PRESETS["default"]
    if isinstance(strategy, Strategy):
        return strategy
    name, *parts = strategy.split("+") if isinstance(strategy, str) else [""]
    if name not in PRESETS or any(part not in PARTS for part in parts):
        raise InputError(
            f"`strategy` must be a Strategy or one of {sorted(PRESETS)}, optionally with '+' and one of "
            f"{sorted(PARTS)} for each part to replace, but got {strategy!r}."
        )
    return reduce(lambda before, part: PARTS[part](before), parts, PRESETS[name])


def first_strategy(name: str, recalibrate: Recalibrate | None = None) -> Strategy:
    """What a name stands for in a study or journal of the first version, which stored no more than the name."""
    return replace(get_strategy(name, recalibrate), decide="always")


def label(strategy: Strategy) -> str:
    """The display name of a strategy: its preset, or "custom" and its identity."""
    return next((name for name, preset in PRESETS.items() if preset == strategy), f"custom {identity(strategy)}")
