"""The Gaussian process against GPyTorch: kernel, marginal likelihood with its gradient, posterior."""

import gpytorch
import numpy as np
import torch

from calibo.gp.kernels import Matern52, Periodic, ScaledCovariance
from calibo.gp.process import LogMarginal, Process

COLUMNS = (0, 1, 2)
THETA = np.array([0.3, -0.5, 0.2, -0.9, np.log(0.01), 0.4])
X = np.random.default_rng(11).random((25, 3))
Y = np.sin(6 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * np.random.default_rng(12).normal(size=25)
NEW = np.random.default_rng(6).random((7, 3))
UNKNOWN = np.full(25, np.nan)


class GPyTorchModel(gpytorch.models.ExactGP):
    """Constant mean and a scaled Matern-5/2 kernel; theta as in ``calibo.gp.process``."""

    def __init__(self, theta: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
        super().__init__(torch.tensor(x), torch.tensor(y), gpytorch.likelihoods.GaussianLikelihood())
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(2.5, ard_num_dims=x.shape[1]))
        self.double()
        self.mean_module.constant.data.fill_(theta[-1])
        self.covar_module.outputscale = np.exp(theta[0])
        self.covar_module.base_kernel.lengthscale = torch.tensor(np.exp(theta[1:-2]))
        self.likelihood.noise = np.exp(theta[-2])

    def forward(self, z):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(z), self.covar_module(z))


def test_the_periodic_kernel():
    theta = np.array([-0.2, 0.1, -0.4, -0.5, -0.9, -0.3])
    k, _ = Periodic().on(COLUMNS).cross(theta, X)(NEW)
    oracle = gpytorch.kernels.PeriodicKernel(ard_num_dims=3).double()
    oracle.lengthscale = torch.tensor(np.exp(2 * theta[:3]))  # GPyTorch's lengthscale is the square of ours
    oracle.period_length = torch.tensor(np.exp(theta[3:]))
    with torch.no_grad():
        np.testing.assert_allclose(k, oracle(torch.tensor(NEW), torch.tensor(X)).to_dense().numpy(), rtol=1e-8)


def test_the_log_marginal_likelihood_and_its_gradient():
    model = GPyTorchModel(THETA, X, Y)
    model.train()
    with gpytorch.settings.fast_computations(log_prob=False):
        marginal = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)
        total = marginal(model(torch.tensor(X)), torch.tensor(Y))
    (25 * total).backward()
    value, gradient = LogMarginal(ScaledCovariance(Matern52().on(COLUMNS)), X, Y, UNKNOWN)(THETA)
    np.testing.assert_allclose(value, 25 * total.item(), rtol=1e-8)
    np.testing.assert_allclose(gradient[5], model.mean_module.constant.grad.item(), rtol=1e-8)
    # GPyTorch's raw lengthscale r is softplus^-1(lengthscale): d/d log(l) = l / sigmoid(r) d/dr
    raw = model.covar_module.base_kernel.raw_lengthscale
    by_log = np.exp(THETA[1:4]) * (raw.grad / torch.sigmoid(raw)).detach().numpy().ravel()
    np.testing.assert_allclose(gradient[1:4], by_log, rtol=1e-7)


def test_the_posterior():
    model = GPyTorchModel(THETA, X, Y)
    model.eval()
    exact = gpytorch.settings.fast_computations(covar_root_decomposition=False, log_prob=False, solves=False)
    with torch.no_grad(), exact, gpytorch.settings.fast_pred_var(False):
        posterior = model(torch.tensor(NEW))
    mean, variance = Process.from_data(ScaledCovariance(Matern52().on(COLUMNS)), THETA, X, Y, UNKNOWN).posterior(NEW)
    np.testing.assert_allclose(mean, posterior.mean.numpy(), rtol=1e-8)
    np.testing.assert_allclose(variance, posterior.variance.numpy(), rtol=1e-8, atol=1e-11)
