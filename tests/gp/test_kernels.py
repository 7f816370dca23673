"""Every kernel against finite differences and scikit-learn."""

import numpy as np
import pytest
from sklearn.gaussian_process import kernels as sk

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

COLUMNS = (0, 2, 3)
KERNELS = [
    RBF().on(COLUMNS),
    Matern32().on(COLUMNS),
    Matern52().on(COLUMNS),
    Linear().on(COLUMNS),
    Periodic().on(COLUMNS),
    Hamming().on((1,)),
    ScaledCovariance(Matern52().on(COLUMNS)),
    SumCovariance(RBF().on((0,)), Linear().on((2, 3))),
    ProductCovariance(Matern52().on(COLUMNS), Hamming().on((1,))),
    ScaledCovariance(
        SumCovariance(
            ProductCovariance(Matern32().on((0, 3)), Hamming().on((1,))), ScaledCovariance(Periodic().on((2,)))
        )
    ),
]
STEP = 1e-6


def points(seed: int, n: int) -> np.ndarray:
    x = np.random.default_rng(seed).random((n, 4))
    x[:, 1] = np.floor(3 * x[:, 1]) / 3 + 1 / 6
    return x


def theta_of(kernel) -> np.ndarray:
    return np.random.default_rng(7).normal(-0.3, 0.4, len(kernel.labels))


@pytest.mark.parametrize("kernel", KERNELS)
def test_paired_and_crossed_covariances_agree(kernel):
    x, z, theta = points(0, 6), points(1, 5), theta_of(kernel)
    cross, _ = kernel.cross(theta, z)(x)
    first, second = np.divmod(np.arange(30), 5)
    paired, _ = kernel.pairwise(theta, kernel.geometry(np.concatenate([x, z]), first, 6 + second))
    np.testing.assert_allclose(cross.ravel(), paired, rtol=1e-12, atol=1e-13)
    own, _ = kernel.cross(theta, x)(x)
    np.testing.assert_allclose(kernel.diagonal(theta, x)[0], np.diag(own), rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
def test_derivatives_by_hyper_parameters_match_finite_differences(kernel):
    x, theta = points(0, 8), theta_of(kernel)
    geometry = kernel.geometry(x, *np.divmod(np.arange(64), 8))
    W = np.random.default_rng(3).normal(size=64)
    _, pullback = kernel.pairwise(theta, geometry)
    gradient = pullback(W)
    for i in range(len(theta)):
        step = STEP * np.eye(len(theta))[i]
        slope = (
            (kernel.pairwise(theta + step, geometry)[0] - kernel.pairwise(theta - step, geometry)[0]) * W
        ).sum() / (2 * STEP)
        np.testing.assert_allclose(gradient[i], slope, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("kernel", KERNELS)
def test_derivatives_by_inputs_match_finite_differences(kernel):
    x, z, theta = points(0, 6), points(1, 5), theta_of(kernel)
    W = np.random.default_rng(3).normal(size=(6, 5))
    evaluate = kernel.cross(theta, z)
    gradient = evaluate(x)[1](W)
    _, d_diagonal = kernel.diagonal(theta, x)
    for j in (0, 2, 3):
        step = STEP * np.eye(4)[j]
        slope = ((evaluate(x + step)[0] - evaluate(x - step)[0]) * W).sum(axis=1) / (2 * STEP)
        np.testing.assert_allclose(gradient[:, j], slope, rtol=1e-6, atol=1e-8)
        slope = (kernel.diagonal(theta, x + step)[0] - kernel.diagonal(theta, x - step)[0]) / (2 * STEP)
        np.testing.assert_allclose(d_diagonal[:, j], slope, rtol=1e-6, atol=1e-9)
    assert np.all(gradient[:, 1] == 0)


@pytest.mark.parametrize(
    ("kernel", "nu"),
    [(RBF().on(COLUMNS), np.inf), (Matern32().on(COLUMNS), 1.5), (Matern52().on(COLUMNS), 2.5)],
)
def test_radial_kernels_equal_those_of_scikit_learn(kernel, nu):
    x, z, theta = points(0, 6), points(1, 5), theta_of(kernel)
    oracle = sk.Matern(np.exp(theta), nu=nu)(x[:, COLUMNS], z[:, COLUMNS])
    np.testing.assert_allclose(kernel.cross(theta, z)(x)[0], oracle, rtol=1e-10)


def test_the_linear_kernel_equals_that_of_scikit_learn():
    x, z, theta = points(0, 6), points(1, 5), theta_of(Linear().on(COLUMNS))
    scaled = [(p[:, COLUMNS] - 0.5) / np.exp(theta) for p in (x, z)]
    np.testing.assert_allclose(Linear().on(COLUMNS).cross(theta, z)(x)[0], sk.DotProduct(0.0)(*scaled), atol=1e-12)


def test_the_periodic_kernel_equals_that_of_scikit_learn():
    x, z, theta = points(0, 6), points(1, 5), np.array([-0.2, 0.1, -0.4, -0.5, -0.9, -0.3])
    k, _ = Periodic().on(COLUMNS).cross(theta, z)(x)
    rows = [
        sk.ExpSineSquared(np.exp(theta[i]), np.exp(theta[3 + i]))(x[:, [j]], z[:, [j]]) for i, j in enumerate(COLUMNS)
    ]
    np.testing.assert_allclose(k, np.prod(rows, axis=0), rtol=1e-10)


def test_the_hamming_kernel_counts_different_columns():
    kernel, theta = Hamming().on((0, 1)), np.log([2.0, 0.5])
    x = np.array([[0.25, 0.25], [0.75, 0.25], [0.75, 0.75]])
    k, _ = kernel.cross(theta, x)(x)
    np.testing.assert_allclose(k[0], [1.0, np.exp(-0.5), np.exp(-2.5)])


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_is_positive_semidefinite(kernel):
    x = points(5, 40)
    k, _ = kernel.cross(theta_of(kernel), x)(x)
    assert np.linalg.eigvalsh(0.5 * (k + k.T)).min() > -1e-10
