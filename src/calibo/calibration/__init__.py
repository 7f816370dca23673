"""Calibration: every forecast is checked against what happened, and corrected."""

from calibo.calibration.base import FittedModel, NoRecalibration, NoScores, Recalibrator, ScoredOutcomes, ScoreSource
from calibo.calibration.prequential import Prequential, Record
from calibo.calibration.recalibrators import Gate, ShiftScaleRecalibrator

__all__ = [
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
]
