import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibo.transforms import IDENTITY, Asinh

TRANSFORMS = [IDENTITY, Asinh(), Asinh(offset=3.0, width=0.01)]


@pytest.mark.parametrize("transform", TRANSFORMS)
@given(y=st.floats(-1e12, 1e12))
def test_a_transform_is_inverted(transform, y):
    np.testing.assert_allclose(transform.inverse(transform(np.array(y))), y, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_log_slope_is_the_derivative(transform):
    y = np.linspace(-50.0, 50.0, 41)
    slope = (transform(y + 1e-6) - transform(y - 1e-6)) / 2e-6
    np.testing.assert_allclose(np.exp(transform.log_slope(y)), slope, rtol=1e-4)


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_the_inverse_is_finite_for_every_finite_number(transform):
    assert np.all(np.isfinite(transform.inverse(np.array([-1e300, -800.0, 800.0, 1e300]))))
    assert np.all(np.isfinite(transform.log_slope(np.array([-1e300, 0.0, 1e300]))))
