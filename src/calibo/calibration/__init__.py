"""Calibration: forecasts are scored on observed outcomes and recalibrated."""

from calibo.calibration.base import FittedModel, NoRecalibration, NoScores, Recalibrator, ScoredOutcomes, ScoreSource
from calibo.calibration.experience import Experience, experience_of
from calibo.calibration.prequential import Prequential, Record
from calibo.calibration.recalibrators import Gate, ShiftScaleRecalibrator

__all__ = [
    "Experience",
    "FittedModel",
    "Gate",
    "NoRecalibration",
    "NoScores",
    "Prequential",
    "Recalibrator",
    "Record",
    "ScoreSource",
    "ScoredOutcomes",
    "ShiftScaleRecalibrator",
    "experience_of",
]
