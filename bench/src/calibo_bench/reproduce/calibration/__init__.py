"""Calibrated Bayesian optimization on synthetic functions: CAL21, CAL23 and CAL24."""

from calibo_bench.reproduce.calibration.figures import FIGURES
from calibo_bench.reproduce.calibration.tables import TABLES

__all__ = ["CALIBRATION"]

CALIBRATION = (*TABLES, *FIGURES)
