"""Scoring rules and calibration measures of forecasts.

Notation: the PIT u = F(y) is the forecast CDF at the outcome; it is uniform if forecasts are calibrated. The normal
score is z = Phi^-1(u). Outcomes are minimized, so u near 1 means worse than forecast.
"""

from dataclasses import dataclass
from math import pi, sqrt

import numpy as np
from scipy.special import ndtr

from calibo.arrays import Array

LEVELS = np.linspace(0.05, 0.95, 19)  # CAL24 Sec. 6: the levels at which calibration is measured
INTERVALS = (0.5, 0.8, 0.9, 0.95)


@dataclass(frozen=True)
class Scores:
    """Scores of a sequence of forecasts; NaN if it is empty."""

    count: int
    calibration_score: float
    """Sum over levels of the squared difference between a level and the fraction of PITs up to it; CAL24 Sec. 6."""

    calibration_error: float
    """The corresponding root mean square: comparable between different numbers of levels."""

    coverage: dict[float, float]
    """Fraction of outcomes in each central interval."""

    bias: float
    """Mean PIT minus one half: above 0 if outcomes were worse than forecast."""

    crps: float
    """Mean continuous ranked probability score, in units of the outcome."""

    log_score: float
    """Mean log density, larger is better."""

    sharpness: float
    """Mean standard deviation of the forecasts."""


def score_normal(loc: Array, scale: Array, y: Array, scores: Array | None = None) -> Scores:
    """Scores of Normal forecasts (n,) with standard deviations ``scale`` for the outcomes ``y``.

    If forecasts were recalibrated or are not Normal, pass the normal ``scores`` of the outcomes.
    """
    z = (y - loc) / scale
    log_density = -0.5 * z**2 - np.log(scale) - 0.5 * np.log(2 * pi)
    return summary(z if scores is None else scores, normal_crps(loc, scale, y), log_density, scale)


def summary(scores: Array, crps: Array, log_density: Array, width: Array) -> Scores:
    """Summary of any forecasts (n,); ``width`` is half the distance between the outcomes at scores -1 and 1."""
    if not len(scores):
        nothing = dict.fromkeys(INTERVALS, np.nan)
        return Scores(0, np.nan, np.nan, nothing, np.nan, np.nan, np.nan, np.nan)
    pits = ndtr(scores)
    return Scores(
        count=len(scores),
        calibration_score=calibration_score(pits),
        calibration_error=calibration_error(pits),
        coverage={level: coverage(pits, level) for level in INTERVALS},
        bias=float(pits.mean()) - 0.5,
        crps=float(crps.mean()),
        log_score=float(log_density.mean()),
        sharpness=float(width.mean()),
    )


def calibration_score(pits: Array, levels: Array = LEVELS) -> float:
    """Sum of (p - fraction of PITs up to p)^2 over the levels p."""
    shares = (pits[:, None] <= levels).mean(axis=0)
    return float(np.square(levels - shares).sum())


def calibration_error(pits: Array, levels: Array = LEVELS) -> float:
    """Root mean square of p - fraction of PITs up to p over the levels p."""
    return sqrt(calibration_score(pits, levels) / len(levels))


def coverage(pits: Array, level: float) -> float:
    """Fraction of outcomes in the central interval of probability ``level``."""
    return float((np.abs(pits - 0.5) <= 0.5 * level).mean())


def normal_crps(loc: Array, scale: Array, y: Array) -> Array:
    """(n,) CRPS of Normal forecasts in closed form [GR07, Eq. 21]."""
    z = (y - loc) / scale
    density = np.exp(-0.5 * z**2) / sqrt(2 * pi)
    return np.asarray(scale * (z * (2 * ndtr(z) - 1) + 2 * density - 1 / sqrt(pi)))


def quantile_crps(quantiles: Array, y: float) -> float:
    """CRPS of a forecast given by quantiles (k,) at the levels (j + 1/2) / k: twice the mean pinball loss [GR07]."""
    levels = (np.arange(len(quantiles)) + 0.5) / len(quantiles)
    return 2.0 * float(((y - quantiles) * (levels - (y < quantiles))).mean())
