"""Bayesian optimization with calibrated uncertainty."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calibo.diagnostics.audit import Audit, audit
    from calibo.diagnostics.learned import LearnedTasks, LearnedWarps, learned_tasks, learned_warps
    from calibo.diagnostics.stopping import StopAtOptimum, StopWhenUnlikely
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
    from calibo.optuna.corrections import amend, drop, widen
    from calibo.optuna.sampler import CalibratedSampler
    from calibo.parts import register
    from calibo.space import Categorical, Float, Int, Space
    from calibo.strategy import Recommendation, Strategy
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

_ERRORS = ("CaliboError", "CaliboWarning", "FitError", "InputError", "JournalError", "ObjectiveError", "StorageError")
_MODULES = {
    "CalibratedSampler": "optuna.sampler",
    "Forecast": "forecasts",
    "register": "parts",
    **dict.fromkeys(_ERRORS, "errors"),
    **dict.fromkeys(("Optimizer", "Trial"), "optimizer"),
    **dict.fromkeys(("Categorical", "Float", "Int", "Space"), "space"),
    **dict.fromkeys(("Recommendation", "Strategy"), "strategy"),
    **dict.fromkeys(("amend", "drop", "widen"), "optuna.corrections"),
    **dict.fromkeys(("Audit", "audit"), "diagnostics.audit"),
    **dict.fromkeys(("LearnedTasks", "LearnedWarps", "learned_tasks", "learned_warps"), "diagnostics.learned"),
    **dict.fromkeys(("StopAtOptimum", "StopWhenUnlikely"), "diagnostics.stopping"),
    **dict.fromkeys(("Interrupted", "Result", "forecast", "maximize", "minimize", "optimize"), "study"),
}


def __getattr__(name: str) -> Any:
    """Import a module on first use: all of them, with SciPy and Optuna, take half a second."""
    import warnings
    from importlib import import_module
    from importlib.util import find_spec

    if name not in _MODULES:
        if name.startswith("_") or find_spec(f"calibo.{name}") is None:
            raise AttributeError(f"module 'calibo' has no attribute {name!r}")
        return import_module(f"calibo.{name}")

    with warnings.catch_warnings():
        # raised when Optuna is imported in a notebook without widgets, which calibo's progress bar does not need
        warnings.filterwarnings("ignore", message="IProgress not found")
        module = import_module(f"calibo.{_MODULES[name]}")
    value = globals()[name] = getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
