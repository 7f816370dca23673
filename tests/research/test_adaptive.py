"""A bound for unknown hyperparameters."""

from dataclasses import replace

import numpy as np
import pytest

from calibo import InputError, Strategy
from calibo.acquisition import LowerBound
from calibo.forecasts import CalibrationMap
from calibo.gp.kernels import Linear
from calibo.models import GaussianProcess
from calibo.research import AdaptiveLowerBound
from calibo.testing import check_acquisition

from ..conftest import observations


def fitted(data):
    return GaussianProcess().fit(data, rng=np.random.default_rng(0))


def test_an_adaptive_bound_keeps_the_contract(data):
    check_acquisition(AdaptiveLowerBound(), data, fitted(data), CalibrationMap())


def test_without_growth_and_noise_it_is_a_lower_bound(data):
    x, model = np.random.default_rng(0).random((20, 3)), fitted(data)
    adaptive = AdaptiveLowerBound(bound=2.0, growth=0.0).prepare(data, model, CalibrationMap())
    plain = LowerBound(2.0).prepare(data, model, CalibrationMap())
    extra = -adaptive.criterion.score - 2.0
    assert 0.0 < extra < 0.2  # the noise is small
    np.testing.assert_allclose(adaptive.value(x), plain.value(x) + extra * model.posterior(x).scale[0], rtol=1e-6)


def test_functions_become_rougher_and_the_norm_larger():
    few, many = observations(8, d=2), observations(32, d=2)
    grown = [AdaptiveLowerBound(growth=0.5).prepare(data, fitted(data), CalibrationMap()) for data in (few, many)]
    for data, landscape in zip((few, many), grown, strict=True):
        theta, before = (model.processes[0].theta for model in (landscape.fitted, fitted(data)))
        factor = len(data) ** (0.5 / 2)
        np.testing.assert_allclose(theta[1:3], before[1:3] - np.log(factor))  # amplitude, two lengthscales
        np.testing.assert_array_equal(np.delete(theta, [1, 2]), np.delete(before, [1, 2]))
    assert -grown[1].criterion.score > -grown[0].criterion.score > 2.0


def test_other_surrogates_are_refused_before_anything_is_evaluated():
    with pytest.raises(InputError, match=r"`surrogate` must be a GaussianProcess, .* but got a ModelChoice"):
        Strategy(acquisition=AdaptiveLowerBound())


@pytest.mark.parametrize("zeros", [1, 12])
def test_outcomes_without_noise_leave_it_finite(zeros):
    data = observations(12, d=2)
    data = replace(data, noise_std=np.where(np.arange(12) < zeros, 0.0, np.nan))
    landscape = AdaptiveLowerBound().prepare(data, fitted(data), CalibrationMap())
    value, gradient = landscape.value_and_gradient(np.random.default_rng(0).random((5, 2)))
    assert np.all(np.isfinite(value))
    assert np.all(np.isfinite(gradient))


def test_a_prior_without_variance_leaves_it_finite():
    data = replace(observations(1, d=2), x=np.full((1, 2), 0.5))
    model = GaussianProcess(Linear()).fit(data, rng=np.random.default_rng(0))
    assert np.all(np.isfinite(AdaptiveLowerBound().prepare(data, model, CalibrationMap()).value(np.eye(2))))


@pytest.mark.parametrize("bad", [{"bound": -1.0}, {"growth": np.inf}, {"delta": 0.0}, {"bound": None}, {"delta": "x"}])
def test_bad_settings_are_told(bad):
    with pytest.raises(InputError, match=f"`{next(iter(bad))}` must"):
        AdaptiveLowerBound(**bad)
