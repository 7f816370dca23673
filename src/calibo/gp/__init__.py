"""Gaussian processes with analytic gradients. Independent of the optimization code."""
