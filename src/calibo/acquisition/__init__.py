"""Acquisitions: recipes for the criterion that says where to evaluate next."""

from calibo.acquisition.bounds import LowerBound, LowerQuantile
from calibo.acquisition.improvement import ExpectedImprovement, LogExpectedImprovement, ProbabilityOfImprovement
from calibo.acquisition.landscape import Landscape
from calibo.acquisition.protocols import Acquisition, Criterion

__all__ = [
    "Acquisition",
    "Criterion",
    "ExpectedImprovement",
    "Landscape",
    "LogExpectedImprovement",
    "LowerBound",
    "LowerQuantile",
    "ProbabilityOfImprovement",
]
