"""Expected improvement where there is no closed form: a mixture under a map, or rows on another scale than the unit's.

| symbol | meaning |
|---|---|
| t, best | outcome in the unit of improvement, what is to be improved on |
| w(t) | calibrated score m(Phi^-1(F(t))), so that Phi(w) is the calibrated CDF |
| z_s | score of row s |
| EI | the integral of Phi(w) up to best |

With an anchor t0 near the median, EI = integral of Phi(w) below min(best, t0), plus, where best lies above t0,
(best - t0) minus the integral of Phi(-w) between: both integrands fall off on both sides. Either is cut into panels
no wider than the rows, the tail and the knots of the map allow, with Gauss-Legendre nodes in each. The
derivative of both parts is the integral of phi(w) dw over all nodes, whatever the anchor.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from calibo.acquisition.moments import LOG_ROOT_2PI, log_ndtr_slope
from calibo.calibration import CalibrationMap
from calibo.forecasts import Forecast
from calibo.transforms import IDENTITY, Transform
from calibo.types import Array, Flags, Indices

__all__ = ["Improvements"]

SMOOTH = np.polynomial.legendre.leggauss(8)  # nodes and weights: log EI to 1e-10 under a straight map
BENT = np.polynomial.legendre.leggauss(16)  # a flat piece makes much of where one row takes over from another
WIDTH = 2.0  # of a panel, in the smallest width of a row nearby
APPROACH = 0.5  # of the distance to a row, so that none is stepped over
FALL = 6.0  # nats by which a tail may fall over a panel
NEGLIGIBLE = 30.0  # nats below which a panel adds nothing
MOST_PANELS = 400  # a hundred times what forecasts of one model take


@dataclass(frozen=True, eq=False)
class Improvements:
    """Expected improvement on ``best``, in ``unit``, of a forecast bent by a map."""

    forecast: Forecast
    map: CalibrationMap
    unit: Transform
    best: float
    """In the unit."""

    def __call__(self) -> tuple[Array, Array, Array]:
        """log EI (n,), and its derivatives by loc and by scale (S, n)."""
        rows, n = self.forecast.loc.shape
        anchor = self._anchor()
        top = np.minimum(self.best, anchor)
        knots = self._knots()
        everywhere = np.arange(n)
        reference = log_ndtr(self._scores(top, everywhere)[0])
        down = self._panels(top, np.full(n, -np.inf), everywhere, knots, -1.0)
        up = self._panels(anchor, np.full(n, self.best), np.flatnonzero(self.best > anchor), knots, 1.0)
        index = np.concatenate([down[0], up[0]])
        start, end = np.concatenate([down[1], up[1]]), np.concatenate([down[2], up[2]])
        below = np.arange(len(index)) < len(down[0])
        half = 0.5 * (end - start)
        nodes, shares = SMOOTH if self.map.is_line else BENT
        t = 0.5 * (start + end) + half * nodes[:, None]
        w, d_loc, d_scale, _ = self._partials(t, index)
        weights = shares[:, None] * half
        # in units of Phi at the top, which may be far below the smallest float
        mass = np.exp(log_ndtr(np.where(below, w, -w)) - reference[index]) * weights
        total = np.bincount(index, np.where(below, mass, -mass).sum(axis=0), n)
        total += np.maximum(self.best - anchor, 0.0) * np.exp(-reference)
        density = np.exp(-0.5 * np.square(w) - LOG_ROOT_2PI - reference[index]) * weights
        cells = (np.arange(rows)[:, None] * n + index).ravel()

        def summed(derivative: Array) -> Array:
            parts = (density * derivative).sum(axis=1)
            return np.bincount(cells, parts.ravel(), rows * n).reshape(rows, n) / total

        return reference + np.log(total), summed(d_loc), summed(d_scale)

    def _anchor(self) -> Array:
        """(n,) about the calibrated median."""
        score = float(self.map.inverse(0.0))
        pairs = zip(self.forecast.transforms, self.forecast.loc, self.forecast.scale, strict=True)
        medians = np.stack([self.unit(T.inverse(loc + scale * score)) for T, loc, scale in pairs])
        return np.asarray(self.forecast.weights @ medians)

    def _knots(self) -> Array:
        """(k, n) where the map bends."""
        if self.map.is_line:
            return np.empty((0, len(self.forecast)))
        return self.unit(self.forecast.at_score(self.map.knots[:, None]))

    def _panels(
        self, start: Array, limit: Array, index: Indices, knots: Array, direction: float
    ) -> tuple[Indices, Array, Array]:
        """Index of the point, lower and upper end of every panel from ``start`` (n,) as far as it matters."""
        indices, lower, upper = [], [], []
        position = start[index]
        width, w = self._widths(position, index, direction)
        # what the first panel adds, about
        first = log_ndtr(-direction * w) + np.log(width)
        for _ in range(MOST_PANELS):
            if not len(index):
                break
            end = position + direction * width
            end = direction * np.minimum(direction * end, direction * limit[index])
            end = _stopped(position, end, knots[:, index], direction)
            indices.append(index)
            lower.append(np.minimum(position, end))
            upper.append(np.maximum(position, end))
            width, w = self._widths(end, index, direction)
            going: Flags = log_ndtr(-direction * w) + np.log(width) > first - NEGLIGIBLE
            going &= direction * end < direction * limit[index]
            index, position, width, first = index[going], end[going], width[going], first[going]
        if not indices:
            return index, position, position
        return np.concatenate(indices), np.concatenate(lower), np.concatenate(upper)

    def _widths(self, t: Array, index: Indices, direction: float) -> tuple[Array, Array]:
        """How wide a panel may be that begins at ``t``, and the calibrated score there."""
        score, slope, z, rates = self._scores_and_rows(t, index)
        by_rows = (np.maximum(WIDTH, APPROACH * np.abs(z)) / rates).min(axis=0)
        beyond = self.map.slope(score + direction * 1e-9 * (1.0 + np.abs(score)))  # of the piece that is entered
        w = self.map(score)
        fall = log_ndtr_slope(-direction * w) * slope * beyond
        # a steep piece of the map makes everything narrower
        return np.minimum(by_rows / np.maximum(beyond, 1.0), FALL / np.maximum(fall, 1e-300)), w

    def _scores(self, t: Array, index: Indices) -> tuple[Array, Array]:
        score, slope, _, _ = self._scores_and_rows(t, index)
        return self.map(score), slope

    def _scores_and_rows(self, t: Array, index: Indices) -> tuple[Array, Array, Array, Array]:
        """Raw score and its slope in t (p,), the rows' scores and their slopes (S, p)."""
        there = self._at(index)
        y, stretch = self._outcomes(t)
        score, _, _, slope = there.score_partials(y)
        z = np.stack([(T(y) - l) / s for T, l, s in zip(there.transforms, there.loc, there.scale, strict=True)])
        rates = np.stack([np.exp(T.log_slope(y)) for T in there.transforms]) / there.scale
        return score, slope * stretch, z, rates * stretch

    def _partials(self, t: Array, index: Indices) -> tuple[Array, Array, Array, Array]:
        """Calibrated score at ``t`` (q, p) and its derivatives by loc and scale (S, q, p)."""
        y, stretch = self._outcomes(t)
        score, by_loc, by_scale, by_y = self._at(index).score_partials(y)
        bend = self.map.slope(score)
        return self.map(score), bend * by_loc, bend * by_scale, bend * by_y * stretch

    def _outcomes(self, t: Array) -> tuple[Array, Array]:
        """The outcomes in their own units, and dy/dt."""
        if self.unit == IDENTITY:
            return t, np.ones_like(t)
        y = self.unit.inverse(t)
        return y, np.exp(-self.unit.log_slope(y))

    def _at(self, index: Indices) -> Forecast:
        forecast = self.forecast
        return Forecast(forecast.loc[:, index], forecast.scale[:, index], forecast.weights, forecast.transforms)


def _stopped(start: Array, end: Array, knots: Array, direction: float) -> Array:
    """The ``end``, or the first of the knots (k, p) on the way there."""
    if not len(knots):
        return end
    ahead = direction * (knots - start) > 1e-12 * np.abs(end - start)
    on_the_way = np.where(ahead, direction * knots, np.inf).min(axis=0)
    return np.asarray(direction * np.minimum(direction * end, on_the_way))
