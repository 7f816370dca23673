"""Bayesian optimization with calibrated uncertainty."""

from typing import TYPE_CHECKING, Any

from calibo.errors import (
    CaliboError,
    CaliboWarning,
    FitError,
    InputError,
    JournalError,
    ObjectiveError,
    StorageError,
)
from calibo.forecasts import Forecast
from calibo.optimizer import Optimizer, Trial
from calibo.parts import register
from calibo.space import Categorical, Float, Int, Space
from calibo.strategy import Recommendation, Strategy

if TYPE_CHECKING:
    from calibo.diagnostics.audit import Audit, audit
    from calibo.diagnostics.learned import LearnedTasks, LearnedWarps, learned_tasks, learned_warps
    from calibo.diagnostics.stopping import StopAtOptimum, StopWhenUnlikely
    from calibo.optuna.corrections import amend, drop, widen
    from calibo.optuna.sampler import CalibratedSampler
    from calibo.study import Interrupted, Result, forecast, maximize, minimize, optimize

__all__ = [
    "Audit",
    "CaliboError",
    "CaliboWarning",
    "CalibratedSampler",
    "Categorical",
    "FitError",
    "Float",
    "Forecast",
    "InputError",
    "Int",
    "Interrupted",
    "JournalError",
    "LearnedTasks",
    "LearnedWarps",
    "ObjectiveError",
    "Optimizer",
    "Recommendation",
    "Result",
    "Space",
    "StopAtOptimum",
    "StopWhenUnlikely",
    "StorageError",
    "Strategy",
    "Trial",
    "amend",
    "audit",
    "drop",
    "forecast",
    "learned_tasks",
    "learned_warps",
    "maximize",
    "minimize",
    "optimize",
    "register",
    "widen",
]

__version__ = "0.1.0"

_WITH_OPTUNA = {
    "CalibratedSampler": "calibo.optuna.sampler",
    **dict.fromkeys(("amend", "drop", "widen"), "calibo.optuna.corrections"),
    **dict.fromkeys(("Audit", "audit"), "calibo.diagnostics.audit"),
    **dict.fromkeys(("LearnedTasks", "LearnedWarps", "learned_tasks", "learned_warps"), "calibo.diagnostics.learned"),
    **dict.fromkeys(("StopAtOptimum", "StopWhenUnlikely"), "calibo.diagnostics.stopping"),
    **dict.fromkeys(("Interrupted", "Result", "forecast", "maximize", "minimize", "optimize"), "calibo.study"),
}


def __getattr__(name: str) -> Any:
    """Import what needs Optuna on first use: importing it takes half a second."""
    if name not in _WITH_OPTUNA:
        raise AttributeError(f"module 'calibo' has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(_WITH_OPTUNA[name]), name)
    return value
