"""Calibration: every forecast is checked against what happened, and corrected."""

from calibo.calibration.batch import (
    EmpiricalRecalibrator,
    GPRecalibrator,
    MLPRecalibrator,
    ShiftScaleRecalibrator,
    SigmaScaleRecalibrator,
)
from calibo.calibration.evidence import (
    KFold,
    LeaveOneOut,
    RefittedLeaveOneOut,
    RefittedTimeSeries,
    Stream,
    TimeSeries,
)
from calibo.calibration.gate import Gate
from calibo.calibration.maps import CalibrationMap
from calibo.calibration.online import LeaderRecalibrator, OnlineRecalibrator
from calibo.calibration.protocols import Evidence, Fit, NoEvidence, NoRecalibration, Recalibrator, Scored
from calibo.calibration.records import Aim, Recalibrated, Record, stream

__all__ = [
    "Aim",
    "CalibrationMap",
    "EmpiricalRecalibrator",
    "Evidence",
    "Fit",
    "GPRecalibrator",
    "Gate",
    "KFold",
    "LeaderRecalibrator",
    "LeaveOneOut",
    "MLPRecalibrator",
    "NoEvidence",
    "NoRecalibration",
    "OnlineRecalibrator",
    "Recalibrated",
    "Recalibrator",
    "Record",
    "RefittedLeaveOneOut",
    "RefittedTimeSeries",
    "Scored",
    "ShiftScaleRecalibrator",
    "SigmaScaleRecalibrator",
    "Stream",
    "TimeSeries",
    "stream",
]
