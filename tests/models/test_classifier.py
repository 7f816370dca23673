import numpy as np
import pytest
from scipy.stats import norm

from calibo.feasibility import Feasibility
from calibo.models import GaussianProcess, LabelClassifier
from calibo.models.classifier import MISLABELED, PRIOR_MEAN, Labels
from calibo.observations import Observations
from calibo.optimizer import Optimizer
from calibo.space import Float, Space

CUBE = Space({"a": Float(0, 1), "b": Float(0, 1)}).cube


def labelled(x: np.ndarray, failed: np.ndarray) -> Observations:
    n = len(x)
    y = np.where(failed, 1.0, -1.0)
    return Observations(CUBE, x, y, np.full(n, np.nan), np.ones(n, dtype=bool), np.empty((0, 2)))


def test_the_evidence_and_the_posterior_match_brute_force():
    # two labels: the evidence is a sum of bivariate normal probabilities
    x = np.array([[0.2, 0.3], [0.6, 0.4]])
    kernel, theta, chance = GaussianProcess().covariance(CUBE), np.array([0.0, -0.7, -0.7, -14.0, PRIOR_MEAN]), 0.1
    sites = Labels(kernel, labelled(x, np.array([True, False]))).propagate(theta, chance)
    k = kernel.cross(theta[:-2], x)(x)[0]
    draws = np.random.default_rng(0).multivariate_normal([PRIOR_MEAN] * 2, k, 400_000)
    failing = np.where(draws > 0, 1 - MISLABELED, chance)
    weights = failing[:, 0] * (1 - failing[:, 1])
    assert sites.log_evidence == pytest.approx(np.log(weights.mean()), abs=0.03)
    exact = (weights @ draws) / weights.sum()
    root = np.linalg.inv(k + np.diag(sites.variance))
    np.testing.assert_allclose(PRIOR_MEAN + k @ root @ (sites.mean - PRIOR_MEAN), exact, atol=0.05)


def test_a_boundary_is_located_between_the_labels_next_to_it():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.random((20, 2)), np.column_stack([[0.48, 0.52] * 5, np.linspace(0.05, 0.95, 10)])])
    fitted = LabelClassifier().fit(labelled(x, x[:, 0] > 0.5), rng=rng)
    line = np.column_stack([[0.40, 0.46, 0.54, 0.60], np.full(4, 0.5)])
    p = norm.cdf(-fitted.posterior(line).median / fitted.posterior(line).scale[0])
    assert p[0] > 0.97
    assert p[1] > 0.8
    assert p[2] < 0.2
    assert p[3] < 0.05


def test_a_failure_by_chance_closes_no_region_whose_neighbours_succeed():
    rng = np.random.default_rng(3)
    x = rng.random((40, 2))
    failed = np.arange(40) % 5 == 0
    fit = LabelClassifier().fit(labelled(x, failed), rng=rng)
    p = norm.cdf(-fit.posterior(x[failed]).median / fit.posterior(x[failed]).scale[0])
    assert np.median(p) > 0.75
    alone = np.zeros(40, dtype=bool)
    alone[7] = True
    p = np.exp(Feasibility().fit(_failures(x, alone), rng=rng).value(x[[7]]))
    assert p[0] > 0.5


def _failures(x: np.ndarray, failed: np.ndarray) -> Observations:
    y = np.where(failed, np.nan, 1.0)
    return Observations(CUBE, x, y, np.full(len(x), np.nan), ~failed, np.empty((0, 2)))


def test_a_stored_fit_gives_the_same_and_a_damaged_one_is_ignored():
    x = np.random.default_rng(0).random((25, 2))
    data, rng = labelled(x, x[:, 0] > 0.6), np.random.default_rng(0)
    fitted = LabelClassifier().fit(data, rng=rng)
    again = LabelClassifier().fit(data, rng=rng, previous=dict(fitted.state))
    np.testing.assert_array_equal(again.posterior(x).loc, fitted.posterior(x).loc)
    damaged = LabelClassifier().fit(data, rng=rng, previous={key: ["x", 1e9] for key in fitted.state})
    np.testing.assert_array_equal(damaged.posterior(x).loc, fitted.posterior(x).loc)


def test_failures_beside_the_best_values_are_avoided():
    # the minimum lies where evaluations fail: 93 % of the last 15 failed before the boundary was modelled
    failed = []
    for seed in range(3):
        optimizer = Optimizer({"a": Float(0, 1), "b": Float(0, 1)}, seed=seed)
        for _ in range(35):
            params = optimizer.ask()
            x = np.array(list(params.values()), dtype=float)
            failed.append(x[0] > 0.5)
            if failed[-1]:
                optimizer.tell_failed(params)
            else:
                optimizer.tell(params, float(10 * np.square(x - [0.75, 0.35]).sum()))
    assert np.array(failed).reshape(3, 35)[:, -15:].mean() < 0.5


def test_lengthscales_grow_with_the_dimension():
    cube = Space({f"x{i}": Float(0, 1) for i in range(9)}).cube
    x = np.random.default_rng(0).random((3, 9))
    data = Observations(cube, x, np.ones(3), np.full(3, np.nan), np.ones(3, dtype=bool), np.empty((0, 9)))
    assert Labels(GaussianProcess().covariance(cube), data).unit == pytest.approx(np.log(3.0))
