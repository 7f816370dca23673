"""Calibrated Bayesian optimization on synthetic functions: CAL21, CAL23 and CAL24."""

from calibo.reproduce.calibration.figures import FIGURES
from calibo.reproduce.calibration.tables import TABLES

__all__ = ["CALIBRATION"]

CALIBRATION = (*TABLES, *FIGURES)
