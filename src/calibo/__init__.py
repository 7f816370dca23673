"""Bayesian optimization whose uncertainty can be trusted."""

__version__ = "0.1.0"
