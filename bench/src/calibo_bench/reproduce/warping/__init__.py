"""Input warping, sampled hyperparameters and transfer between tasks: WARP14."""

from calibo_bench.reproduce.warping.figures import FIGURES
from calibo_bench.reproduce.warping.known import KNOWN
from calibo_bench.reproduce.warping.table import TABLE1

__all__ = ["WARPING"]

WARPING = (TABLE1, *FIGURES, *KNOWN)
