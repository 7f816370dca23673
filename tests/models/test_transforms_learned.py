"""Transforms learned with the hyperparameters: derivatives, Jacobians, and what they are good for."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from calibo.gp.process import LogMarginal
from calibo.models import GaussianProcess
from calibo.models.gaussian_process import MarginalLikelihood
from calibo.research import LearnedBoxCox, LearnedTanh, Logarithm
from calibo.testing import check_surrogate
from calibo.transforms import IDENTITY, LearnedAsinh, LearnedYeoJohnson, Untransformed

from ..conftest import observations

LEARNED = [LearnedAsinh(), LearnedYeoJohnson(), LearnedBoxCox(), LearnedTanh(), Logarithm()]


def inside(transform, rng) -> np.ndarray:
    """Parameters within their bounds."""
    drawn = [np.clip(rng.normal(b.center, 0.3), b.low + 0.05, b.high - 0.05) for b in transform.priors]
    return np.array(drawn, dtype=float)


def skewed(n=20, seed=0):
    data = observations(n, seed=seed)
    return replace(data, y=np.exp(3.0 * data.y) - 5.0)


@pytest.mark.parametrize("transform", LEARNED)
@pytest.mark.parametrize("seed", range(4))
def test_derivatives_by_the_parameters_are_right(transform, seed):
    rng = np.random.default_rng(seed)
    y, phi, h = rng.gamma(0.5, 3.0, 15), inside(transform, rng), 1e-6
    d_t, d_slope = transform.partials(phi, y)
    for i in range(len(phi)):
        step = h * np.eye(len(phi))[i]
        up, down = transform.at(phi + step, y), transform.at(phi - step, y)
        np.testing.assert_allclose(d_t[i], (up(y) - down(y)) / (2 * h), rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(d_slope[i], (up.log_slope(y) - down.log_slope(y)) / (2 * h), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("transform", [*LEARNED, Untransformed()])
@pytest.mark.parametrize("noise", [np.nan, 0.4], ids=["noise unknown", "some noise known"])
def test_the_gradient_of_the_evidence_is_right(transform, noise):
    data = skewed()
    data = replace(data, noise_std=np.where(np.arange(20) % 2, noise, np.nan))
    recipe = GaussianProcess(transform=transform)
    kernel = recipe.covariance(data.cube)
    evidence, prior = MarginalLikelihood(kernel, data, transform), recipe.prior(kernel, data.cube)
    rng = np.random.default_rng(0)
    theta = prior.center + 0.2 * rng.standard_normal(len(prior.center))
    if transform.priors:
        theta[-len(transform.priors) :] = inside(transform, rng)
    _, gradient = evidence(theta)
    h = 1e-6
    numeric = [(evidence(theta + h * e)[0] - evidence(theta - h * e)[0]) / (2 * h) for e in np.eye(len(theta))]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-5 * np.abs(gradient).max())


@pytest.mark.parametrize("transform", LEARNED)
def test_the_evidence_is_the_density_of_the_outcomes_in_their_units(transform):
    data = skewed(9)
    fitted = GaussianProcess(transform=transform).fit(data, rng=np.random.default_rng(0))
    process = fitted.processes[0]
    k = LogMarginal(process.kernel, data.x, process.y, np.full(9, np.nan))
    root, _ = k.root(process.theta)
    covariance = fitted.spread**2 * root.T @ root
    mean = np.full(9, fitted.center + fitted.spread * process.mean)
    h = 1e-6 * data.y.std()
    slopes = (fitted.transform(data.y + h) - fitted.transform(data.y - h)) / (2 * h)
    density = stats.multivariate_normal(mean, covariance, allow_singular=True).logpdf(fitted.transform(data.y))
    assert fitted.log_evidence == pytest.approx(density + np.log(slopes).sum(), rel=1e-4)


@pytest.mark.parametrize("transform", LEARNED)
def test_a_transformed_process_keeps_the_contract_of_a_surrogate(transform):
    check_surrogate(GaussianProcess(transform=transform), skewed())
    data = replace(observations(8), y=np.ones(8))
    GaussianProcess(transform=transform).fit(data, rng=np.random.default_rng(0)).posterior(data.x)


@pytest.mark.parametrize("transform", [LearnedAsinh(), LearnedBoxCox()])
def test_values_of_very_different_size_are_forecast_better_on_their_scale(transform):
    data, other = skewed(30), skewed(30, seed=1)
    wide = replace(data, y=np.exp(2.0 * np.log(data.y + 5.0)))
    truth = np.exp(2.0 * np.log(other.y + 5.0))
    plain, learned = (
        GaussianProcess(transform=each).fit(wide, rng=np.random.default_rng(0)) for each in (Untransformed(), transform)
    )
    assert learned.log_evidence > plain.log_evidence + 20.0
    assert (
        learned.posterior(other.x, noise=True).log_density(truth).mean()
        > plain.posterior(other.x, noise=True).log_density(truth).mean() + 0.5
    )


def test_no_transform_is_the_identity():
    fitted = GaussianProcess().fit(skewed(), rng=np.random.default_rng(0))
    assert fitted.transform == IDENTITY
    assert fitted.log_jacobian == 0.0
    assert fitted.models == {}


@pytest.mark.parametrize("transform", LEARNED)
def test_a_change_of_units_changes_nothing(transform):
    data = skewed(15)
    recipe = GaussianProcess(transform=transform)
    first = recipe.fit(data, rng=np.random.default_rng(0))
    other = recipe.fit(replace(data, y=1e3 * data.y - 7.0), rng=np.random.default_rng(0))
    x = np.full((1, 3), 0.4)
    np.testing.assert_allclose(other.posterior(x).median, 1e3 * first.posterior(x).median - 7.0, rtol=1e-3)
