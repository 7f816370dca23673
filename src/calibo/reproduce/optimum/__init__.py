"""Optimization with a known optimum value: OPT20."""

from calibo.reproduce.optimum.functions import FUNCTIONS
from calibo.reproduce.optimum.trained import TRAINED

__all__ = ["OPTIMUM"]

OPTIMUM = (*FUNCTIONS, *TRAINED)
