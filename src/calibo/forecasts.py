"""Forecast: a weighted mixture of transformed Gaussians, the one noun that passes through every room.

| symbol | meaning |
|---|---|
| S, n | rows of the mixture, points forecast |
| T_s | increasing transform of row s: T_s(y) ~ Normal(loc_s, scale_s) |
| z_s | (T_s(y) - loc_s) / scale_s, the row's score of y |
| F | mixture CDF, sum_s w_s Phi(z_s) |
| score | Phi^-1(F(y)), the mixture's normal score of y; never saturates as F does |
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri, ndtri_exp

from calibo.transforms import IDENTITY, Transform
from calibo.types import Array

__all__ = ["Forecast"]

FAR = 100.0  # a score beyond which squares of scores lose more than asymptotic series leave out
FARTHEST = 1e150  # the largest score whose square is finite
MAX_STEPS = 2200  # bisection alone, every other step, takes a float64 bracket to neighbours; Newton needs a handful


@dataclass(frozen=True, eq=False)
class Forecast:
    """The distribution of an outcome at each of n points; one row with the identity transform is a Normal."""

    loc: Array
    """(S, n)"""

    scale: Array
    """(S, n), positive"""

    weights: Array = field(default_factory=lambda: np.ones(1))
    """(S,), positive, of sum 1"""

    transforms: tuple[Transform, ...] = (IDENTITY,)
    """One a row."""

    @classmethod
    def normal(cls, loc: Array, scale: Array) -> "Forecast":
        """Independent Normals with means ``loc`` (n,) and standard deviations ``scale`` (n,)."""
        return cls(np.atleast_2d(loc), np.atleast_2d(scale))

    def __len__(self) -> int:
        return int(self.loc.shape[1])

    def score(self, y: Array) -> Array:
        """Normal scores of the outcomes ``y`` (..., n): standard normal if the forecast is right."""
        rows, _ = self.row_scores(y)
        return rows[0] if len(rows) == 1 else self._mixed(rows)

    def score_partials(self, y: Array) -> tuple[Array, Array, Array, Array]:
        """Score at ``y`` (..., n) and its derivatives by loc and by scale (S, ..., n) and by y (..., n)."""
        rows, slopes = self.row_scores(y)
        scale = self.scale.reshape(len(rows), *[1] * (rows.ndim - 2), -1)
        if len(rows) == 1:
            return rows[0], -1.0 / scale, -rows / scale, slopes[0]
        score = self._mixed(rows)
        share = self._shares(rows, score)
        return score, -share / scale, -share * rows / scale, (share * slopes).sum(axis=0)

    def row_scores(self, y: Array) -> tuple[Array, Array]:
        """Each row's own score at ``y`` (..., n), and its derivative by y: (S, ..., n) both."""
        shape = (len(self.loc), *[1] * (np.ndim(y) - 1), -1)
        loc, scale = self.loc.reshape(shape), self.scale.reshape(shape)
        if all(transform == IDENTITY for transform in self.transforms):  # most are, and then one operation does
            return _bounded(y - loc, scale), np.broadcast_to(1.0 / scale, (len(loc), *np.shape(y)))
        scores = np.stack([T(y) for T in self.transforms])
        slopes = np.exp(np.stack([T.log_slope(y) for T in self.transforms]))
        return _bounded(scores - loc, scale), slopes / scale

    def at_score(self, q: Array | float) -> Array:
        """The outcomes (..., n) whose score is ``q``; quantile(p) is at_score(Phi^-1(p))."""
        q = np.asarray(q, dtype=float)
        rows = np.stack(
            [T.inverse(loc + scale * q) for T, loc, scale in zip(self.transforms, self.loc, self.scale, strict=True)]
        )
        return rows[0] if len(rows) == 1 else self._solve(q, rows.min(axis=0), rows.max(axis=0))

    def at_score_partials(self, q: float) -> tuple[Array, Array, Array]:
        """at_score(q) (n,) and its derivatives by loc (S, n) and by scale (S, n)."""
        y = self.at_score(q)
        _, by_loc, by_scale, slope = self.score_partials(y)
        return y, -by_loc / slope, -by_scale / slope

    def log_density(self, y: Array) -> Array:
        """The logarithm (..., n) of the density at ``y``."""
        score, _, _, slope = self.score_partials(y)
        return np.asarray(-0.5 * (np.square(score) + np.log(2.0 * np.pi)) + np.log(slope))

    def cdf(self, y: Array) -> Array:
        """Probability (..., n) of an outcome of at most ``y``."""
        return np.asarray(ndtr(self.score(y)))

    def quantile(self, p: Array | float) -> Array:
        """The outcomes (..., n) that are not exceeded with probability ``p``."""
        return self.at_score(ndtri(p))

    def median(self) -> Array:
        """(n,)"""
        return self.at_score(0.0)

    def interval(self, level: float = 0.9) -> tuple[Array, Array]:
        """Lower and upper end (n,) of the central interval that holds the outcome with probability ``level``."""
        return self.quantile(0.5 - 0.5 * level), self.quantile(0.5 + 0.5 * level)

    def _mixed(self, rows: Array) -> Array:
        """Phi^-1 of the weighted mean of Phi(rows), from the smaller tail so that neither saturates."""
        log_weights = np.log(self.weights).reshape(-1, *[1] * (rows.ndim - 1))
        below, above = _log_sum(log_weights + log_ndtr(rows)), _log_sum(log_weights + log_ndtr(-rows))
        return np.where(below < above, ndtri_exp(np.minimum(below, above)), -ndtri_exp(np.minimum(below, above)))

    def _shares(self, rows: Array, score: Array) -> Array:
        """(S, ..., n) d score / d z_s = w_s phi(z_s) / phi(score)."""
        weights = self.weights.reshape(-1, *[1] * (rows.ndim - 1))
        far = np.abs(score) > FAR
        share = weights * np.exp(0.5 * np.where(far, 0.0, (score - rows) * (score + rows)))
        if not far.any():
            return np.asarray(share)
        # there the squares cancel: the rows' shares of the tail times their hazards, phi / Phi ~ t + 1/t - 2/t^3
        t, top = np.maximum(np.sign(score) * rows, 2.0), np.maximum(np.abs(score), 2.0)  # where the series is positive
        tails = np.log(weights) + log_ndtr(-t)
        hazards, whole = (z + (1.0 - 2.0 / z / z) / z for z in (t, top))
        parts = np.exp(tails - tails.max(axis=0))
        return np.where(far, parts / parts.sum(axis=0) * hazards / whole, share)

    def _solve(self, q: Array, low: Array, high: Array) -> Array:
        """Newton's method inside a bracket: a mixture quantile lies between those of its rows."""
        y, move = 0.5 * low + 0.5 * high, high - low
        for _ in range(MAX_STEPS):
            score, _, _, slope = self.score_partials(y)
            low, high = np.where(score < q, y, low), np.where(score < q, high, y)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                step = y - (score - q) / slope
            # bisect where Newton leaves the bracket, or does not halve its own step: it could go in circles
            good = (step >= low) & (step <= high) & (np.abs(step - y) <= 0.5 * np.abs(move))
            following = np.where(good, step, 0.5 * low + 0.5 * high)
            move = following - y
            if np.all((np.abs(move) <= 1e-15 * np.abs(y)) | (np.abs(score - q) <= 1e-14 * (1.0 + np.abs(q)))):
                break
            y = following
        return np.asarray(y)


def _bounded(distance: Array, scale: Array) -> Array:
    with np.errstate(over="ignore"):
        scores = distance / scale
    if scores.size and (scores.max() > FARTHEST or scores.min() < -FARTHEST):
        return np.where(np.isinf(distance), scores, np.clip(scores, -FARTHEST, FARTHEST))
    return np.asarray(scores)


def _log_sum(terms: Array) -> Array:
    """log sum exp over the first axis; four lines, because SciPy's costs 0.2 ms at these sizes."""
    top = terms.max(axis=0)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(safe + np.log(np.exp(terms - safe).sum(axis=0)))
