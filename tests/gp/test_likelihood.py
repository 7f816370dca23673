import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk

from calibo.errors import FitError
from calibo.gp.kernels import RBF, Matern32, Matern52, ScaledCovariance
from calibo.gp.process import LogMarginal, maximum_a_posteriori
from calibo.priors import FLAT, HyperPriors, JointPrior, NormalPrior, joint_prior

from .kernels import COLUMNS, KERNELS

THETA = np.array([0.3, -0.5, 0.2, -0.9, np.log(0.01), 0.4])


def sample(n: int = 25) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(11)
    x = rng.random((n, 3))
    return x, np.sin(6 * x[:, 0]) + x[:, 1] ** 2 + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize(("kernel", "nu"), [(RBF, np.inf), (Matern32, 1.5), (Matern52, 2.5)])
def test_the_value_equals_that_of_scikit_learn(kernel, nu):
    x, y = sample()
    value, _ = LogMarginal(ScaledCovariance(kernel().on(COLUMNS)), x, y, np.full(25, np.nan))(THETA)
    oracle = GaussianProcessRegressor(
        sk.ConstantKernel(np.exp(THETA[0])) * sk.Matern(np.exp(THETA[1:4]), nu=nu), alpha=0.01, optimizer=None
    ).fit(x, y - 0.4)
    np.testing.assert_allclose(value, oracle.log_marginal_likelihood_value_, rtol=1e-10)


@pytest.mark.parametrize("known", [np.nan, 0.05])
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_gradient_matches_finite_differences(kernel, known):
    x, y = sample()
    x[:, 2] = np.floor(3 * x[:, 2]) / 3
    noise = np.full(25, np.nan)
    noise[:5] = known
    evidence = LogMarginal(kernel, x, y, noise)
    theta = np.random.default_rng(0).normal(-0.3, 0.3, len(kernel.labels) + 2)
    _, gradient = evidence(theta)
    for i in range(len(theta)):
        step = 1e-6 * np.eye(len(theta))[i]
        slope = (evidence(theta + step)[0] - evidence(theta - step)[0]) / 2e-6
        np.testing.assert_allclose(gradient[i], slope, rtol=1e-5, atol=1e-6)


def test_known_noise_stands_on_the_diagonal():
    x, y = sample(6)
    noise = np.array([0.1, np.nan, 0.2, np.nan, 0.0, 0.3])
    value, _ = LogMarginal(ScaledCovariance(RBF().on(COLUMNS)), x, y, noise)(THETA)
    squares = ((x[:, None] - x[None]) ** 2 / np.exp(2 * THETA[1:4])).sum(axis=2)
    K = np.exp(THETA[0]) * np.exp(-0.5 * squares) + np.diag(np.where(np.isnan(noise), 0.01, noise))
    r = y - 0.4
    dense = -0.5 * (r @ np.linalg.inv(K) @ r + np.linalg.slogdet(K)[1] + 6 * np.log(2 * np.pi))
    np.testing.assert_allclose(value, dense, rtol=1e-8)


@pytest.mark.filterwarnings("ignore:The optimal value found:sklearn.exceptions.ConvergenceWarning")
def test_maximum_likelihood_reaches_that_of_scikit_learn():
    x, y = sample(40)
    y = (y - y.mean()) / y.std()
    kernel = ScaledCovariance(RBF().on(COLUMNS))
    evidence = LogMarginal(kernel, x, y, np.full(40, np.nan))
    prior = joint_prior(FLAT, kernel.labels)
    theta, value = maximum_a_posteriori(evidence, prior, [prior.center, prior.center + 0.5])
    bounds = (1e-2, 1e2)
    oracle = GaussianProcessRegressor(
        sk.ConstantKernel(1.0, (1e-3, 1e3)) * sk.RBF([0.2] * 3, bounds) + sk.WhiteKernel(1e-4, (1e-8, 1.0)),
        n_restarts_optimizer=3,
        random_state=0,
    ).fit(x, y - theta[-1])
    assert value >= oracle.log_marginal_likelihood_value_ - 1e-2
    np.testing.assert_allclose(evidence(theta)[0], value, rtol=1e-12)


def test_the_prior_is_a_normal_density_with_its_gradient():
    prior = JointPrior.of([NormalPrior(1.0, 2.0), NormalPrior(0.0)])
    value, gradient = prior.log_density(np.array([3.0, 50.0]))
    assert value == pytest.approx(-0.5)
    assert gradient.tolist() == [-0.5, 0.0]


def test_the_best_density_is_stationary_under_the_prior():
    x, y = sample(30)
    kernel = ScaledCovariance(Matern52().on(COLUMNS))
    evidence, prior = LogMarginal(kernel, x, y, np.full(30, np.nan)), joint_prior(HyperPriors(), kernel.labels)
    theta, value = maximum_a_posteriori(evidence, prior, [prior.center])
    gradient = evidence(theta)[1] + prior.log_density(theta)[1]
    assert np.abs(gradient).max() < 0.05
    assert value >= evidence(prior.center)[0]


def test_lengthscales_grow_with_the_root_of_the_dimension():
    one, nine = joint_prior(HyperPriors(), ("lengthscale",)), joint_prior(HyperPriors(), ("lengthscale",) * 9)
    assert nine.center[0] - one.center[0] == pytest.approx(np.log(3.0))


def test_data_that_are_no_numbers_are_an_error():
    evidence = LogMarginal(
        ScaledCovariance(RBF().on((0,))), np.array([[0.1], [np.nan]]), np.zeros(2), np.full(2, np.nan)
    )
    prior = joint_prior(HyperPriors(), ("amplitude", "lengthscale"))
    with pytest.raises(FitError, match="finite"):
        maximum_a_posteriori(evidence, prior, [prior.center])
