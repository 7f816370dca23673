import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import boxcox

from calibo.research.transforms import BoxCox, TanhSum
from calibo.transforms import IDENTITY, Asinh, YeoJohnson

TRANSFORMS = [
    IDENTITY,
    Asinh(),
    Asinh(offset=3.0, width=0.01),
    *(YeoJohnson(power, center=0.3, width=2.0) for power in (0.0, 0.4, 1.0, 1.7, 2.0)),
    TanhSum(),
    TanhSum((100.0, 0.3, 0.001), (20.0, 1.0, 0.05), (-1.0, 0.0, 4.0), 0.5, 2.0),
    TanhSum((0.5, 3.0), (2.0, 15.0), (-1.0, 0.3), center=-2.0, width=3.0),
    *(BoxCox(power, origin=-1.3, width=2.0) for power in (0.0, 0.3, 1.0)),
]


@pytest.mark.parametrize("transform", TRANSFORMS)
@given(y=st.floats(-1e6, 1e6))
def test_a_transform_is_inverted(transform, y):
    np.testing.assert_allclose(transform.inverse(transform(np.array(y))), y, rtol=1e-8, atol=1e-8)


def test_powers_are_those_of_scipy():
    y = np.linspace(0.2, 7.0, 9)
    for power in (0.0, 0.4, 1.0):
        np.testing.assert_allclose(BoxCox(power, floor=0.01)(y), boxcox(y, power), rtol=1e-12)
    z = np.linspace(-4.0, 4.0, 11)
    for power in (0.0, 0.4, 1.0, 1.7, 2.0):
        np.testing.assert_allclose(YeoJohnson(power)(z), stats.yeojohnson(z, power), rtol=1e-12)


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_log_slope_is_the_derivative(transform):
    y = np.linspace(-50.0, 50.0, 41)
    slope = (transform(y + 1e-6) - transform(y - 1e-6)) / 2e-6
    np.testing.assert_allclose(np.exp(transform.log_slope(y)), slope, rtol=1e-4)


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_the_inverse_is_finite_for_every_finite_number(transform):
    assert np.all(np.isfinite(transform.inverse(np.array([-1e300, -800.0, 800.0, 1e300]))))
    assert np.all(np.isfinite(transform.log_slope(np.array([-1e300, 0.0, 1e300]))))
