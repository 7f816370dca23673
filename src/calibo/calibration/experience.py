"""Experience: how much too narrow a model's forecasts tended to be in earlier runs, by number of outcomes.

A correction learned from a run cannot repair the first forecasts of that run. So it starts from a table, learned on
functions made for it (`calibo-bench learn`). The run's own outcomes correct what is left.
"""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from calibo.arrays import Array
from calibo.forecasts import NO_CORRECTION, CalibrationMap
from calibo.parts import identity


@dataclass(frozen=True)
class Experience:
    """Factors on the width of forecasts."""

    widths: tuple[tuple[int, float], ...] = ()
    """Numbers of known outcomes, increasing, and the factor from there on; 1 before the first."""

    def map(self, known: int) -> CalibrationMap:
        """For forecasts with so many ``known`` outcomes."""
        width = next((width for first, width in reversed(self.widths) if first <= known), 1.0)
        return NO_CORRECTION if width == 1.0 else CalibrationMap.shift_scale(0.0, width)

    def corrected(self, scores: Array) -> Array:
        """The ``scores`` (n,) of outcomes in order of arrival, each under the forecast corrected at its time."""
        return np.array([float(self.map(known)(z)) for known, z in enumerate(scores.tolist())])


NONE = Experience()


def experience_of(surrogate: Any) -> Experience:
    """What was learned about this model; empty for one with another spec."""
    return _tables().get(identity(surrogate), NONE)


@cache
def _tables() -> dict[str, Experience]:
    stored = json.loads(files("calibo.calibration").joinpath("experience.json").read_text(encoding="utf-8"))
    return {model: Experience(tuple((int(n), float(width)) for n, width in rows)) for model, rows in stored.items()}
