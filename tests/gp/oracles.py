"""The kernels a process is tried with, and a Gaussian process of another library with our hyper-parameters."""

import gpytorch
import numpy as np
import torch

from calibo.gp.kernels import RBF, Hamming, Linear, Matern32, Matern52, Periodic, Product, Scaled, Sum

COLUMNS = (0, 1, 2)
KERNELS = [
    Scaled(RBF(COLUMNS)),
    Scaled(Matern32(COLUMNS)),
    Scaled(Matern52(COLUMNS)),
    Sum(Scaled(Linear(COLUMNS)), Scaled(RBF((0,)))),
    Scaled(Periodic(COLUMNS)),
    Scaled(Product(Matern52((0, 1)), Hamming((2,)))),
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
