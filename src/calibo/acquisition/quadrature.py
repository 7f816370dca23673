"""Expected improvement by quadrature: for mixtures under a map, or components on another scale than the improvement.

| symbol | meaning |
|---|---|
| t, best | outcome on the scale of improvement, incumbent |
| w(t) | calibrated score m(Phi^-1(F(t))), so that Phi(w) is the calibrated CDF |
| z_s | score of component s |
| EI | the integral of Phi(w) up to best |

With an anchor t0 near the median, EI = integral of Phi(w) below min(best, t0). If best > t0, add (best - t0) minus the
integral of Phi(-w) in between. Both integrands decay away from the anchor. Each is integrated by Gauss-Legendre
quadrature on panels whose width is limited by the components, the tail and the knots of the map; panels are equal if
few suffice. The derivative of both parts is the integral of phi(w) dw over all nodes, independent of the anchor.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

from calibo.acquisition.moments import LOG_ROOT_2PI, log_ndtr_slope
from calibo.arrays import Array, Flags, Indices
from calibo.forecasts import CalibrationMap, Forecast
from calibo.transforms import IDENTITY, Transform

SMOOTH = np.polynomial.legendre.leggauss(10)  # nodes and weights: log EI to 1e-10 under a linear map
BENT = np.polynomial.legendre.leggauss(20)  # flat pieces amplify the transition from one component to another
AHEAD = np.array([0.25, 0.5, 0.75, 1.0])[:, None]  # positions in a panel where the calibrated score is checked
WIDTH = 3.0  # maximum panel width, relative to the smallest scale of a nearby component
APPROACH = 0.5  # maximum panel width, relative to the distance to a component, so that none is skipped
FALL = 8.0  # maximum decay of a tail over a panel, in nats
SURE = 12.0  # score beyond which a CDF is 0 or 1
NEGLIGIBLE = 25.0  # nats below the first panel at which a panel is negligible
MOST_EVEN = 16  # equal panels per point: components of very different scales need fewer unequal ones
MOST_PANELS = 4000  # a thousand times what forecasts of one model need
CURVED = 0.5  # maximum deviation of the calibrated score from a straight line within a panel
MOST_HALVINGS = 40


@dataclass(frozen=True, eq=False)
class Improvements:
    """Expected improvement over ``best``, on the scale ``unit``, of a forecast under a map."""

    forecast: Forecast
    map: CalibrationMap
    unit: Transform
    best: float
    """On the scale ``unit``."""

    def __call__(self) -> tuple[Array, Array, Array]:
        """log EI (n,), and its derivatives w.r.t. loc and scale (S, n)."""
        rows, n = self.forecast.loc.shape
        anchor, everywhere = self._anchor(), np.arange(n)
        top = np.minimum(self.best, anchor)
        width, w = self._widths(top, everywhere, -1.0)
        reference = np.where(self.best > anchor, np.maximum(log_ndtr(w), -NEGLIGIBLE), log_ndtr(w))
        down = self._panels(top, width, w, -np.inf, everywhere, -1.0)
        index, start, end = down
        above = np.flatnonzero(self.best > anchor)
        if len(above):
            width, w = self._widths(anchor[above], above, 1.0)
            up = self._panels(anchor[above], width, w, self.best, above, 1.0)
            index, start, end = (np.concatenate(pair) for pair in zip(down, up, strict=True))
        below = np.arange(len(index)) < len(down[0])
        half = 0.5 * (end - start)
        nodes, shares = SMOOTH if self.map.is_line and self._on_unit else BENT
        t = 0.5 * (start + end) + half * nodes[:, None]
        w, d_loc, d_scale = self._partials(t, index)
        weights = shares[:, None] * half
        # relative to Phi at the top, which may underflow
        mass = np.exp(log_ndtr(np.where(below, w, -w)) - reference[index]) * weights
        total = np.asarray(np.bincount(index, np.where(below, mass, -mass).sum(axis=0), n), dtype=float)
        total[above] += (self.best - anchor[above]) * np.exp(-reference[above])
        density = np.exp(-0.5 * np.square(w) - LOG_ROOT_2PI - reference[index]) * weights
        cells = (np.arange(rows)[:, None] * n + index).ravel()

        nothing = total <= 0.0  # underflow: clipped, with zero gradient
        total[nothing] = 1e-300

        def summed(derivative: Array) -> Array:
            parts = (density * derivative).sum(axis=1)
            sums = np.bincount(cells, parts.ravel(), rows * n).reshape(rows, n)
            return np.asarray(np.where(nothing, 0.0, sums / total))

        return reference + np.log(total), summed(d_loc), summed(d_scale)

    @cached_property
    def _on_unit(self) -> bool:
        return all(transform == self.unit for transform in self.forecast.transforms)

    def _anchor(self) -> Array:
        """(n,) approximate calibrated medians."""
        score = float(self.map.inverse(0.0))
        pairs = zip(self.forecast.transforms, self.forecast.loc, self.forecast.scale, strict=True)
        medians = np.stack([self.unit(T.inverse(loc + scale * score)) for T, loc, scale in pairs])
        return np.asarray(self.forecast.weights @ medians)

    @cached_property
    def _knots(self) -> Array:
        """(k, n) knots of the map as outcomes."""
        if self.map.is_line:
            return np.empty((0, len(self.forecast)))
        return self.unit(self.forecast.at_normal_score(self.map.knots[:, None]))

    def _panels(
        self, start: Array, width: Array, w: Array, limit: float, index: Indices, direction: float
    ) -> tuple[Indices, Array, Array]:
        """Point index, lower and upper end of every panel, from ``start`` until the tail is negligible."""
        if not (self.map.is_line and self._on_unit):
            return self._adaptive_panels(start, width, w, limit, index, direction)
        # the tail is negligible once Phi(w) is; a mixture's quantile lies between those of its components
        least = log_ndtr(-direction * w) - NEGLIGIBLE
        score = self.map.inverse(-direction * ndtri_exp(least))
        ends = direction * (self.forecast.loc[:, index] + self.forecast.scale[:, index] * score)
        distance = np.minimum(ends.max(axis=0), direction * limit) - direction * start
        # equal panels must resolve the narrowest component, wherever it is
        width = np.minimum(width, WIDTH * self.forecast.scale[:, index].min(axis=0) / max(self.map.left, 1.0))
        counts = np.ceil(np.maximum(distance / width, 1e-9)).astype(int)
        even = counts <= MOST_EVEN
        point, count = index[even], counts[even]
        step = np.maximum(distance[even], 0.0) / count
        number = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        point, origin, step = (np.repeat(part, count) for part in (point, start[even], step))
        near, far = origin + direction * step * number, origin + direction * step * (number + 1)
        panels = (point, np.minimum(near, far), np.maximum(near, far))
        if even.all():
            return panels
        rest = ~even
        marched = self._adaptive_panels(start[rest], width[rest], w[rest], limit, index[rest], direction)
        return tuple(np.concatenate(pair) for pair in zip(panels, marched, strict=True))  # type: ignore[return-value]

    def _adaptive_panels(
        self, position: Array, width: Array, w: Array, limit: float, index: Indices, direction: float
    ) -> tuple[Indices, Array, Array]:
        """The same with adaptive widths, each determined at the start of the panel."""
        indices, lower, upper = [index[:0]], [position[:0]], [position[:0]]
        # approximate log contribution of the first panel
        first = log_ndtr(-direction * w) + np.log(width)
        for _ in range(MOST_PANELS):
            if not len(index):
                break
            if not self._on_unit:  # transforms have their own curvature
                ahead, _ = self._widths(position + direction * AHEAD * width, index, direction)
                width = np.minimum(width, ahead.min(axis=0))
            end = direction * np.minimum(direction * position + width, direction * limit)
            end = _stop_at_knots(position, end, self._knots[:, index], direction)
            end = self._shorten_curved(position, end, w, index)
            indices.append(index)
            lower.append(np.minimum(position, end))
            upper.append(np.maximum(position, end))
            width, w = self._widths(end, index, direction)
            going: Flags = log_ndtr(-direction * w) + np.log(width) > first - NEGLIGIBLE
            going &= direction * end < direction * limit
            index = index[going]
            position, width, w, first = (part[going] for part in (end, width, w, first))
        return np.concatenate(indices), np.concatenate(lower), np.concatenate(upper)

    def _widths(self, t: Array, index: Indices, direction: float) -> tuple[Array, Array]:
        """Maximum width of a panel that starts at ``t``, and the calibrated score there."""
        score, slope, z, rates = self._scores_and_rows(t, index)
        by_rows = (np.maximum(WIDTH, APPROACH * np.abs(z)) / rates).min(axis=0)
        beyond = self.map.slope(score + direction * 1e-9 * (1.0 + np.abs(score)))  # slope of the piece ahead
        w = self.map(score)
        fall = log_ndtr_slope(-direction * w) * slope * beyond
        return np.minimum(by_rows, FALL / np.maximum(fall, 1e-300)), w

    def _shorten_curved(self, start: Array, end: Array, w: Array, index: Indices) -> Array:
        """The ``end`` of panels, halved towards ``start`` until the calibrated score is nearly linear and not steep.

        Maps have steep pieces. Panels on which the CDF is 0 or 1 throughout are left alone.
        """
        for _ in range(MOST_HALVINGS):
            ahead = self.map(self._at(index).normal_score(self._outcomes(start + AHEAD * (end - start))[0]))
            curved = np.abs(ahead - (w + AHEAD * (ahead[-1] - w))).max(axis=0) > CURVED
            curved |= np.abs(ahead[-1] - w) > WIDTH
            curved &= np.minimum(np.abs(w), np.abs(ahead).min(axis=0)) < SURE
            if not curved.any():
                break
            end = np.where(curved, start + 0.5 * (end - start), end)
        return end

    def _scores_and_rows(self, t: Array, index: Indices) -> tuple[Array, Array, Array, Array]:
        """Raw score and its slope in t (p,), the components' scores and their slopes (S, p)."""
        there = self._at(index)
        y, stretch = self._outcomes(t)
        score, _, _, slope = there.normal_score_partials(y)
        z, rates = there.row_scores(y)
        return score, slope * stretch, z, rates * stretch

    def _partials(self, t: Array, index: Indices) -> tuple[Array, Array, Array]:
        """Calibrated score at ``t`` (q, p) and its derivatives w.r.t. loc and scale (S, q, p)."""
        score, by_loc, by_scale, _ = self._at(index).normal_score_partials(self._outcomes(t)[0])
        slope = self.map.slope(score)
        return self.map(score), slope * by_loc, slope * by_scale

    def _outcomes(self, t: Array) -> tuple[Array, Array]:
        """The untransformed outcomes, and dy/dt."""
        if self.unit == IDENTITY:
            return t, np.ones_like(t)
        y = self.unit.inverse(t)
        return y, np.exp(-self.unit.log_slope(y))

    def _at(self, index: Indices) -> Forecast:
        forecast = self.forecast
        return Forecast(forecast.loc[:, index], forecast.scale[:, index], forecast.weights, forecast.transforms)


def _stop_at_knots(start: Array, end: Array, knots: Array, direction: float) -> Array:
    """The ``end``, or the first of the knots (k, p) before it."""
    if not len(knots):
        return end
    ahead = direction * (knots - start) > 1e-12 * np.abs(end - start)
    on_the_way = np.where(ahead, direction * knots, np.inf).min(axis=0)
    return np.asarray(direction * np.minimum(direction * end, on_the_way))
