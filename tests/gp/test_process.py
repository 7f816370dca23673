import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk

from calibo.gp.kernels import RBF, Matern32, Matern52, ScaledCovariance
from calibo.gp.process import Process

from .kernels import COLUMNS, KERNELS

THETA = np.array([0.3, -0.5, 0.2, -0.9, np.log(1e-3), 0.4])
X = np.random.default_rng(5).random((20, 3))
Y = np.sin(6 * X[:, 0]) + X[:, 1]
NEW = np.random.default_rng(6).random((7, 3))
UNKNOWN = np.full(20, np.nan)


def process(n: int = 20, kernel=None, theta=THETA, noise=UNKNOWN) -> Process:
    return Process.from_data(kernel or ScaledCovariance(Matern52().on(COLUMNS)), theta, X[:n], Y[:n], noise[:n])


@pytest.mark.parametrize(("kernel", "nu"), [(RBF, np.inf), (Matern32, 1.5), (Matern52, 2.5)])
def test_predictions_equal_those_of_scikit_learn(kernel, nu):
    mean, variance = process(kernel=ScaledCovariance(kernel().on(COLUMNS))).posterior(NEW)
    oracle = GaussianProcessRegressor(
        sk.ConstantKernel(np.exp(THETA[0])) * sk.Matern(np.exp(THETA[1:4]), nu=nu), alpha=1e-3, optimizer=None
    ).fit(X, Y - 0.4)
    expected, std = oracle.predict(NEW, return_std=True)
    np.testing.assert_allclose(mean, expected + 0.4, rtol=1e-8)
    np.testing.assert_allclose(variance, std**2, rtol=1e-8)


@pytest.mark.parametrize("kernel", KERNELS)
def test_gradients_by_inputs_match_finite_differences(kernel):
    theta = np.append(np.random.default_rng(1).normal(-0.3, 0.3, len(kernel.labels)), [np.log(1e-2), 0.1])
    fitted = process(kernel=kernel, theta=theta)
    mean, variance, d_mean, d_variance = fitted.posterior_with_gradient(NEW)
    np.testing.assert_allclose([mean, variance], fitted.posterior(NEW), rtol=1e-12)
    for j in (0, 1):
        step = 1e-6 * np.eye(3)[j]
        up, down = fitted.posterior(NEW + step), fitted.posterior(NEW - step)
        np.testing.assert_allclose(d_mean[:, j], (up[0] - down[0]) / 2e-6, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(d_variance[:, j], (up[1] - down[1]) / 2e-6, rtol=1e-5, atol=1e-7)


def test_leave_one_out_equals_dropping_each_row():
    noise = np.where(np.arange(20) % 3 == 0, 0.02, np.nan)
    mean, variance = process(noise=noise).leave_one_out()
    for i in range(20):
        others = np.arange(20) != i
        rest = Process.from_data(ScaledCovariance(Matern52().on(COLUMNS)), THETA, X[others], Y[others], noise[others])
        m, v = rest.posterior(X[[i]])
        np.testing.assert_allclose(mean[i], m[0], rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(variance[i], v[0] + (1e-3 if np.isnan(noise[i]) else noise[i]), rtol=1e-8)


def test_conditioning_step_by_step_equals_conditioning_at_once():
    noise = np.where(np.arange(20) % 3 == 0, 0.02, np.nan)
    grown = process(12, noise=noise)
    for i in range(12, 18):
        grown = grown.condition(X[[i]], Y[[i]], noise[[i]])
    grown = grown.condition(X[18:], Y[18:], noise[18:])
    at_once = process(noise=noise)
    np.testing.assert_allclose(grown.posterior(NEW), at_once.posterior(NEW), rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(grown.log_marginal(), at_once.log_marginal(), rtol=1e-9)
    np.testing.assert_allclose(grown.leave_one_out(), at_once.leave_one_out(), rtol=1e-7)


def test_smoothed_values_are_the_posterior_mean_at_the_data():
    fitted = process(noise=np.linspace(0.0, 0.5, 20))
    np.testing.assert_allclose(fitted.in_sample_mean(), fitted.posterior(X)[0], rtol=1e-7, atol=1e-9)


def test_variance_is_positive_even_at_noise_free_observations():
    fitted = process(noise=np.zeros(20))
    mean, variance = fitted.posterior(X)
    assert np.all(variance > 0)
    np.testing.assert_allclose(mean, Y, rtol=1e-6)
