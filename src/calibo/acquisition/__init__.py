"""Acquisitions: recipes for the criterion that says where to evaluate next."""

from calibo.acquisition.adaptive import AdaptiveLowerBound
from calibo.acquisition.bounds import LowerBound, LowerQuantile
from calibo.acquisition.conformal import ConformalAcquisition
from calibo.acquisition.improvement import (
    ExpectedImprovement,
    Improvement,
    LogExpectedImprovement,
    ProbabilityOfImprovement,
)
from calibo.acquisition.known import (
    Aimed,
    AimedLandscape,
    BoundedImprovement,
    ExpectedRegret,
    ImprovementOnOptimum,
    KnownAcquisition,
    KnownEntropySearch,
    RegretBound,
    surely_below,
)
from calibo.acquisition.landscape import ForecastLandscape
from calibo.acquisition.protocols import Acquisition, Criterion, Landscape, demand_several

__all__ = [
    "Acquisition",
    "AdaptiveLowerBound",
    "Aimed",
    "AimedLandscape",
    "BoundedImprovement",
    "ConformalAcquisition",
    "Criterion",
    "ExpectedImprovement",
    "ExpectedRegret",
    "ForecastLandscape",
    "Improvement",
    "ImprovementOnOptimum",
    "KnownAcquisition",
    "KnownEntropySearch",
    "Landscape",
    "LogExpectedImprovement",
    "LowerBound",
    "LowerQuantile",
    "ProbabilityOfImprovement",
    "RegretBound",
    "demand_several",
    "surely_below",
]
