"""Parts that the default does not use: methods from papers and experiments, to combine explicitly or by name."""

from calibo.research.adaptive import AdaptiveLowerBound
from calibo.research.bagging import Bagged
from calibo.research.conformal import ConformalAcquisition
from calibo.research.known_optimum import ImprovementOnOptimum, KnownEntropySearch, RegretBound
from calibo.research.local_scale import LocalScale
from calibo.research.recalibrators import (
    EmpiricalRecalibrator,
    GPRecalibrator,
    MLPRecalibrator,
    OnlineRecalibrator,
    SigmaScaleRecalibrator,
)
from calibo.research.score_sources import RefittedLeaveOneOut, RefittedTimeSeries
from calibo.research.transforms import LearnedBoxCox, LearnedTanh, Logarithm

__all__ = [
    "AdaptiveLowerBound",
    "Bagged",
    "ConformalAcquisition",
    "EmpiricalRecalibrator",
    "GPRecalibrator",
    "ImprovementOnOptimum",
    "KnownEntropySearch",
    "LearnedBoxCox",
    "LearnedTanh",
    "LocalScale",
    "Logarithm",
    "MLPRecalibrator",
    "OnlineRecalibrator",
    "RefittedLeaveOneOut",
    "RefittedTimeSeries",
    "RegretBound",
    "SigmaScaleRecalibrator",
]
