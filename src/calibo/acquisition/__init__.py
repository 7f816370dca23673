"""Acquisition functions: where to evaluate next."""

from calibo.acquisition.base import Acquisition, Criterion, ForecastLandscape, Landscape
from calibo.acquisition.bounds import LowerBound
from calibo.acquisition.improvement import (
    ExpectedImprovement,
    Improvement,
    LogExpectedImprovement,
    ProbabilityOfImprovement,
)
from calibo.acquisition.known_optimum import (
    BoundedImprovement,
    ExpectedRegret,
    GuardedRegret,
    KnownAcquisition,
)

__all__ = [
    "Acquisition",
    "BoundedImprovement",
    "Criterion",
    "ExpectedImprovement",
    "ExpectedRegret",
    "ForecastLandscape",
    "GuardedRegret",
    "Improvement",
    "KnownAcquisition",
    "Landscape",
    "LogExpectedImprovement",
    "LowerBound",
    "ProbabilityOfImprovement",
]
