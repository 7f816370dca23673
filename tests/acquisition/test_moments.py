from itertools import pairwise

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr

from calibo.acquisition.moments import MapIntegral, log_h, log_ndtr_slope
from calibo.forecasts import CalibrationMap


def exact(z: float) -> tuple[float, float, float]:
    """log h, Phi / h, phi / h with 60 digits beyond what cancels."""
    with mpmath.workdps(120):
        t = mpmath.mpf(z)
        density, below = mpmath.npdf(t), mpmath.ncdf(t)
        if t < -1e4:  # ncdf itself is slow there: its asymptotic series
            s = 1 / t**2
            h = density * s * (1 - 3 * s + 15 * s**2)
            below = -density / t * (1 - s + 3 * s**2)
        else:
            h = density + t * below
        return float(mpmath.log(h)), float(below / h), float(density / h)


@pytest.mark.parametrize(
    "z", [40.0, 3.0, 0.0, -0.999, -1.001, -5.0, -20.0, -24.9, -25.1, -40.0, -300.0, -1e4, -1e6, -1e8]
)
def test_log_h_and_its_ratios_are_exact_to_1e_10(z):
    values = [float(v[0]) for v in log_h(np.array([z]))]
    np.testing.assert_allclose(values, exact(z), rtol=1e-10)


def test_log_h_is_finite_wherever_a_score_is():
    for values in log_h(np.array([-1e300, -1e160, -1e8, 0.0, 1e8, 1e160])):
        assert np.all(np.isfinite(values))


def test_log_ndtr_slope_is_the_hazard():
    z = np.array([-1e8, -50.0, -3.0, 0.0, 2.0, 40.0])
    slope = log_ndtr_slope(z)
    with mpmath.workdps(80):
        oracle = [float(mpmath.npdf(t) / mpmath.ncdf(t)) for t in z[1:]]
    np.testing.assert_allclose(slope[1:], oracle, rtol=1e-10)
    np.testing.assert_allclose(slope[0], 1e8, rtol=1e-10)


MAPS = [
    CalibrationMap(),
    CalibrationMap.shift_scale(0.7, 1.3),
    CalibrationMap(np.array([-1.0, 0.0, 2.0]), np.array([-3.0, -0.5, 0.1]), left=0.5, right=2.0),
    CalibrationMap(np.array([-1.0, 0.5, 1.0]), np.array([-0.2, -0.2, 1.0])),
]


@pytest.mark.parametrize("map", MAPS)
def test_the_integral_of_a_mapped_cdf_is_exact(map):
    z = np.array([-6.0, -1.0, -0.7, 0.3, 0.5, 1.7, 5.0])
    log_value, ratio, rest = MapIntegral(map)(z)
    np.testing.assert_allclose(rest, 1.0 - z * ratio, atol=1e-12)
    for i, upper in enumerate(z):
        cuts = sorted({-40.0, *[float(k) for k in map.knots if k < upper], float(upper)})
        pieces = [quad(lambda t: ndtr(map(t)), a, b, epsabs=0, epsrel=1e-12)[0] for a, b in pairwise(cuts)]
        np.testing.assert_allclose(np.exp(log_value[i]), sum(pieces), rtol=1e-9)
        np.testing.assert_allclose(ratio[i], ndtr(map(upper)) / sum(pieces), rtol=1e-9)
