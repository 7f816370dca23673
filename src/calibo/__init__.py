"""Bayesian optimization whose uncertainty can be trusted."""

from calibo.errors import CaliboError, CaliboWarning, FitError, InputError, JournalError
from calibo.forecast import Forecast
from calibo.optimizer import Optimizer, PointForecast, Recommendation, Trial
from calibo.space import Categorical, Float, Int, Space
from calibo.strategy import Strategy

__all__ = [
    "CaliboError",
    "CaliboWarning",
    "Categorical",
    "FitError",
    "Float",
    "Forecast",
    "InputError",
    "Int",
    "JournalError",
    "Optimizer",
    "PointForecast",
    "Recommendation",
    "Space",
    "Strategy",
    "Trial",
]

__version__ = "0.1.0"
