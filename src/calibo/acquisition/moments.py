"""Log integrals of normal CDFs up to a point, with the ratios needed for their gradients.

| symbol | meaning |
|---|---|
| h(z) | phi(z) + z Phi(z), the integral of Phi from -inf to z |
| t, R(t) | -z; the Mills ratio Phi(-t) / phi(t) |
| g(t) | 1 - t R(t), so that h(z) = phi(z) g(t) |
| m, C | calibration map on scores, on probabilities: C(Phi(t)) = Phi(m(t)) |
| H(z) | the integral of Phi(m(t)) from -inf to z |
"""

from dataclasses import dataclass
from functools import cached_property
from math import log, pi, sqrt

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr

from calibo.arrays import Array
from calibo.forecasts import CalibrationMap

LOG_ROOT_2PI = 0.5 * float(np.log(2.0 * pi))
FAR = 25.0  # beyond, cancellation in g(t) ~ 1 / t^2 exceeds the truncation error of the series below
LOWEST = -1e150  # its square is still finite


def log_h(z: Array) -> tuple[Array, Array, Array]:
    """log h(z), Phi(z) / h(z) and phi(z) / h(z), each to full relative precision for every z down to -1e150."""
    z = np.maximum(z, LOWEST)
    log_value, by_cdf, by_density = np.empty_like(z), np.empty_like(z), np.empty_like(z)
    near = z > -1.0
    if near.any():
        a = z[near]
        density, below = _density(a), ndtr(a)
        h = density + a * below
        log_value[near], by_cdf[near], by_density[near] = np.log(h), below / h, density / h
    if not near.all():
        far = ~near
        ratio, g = _mills(-z[far])
        log_value[far] = -0.5 * np.square(z[far]) - LOG_ROOT_2PI + np.log(g)
        by_cdf[far], by_density[far] = ratio / g, 1.0 / g
    return log_value, by_cdf, by_density


def _mills(t: Array) -> tuple[Array, Array]:
    """R(t) and g(t) = 1 - t R(t) for t >= 1."""
    ratio = sqrt(0.5 * pi) * erfcx(t / sqrt(2.0))
    # asymptotic series of g, 1/t^2 - 3/t^4 + 15/t^6 - ...; the relative truncation error at FAR is 2e-12
    s = 1.0 / np.square(np.maximum(t, FAR))
    series = s * (1.0 - s * (3.0 - s * (15.0 - s * (105.0 - s * (945.0 - 10395.0 * s)))))
    return ratio, np.where(t > FAR, series, 1.0 - t * ratio)


def log_ndtr_slope(z: Array) -> Array:
    """d log Phi(z) / dz = phi(z) / Phi(z)."""
    below, above = np.minimum(z, 0.0), np.maximum(z, 0.0)
    tail = 1.0 / (sqrt(0.5 * pi) * erfcx(-below / sqrt(2.0)))
    return np.where(z < 0.0, tail, _density(above) / ndtr(above))


def _density(z: Array) -> Array:
    # underflows to 0 in float64 beyond 40, where the square of z might overflow
    return np.exp(-0.5 * np.square(np.minimum(z, 40.0)) - LOG_ROOT_2PI)


@dataclass(frozen=True, eq=False)
class MapIntegral:
    """H, the integral of Phi(m), exact on each piece of a map; terms independent of z are computed once."""

    map: CalibrationMap

    def __call__(self, z: Array) -> tuple[Array, Array, Array]:
        """log H(z), H'(z) / H(z) = Phi(m(z)) / H(z), and 1 - z H'(z) / H(z)."""
        if self.map.is_line:
            # H = h(m) / slope, so H - z H' = (phi(m) + intercept Phi(m)) / slope, without cancellation
            log_value, by_cdf, by_density = log_h(self.map.intercept + self.map.left * z)
            rest = by_density + self.map.intercept * by_cdf
            return log_value - log(self.map.left), self.map.left * by_cdf, rest
        value = self.map(z)
        log_value, by_cdf, _ = log_h(value)
        slopes = self.map.slopes
        # the lowest piece has no knot below it: H = h(m(z)) / slope
        log_result, ratio = log_value - np.log(slopes[0]), slopes[0] * by_cdf
        piece = np.searchsorted(self.map.knots, z, side="right")
        above = piece > 0
        if not above.any():
            return log_result, ratio, 1.0 - z * ratio
        j = piece[above]
        added = _log_piece(
            slopes[j], self._log_starts[j - 1], log_value[above], value[above], z[above] - self.map.knots[j - 1]
        )
        log_result[above] = np.logaddexp(self._log_bases[j - 1], added)
        ratio[above] = np.exp(log_ndtr(value[above]) - log_result[above])
        return log_result, ratio, 1.0 - z * ratio

    @cached_property
    def _log_starts(self) -> Array:
        """(k,) log h of the map's values."""
        return log_h(self.map.values)[0]

    @cached_property
    def _log_bases(self) -> Array:
        """(k,) log H at the knots."""
        starts, values, slopes = self._log_starts, self.map.values, self.map.slopes
        pieces = _log_piece(slopes[1:-1], starts[:-1], starts[1:], values[1:], np.diff(self.map.knots))
        return np.logaddexp.accumulate(np.concatenate([[starts[0] - np.log(slopes[0])], pieces]))


def _log_piece(slope: Array, log_start: Array, log_end: Array, value: Array, width: Array) -> Array:
    """Logarithm of the integral of Phi(m) over a piece: (h(end) - h(start)) / slope, or Phi width if flat."""
    with np.errstate(divide="ignore", invalid="ignore"):  # for flat pieces, which use the other form
        flat = log_ndtr(value) + np.log(width)
        sloped = log_end + np.log1p(-np.exp(np.minimum(log_start - log_end, 0.0))) - np.log(slope)
    return np.where(slope * width <= 1e-9, flat, sloped)  # avoids cancellation


def log_mean(log_rows: Array, weights: Array) -> tuple[Array, Array]:
    """log of the weighted mean of exp(log_rows) (S, n) over rows, and the fraction (S, n) due to each row."""
    terms = log_rows + np.log(weights)[:, None]
    top = terms.max(axis=0)
    share = np.exp(terms - top)
    total = share.sum(axis=0)
    return top + np.log(total), share / total
