"""Slice sampling: against targets that are known, and against each other."""

import numpy as np
import pytest
from scipy import stats

from calibo.gp.kernels import Matern52, ScaledCovariance
from calibo.gp.process import LogMarginal
from calibo.gp.slice import (
    SHRINKS,
    STEPS,
    Reference,
    effective_sample_size,
    elliptical_update,
    sample,
    split_rhat,
    update,
)

CORRELATED = np.array([[1.0, 0.8, 0.0], [0.8, 2.0, -0.3], [0.0, -0.3, 0.5]])
MEAN = np.array([1.0, -2.0, 0.5])


def normal(theta):
    gap = theta - MEAN
    return -0.5 * float(gap @ np.linalg.solve(CORRELATED, gap))


def skewed(theta):
    """A gamma variable, zero below its bound, and a bimodal one."""
    if theta[0] <= 0.0:
        return -np.inf
    two = np.logaddexp(-0.5 * (theta[1] - 2.0) ** 2, -0.5 * (theta[1] + 2.0) ** 2)
    return float(2.0 * np.log(theta[0]) - theta[0] + two)


def along_coordinates(density, start, widths, rng, draws, burn_in=0):
    """The plainest slice sampler: one update along every coordinate, in random order, between two draws."""
    theta, value, found = start, density(start), []
    for _ in range(burn_in + draws):
        for direction in np.diag(widths)[rng.permutation(len(widths))]:
            theta, value = update(density, theta, value, direction, rng)
        assert value == density(theta)
        found.append(theta)
    return np.array(found[burn_in:])


def errors(draws, moment, expected):
    """How many Monte-Carlo standard errors the mean of ``moment`` is off, by the effective number of draws."""
    values = moment(draws)
    size = effective_sample_size(values[None])
    return (values.mean(axis=0) - expected) / (values.std(axis=0) / np.sqrt(size))


@pytest.mark.parametrize("width", [0.3, 1.0, 10.0])
def test_moments_of_a_correlated_normal(width):
    draws = along_coordinates(normal, np.zeros(3), np.full(3, width), np.random.default_rng(1), 4000, burn_in=50)
    assert np.all(np.abs(errors(draws, lambda x: x, MEAN)) < 4)
    squares = errors(draws, lambda x: (x - MEAN) ** 2, np.diag(CORRELATED))
    products = errors(draws, lambda x: ((x[:, 0] - MEAN[0]) * (x[:, 1] - MEAN[1]))[:, None], 0.8)
    assert np.all(np.abs(squares) < 4)
    assert np.abs(products[0]) < 4


def test_a_bound_and_two_modes():
    draws = along_coordinates(skewed, np.array([1.0, 2.0]), np.array([2.0, 3.0]), np.random.default_rng(3), 5000)
    assert np.all(draws[:, 0] > 0.0)
    gamma = stats.gamma(3)
    for level in (0.1, 0.5, 0.9):
        below = errors(draws[:, :1], lambda x, level=level: (x < gamma.ppf(level)).astype(float), level)
        assert np.abs(below[0]) < 4
    assert np.abs(errors(draws[:, 1:], lambda x: (x > 0).astype(float), 0.5)[0]) < 4
    assert np.abs(errors(draws[:, 1:], lambda x: x**2, 5.0)[0]) < 4


