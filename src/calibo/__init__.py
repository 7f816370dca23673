"""Bayesian optimization whose uncertainty can be trusted."""

from typing import TYPE_CHECKING, Any

from calibo.answers import PointForecast, Recommendation
from calibo.errors import CaliboError, CaliboWarning, FitError, InputError, JournalError, StorageError
from calibo.forecasts import Forecast
from calibo.optimizer import Optimizer, Trial
from calibo.parts import register
from calibo.space import Categorical, Float, Int, Space
from calibo.strategy import Strategy

if TYPE_CHECKING:
    from calibo.adapters.optuna import CalibratedSampler
    from calibo.audits import Audit, audit
    from calibo.stopping import StopAtOptimum, StopWhenUnlikely
    from calibo.study import Interrupted, Result, forecast, maximize, minimize, optimize
    from calibo.tasks import LearnedTasks, learned_tasks
    from calibo.warps import LearnedWarps, learned_warps

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
    "Optimizer",
    "PointForecast",
    "Recommendation",
    "Result",
    "Space",
    "StopAtOptimum",
    "StopWhenUnlikely",
    "StorageError",
    "Strategy",
    "Trial",
    "audit",
    "forecast",
    "learned_tasks",
    "learned_warps",
    "maximize",
    "minimize",
    "optimize",
    "register",
]

__version__ = "0.1.0"

_WITH_OPTUNA = {
    "CalibratedSampler": "calibo.adapters.optuna",
    **dict.fromkeys(("StopAtOptimum", "StopWhenUnlikely"), "calibo.stopping"),
    **dict.fromkeys(("Audit", "audit"), "calibo.audits"),
    **dict.fromkeys(("LearnedTasks", "learned_tasks"), "calibo.tasks"),
    **dict.fromkeys(("LearnedWarps", "learned_warps"), "calibo.warps"),
    **dict.fromkeys(("Interrupted", "Result", "forecast", "maximize", "minimize", "optimize"), "calibo.study"),
}


def __getattr__(name: str) -> Any:
    """What needs Optuna is imported when it is used: that takes half a second."""
    if name not in _WITH_OPTUNA:
        raise AttributeError(f"module 'calibo' has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(_WITH_OPTUNA[name]), name)
    return value
