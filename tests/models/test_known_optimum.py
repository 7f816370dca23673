"""Processes of functions whose least value is known."""

from dataclasses import replace

import numpy as np
import pytest

from calibo import InputError
from calibo.models import GaussianProcess, KnownOptimum, ModelChoice, SourceTask, Transfer
from calibo.models.known_optimum import Root
from calibo.optimum import Optimum
from calibo.research import Logarithm
from calibo.testing import check_surrogate

from ..conftest import observations


def valley(n=14, d=2, least=3.0):
    """Half a square above the least value."""
    data = observations(n, d=d)
    return replace(data, y=least + 0.5 * np.square(np.sin(3.0 * data.x[:, 0]) - 0.4 * data.x[:, 1]))


@pytest.mark.parametrize("moments", ["linear", "exact"])
@pytest.mark.parametrize(
    "recipe",
    [GaussianProcess(), GaussianProcess(samples=3), GaussianProcess(warped=True)],
    ids=["likeliest", "sampled", "warped"],
)
def test_they_keep_the_contract_of_a_surrogate(recipe, moments):
    fitted = check_surrogate(KnownOptimum(Optimum(3.0), recipe, moments), valley())
    assert fitted.optimum == 3.0
    assert np.all(fitted.posterior(np.random.default_rng(0).random((50, 2))).loc >= 3.0)


@pytest.mark.parametrize("moments", ["linear", "exact"])
def test_moments_are_those_of_half_a_square(moments):
    """Against draws of the root: the exact ones always, the linear ones where it is sure."""
    data = valley(16)
    fitted = KnownOptimum(Optimum(3.0), moments=moments).fit(data, rng=np.random.default_rng(0))
    x = np.random.default_rng(1).random((40, 2))
    root = fitted.inner.posterior(x)
    z = np.random.default_rng(2).standard_normal((400_000, 1))
    m, s = root.loc, root.scale
    drawn = 3.0 + 0.5 * np.square(m + s * z)
    forecast = fitted.posterior(x)
    sure = (s < 0.02 * np.abs(m))[0] if moments == "linear" else np.ones(40, dtype=bool)
    assert sure.sum() >= 5
    np.testing.assert_allclose(forecast.loc[0, sure], drawn.mean(axis=0)[sure], rtol=1e-3)
    np.testing.assert_allclose(
        forecast.scale[0, sure], np.maximum(drawn.std(axis=0), 1e-6 * fitted.root.unit)[sure], rtol=2e-2
    )


def test_the_scale_of_outcomes_does_not_matter():
    data = valley()
    moved = replace(data, y=1e6 * data.y - 5e7)
    x = np.random.default_rng(3).random((9, 2))
    here = KnownOptimum(Optimum(3.0)).fit(data, rng=np.random.default_rng(0)).posterior(x)
    there = KnownOptimum(Optimum(1e6 * 3.0 - 5e7)).fit(moved, rng=np.random.default_rng(0)).posterior(x)
    np.testing.assert_allclose(there.loc, 1e6 * here.loc - 5e7, rtol=1e-6)
    np.testing.assert_allclose(there.scale, 1e6 * here.scale, rtol=1e-4)


def test_it_forecasts_such_functions_better_than_one_that_does_not_know():
    whole = observations(80, d=2)
    root = 2.0 * (whole.x[:, 0] - 0.3) ** 2 + (whole.x[:, 1] - 0.6) ** 2 + 0.5 * whole.x[:, 0] * whole.x[:, 1]
    whole = replace(whole, y=3.0 + 0.5 * np.square(root))
    data, x, y = whole.head(12), whole.x[12:], whole.y[12:]
    with_it, without = (
        recipe.fit(data, rng=np.random.default_rng(0)).posterior(x, noise=True).log_density(y).mean()
        for recipe in (KnownOptimum(Optimum(3.0), moments="exact"), GaussianProcess())
    )
    assert with_it > without


def test_a_value_that_was_surpassed_is_put_below_the_best():
    data = valley()
    fitted = KnownOptimum(Optimum(4.0)).fit(data, rng=np.random.default_rng(0))
    assert fitted.optimum < data.y.min()
    forecast = fitted.posterior(np.random.default_rng(0).random((20, 2)))
    assert np.all(np.isfinite(forecast.loc))


@pytest.mark.parametrize("told", [True, False], ids=["told", "not told"])
def test_noise_may_cross_it(told):
    data = valley(60)
    noise = np.full(60, 0.05 if told else np.nan)
    noisy = replace(data, y=data.y + 0.05 * np.random.default_rng(0).standard_normal(60), noise_std=noise)
    assert noisy.y.min() < 2.96
    fitted = check_surrogate(KnownOptimum(Optimum(3.0)), noisy)
    assert fitted.optimum == 3.0
    assert np.all(np.isfinite(fitted.in_sample_mean(noisy.x)))
    plain = GaussianProcess().fit(noisy, rng=np.random.default_rng(0))
    error, usual = (np.abs(found.in_sample_mean(noisy.x) - data.y).mean() for found in (fitted, plain))
    assert max(error, usual) < 0.03, "less than the noise, whose mean size is 0.04"


