"""Ensembles whose members know different outcomes."""

from dataclasses import replace

import numpy as np
import pytest

from calibo import InputError
from calibo.models import GaussianProcess
from calibo.research import Bagged
from calibo.testing import check_surrogate
from calibo.transforms import LearnedAsinh

from ..conftest import observations


def fit(recipe, data):
    return recipe.fit(data, rng=np.random.default_rng(0))


@pytest.mark.parametrize("recipe", [GaussianProcess(), GaussianProcess(transform=LearnedAsinh())], ids=["y", "log y"])
def test_a_bag_keeps_the_contract_of_a_surrogate(recipe):
    check_surrogate(Bagged(recipe), observations(14))


def test_members_know_their_bag_and_nothing_else():
    data = observations(20)
    fitted = fit(Bagged(), data)
    assert fitted.rows.shape == (5, 20)
    assert 0.4 < fitted.rows.mean() < 0.85
    assert len({tuple(row) for row in fitted.rows}) == 5
    for member, held in zip(fitted.members, fitted.rows, strict=True):
        x = np.full((1, 3), 0.3)
        np.testing.assert_array_equal(member.posterior(x).loc, fit(GaussianProcess(), data.take(held)).posterior(x).loc)


def test_bags_only_grow():
    rows = [fit(Bagged(), observations(20).head(n)).rows for n in (12, 20)]
    np.testing.assert_array_equal(rows[0], rows[1][:, :12])


def test_few_or_equal_outcomes_are_all_in_the_bag():
    assert fit(Bagged(), observations(1)).rows.all()
    flat = replace(observations(9), y=np.ones(9))
    fitted = fit(Bagged(), flat)
    assert fitted.rows.all()
    assert np.all(np.isfinite(fitted.posterior(flat.x, noise=True).loc))


def test_an_outcome_does_not_speak_in_its_own_forecast():
    data = observations(12)
    fitted = fit(Bagged(), data)
    changed = data.y.copy()
    changed[-1] += 0.5
    # the same hyperparameters, another last outcome
    members = tuple(
        member.condition(data.x[:0], data.y[:0]) if not held[-1] else _with_last(member, changed[-1])
        for member, held in zip(fitted.members, fitted.rows, strict=True)
    )
    other = replace(fitted, members=members, observations=replace(data, y=changed)).leave_one_out()
    np.testing.assert_allclose(fitted.leave_one_out().loc[:, -1], other.loc[:, -1], rtol=1e-6)


def _with_last(member, value):
    process = member.processes[0]
    y = np.append(process.y[:-1], (value - member.center) / member.spread)
    again = type(process).from_data(process.kernel, process.theta, process.x, y, process.noise)
    return replace(member, processes=(again,))


def test_disagreement_makes_the_forecast_wide():
    data = observations(10)
    x = np.random.default_rng(3).random((50, 3))
    bag = fit(Bagged(), data).posterior(x)
    low, high = bag.interval(0.8)
    inner = [np.ptp(np.stack(member.posterior(x).interval(0.8)), axis=0) for member in fit(Bagged(), data).members]
    assert np.mean(high - low) > np.mean(inner)


def test_no_outcome_is_lost():
    data = observations(230, d=2)
    assert fit(Bagged(bags=1), data.head(30)).rows.all()
    rows = Bagged()._rows(data)
    assert rows.any(axis=0).all()
    best = replace(data.head(30), y=np.where(np.arange(30) == 27, -5.0, data.y[:30]))
    assert np.argmin(fit(Bagged(), best).in_sample_mean(best.x)) == 27
    np.testing.assert_allclose(fit(Bagged(), best).in_sample_mean(best.x)[27], -5.0, atol=0.1)


def test_a_change_of_units_changes_no_score():
    data = observations(8, d=2)
    scores = [
        fit(Bagged(), replace(data, y=k * data.y)).leave_one_out().normal_score(k * data.y) for k in (1e-6, 1.0, 1e6)
    ]
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(scores[2], scores[1], rtol=1e-4, atol=1e-4)


def test_further_outcomes_belong_to_every_bag():
    data, x = observations(9, d=2), np.random.default_rng(0).random((2, 2))
    for more in (fit(Bagged(), data).condition(x, np.zeros(2)), fit(Bagged(), data).condition_on_mean(x)):
        assert len(more.leave_one_out()) == len(more.in_sample_mean(data.x)) == 11


def test_a_bag_needs_a_number():
    with pytest.raises(InputError, match="`bags` must be a whole number"):
        Bagged(bags=0)
