"""Uncertainty by the errors nearby."""

from dataclasses import replace

import numpy as np
import pytest

from calibo import InputError
from calibo.surrogate import GaussianProcess, LocalScale
from calibo.testing import check_surrogate

from ..conftest import observations


@pytest.mark.parametrize("errors", ["leave-one-out", "one-step-ahead"])
def test_a_local_scale_keeps_the_contract_of_a_surrogate(errors):
    check_surrogate(LocalScale(errors=errors), observations(14))


def half_rough(n=40):
    """A function that is smooth on the left and rough on the right."""
    data = observations(n, d=1)
    x = data.x[:, 0]
    return replace(data, y=x + np.where(x > 0.6, np.sin(60 * x), 0.0))


def test_forecasts_are_wider_where_errors_were_large():
    data = half_rough()
    plain = GaussianProcess().fit(data, rng=np.random.default_rng(0))
    local = LocalScale(reach=0.1).fit(data, rng=np.random.default_rng(0))
    left, right = np.linspace(0.05, 0.45, 20)[:, None], np.linspace(0.65, 0.95, 20)[:, None]
    ratios = [float((local.latent(x).scale / plain.latent(x).scale).mean()) for x in (left, right)]
    assert ratios[1] > 1.5 * ratios[0]
    np.testing.assert_array_equal(local.latent(left).loc, plain.latent(left).loc)


def test_without_neighbours_nothing_changes():
    data = observations(8, d=2)
    far = replace(data, x=0.01 * data.x)
    plain = GaussianProcess().fit(far, rng=np.random.default_rng(0))
    local = LocalScale(reach=0.01).fit(far, rng=np.random.default_rng(0))
    x = np.full((1, 2), 0.9)
    np.testing.assert_allclose(local.latent(x).scale, plain.latent(x).scale, rtol=1e-12)


@pytest.mark.parametrize("bad", [{"errors": "none"}, {"reach": 0.0}, {"weight": float("nan")}])
def test_bad_settings_are_told(bad):
    with pytest.raises(InputError, match=f"`{next(iter(bad))}` must be"):
        LocalScale(**bad)
