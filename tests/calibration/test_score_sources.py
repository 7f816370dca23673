from dataclasses import replace

import numpy as np
import pytest

from calibo import InputError
from calibo.calibration import FittedModel, Prequential
from calibo.models import GaussianProcess
from calibo.research import RefittedLeaveOneOut, RefittedTimeSeries

from ..conftest import Counting, observations

EVERY = [Prequential(), RefittedLeaveOneOut(), RefittedTimeSeries(2)]


def scores(source, data, surrogate=None, previous=None):
    surrogate = surrogate or GaussianProcess()
    fitted = surrogate.fit(data, rng=np.random.default_rng(0))
    return source.scores(FittedModel(surrogate, fitted, data, np.random.default_rng(0), previous or {}))


def noisy(n=30, seed=0):
    data = observations(n, seed=seed)
    return replace(data, y=data.y + 0.3 * np.random.default_rng(seed).standard_normal(n))


def test_refitted_leave_one_out_is_fitting_without_each_row():
    data, surrogate = noisy(14), GaussianProcess()
    expected = []
    for i in range(14):
        rest = data.take(np.arange(14) != i)
        expected.append(
            surrogate.fit(rest, rng=np.random.default_rng(0))
            .posterior(data.x[[i]], noise=True)
            .normal_score(data.y[[i]])[0]
        )
    # both stop within a thousandth of the best log density
    np.testing.assert_allclose(scores(RefittedLeaveOneOut(), data).scores, expected, atol=0.05)


def test_refitted_sources_do_not_know_the_outcome_it_scores():
    data = noisy(12)
    moved = replace(data, y=np.where(np.arange(12) == 4, data.y + 50.0, data.y))
    for source in (RefittedLeaveOneOut(), RefittedTimeSeries()):
        before, after = (scores(source, each).scores for each in (data, moved))
        # a forecast that had learned from the outcome would not be surprised
        assert after[4] > before[4] + 10.0


def test_time_series_begin_where_they_are_told_and_always_somewhere():
    data = noisy(6)
    assert np.isnan(scores(RefittedTimeSeries(4), data).scores).tolist() == [True] * 4 + [False] * 2
    assert np.isnan(scores(RefittedTimeSeries(40), data).scores).tolist() == [True] * 5 + [False]


@pytest.mark.parametrize("source", EVERY)
@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_no_source_breaks_on_few_or_equal_outcomes(source, n):
    for data in (noisy(n), replace(observations(n), y=np.ones(n))):
        found = scores(source, data).scores
        assert found.shape == (n,)
        assert not np.isinf(found).any()


def test_prequential_scores_are_what_was_recorded():
    recorded = np.linspace(-1.0, 1.0, 15)
    found = scores(Prequential(), replace(noisy(15), scores=recorded))
    np.testing.assert_array_equal(found.scores, recorded)
    assert not found.state


def test_what_was_not_recorded_is_replayed():
    data, surrogate = noisy(12), GaussianProcess()
    recorded = np.full(12, np.nan)
    recorded[6] = 0.25
    found = scores(Prequential(), replace(data, scores=recorded)).scores
    assert np.isnan(found).tolist() == [True] * 4 + [False] * 8, "the first few have no forecast"
    assert found[6] == 0.25
    before = surrogate.fit(data.head(9), rng=np.random.default_rng(0))
    assert found[9] == pytest.approx(before.posterior(data.x[[9]], noise=True).normal_score(data.y[[9]])[0], rel=1e-9)


def test_a_replay_is_made_once():
    surrogate = Counting(calls=([],))
    first = scores(Prequential(), noisy(12), surrogate)
    assert surrogate.calls[0] == [12, *range(4, 12)]
    surrogate.calls[0].clear()
    again = scores(Prequential(), noisy(12), surrogate, previous=first.state)
    assert surrogate.calls[0] == [12]
    np.testing.assert_array_equal(first.scores, again.scores)
    assert first.state == again.state
    other = noisy(12)
    other.y[5] += 0.1
    surrogate.calls[0].clear()
    changed = scores(Prequential(), other, surrogate, previous=first.state)
    assert surrogate.calls[0] == [12, *range(5, 12)], "what came after another outcome is another forecast"
    assert changed.scores[4] == first.scores[4]


def test_bad_settings_get_a_sentence():
    with pytest.raises(InputError, match="start"):
        RefittedTimeSeries(0)


@pytest.mark.parametrize("source", [Prequential(), RefittedLeaveOneOut(), RefittedTimeSeries(8)])
def test_an_outcome_is_judged_by_its_own_noise(source):
    rng = np.random.default_rng(0)
    data = observations(30)
    noise = np.where(np.arange(30) % 3 == 0, 1.0, 0.01)
    told = replace(data, y=data.y + noise * rng.standard_normal(30), noise_std=noise)
    found = scores(source, told).scores[9::3]
    assert np.sqrt(np.nanmean(found**2)) < 2.5, "seven scores of a right forecast"


@pytest.mark.parametrize("source", [Prequential(), RefittedLeaveOneOut(), RefittedTimeSeries()])
def test_scores_do_not_depend_on_units(source):
    for y in (np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.3, 0.1, 0.2]), np.array([0.4, 0.1])):
        data = observations(len(y))
        small, large = (scores(source, replace(data, y=unit * y)).scores for unit in (1e-6, 1e6))
        np.testing.assert_allclose(small, large, rtol=1e-5, atol=1e-8)
