"""Kernels of several tasks."""

import numpy as np
import pytest
from scipy.special import expit

from calibo.gp.kernels import Matern52, ProductCovariance, ScaledCovariance, SumCovariance
from calibo.gp.process import LogMarginal
from calibo.gp.tasks import MissingColumnsCovariance, TaskCovariance, TaskNoiseCovariance, task_correlations
from calibo.gp.warping import WarpedCovariance

from .test_kernels import STEP

COUNT, COLUMN = 3, 3


def points(seed, n, gaps=()):
    rng = np.random.default_rng(seed)
    x = rng.random((n, 4))
    x[:, COLUMN] = np.arange(n) % COUNT
    for task, column in gaps:
        x[x[:, COLUMN] == task, column] = np.nan
    return x


GAPS = ((1, 2), (2, 0))
BASE = ProductCovariance(ScaledCovariance(Matern52().on((0, 1, 2))), TaskCovariance(COLUMN, COUNT))
KERNELS = {
    "tasks": (TaskCovariance(COLUMN, COUNT), ()),
    "joint": (BASE, ()),
    "own noise": (SumCovariance(BASE, TaskNoiseCovariance(COLUMN, COUNT)), ()),
    "warped": (
        ProductCovariance(
            WarpedCovariance(ScaledCovariance(Matern52().on((0, 1, 2))), (0, 2), COLUMN, COUNT),
            TaskCovariance(COLUMN, COUNT),
        ),
        (),
    ),
    "placed": (MissingColumnsCovariance(BASE, GAPS, COLUMN), GAPS),
    "all": (
        SumCovariance(
            MissingColumnsCovariance(
                ProductCovariance(
                    WarpedCovariance(ScaledCovariance(Matern52().on((0, 1, 2))), (0, 1), COLUMN, COUNT),
                    TaskCovariance(COLUMN, COUNT),
                ),
                GAPS,
                COLUMN,
            ),
            TaskNoiseCovariance(COLUMN, COUNT),
        ),
        GAPS,
    ),
}


def theta_of(kernel):
    return np.random.default_rng(7).normal(-0.3, 0.4, len(kernel.labels))


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_correlations_are_those_of_a_covariance_and_have_the_slopes_they_claim(count):
    rng = np.random.default_rng(count)
    phi = rng.normal(0, 1.5, count * (count - 1) // 2)
    R, d_R = task_correlations(phi, count)
    np.testing.assert_allclose(np.diag(R), 1.0)
    assert np.linalg.eigvalsh(R).min() > 0
    for k in range(len(phi)):
        step = STEP * np.eye(len(phi))[k]
        slope = (task_correlations(phi + step, count)[0] - task_correlations(phi - step, count)[0]) / (2 * STEP)
        np.testing.assert_allclose(d_R[k], slope, atol=1e-8)


def test_a_logit_is_a_correlation():
    for phi, rho in ((0.0, 0.0), (-30.0, 1.0), (30.0, -1.0), (-np.log(2.0), 0.5)):
        assert task_correlations(np.array([phi]), 2)[0][0, 1] == pytest.approx(rho, abs=1e-9)


@pytest.mark.parametrize("name", KERNELS)
def test_paired_and_crossed_covariances_agree(name):
    kernel, gaps = KERNELS[name]
    x, theta = points(0, 9, gaps), theta_of(kernel)
    first, second = np.divmod(np.arange(81), 9)
    off = first != second  # a point has its own noise with itself alone
    paired, _ = kernel.pairwise(theta, kernel.geometry(x, first[off], second[off]))
    cross, _ = kernel.cross(theta, x)(x)
    np.testing.assert_allclose(cross[first[off], second[off]], paired, rtol=1e-9, atol=1e-12)
    assert np.linalg.eigvalsh(cross).min() > -1e-9, "a covariance"


@pytest.mark.parametrize("name", KERNELS)
def test_the_evidence_has_the_right_gradient(name):
    kernel, gaps = KERNELS[name]
    x = points(0, 12, gaps)
    y = np.sin(4 * np.nan_to_num(x[:, 1])) + 0.3 * x[:, COLUMN]
    evidence = LogMarginal(kernel, x, y, np.full(12, np.nan))
    theta = np.append(theta_of(kernel), [-3.0, 0.1])
    _, gradient = evidence(theta)
    for i in range(len(theta)):
        step = STEP * np.eye(len(theta))[i]
        slope = (evidence(theta + step)[0] - evidence(theta - step)[0]) / (2 * STEP)
        np.testing.assert_allclose(gradient[i], slope, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in KERNELS if name != "tasks"])
def test_derivatives_by_inputs_match_finite_differences(name):
    kernel, gaps = KERNELS[name]
    x, z, theta = points(0, 6), points(1, 9, gaps), theta_of(kernel)
    x[:, COLUMN] = 0
    W = np.random.default_rng(3).normal(size=(6, 9))
    evaluate = kernel.cross(theta, z)
    gradient = evaluate(x)[1](W)
    for j in range(3):
        step = STEP * np.eye(4)[j]
        slope = ((evaluate(x + step)[0] - evaluate(x - step)[0]) * W).sum(axis=1) / (2 * STEP)
        np.testing.assert_allclose(gradient[:, j], slope, rtol=1e-5, atol=1e-7)


def test_a_task_that_lacks_a_column_had_it_at_one_place():
    kernel, _ = KERNELS["placed"]
    x, theta = points(0, 9, GAPS), theta_of(kernel)
    filled = x.copy()
    for place, (task, column) in zip(expit(theta[:2]), GAPS, strict=True):
        filled[x[:, COLUMN] == task, column] = place
    expected, _ = BASE.cross(theta[2:], filled)(filled)
    np.testing.assert_allclose(kernel.cross(theta, x)(x)[0], expected, rtol=1e-12)


def test_own_noise_is_that_of_each_outcome_of_its_task():
    kernel, x = TaskNoiseCovariance(COLUMN, COUNT), points(0, 6)
    rows, columns = np.triu_indices(6)
    k, _ = kernel.pairwise(np.log([2.0, 3.0]), kernel.geometry(x, rows, columns))
    full = np.zeros((6, 6))
    full[rows, columns] = k
    np.testing.assert_allclose(full, np.diag([0.0, 2.0, 3.0, 0.0, 2.0, 3.0]))
