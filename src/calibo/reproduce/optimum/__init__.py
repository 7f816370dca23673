"""Optimization with a known optimum value [OPT20]."""

from calibo.reproduce.optimum.functions import FUNCTIONS

__all__ = ["OPTIMUM"]

OPTIMUM = FUNCTIONS
