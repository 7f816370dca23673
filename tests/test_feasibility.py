import numpy as np

from calibo.cube import Axis, Cube
from calibo.feasibility import LEAST_SUCCESS, Feasibility
from calibo.observations import Observations
from calibo.strategy import Strategy

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


def limited(excess: np.ndarray, data: Observations) -> Observations:
    feasible = (excess <= 0).all(axis=1)
    y = np.where(feasible, data.y, np.nan)
    return Observations(data.cube, data.x, y, data.noise_std, feasible, data.pending, excess)


def test_by_how_much_a_limit_is_exceeded_tells_where_it_lies():
    data = observations(25, d=2)
    excess = np.sin(3 * data.x[:, :1]) - data.x[:, 1:]
    fitted = Feasibility().fit(limited(excess, data), rng=np.random.default_rng(0))
    x = np.random.default_rng(1).random((300, 2))
    truth = np.sin(3 * x[:, 0]) - x[:, 1]
    clear = np.abs(truth) > 0.05
    assert ((fitted.value(x[clear]) > np.log(0.5)) == (truth[clear] < 0)).mean() > 0.97
    assert len(fitted.parts) == 1, "nothing failed: there are no labels to model"


def test_limits_and_failures_have_a_model_each_and_the_gradient_is_their_sum():
    data = observations(25, d=2)
    waves = np.sin(20 * data.x) - 0.3  # far from certain between the points
    excess = waves * [1.0, 1e30]
    failed = data.x[:, 1] < 0.2
    excess[failed] = np.nan
    all_kept = limited(excess, data)
    fitted = Feasibility().fit(all_kept, rng=np.random.default_rng(0))
    assert len(fitted.parts) == 3
    x = np.random.default_rng(1).uniform(0.1, 0.9, (10, 2))
    log_p, gradient = fitted.value_and_gradient(x)
    np.testing.assert_allclose(log_p, fitted.value(x))
    for j in range(2):
        step = 1e-6 * np.eye(2)[j]
        slope = (fitted.value(x + step) - fitted.value(x - step)) / 2e-6
        np.testing.assert_allclose(gradient[:, j], slope, rtol=1e-4, atol=1e-4)


def test_a_limit_that_is_only_kept_or_not_is_a_label():
    data = observations(30, d=2)
    excess = np.where(data.x[:, :1] > 0.5, 1.0, 0.0)
    fitted = Feasibility().fit(limited(excess, data), rng=np.random.default_rng(0))
    likely = fitted.value(np.array([[0.2, 0.5], [0.8, 0.5]])) > np.log(0.5)
    np.testing.assert_array_equal(likely, [True, False])


def test_where_nothing_was_feasible_yet_the_search_goes_where_limits_are_exceeded_least():
    data = observations(8, d=2)
    excess = 0.5 + ((data.x - 0.9) ** 2).sum(axis=1, keepdims=True) - 0.45
    nowhere = limited(np.maximum(excess, 0.01), data)
    proposal = Strategy(initial=4).propose(nowhere, seed=0)
    assert np.abs(proposal.x - 0.9).max() < 0.25


def test_only_labels_are_penalized_beyond_their_probability():
    """A measured constraint says how far its boundary is; a penalty there would end the search short of it."""
    rng = np.random.default_rng(0)
    x = rng.random((14, 2))
    for measured in (False, True):
        excess = (x[:, 0] - 0.5)[:, None]
        data = Observations(
            Cube((Axis(), Axis())),
            x,
            np.sin(5.0 * x).sum(axis=1),
            np.full(14, np.nan),
            excess[:, 0] <= 0.0,
            np.empty((0, 2)),
            excess if measured else None,
        )
        fitted = Feasibility().fit(data, rng=rng)
        at = rng.random((40, 2))
        plain, (value, gradient) = fitted.value(at), fitted.cautious().value_and_gradient(at)
        unlikely = plain < np.log(LEAST_SUCCESS)
        assert 5 < unlikely.sum() < 35
        assert np.array_equal(value[~unlikely], plain[~unlikely])
        assert np.array_equal(value, plain) if measured else (value[unlikely] < plain[unlikely]).all()
        for j in range(2):
            step = 1e-6 * np.eye(2)[j]
            ends = fitted.cautious().value(at + step), fitted.cautious().value(at - step)
            np.testing.assert_allclose(gradient[:, j], (ends[0] - ends[1]) / 2e-6, rtol=1e-2, atol=1e-3)
