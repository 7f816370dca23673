"""Optimization with a known optimum value: OPT20."""

from calibo_bench.reproduce.optimum.functions import FUNCTIONS
from calibo_bench.reproduce.optimum.trained import TRAINED

__all__ = ["OPTIMUM"]

OPTIMUM = (*FUNCTIONS, *TRAINED)
