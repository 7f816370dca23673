"""Uncertainty by the errors nearby."""

from dataclasses import replace

import numpy as np
import pytest

from calibo import InputError
from calibo.cube import Axis
from calibo.models import GaussianProcess
from calibo.research import LocalScale
from calibo.testing import check_surrogate

from ..conftest import observations


def test_a_local_scale_keeps_the_contract_of_a_surrogate():
    check_surrogate(LocalScale(), observations(14))


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
    ratios = [float((local.posterior(x).scale / plain.posterior(x).scale).mean()) for x in (left, right)]
    assert ratios[1] > 1.5 * ratios[0]
    np.testing.assert_array_equal(local.posterior(left).loc, plain.posterior(left).loc)


def test_without_neighbours_nothing_changes():
    data = observations(8, d=2)
    far = replace(data, x=0.01 * data.x)
    plain = GaussianProcess().fit(far, rng=np.random.default_rng(0))
    local = LocalScale(reach=0.01).fit(far, rng=np.random.default_rng(0))
    x = np.full((1, 2), 0.9)
    np.testing.assert_allclose(local.posterior(x).scale, plain.posterior(x).scale, rtol=1e-12)


def test_categories_are_not_taken_for_numbers():
    """Exchanging the order of the categories changes nothing."""
    axes = (Axis(), Axis("categorical", 3))
    data = observations(20, axes=axes)
    data = replace(data, y=data.y + 3.0 * (data.x[:, 1] > 0.6) * np.sin(40 * data.x[:, 0]))
    turned = replace(data, x=np.column_stack([data.x[:, 0], 1.0 - data.x[:, 1]]))
    x = data.cube.snap(np.random.default_rng(0).random((9, 2)))
    one, other = (LocalScale().fit(d, rng=np.random.default_rng(0)) for d in (data, turned))
    mirrored = np.column_stack([x[:, 0], 1.0 - x[:, 1]])
    np.testing.assert_allclose(one.posterior(x).scale, other.posterior(mirrored).scale, rtol=1e-6)
    check_surrogate(LocalScale(), data)


def test_further_outcomes_have_no_errors_yet():
    data, x = observations(9, d=2), np.random.default_rng(0).random((2, 2))
    fitted = LocalScale().fit(data, rng=np.random.default_rng(0))
    for more in (fitted.condition(x, np.zeros(2)), fitted.condition_on_mean(x)):
        assert len(more.leave_one_out()) == 11


@pytest.mark.parametrize("bad", [{"reach": 0.0}, {"weight": float("nan")}, {"reach": "0.2"}])
def test_bad_settings_are_told(bad):
    with pytest.raises(InputError, match=f"`{next(iter(bad))}` must be"):
        LocalScale(**bad)
