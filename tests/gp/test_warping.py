"""Warped kernels and their presets."""

import numpy as np
import pytest
from scipy import stats

from calibo.gp.kernels import RBF, Hamming, Linear, Matern52, ProductCovariance, ScaledCovariance
from calibo.gp.process import LogMarginal
from calibo.gp.warping import WARP_PRIORS, WarpedCovariance, beta_cdf, slope

from .test_kernels import STEP, points, theta_of

KERNELS = [
    WarpedCovariance(Matern52().on((0, 2, 3)), (0, 2, 3)),
    WarpedCovariance(ScaledCovariance(ProductCovariance(RBF().on((0, 2)), Hamming().on((1,)))), (2,)),
    WarpedCovariance(Linear().on((0, 3)), (0, 3)),
]


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_warped_kernel_is_the_kernel_of_bent_points(kernel):
    x, theta = points(0, 7), theta_of(kernel)
    k = len(kernel.columns)
    z = x.copy()
    for i, j in enumerate(kernel.columns):
        z[:, j] = stats.beta.cdf(x[:, j], np.exp(theta[i]), np.exp(theta[k + i]))
    expected, _ = kernel.kernel.cross(theta[2 * k :], z)(z)
    np.testing.assert_allclose(kernel.cross(theta, x)(x)[0], expected, rtol=1e-12)
    paired, _ = kernel.pairwise(theta, kernel.geometry(x, *np.divmod(np.arange(49), 7)))
    np.testing.assert_allclose(paired, expected.ravel(), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(kernel.diagonal(theta, x)[0], np.diag(expected), rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
def test_its_derivatives_match_finite_differences(kernel):
    x, z, theta = points(0, 8), points(1, 5), theta_of(kernel)
    geometry, W = kernel.geometry(x, *np.divmod(np.arange(64), 8)), np.random.default_rng(3).normal(size=64)
    gradient = kernel.pairwise(theta, geometry)[1](W)
    for i in range(len(theta)):
        step = STEP * np.eye(len(theta))[i]
        up, down = (kernel.pairwise(theta + sign * step, geometry)[0] for sign in (1, -1))
        np.testing.assert_allclose(gradient[i], ((up - down) @ W) / (2 * STEP), rtol=1e-5, atol=1e-7)
    V = np.random.default_rng(4).normal(size=(8, 5))
    evaluate = kernel.cross(theta, z)
    by_x = evaluate(x)[1](V)
    for j in (0, 2, 3):
        step = STEP * np.eye(4)[j]
        slope = ((evaluate(x + step)[0] - evaluate(x - step)[0]) * V).sum(axis=1) / (2 * STEP)
        np.testing.assert_allclose(by_x[:, j], slope, rtol=1e-5, atol=1e-7)
    assert np.all(by_x[:, 1] == 0.0)


def test_the_evidence_of_a_warped_process_has_the_right_gradient():
    kernel = ScaledCovariance(WarpedCovariance(Matern52().on((0, 2, 3)), (0, 3)))
    x = points(0, 12)
    y = np.sin(5 * x[:, 0] ** 2) + x[:, 3]
    evidence = LogMarginal(kernel, x, y, np.full(12, np.nan))
    theta = np.append(theta_of(kernel), [-4.0, 0.1])
    _, gradient = evidence(theta)
    for i in range(len(theta)):
        step = STEP * np.eye(len(theta))[i]
        difference = (evidence(theta + step)[0] - evidence(theta - step)[0]) / (2 * STEP)
        np.testing.assert_allclose(gradient[i], difference, rtol=1e-4, atol=1e-5)


def test_slopes_are_the_density_and_finite_at_the_ends():
    u = np.linspace(0.01, 0.99, 33)
    for alpha, beta in ((0.4, 0.3), (1.0, 1.0), (3.0, 0.5), (6.0, 9.0)):
        shapes = np.array(alpha), np.array(beta)
        np.testing.assert_allclose(beta_cdf(u, *shapes), stats.beta.cdf(u, alpha, beta), rtol=1e-12)
        np.testing.assert_allclose(slope(u, *shapes), stats.beta.pdf(u, alpha, beta), rtol=1e-10)
        ends = np.array([0.0, 1.0, -0.1, 1.1])
        np.testing.assert_array_equal(beta_cdf(ends, *shapes), [0.0, 1.0, 0.0, 1.0])
        assert np.all(np.isfinite(slope(ends, *shapes)))


def test_presets_do_to_the_axis_what_their_names_say():
    """At the prior's median; "log" stretches the low end, as a logarithm does."""
    u = np.linspace(0.0, 1.0, 101)

    def middle(name):
        alpha, beta = (np.exp(belief.center) for belief in WARP_PRIORS[name])
        return beta_cdf(u, np.array(alpha), np.array(beta))

    np.testing.assert_allclose(middle("auto"), u, atol=1e-12)
    np.testing.assert_allclose(middle("identity"), u, atol=1e-12)
    assert np.all(np.diff(middle("log"), 2) <= 1e-12), "concave: the low end is stretched"
    assert np.all(np.diff(middle("exp"), 2) >= -1e-12), "convex: the high end is stretched"
    np.testing.assert_allclose(middle("exp"), 1.0 - middle("log")[::-1], atol=1e-12)
    sigmoid = middle("sigmoid")
    assert sigmoid[20] < 0.1 < 0.9 < sigmoid[80]
    assert WARP_PRIORS["auto"][0].std ** 2 == pytest.approx(0.75)
