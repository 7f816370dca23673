import numpy as np

from calibo.feasibility import Feasibility
from calibo.observations import Observations

from .conftest import observations


def labelled(feasible: np.ndarray, data: Observations) -> Observations:
    y = np.where(feasible, data.y, np.nan)
    return Observations(data.cube, data.x, y, data.noise_std, feasible, data.pending)


def test_the_probability_is_low_where_evaluations_failed():
    data = observations(30, d=2)
    fitted = Feasibility().fit(labelled(data.x[:, 0] < 0.6, data), rng=np.random.default_rng(0))
    x = np.random.default_rng(1).random((200, 2))
    clear = np.abs(x[:, 0] - 0.6) > 0.1
    likely = fitted.value(x[clear]) > np.log(0.5)
    assert (likely == (x[clear, 0] < 0.6)).mean() > 0.9


def test_where_all_failed_the_far_is_likelier_than_the_near():
    data = observations(4, d=2)
    fitted = Feasibility().fit(labelled(np.zeros(4, dtype=bool), data), rng=np.random.default_rng(0))
    grid = np.random.default_rng(1).random((100, 2))
    distance = np.abs(grid[:, None] - data.x[None]).max(axis=2).min(axis=1)
    log_p = fitted.value(grid)
    assert log_p[np.argmax(distance)] > log_p[np.argmin(distance)]
    assert np.all(np.isfinite(log_p))


def test_the_gradient_matches_finite_differences():
    data = observations(30, d=2)
    fitted = Feasibility().fit(labelled(data.x[:, 0] < 0.6, data), rng=np.random.default_rng(0))
    x = np.random.default_rng(1).uniform(0.1, 0.9, (10, 2))
    log_p, gradient = fitted.value_and_gradient(x)
    np.testing.assert_allclose(log_p, fitted.value(x))
    for j in range(2):
        step = 1e-6 * np.eye(2)[j]
        slope = (fitted.value(x + step) - fitted.value(x - step)) / 2e-6
        np.testing.assert_allclose(gradient[:, j], slope, rtol=1e-4, atol=1e-4)
