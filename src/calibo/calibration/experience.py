"""Experience: how much too narrow or too wide a model's forecasts tended to be in earlier runs, by number of outcomes.

A correction learned from a run cannot repair the first forecasts of that run. So it starts from a table, learned on
functions made for it (`calibo-bench learn`). The run's own outcomes correct what is left. The true value at the
recommended point is never observed, so there the table is all there is.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from calibo.arrays import Array
from calibo.forecasts import NO_CORRECTION, CalibrationMap

Widths = tuple[tuple[int, float], ...]
"""Numbers of known outcomes, increasing, and the factor on the width of forecasts from there on; 1 before the first."""


@dataclass(frozen=True)
class Experience:
    """Factors on the width of forecasts."""

    outcomes: Widths = ()
    """Of forecasts of the next outcome, and of the function anywhere."""

    recommended: Widths = ()
    """Of forecasts of the function at the recommended point, which is chosen for a good forecast."""

    def map(self, known: int) -> CalibrationMap:
        """For forecasts with so many ``known`` outcomes."""
        return _map(self.outcomes, known)

    def map_of_recommended(self, known: int) -> CalibrationMap:
        """For the forecast of the function at the recommended point."""
        return _map(self.recommended, known)

    def corrected(self, scores: Array) -> Array:
        """The ``scores`` (n,) of outcomes in order of arrival, each under the forecast corrected at its time."""
        return np.array([float(self.map(known)(z)) for known, z in enumerate(scores.tolist())])


def _map(widths: Widths, known: int) -> CalibrationMap:
    width = next((width for first, width in reversed(widths) if first <= known), 1.0)
    return NO_CORRECTION if width == 1.0 else CalibrationMap.shift_scale(0.0, width)


NONE = Experience()


def experience_of(model: str) -> Experience:
    """What was learned about the model of this identity; empty for all others."""
    return _tables().get(model, NONE)


@cache
def _tables() -> dict[str, Experience]:
    stored = json.loads(files("calibo.calibration").joinpath("experience.json").read_text(encoding="utf-8"))
    return {
        model: Experience(_widths(table["outcomes"]), _widths(table["recommended"])) for model, table in stored.items()
    }


def _widths(rows: Sequence[Sequence[float]]) -> Widths:
    return tuple((int(known), float(width)) for known, width in rows)