@pytest.mark.parametrize("scale", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("updates", [1, 2])
def test_any_reference_leaves_the_density_invariant(scale, updates):
    """Too narrow, right, or too wide, and not at the mean."""
    reference = Reference(MEAN + 0.3, scale * np.linalg.cholesky(CORRELATED))
    rng = np.random.default_rng(2)
    draws = sample(normal, np.zeros(3), reference, rng, 4000, updates=updates, burn_in=50)
    assert np.all(np.abs(errors(draws, lambda x: x, MEAN)) < 4)
    assert np.all(np.abs(errors(draws, lambda x: (x - MEAN) ** 2, np.diag(CORRELATED))) < 4)


def test_ellipses_alone_leave_the_density_invariant():
    reference, rng = Reference(MEAN - 0.2, 1.3 * np.linalg.cholesky(CORRELATED)), np.random.default_rng(3)
    theta, value, draws = MEAN, 0.0, []
    for _ in range(4000):
        theta, value = elliptical_update(normal, theta, value, reference, rng)
        draws.append(theta)
    draws = np.array(draws)
    assert np.all(np.abs(errors(draws, lambda x: x, MEAN)) < 4)
    assert np.all(np.abs(errors(draws, lambda x: (x - MEAN) ** 2, np.diag(CORRELATED))) < 4)
    assert np.all(effective_sample_size(draws[None]) > 1000), "near the reference, draws are nearly independent"


def test_a_reference_may_be_far_from_a_bound_and_two_modes():
    reference, rng = Reference(np.array([2.0, 1.0]), np.diag([2.0, 2.5])), np.random.default_rng(5)
    draws = sample(skewed, np.array([1.0, 2.0]), reference, rng, 5000)
    assert np.all(draws[:, 0] > 0.0)
    assert np.abs(errors(draws[:, :1], lambda x: x, 3.0)[0]) < 4
    assert np.abs(errors(draws[:, 1:], lambda x: (x > 0).astype(float), 0.5)[0]) < 4


def test_an_ellipse_takes_a_bounded_number_of_evaluations():
    count = 0

    def spike(theta):
        nonlocal count
        count += 1
        return 0.0 if np.all(theta == 0.0) else -np.inf

    theta, value = elliptical_update(
        spike, np.zeros(2), 0.0, Reference(np.ones(2), np.eye(2)), np.random.default_rng(0)
    )
    assert count <= SHRINKS
    assert (theta.tolist(), value) == ([0.0, 0.0], 0.0), "where nothing is found, the point stays"


def test_an_update_takes_a_bounded_number_of_evaluations():
    count = 0

    def flat_and_endless(theta):
        nonlocal count
        count += 1
        return 0.0

    rng = np.random.default_rng(0)
    for _ in range(50):
        count = 0
        update(flat_and_endless, np.zeros(1), 0.0, np.ones(1), rng)
        assert count <= STEPS + SHRINKS

    def spike(theta):
        nonlocal count
        count += 1
        return 0.0 if np.all(theta == 0.0) else -np.inf

    count = 0
    theta, value = update(spike, np.zeros(1), 0.0, np.ones(1), rng)
    assert count <= STEPS + SHRINKS
    assert (theta[0], value) == (0.0, 0.0), "where nothing is found, the point stays"


def test_a_start_must_have_a_density():
    with pytest.raises(ValueError, match="`start` must have a finite log density"):
        sample(skewed, np.array([-1.0, 0.0]), Reference(np.ones(2), np.eye(2)), np.random.default_rng(0), 3)


def test_the_posterior_of_a_process_matches_a_grid():
    rng, n = np.random.default_rng(5), 12
    x = rng.random((n, 1))
    y = np.sin(6 * x[:, 0]) + 0.3 * rng.standard_normal(n)
    marginal = LogMarginal(ScaledCovariance(Matern52().on((0,))), x, y, np.full(n, 0.09))

    def posterior(theta):
        return marginal.value(np.append(theta, [0.0, 0.0])) - 0.5 * float(((theta - [0.0, -1.0]) ** 2).sum())

    grid = np.stack(np.meshgrid(np.linspace(-4, 4, 81), np.linspace(-4, 3, 71), indexing="ij"), axis=-1).reshape(-1, 2)
    weights = np.array([posterior(theta) for theta in grid])
    weights = np.exp(weights - weights.max())
    mean = weights @ grid / weights.sum()
    square = weights @ grid**2 / weights.sum()
    draws = along_coordinates(posterior, np.array([0.0, -1.0]), np.ones(2), np.random.default_rng(2), 1500, burn_in=20)
    assert np.all(np.abs(errors(draws, lambda x: x, mean)) < 4)
    assert np.all(np.abs(errors(draws, lambda x: x**2, square)) < 4)


def test_effective_sizes_of_autoregressive_chains():
    """A chain with correlation rho is worth (1 - rho) / (1 + rho) of its draws."""
    rng, s = np.random.default_rng(0), 20_000
    for rho in (0.0, 0.5, 0.9):
        noise = rng.standard_normal((2, s)) * np.sqrt(1 - rho**2)
        chains = np.empty((2, s, 1))
        chains[:, 0, 0] = noise[:, 0]
        for t in range(1, s):
            chains[:, t, 0] = rho * chains[:, t - 1, 0] + noise[:, t]
        assert effective_sample_size(chains)[0] == pytest.approx(2 * s * (1 - rho) / (1 + rho), rel=0.15)
    assert effective_sample_size(np.ones((1, 10, 1)))[0] == 10


def test_chains_that_disagree_are_told():
    rng = np.random.default_rng(0)
    same = rng.standard_normal((4, 500, 2))
    assert np.all(split_rhat(same) < 1.02)
    apart = same + np.array([0.0, 0.0, 0.0, 3.0])[:, None, None]
    assert np.all(split_rhat(apart) > 1.3)
    assert split_rhat(np.ones((2, 10, 1)))[0] == 1.0
    assert split_rhat(np.stack([np.zeros((10, 1)), np.ones((10, 1))]))[0] == np.inf
