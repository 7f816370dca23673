"""Acquisitions: recipes for the criterion that says where to evaluate next."""

from calibo.acquisition.base import Acquisition, Criterion, ForecastLandscape, Landscape
from calibo.acquisition.bounds import LowerBound
from calibo.acquisition.improvement import (
    ExpectedImprovement,
    Improvement,
    LogExpectedImprovement,
    ProbabilityOfImprovement,
)
from calibo.acquisition.known_optimum import (
    Aimed,
    BoundedImprovement,
    ExpectedRegret,
    KnownAcquisition,
)

__all__ = [
    "Acquisition",
    "Aimed",
    "BoundedImprovement",
    "Criterion",
    "ExpectedImprovement",
    "ExpectedRegret",
    "ForecastLandscape",
    "Improvement",
    "KnownAcquisition",
    "Landscape",
    "LogExpectedImprovement",
    "LowerBound",
    "ProbabilityOfImprovement",
]
