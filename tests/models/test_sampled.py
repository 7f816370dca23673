"""Processes with warped inputs and with sampled hyperparameters."""

from dataclasses import replace

import numpy as np
import pytest

from calibo import InputError
from calibo.cube import Axis
from calibo.gp.slice import effective_sample_size, split_rhat, update
from calibo.gp.warping import WARP_PRIORS, WarpedCovariance
from calibo.models import GaussianProcess, ModelChoice
from calibo.models.gaussian_process import FITS, HyperPosterior
from calibo.testing import check_surrogate
from calibo.transforms import LearnedAsinh

from ..conftest import observations
from .test_gaussian_process import MIXED

RECIPES = [
    GaussianProcess(warped=True),
    GaussianProcess(samples=4),
    GaussianProcess(warped=True, samples=4),
    GaussianProcess(warped=True, samples=3, transform=LearnedAsinh()),
]


def fit(recipe, data, previous=None):
    FITS.clear()  # every fit here is one of a fresh process
    return recipe.fit(data, rng=np.random.default_rng(0), previous=previous)


@pytest.mark.parametrize("recipe", RECIPES, ids=["warped", "sampled", "both", "with a transform"])
@pytest.mark.parametrize("axes", [None, MIXED], ids=["continuous", "mixed"])
def test_they_keep_the_contract_of_a_surrogate(recipe, axes):
    FITS.clear()
    fitted = check_surrogate(recipe, observations(14, axes=axes))
    assert len(fitted.processes) == max(recipe.samples, 1)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("recipe", RECIPES)
def test_few_outcomes_are_enough(recipe, n):
    data = observations(n)
    forecast = fit(recipe, data).posterior(np.full((2, 3), 0.5))
    assert np.all(np.isfinite(forecast.loc))
    flat = replace(data, y=np.ones(n))
    assert np.all(np.isfinite(fit(recipe, flat).posterior(flat.x).loc))


def test_only_axes_that_may_be_bent_are():
    axes = (Axis(), Axis(warp=None), Axis("categorical", 3), Axis("ordered", 2), Axis("ordered", 7, warp="log"))
    kernel = GaussianProcess(warped=True).covariance(observations(3, axes=axes).cube)
    assert isinstance(kernel, WarpedCovariance)
    assert kernel.columns == (0, 4)
    prior = GaussianProcess(warped=True).prior(kernel, observations(3, axes=axes).cube)
    wanted = [WARP_PRIORS["auto"][0], WARP_PRIORS["log"][0], WARP_PRIORS["auto"][1], WARP_PRIORS["log"][1]]
    np.testing.assert_array_equal(prior.center[:4], [belief.center for belief in wanted])
    np.testing.assert_allclose(prior.precision[:4], [belief.std**-2 for belief in wanted])
    unbent = GaussianProcess(warped=True).covariance(observations(3, axes=(Axis(warp=None),) * 2).cube)
    assert not isinstance(unbent, WarpedCovariance)


@pytest.mark.parametrize("recipe", RECIPES[1:])
def test_draws_are_a_function_of_the_data(recipe):
    data, x = observations(13), np.full((1, 3), 0.3)
    fresh = fit(recipe, data)
    step_by_step = None
    for n in range(4, 14):
        step_by_step = fit(recipe, data.head(n), step_by_step.state if step_by_step else None)
    np.testing.assert_array_equal(fresh.posterior(x).loc, step_by_step.posterior(x).loc)
    assert fresh.state == step_by_step.state
    for garbage in (None, "x", [1.0], [[1.0]], [["x"] * 5] * 4):
        damaged = dict.fromkeys(fresh.state, garbage)
        np.testing.assert_array_equal(fit(recipe, data, damaged).posterior(x).loc, fresh.posterior(x).loc)


def test_draws_are_of_the_posterior():
    """Chains of many fits to the same outcomes agree with a long one."""
    data = observations(10, d=1)
    recipe = GaussianProcess(samples=60)
    kernel = recipe.covariance(data.cube)
    prior = recipe.prior(kernel, data.cube)
    posterior, widths = HyperPosterior(recipe._evidence(kernel, data), prior, prior.center), prior.precision**-0.5
    rng, theta, long = np.random.default_rng(1), prior.center, []
    for _ in range(4050):
        for direction in np.diag(widths):
            theta, _ = update(posterior, theta, posterior(theta), direction, rng)
        long.append(theta)
    long = np.array(long[50:])
    FITS.clear()
    drawn = np.array([recipe._drawn(kernel, data, 10, {}, None, seed) for seed in range(12)])
    assert np.all(split_rhat(drawn) < 1.05)
    size = effective_sample_size(drawn)
    assert np.all(size > 360), "half of 720: draws are nearly independent"
    error = long.std(axis=0) * np.sqrt(1.0 / size + 1.0 / effective_sample_size(long[None]))
    assert np.all(np.abs(drawn.mean(axis=(0, 1)) - long.mean(axis=0)) < 4 * error)


def test_a_bent_axis_is_found():
    """A function that moves only near the low end of one axis."""
    rng = np.random.default_rng(0)
    data = observations(40, d=2)
    x = rng.random((40, 2))
    data = replace(data, x=x, y=np.sin(8.0 * x[:, 0] ** 0.3) + 0.3 * x[:, 1])
    plain, warped = fit(GaussianProcess(), data), fit(GaussianProcess(warped=True), data)
    assert warped.log_evidence > plain.log_evidence + 5.0
    kernel = warped.processes[0].kernel
    bent = kernel.warps(warped.processes[0].theta[:-2], np.array([0.1, 0.5]))
    assert bent[0, 0] > 0.25, "the low end of the first axis is stretched"


def test_disagreement_of_settings_makes_the_forecast_wide():
    data = observations(6, d=2)
    x = np.random.default_rng(3).random((100, 2))
    likeliest, drawn = fit(GaussianProcess(), data), fit(GaussianProcess(samples=10), data)
    widths = [np.ptp(np.stack(each.posterior(x).interval(0.9)), axis=0).mean() for each in (likeliest, drawn)]
    assert widths[1] > widths[0]


def test_models_may_be_sampled_and_warped_side_by_side():
    models = (("values", GaussianProcess(samples=3)), ("warped", GaussianProcess(warped=True, samples=3)))
    check_surrogate(ModelChoice(models, mode="mixture"), observations(12))


def test_samples_must_be_a_number():
    with pytest.raises(InputError, match="`samples` must be a whole number"):
        GaussianProcess(samples=-1)