def test_known_noise_becomes_that_of_the_root():
    """Against draws; at the least value itself a root has no slope, and the noise stays finite."""
    root = Root(3.0, 1.0)
    y = np.array([3.0, 3.02, 3.5, 7.0])
    found = root.noise(y, np.full(4, 0.05))
    drawn = root(y + 0.05 * np.random.default_rng(0).standard_normal((200_000, 1))).std(axis=0)
    np.testing.assert_allclose(found[2:], drawn[2:], rtol=0.06)
    assert np.all((found[:2] > 0.5 * drawn[:2]) & (found[:2] < 3.0 * drawn[:2]))
    np.testing.assert_array_equal(root.noise(y, np.array([0.0, 0.0, np.nan, 0.0])), [0.0, 0.0, np.nan, 0.0])


@pytest.mark.parametrize("told", [True, False], ids=["told", "not told"])
def test_noise_at_the_optimum_makes_it_no_worse(told):
    """Forty outcomes at the place of the least value, some of them below it."""
    rng = np.random.default_rng(1)
    data = observations(55, d=2)
    data.x[15:] = [0.3, 0.6]
    y = 3.0 + np.square(data.x - [0.3, 0.6]).sum(axis=1) + 0.05 * rng.standard_normal(55)
    noisy = replace(data, y=y, noise_std=np.full(55, 0.05 if told else np.nan))
    fitted = KnownOptimum(Optimum(3.0)).fit(noisy, rng=rng)
    forecast = fitted.posterior(np.array([[0.3, 0.6]]))
    assert abs(float(forecast.loc[0, 0]) - 3.0) < 0.02
    assert abs(float(forecast.loc[0, 0]) - 3.0) < 4.0 * float(forecast.scale[0, 0])


def test_earlier_tasks_have_least_values_of_their_own():
    data, other = valley(8), valley(25, least=-40.0)
    earlier = SourceTask("earlier", other.x, -40.0 + 7.0 * (other.y + 40.0), np.full(25, np.nan))
    fitted = check_surrogate(KnownOptimum(Optimum(3.0), Transfer((earlier,))), data)
    x = np.random.default_rng(5).random((60, 2))
    truth = 3.0 + 0.5 * np.square(np.sin(3.0 * x[:, 0]) - 0.4 * x[:, 1])
    alone = KnownOptimum(Optimum(3.0)).fit(data, rng=np.random.default_rng(0))
    error, without = (np.abs(found.posterior(x).loc[0] - truth).mean() for found in (fitted, alone))
    assert error < 0.5 * without


def test_an_earlier_task_keeps_its_points_in_every_space():
    other = valley(25, least=-40.0)
    earlier = SourceTask("earlier", other.x, other.y, np.full(25, np.nan), key="what it knows")
    narrow = replace(earlier, x=0.5 * other.x)  # of a target with wider bounds
    for source in (earlier, narrow):
        recipe, _, _ = KnownOptimum(Optimum(3.0), Transfer((source,)))._transform(valley(8))
        np.testing.assert_array_equal(recipe.sources[0].x, source.x)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_outcomes_are_enough(n):
    data = valley(n)
    for flat in (data, replace(data, y=np.full(n, 3.0)), replace(data, y=np.full(n, 3.5))):
        forecast = KnownOptimum(Optimum(3.0)).fit(flat, rng=np.random.default_rng(0)).posterior(np.full((2, 2), 0.5))
        assert np.all(np.isfinite(forecast.loc))
        assert np.all(forecast.scale > 0.0)


def test_it_may_stand_among_models():
    models = (("known optimum", KnownOptimum(Optimum(3.0))), ("values", GaussianProcess()))
    check_surrogate(ModelChoice(models), valley(14))


def test_among_models_it_is_believed_no_more_once_it_is_surpassed():
    data = valley(14)
    for least, share in ((3.0, 1.0), (float(np.median(data.y)), 0.0)):
        models = (("values", GaussianProcess()), ("known optimum", KnownOptimum(Optimum(least))))
        choice = ModelChoice(models, handicap=-1e3).fit(data, rng=np.random.default_rng(0))
        assert choice.models["known optimum"] == pytest.approx(share, abs=1e-6)
    alone = ModelChoice((("known optimum", KnownOptimum(Optimum(least))),)).fit(data, rng=np.random.default_rng(0))
    assert alone.models == {"known optimum": 1.0}


def test_bad_input_is_told():
    with pytest.raises(InputError, match=r"must be one GaussianProcess .* but got a ModelChoice"):
        KnownOptimum(recipe=ModelChoice())
    with pytest.raises(InputError, match="but got a GaussianProcess with Logarithm"):
        KnownOptimum(recipe=GaussianProcess(transform=Logarithm()))
    with pytest.raises(InputError, match="`moments` must be 'linear' or 'exact'"):
        KnownOptimum(moments="rough")
    with pytest.raises(InputError, match="`known_optimum` must be given"):
        KnownOptimum().fit(valley(), rng=np.random.default_rng(0))
