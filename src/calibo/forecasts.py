"""Forecasts, i.e. predictive distributions of outcomes, and the maps that calibrate them.

A forecast is a weighted mixture of transformed Gaussians, recalibrated by a map.

| symbol | meaning |
|---|---|
| S, n | components (rows) of the mixture, points |
| T_s | increasing transform of component s: T_s(y) ~ Normal(loc_s, scale_s) |
| z_s | (T_s(y) - loc_s) / scale_s, the component's normal score of y |
| F | raw mixture CDF, sum_s w_s Phi(z_s) |
| z | Phi^-1(F(y)), the raw normal score of y; unlike F it never saturates |
| m | calibration map of normal scores: the calibrated CDF is Phi(m(z)) |

On probabilities the map is C(p) = Phi(m(Phi^-1(p))). On levels it is R = C^-1: the calibrated quantile at p is the raw
outcome at the score m^-1(Phi^-1(p)).
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri, ndtri_exp

from calibo.arrays import Array, Indices, read_only
from calibo.errors import InputError, require_number
from calibo.html import table
from calibo.transforms import IDENTITY, Transform, negate

APART = 1e-6  # minimum distance of knots and of values: keeps the map and its inverse strictly increasing
SHOWN = 10  # points in a notebook
FARTHEST_SCORE = 100.0  # scores are clipped here: a forecast a hundred standard deviations off is simply wrong
FAR = 100.0  # score beyond which cancellation in squares exceeds the truncation error of the asymptotic series
FARTHEST = 1e150  # a score whose square is finite
EXACT = 1e-14  # tolerance of normal scores
MAX_STEPS = 2200  # enough for bisection in every other step to converge in float64; Newton needs a handful


@dataclass(frozen=True, eq=False)
class CalibrationMap:
    """A piecewise-linear increasing function of normal scores through ``knots``; a line if there are none."""

    knots: Array = field(default_factory=lambda: np.empty(0))
    """(k,) increasing scores."""

    values: Array = field(default_factory=lambda: np.empty(0))
    """(k,) values of the map at the knots."""

    left: float = 1.0
    """Slope below the first knot, positive; of the whole line without knots."""

    right: float = 1.0
    """Slope above the last knot, positive; equal to ``left`` without knots."""

    intercept: float = 0.0
    """The map at score 0, without knots."""

    strength: float | None = None
    """The strength at which a gate applied the correction; None without a gate."""

    @classmethod
    def shift_scale(cls, shift: float, scale: float) -> "CalibrationMap":
        """m(z) = (z - shift) / scale: corrects a bias of ``shift`` and a width of ``scale``."""
        return cls(left=1.0 / scale, right=1.0 / scale, intercept=-shift / scale)

    @classmethod
    def through(cls, knots: Array, values: Array, left: float = 1.0, right: float = 1.0) -> "CalibrationMap":
        """The map through non-decreasing points; ties are moved slightly apart."""
        return cls(_apart(knots), _apart(values), left, right) if len(knots) else cls()

    @cached_property
    def is_identity(self) -> bool:
        return self.is_line and self.left == 1.0 and self.intercept == 0.0

    @cached_property
    def is_line(self) -> bool:
        return len(self.knots) == 0

    def __call__(self, z: Array | float) -> Array:
        z = np.asarray(z, dtype=float)
        if self.is_line:
            return np.asarray(self.intercept + self.left * z)
        inside = np.interp(z, self.knots, self.values)
        # both lines are zero between the knots; infinite scores stay infinite
        below, above = np.minimum(z - self.knots[0], 0.0), np.maximum(z - self.knots[-1], 0.0)
        return np.asarray(inside + self.left * below + self.right * above)

    def inverse(self, z: Array | float) -> Array:
        """The scores that the map maps to ``z``."""
        return self._inverse(z)

    def slope(self, z: Array | float) -> Array:
        """The derivative of the map; at a knot, of the piece above it."""
        z = np.asarray(z, dtype=float)
        return np.asarray(self.slopes[np.searchsorted(self.knots, z, side="right")])

    @cached_property
    def slopes(self) -> Array:
        """(k + 1,) slopes of the pieces, in increasing order of z."""
        if self.is_line:
            return read_only(np.array([self.left]))
        inner = np.diff(self.values) / np.diff(self.knots)
        return read_only(np.concatenate([[self.left], inner, [self.right]]))

    def log_gain(self, z: Array) -> Array:
        """The gain in log density from the map for outcomes with raw scores ``z``."""
        mapped = self(z)
        return np.asarray(0.5 * (z - mapped) * (z + mapped) + np.log(self.slope(z)))

    def negate(self) -> "CalibrationMap":
        """The map -m(-z), which calibrates the forecast of -y."""
        return CalibrationMap(
            -self.knots[::-1], -self.values[::-1], self.right, self.left, -self.intercept, self.strength
        )

    def then(self, line: "CalibrationMap") -> "CalibrationMap":
        """The map followed by a line."""
        slope = line.left
        left, right, values = slope * self.left, slope * self.right, line.intercept + slope * self.values
        return CalibrationMap(self.knots, values, left, right, line.intercept + slope * self.intercept, line.strength)

    def after(self, line: "CalibrationMap") -> "CalibrationMap":
        """The map preceded by a line."""
        left, right, knots = self.left * line.left, self.right * line.left, line.inverse(self.knots)
        return CalibrationMap(
            knots, self.values, left, right, self.intercept + self.left * line.intercept, self.strength
        )

    def shrink(self, strength: float) -> "CalibrationMap":
        """z + strength (m(z) - z): the identity at 0, the map at 1."""
        left, right = (1.0 + strength * (slope - 1.0) for slope in (self.left, self.right))
        values = self.knots + strength * (self.values - self.knots)
        return CalibrationMap(self.knots, values, left, right, strength * self.intercept, strength)

    @cached_property
    def _inverse(self) -> "CalibrationMap":
        return CalibrationMap(self.values, self.knots, 1.0 / self.left, 1.0 / self.right, -self.intercept / self.left)


NO_CORRECTION = CalibrationMap()


def usable_scores(scores: Array) -> Array:
    """The scores that are not NaN, clipped to +-100 so that maps stay finite."""
    return np.clip(scores[~np.isnan(scores)], -FARTHEST_SCORE, FARTHEST_SCORE)


def _apart(points: Array) -> Array:
    step = max(APART, 8.0 * float(np.spacing(np.abs(points).max())))  # float spacing grows with magnitude
    steps = step * np.arange(len(points))
    return np.asarray(np.maximum.accumulate(points - steps) + steps)


@dataclass(frozen=True, eq=False, repr=False)
class Forecast:
    """The predictive distribution of the outcome at each of n points, or at one point if ``loc`` is (S,).

    Results have the shape (..., n), or (...) at one point. One component with the identity transform is a Normal.
    """

    loc: Array
    """(S, n), or (S,) at one point"""

    scale: Array
    """The same shape, positive"""

    weights: Array = field(default_factory=lambda: np.ones(1))
    """(S,), positive, summing to 1"""

    transforms: tuple[Transform, ...] = (IDENTITY,)
    """One per component."""

    map: CalibrationMap = NO_CORRECTION

    @classmethod
    def normal(cls, loc: Array, scale: Array) -> "Forecast":
        """Independent Normals with means ``loc`` (n,) and standard deviations ``scale`` (n,)."""
        return cls(np.atleast_2d(loc), np.atleast_2d(scale))

    def __len__(self) -> int:
        if self.loc.ndim == 1:
            raise TypeError("a forecast at one point has no length")
        return int(self.loc.shape[1])

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        if self.loc.ndim > 1:
            return f"Forecast(of {len(self)} points)"
        low, high = self.interval(0.9)
        return f"Forecast(median={self.median:.6g}, 90 % interval=({low:.6g}, {high:.6g}))"

    def _repr_html_(self) -> str:
        """For notebooks."""
        points = [self] if self.loc.ndim == 1 else [self[i] for i in range(min(len(self), SHOWN))]
        rows = [(f"{f.median:.6g}", "{:.6g} to {:.6g}".format(*f.interval(0.9))) for f in points]
        more = [(f"... {len(self)} points", "")] if self.loc.ndim > 1 and len(self) > SHOWN else []
        return table([("median", "90 % interval"), *rows, *more])

    def __getitem__(self, points: Any) -> "Forecast":
        """The forecast at a subset of the points, or at one of them."""
        return replace(self, loc=self.loc[:, points], scale=self.scale[:, points])

    def calibrated(self, map: CalibrationMap) -> "Forecast":
        """The same forecast, with ``map`` as its calibration map."""
        return replace(self, map=map)

    @property
    def raw(self) -> "Forecast":
        """The same forecast before calibration."""
        return self if self.map.is_identity else replace(self, map=NO_CORRECTION)

    def negate(self) -> "Forecast":
        """The forecast of -y."""
        transforms = tuple(negate(transform) for transform in self.transforms)
        return Forecast(-self.loc, self.scale, self.weights, transforms, self.map.negate())

    @property
    def is_normal(self) -> bool:
        """Whether it is a Normal at each point, including calibration."""
        return len(self.loc) == 1 and self.transforms == (IDENTITY,) and self.map.is_line

    @property
    def mean_and_std(self) -> tuple[Array, Array]:
        """Mean and standard deviation; only if it is Normal."""
        return self.loc[0] + self.scale[0] * float(self.map.inverse(0.0)), self.scale[0] / self.map.left

    def normal_score(self, y: Array | float) -> Array:
        """Normal scores of the outcomes ``y``: standard normal if the forecast is calibrated."""
        rows, _ = self.row_scores(self._at_points(y))
        z = rows[0] if len(rows) == 1 else self._mixture_score(rows)
        return z if self.map.is_identity else self.map(z)

    def normal_score_partials(self, y: Array) -> tuple[Array, Array, Array, Array]:
        """The raw normal score at ``y`` and its derivatives w.r.t. loc and scale (S, ...) and y."""
        rows, slopes = self.row_scores(y)
        scale = self._as_rows(self.scale, y)
        if len(rows) == 1:
            return rows[0], -1.0 / scale, -rows / scale, slopes[0]
        score = self._mixture_score(rows)
        share = self._shares(rows, score)
        return score, -share / scale, -share * rows / scale, (share * slopes).sum(axis=0)

    def row_scores(self, y: Array | float) -> tuple[Array, Array]:
        """Each component's score at ``y``, and its derivative w.r.t. y: both (S, ...)."""
        loc, scale = self._as_rows(self.loc, y), self._as_rows(self.scale, y)
        if all(transform == IDENTITY for transform in self.transforms):  # the common case, vectorized
            return _bounded(y - loc, scale), np.broadcast_to(1.0 / scale, (len(loc), *np.shape(y)))
        y = np.asarray(y, dtype=float)
        distinct, of_row = self._distinct_transforms
        scores = np.stack([T(y) for T in distinct])
        slopes = np.exp(np.stack([T.log_slope(y) for T in distinct]))
        return _bounded(scores[of_row] - loc, scale), slopes[of_row] / scale

    def at_normal_score(self, q: Array | float, tolerance: float = EXACT) -> Array:
        """The outcomes whose normal score is ``q``, of a mixture up to ``tolerance``.

        quantile(p) is at_normal_score(Phi^-1(p)).
        """
        q = np.asarray(q, dtype=float) if self.map.is_identity else self.map.inverse(q)
        rows = self._as_rows(self.loc, q) + self._as_rows(self.scale, q) * q
        distinct, of_row = self._distinct_transforms
        for i, T in enumerate(distinct):
            rows[of_row == i] = T.inverse(rows[of_row == i])
        return rows[0] if len(rows) == 1 else self._solve(q, rows, tolerance)

    def at_normal_score_partials(self, q: float) -> tuple[Array, Array, Array]:
        """The outcome at a raw normal score (n,), and its derivatives w.r.t. loc (S, n) and scale (S, n)."""
        y = self.raw.at_normal_score(q)
        _, by_loc, by_scale, slope = self.normal_score_partials(y)
        return y, -by_loc / slope, -by_scale / slope

    def log_density(self, y: Array | float) -> Array:
        """The log density at ``y``."""
        score, _, _, slope = self.normal_score_partials(self._at_points(y))
        raw = np.asarray(-0.5 * (np.square(score) + np.log(2.0 * np.pi)) + np.log(slope))
        return raw if self.map.is_identity else raw + self.map.log_gain(score)

    def cdf(self, y: Array | float) -> Array:
        """Probability of an outcome of at most ``y``."""
        return np.asarray(ndtr(self.normal_score(y)))

    def quantile(self, p: Array | float) -> Any:
        """Quantiles at probability ``p``."""
        levels = np.asarray(p)
        if levels.dtype.kind not in "fiu" or not np.all((levels > 0.0) & (levels < 1.0)):
            raise InputError(f"`p` must lie between 0 and 1, but got {p!r}.")
        return _plain(self.at_normal_score(ndtri(p)))

    @property
    def median(self) -> Any:
        """(n,), or a float at one point."""
        return _plain(self.at_normal_score(0.0))

    def interval(self, level: float = 0.9) -> tuple[Any, Any]:
        """Lower and upper end of the central interval that holds the outcome with probability ``level``."""
        require_number("level", level, "a number between 0 and 1", above=0.0, below=1.0)
        return self.quantile(0.5 - 0.5 * level), self.quantile(0.5 + 0.5 * level)

    @cached_property
    def _distinct_transforms(self) -> tuple[tuple[Transform, ...], Indices]:
        """The transforms without repetitions, and which of them each component has."""
        distinct = tuple(dict.fromkeys(self.transforms))
        return distinct, np.array([distinct.index(T) for T in self.transforms])

    def _at_points(self, y: Array | float) -> Array:
        """One outcome for each point, if a single number is given."""
        y = np.asarray(y, dtype=float)
        return np.broadcast_to(y, self.loc.shape[1:]) if y.ndim < self.loc.ndim - 1 else y

    def _as_rows(self, rows: Array, y: Array | float) -> Array:
        """Loc or scale, reshaped to broadcast with ``y`` after the first axis."""
        return rows.reshape(len(rows), *[1] * (np.ndim(y) - rows.ndim + 1), *rows.shape[1:])

    def _mixture_score(self, rows: Array) -> Array:
        """Phi^-1 of the weighted mean of Phi(rows), from the smaller tail to avoid saturation."""
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
        # the squares cancel there: use tail fractions times hazards, phi / Phi ~ t + 1/t - 2/t^3
        t, top = np.maximum(np.sign(score) * rows, 2.0), np.maximum(np.abs(score), 2.0)  # keeps the series positive
        tails = np.log(weights) + log_ndtr(-t)
        hazards, whole = (z + (1.0 - 2.0 / z / z) / z for z in (t, top))
        parts = np.exp(tails - tails.max(axis=0))
        return np.where(far, parts / parts.sum(axis=0) * hazards / whole, share)

    def _solve(self, q: Array, rows: Array, tolerance: float) -> Array:
        """Bracketed Newton's method: a mixture quantile lies between those of its components, ``rows``."""
        low, high = rows.min(axis=0), rows.max(axis=0)
        y, move = np.clip(np.tensordot(self.weights, rows, 1), low, high), high - low
        for _ in range(MAX_STEPS):
            score, _, _, slope = self.normal_score_partials(y)
            low, high = np.where(score < q, y, low), np.where(score < q, high, y)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                step = y - (score - q) / slope
            # bisect if Newton leaves the bracket or does not halve its step: it could cycle
            good = (step >= low) & (step <= high) & (np.abs(step - y) <= 0.5 * np.abs(move))
            following = np.where(good, step, 0.5 * low + 0.5 * high)
            move = following - y
            if np.all((np.abs(move) <= 1e-15 * np.abs(y)) | (np.abs(score - q) <= tolerance * (1.0 + np.abs(q)))):
                break
            y = following
        return np.asarray(y)


def _plain(values: Array) -> Any:
    """A 0-d array as a float."""
    return values if values.ndim else values.item()


def _bounded(distance: Array, scale: Array) -> Array:
    with np.errstate(over="ignore"):
        scores = distance / scale
    if scores.size and (scores.max() > FARTHEST or scores.min() < -FARTHEST):
        return np.where(np.isinf(distance), scores, np.clip(scores, -FARTHEST, FARTHEST))
    return np.asarray(scores)


def _log_sum(terms: Array) -> Array:
    """logsumexp over the first axis; SciPy's takes 0.2 ms at these sizes."""
    top = terms.max(axis=0)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(safe + np.log(np.exp(terms - safe).sum(axis=0)))
