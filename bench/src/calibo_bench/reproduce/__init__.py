"""Papers reproduced: one target a table or figure, each with its runs and a report beside the paper's numbers."""

from calibo_bench.reproduce.calibration import CALIBRATION
from calibo_bench.reproduce.optimum import OPTIMUM
from calibo_bench.reproduce.warping import WARPING

__all__ = ["PAPERS"]

PAPERS = (*CALIBRATION, *WARPING, *OPTIMUM)
