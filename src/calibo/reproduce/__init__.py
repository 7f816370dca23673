"""Papers reproduced: one target a table or figure, each with its runs and a report beside the paper's numbers."""

from calibo.reproduce.calibration import CALIBRATION
from calibo.reproduce.optimum import OPTIMUM
from calibo.reproduce.targets import Archive, Report, Run, Target
from calibo.reproduce.warping import WARPING

__all__ = ["TARGETS", "Archive", "Report", "Run", "Target"]

TARGETS = {target.name: target for target in (*CALIBRATION, *WARPING, *OPTIMUM)}
