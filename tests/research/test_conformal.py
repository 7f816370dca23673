"""Conformal Bayesian optimization: sets that cover, and what they do to an acquisition."""

from dataclasses import replace

import numpy as np
import pytest

from calibo import InputError, Strategy
from calibo.acquisition import ExpectedImprovement, LowerBound
from calibo.cube import Axis, Cube
from calibo.forecasts import CalibrationMap
from calibo.models import GaussianProcess
from calibo.presets import get_strategy
from calibo.research import ConformalAcquisition
from calibo.research.conformal import NODES, ConformalLandscape, DensityRatio
from calibo.testing import check_acquisition
from calibo.transforms import LearnedAsinh

from ..conftest import observations


def fitted(data, recipe=None):
    return (recipe or GaussianProcess()).fit(data, rng=np.random.default_rng(0))


def test_a_further_observation_changes_the_scores_of_the_others_as_if_it_were_told(data):
    process = fitted(data).processes[0]
    x = np.random.default_rng(0).random((4, 3))
    mean, variance, intercept, slope, precision = process.leave_one_out_with(x)
    for i, u in enumerate((-2.0, 0.0, 0.7, 3.0)):
        y = mean[i] + u * np.sqrt(variance[i])
        told = process.condition(x[[i]], np.array([y]), np.array([np.nan]))
        loo, spread = told.leave_one_out()
        scores = (told.y - loo) / np.sqrt(spread)
        np.testing.assert_allclose(intercept[i] + slope[i] * u, scores[:-1], rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(1.0 / precision[i], spread[:-1], rtol=1e-6)
        assert scores[-1] == pytest.approx(u, abs=1e-6)
        assert spread[-1] == pytest.approx(variance[i], rel=1e-6)


@pytest.mark.parametrize("wrong", [0.3, 3.0], ids=["too sure", "too unsure"])
def test_sets_cover_what_they_promise_where_points_are_exchangeable(wrong):
    """A process whose amplitude is wrong; the last of exchangeable points is forecast from the others."""
    rng, covered, believed = np.random.default_rng(0), [], []
    for _ in range(150):
        data = observations(25, d=2, seed=int(rng.integers(1 << 30)))
        noisy = replace(data, y=data.y + 0.3 * rng.standard_normal(25), noise_std=np.full(25, 0.3 * wrong))
        model = fitted(noisy.head(24))
        landscape = ConformalLandscape(model, "bound", 2.0, 0.2, 0.0, 24)
        forecast = model.posterior(noisy.x[[24]], noise=True)
        u = float(forecast.normal_score(noisy.y[[24]])[0])
        member = landscape.conformal_sets(noisy.x[[24]])[2][0]
        covered.append(np.interp(u, NODES, member) >= 0.5)
        believed.append(abs(u) < 1.2815515655446004)
    error = 3 * np.sqrt(0.2 * 0.8 / 150)
    assert np.mean(covered) > 0.8 - error
    if wrong < 1.0:
        assert np.mean(covered) > np.mean(believed) + 0.1


@pytest.mark.parametrize("utility", ["improvement", "bound"])
@pytest.mark.parametrize("recipe", [GaussianProcess(), GaussianProcess(transform=LearnedAsinh())], ids=["y", "log y"])
def test_a_conformal_acquisition_keeps_the_contract(data, utility, recipe):
    check_acquisition(ConformalAcquisition(utility), data, fitted(data, recipe), CalibrationMap())


@pytest.mark.parametrize(("utility", "usual"), [("improvement", ExpectedImprovement()), ("bound", LowerBound(2.0))])
def test_where_the_set_says_nothing_it_is_the_usual_acquisition(data, utility, usual, monkeypatch):
    """alpha of the mass outside the set, as the posterior has it: nothing is reweighted."""
    model, x = fitted(data), np.random.default_rng(1).random((15, 3))
    inside = np.abs(NODES) < 1.0
    mass = np.exp(-0.5 * NODES**2) / np.exp(-0.5 * NODES**2).sum()
    best = float(model.in_sample_mean(data.x).min())
    landscape = ConformalLandscape(model, utility, 2.0, float(mass[~inside].sum()), best, len(data))
    mean, variance = model.processes[0].posterior(x)
    monkeypatch.setattr(
        ConformalLandscape, "conformal_sets", lambda self, x: (mean, variance, np.tile(1.0 * inside, (len(x), 1)))
    )
    value = np.exp(landscape.value(x)) if utility == "improvement" else landscape.value(x)
    expected = usual.prepare(data, model, CalibrationMap()).value(x)
    np.testing.assert_allclose(value, expected, rtol=2e-2, atol=1e-3 * np.abs(expected).max())


def test_the_density_ratio_is_that_of_two_normal_clouds():
    rng = np.random.default_rng(0)
    known, asked = 0.5 + 0.1 * rng.standard_normal((4000, 1)), 0.6 + 0.1 * rng.standard_normal((4000, 1))
    ratio = DensityRatio.between(asked, known, Cube((Axis(),)))
    x = np.array([[0.4], [0.55], [0.65]])
    truth = np.exp(-0.5 * ((x[:, 0] - 0.6) / 0.1) ** 2 + 0.5 * ((x[:, 0] - 0.5) / 0.1) ** 2)
    np.testing.assert_allclose(ratio(x), truth, rtol=0.15)


def test_the_density_ratio_does_not_take_categories_for_numbers():
    rng = np.random.default_rng(0)
    cube = Cube((Axis("categorical", 3), Axis()))
    known, asked = (cube.snap(rng.random((600, 2))) for _ in range(2))
    known[:, 0], asked[:300, 0] = 1 / 6, 0.5
    one, other = (DensityRatio.between(a, k, cube) for a, k in ((asked, known), (1 - asked, 1 - known)))
    x = cube.snap(rng.random((30, 2)))
    np.testing.assert_allclose(one(x), other(1 - x), rtol=1e-6)


def test_imagined_outcomes_do_not_count_in_the_sets(data):
    """Of points under evaluation; they agree with the rest as no real outcome does."""
    model = fitted(data)
    imagined = model.condition_on_mean(np.random.default_rng(5).random((15, 3)))
    x = np.random.default_rng(6).random((8, 3))
    counted = ConformalLandscape(imagined, "bound", 2.0, 0.3, 0.0, len(data) + 15)
    right = ConformalLandscape(imagined, "bound", 2.0, 0.3, 0.0, len(data))
    assert np.any(np.abs(counted.conformal_sets(x)[2] - right.conformal_sets(x)[2]) > 0.2)


@pytest.mark.parametrize("recipe", [GaussianProcess(), GaussianProcess(transform=LearnedAsinh())], ids=["y", "log y"])
def test_a_bound_is_in_the_units_of_the_outcome(data, recipe):
    """So that failures weigh as much on every scale."""
    small = replace(data, y=1e-6 * data.y)
    x = np.random.default_rng(6).random((8, 3))
    values = [
        ConformalAcquisition("bound").prepare(d, fitted(d, recipe), CalibrationMap()).value(x) for d in (data, small)
    ]
    np.testing.assert_allclose(values[1], 1e-6 * values[0], rtol=0.05, atol=2e-8)


def test_far_from_the_best_there_is_still_a_slope():
    data = observations(30, d=2)
    data = replace(data, y=100.0 * ((data.x - 0.3) ** 2).sum(axis=1))
    landscape = ConformalAcquisition().prepare(data, fitted(data), CalibrationMap())
    value, gradient = landscape.value_and_gradient(np.random.default_rng(0).uniform(0.6, 1.0, (20, 2)))
    assert len(np.unique(value)) == 20
    assert np.all(np.abs(gradient).max(axis=1) > 0.0)


def test_what_cannot_be_conformal_is_refused_before_anything_is_evaluated():
    with pytest.raises(InputError, match="`surrogate` must be one GaussianProcess"):
        Strategy(acquisition=ConformalAcquisition())
    for strategy in ("plain+conformal-ei+gate", "default+single+conformal-lcb"):
        with pytest.raises(InputError, match="correct forecasts by themselves"):
            get_strategy(strategy)
    for bad in ({"utility": "none"}, {"kappa": np.nan}, {"alpha": 1.0}, {"kappa": "2"}, {"alpha": "x"}):
        with pytest.raises(InputError, match=f"`{next(iter(bad))}` must"):
            ConformalAcquisition(**bad)
