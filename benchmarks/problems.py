"""Textbook functions on the unit cube with minimum 0, for choosing defaults; optima lie off the centre."""

from collections.abc import Callable

import numpy as np

from calibo.bench.functions import function

Array = np.ndarray


def on_cube(name: str, low: float | None = None, high: float | None = None) -> tuple[Callable[[Array], float], int]:
    """A function above its minimum on the unit cube, in its own box or in another one."""
    made = function(name)
    bottom, top = made.low if low is None else low, made.high if high is None else high
    return (lambda x: made(bottom + (top - bottom) * x) - made.minimum), made.d


PROBLEMS: dict[str, tuple[Callable[[Array], float], int]] = {
    "branin": on_cube("branin"),
    "camel": on_cube("camel6"),
    "hartmann3": on_cube("hartmann3"),
    "ackley3": on_cube("ackley3", -10, 15),
    "rosenbrock4": on_cube("rosenbrock4"),
    "alpine4": on_cube("alpine4", -7, 10),
    "levy5": on_cube("levy5", -6, 10),
    "styblinski5": on_cube("styblinski5"),
    "hartmann6": on_cube("hartmann6"),
}
