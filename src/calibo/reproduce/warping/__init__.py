"""Input warping, sampled hyper-parameters and transfer between tasks: WARP14."""

from calibo.reproduce.warping.figures import FIGURES
from calibo.reproduce.warping.known import KNOWN
from calibo.reproduce.warping.table import TABLE1

__all__ = ["WARPING"]

WARPING = (TABLE1, *FIGURES, *KNOWN)
