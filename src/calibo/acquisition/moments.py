"""Integrals of normal CDFs below a point, in logarithms, with the ratios their gradients need.

| symbol | meaning |
|---|---|
| h(z) | phi(z) + z Phi(z), the integral of Phi from -inf to z |
| t, R(t) | -z; the Mills ratio Phi(-t) / phi(t) |
| g(t) | 1 - t R(t), so that h(z) = phi(z) g(t) |
| m, C | calibration map on scores, on probabilities: C(Phi(t)) = Phi(m(t)) |
| H(z) | the integral of Phi(m(t)) from -inf to z |
"""

from math import pi, sqrt

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr

from calibo.calibration import CalibrationMap
from calibo.types import Array

__all__ = ["log_h", "log_integral", "log_ndtr_slope"]

LOG_ROOT_2PI = 0.5 * float(np.log(2.0 * pi))
FAR = 25.0  # beyond it g(t) ~ 1 / t^2 loses more to cancellation than the series below leaves out
LOWEST = -1e150  # a score whose square is still finite


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
    # asymptotic series of g, 1/t^2 - 3/t^4 + 15/t^6 - ...; the first term left out is 2e-12 of it at FAR
    s = 1.0 / np.square(np.maximum(t, FAR))
    series = s * (1.0 - s * (3.0 - s * (15.0 - s * (105.0 - s * (945.0 - 10395.0 * s)))))
    return ratio, np.where(t > FAR, series, 1.0 - t * ratio)


def log_ndtr_slope(z: Array) -> Array:
    """d log Phi(z) / dz = phi(z) / Phi(z)."""
    below, above = np.minimum(z, 0.0), np.maximum(z, 0.0)
    tail = 1.0 / (sqrt(0.5 * pi) * erfcx(-below / sqrt(2.0)))
    return np.where(z < 0.0, tail, _density(above) / ndtr(above))


def _density(z: Array) -> Array:
    # beyond 40 it is 0 in float64, and the square of z might overflow
    return np.exp(-0.5 * np.square(np.minimum(z, 40.0)) - LOG_ROOT_2PI)


def log_integral(map: CalibrationMap, z: Array) -> tuple[Array, Array]:
    """log H(z) and H'(z) / H(z) = Phi(m(z)) / H(z), exact on each piece of the map."""
    slopes, knots = map.slopes, map.knots
    value = map(z)
    log_value, by_cdf, _ = log_h(value)
    piece = np.searchsorted(knots, z, side="right")
    # the lowest piece has no knot below it: H = h(m(z)) / slope
    log_result = log_value - np.log(slopes[0])
    ratio = slopes[0] * by_cdf
    if map.is_line or not piece.any():
        return log_result, ratio
    log_at_values, _, _ = log_h(map.values)
    log_base = log_at_values[0] - np.log(slopes[0])  # log H at the knot below the piece
    for j in range(1, len(slopes)):
        here = piece == j
        start = log_at_values[j - 1]
        if here.any():
            log_result[here] = np.logaddexp(
                log_base, _log_piece(slopes[j], start, log_value[here], value[here], z[here] - knots[j - 1])
            )
            ratio[here] = np.exp(log_ndtr(value[here]) - log_result[here])
        if j < len(knots):
            width = knots[j] - knots[j - 1]
            log_base = np.logaddexp(
                log_base, _log_piece(slopes[j], start, log_at_values[j : j + 1], map.values[j : j + 1], width)[0]
            )
    return log_result, ratio


def _log_piece(slope: float, log_start: float, log_end: Array, value: Array, width: Array | float) -> Array:
    """Logarithm of the integral of Phi(m) over a piece: (h(end) - h(start)) / slope, or flat."""
    with np.errstate(divide="ignore"):
        if slope <= 1e-12:  # flat up to rounding
            return np.asarray(log_ndtr(value) + np.log(width))
        return np.asarray(log_end + np.log1p(-np.exp(np.minimum(log_start - log_end, 0.0))) - np.log(slope))
