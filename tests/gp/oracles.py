"""The kernels a process is tried with, and a Gaussian process of another library with our hyper-parameters."""

import gpytorch
import numpy as np
import torch

from calibo.gp.kernels import (
    RBF,
    Hamming,
    Linear,
    Matern32,
    Matern52,
    Periodic,
    ProductCovariance,
    ScaledCovariance,
    SumCovariance,
)

COLUMNS = (0, 1, 2)
KERNELS = [
    ScaledCovariance(RBF().on(COLUMNS)),
    ScaledCovariance(Matern32().on(COLUMNS)),
    ScaledCovariance(Matern52().on(COLUMNS)),
    SumCovariance(ScaledCovariance(Linear().on(COLUMNS)), ScaledCovariance(RBF().on((0,)))),
    ScaledCovariance(Periodic().on(COLUMNS)),
    ScaledCovariance(ProductCovariance(Matern52().on((0, 1)), Hamming().on((2,)))),
]


class GPyTorchModel(gpytorch.models.ExactGP):
    """Constant mean and a scaled Matern-5/2 kernel; theta as in ``calibo.gp.likelihood``."""

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
