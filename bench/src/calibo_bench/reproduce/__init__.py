"""Reproduced papers: one target per table or figure, with its runs and a report next to the paper's numbers."""

from calibo_bench.reproduce.calibration import CALIBRATION
from calibo_bench.reproduce.optimum import OPTIMUM
from calibo_bench.reproduce.warping import WARPING

__all__ = ["PAPERS"]

PAPERS = (*CALIBRATION, *WARPING, *OPTIMUM)
