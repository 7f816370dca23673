"""Processes of functions whose least value is known."""

from dataclasses import replace

import numpy as np
import pytest

from calibo import InputError
from calibo.surrogate import GaussianProcess, KnownOptimum, ModelChoice, SquareRoot, reachable
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
    fitted = check_surrogate(KnownOptimum(3.0, recipe, moments), valley())
    assert fitted.optimum == 3.0
    assert np.all(fitted.latent(np.random.default_rng(0).random((50, 2))).loc >= 3.0)


@pytest.mark.parametrize("moments", ["linear", "exact"])
def test_moments_are_those_of_half_a_square(moments):
    """Against draws of the root: the exact ones always, the linear ones where it is sure."""
    data = valley(16)
    fitted = KnownOptimum(3.0, moments=moments).fit(data, rng=np.random.default_rng(0))
    x = np.random.default_rng(1).random((40, 2))
    root = fitted.inner.latent(x)
    z = np.random.default_rng(2).standard_normal((400_000, 1))
    m, s = 0.5 * root.loc + 1.0, 0.5 * root.scale
    unit = fitted.inner.transform.width
    drawn = 3.0 + unit * np.square(m + s * z)
    forecast = fitted.latent(x)
    sure = (s < 0.02 * np.abs(m))[0] if moments == "linear" else np.ones(40, dtype=bool)
    assert sure.sum() >= 5
    np.testing.assert_allclose(forecast.loc[0, sure], drawn.mean(axis=0)[sure], rtol=1e-3)
    np.testing.assert_allclose(forecast.scale[0, sure], np.maximum(drawn.std(axis=0), 1e-6 * unit)[sure], rtol=2e-2)


def test_the_scale_of_outcomes_does_not_matter():
    data = valley()
    moved = replace(data, y=1e6 * data.y - 5e7)
    x = np.random.default_rng(3).random((9, 2))
    here = KnownOptimum(3.0).fit(data, rng=np.random.default_rng(0)).latent(x)
    there = KnownOptimum(1e6 * 3.0 - 5e7).fit(moved, rng=np.random.default_rng(0)).latent(x)
    np.testing.assert_allclose(there.loc, 1e6 * here.loc - 5e7, rtol=1e-6)
    np.testing.assert_allclose(there.scale, 1e6 * here.scale, rtol=1e-4)


def test_it_forecasts_such_functions_better_than_one_that_does_not_know():
    whole = observations(80, d=2)
    root = 2.0 * (whole.x[:, 0] - 0.3) ** 2 + (whole.x[:, 1] - 0.6) ** 2 + 0.5 * whole.x[:, 0] * whole.x[:, 1]
    whole = replace(whole, y=3.0 + 0.5 * np.square(root))
    data, x, y = whole.head(12), whole.x[12:], whole.y[12:]
    with_it, without = (
        recipe.fit(data, rng=np.random.default_rng(0)).predict(x).log_density(y).mean()
        for recipe in (KnownOptimum(3.0, moments="exact"), GaussianProcess())
    )
    assert with_it > without


def test_an_outcome_below_shows_that_the_value_was_wrong():
    y = np.array([5.0, 3.0, 4.0])
    assert reachable(3.0, y) == 3.0
    assert reachable(3.001, y) == 3.001, "a thousandth of the range is rounding"
    assert reachable(3.5, y) == pytest.approx(3.0 - 0.05 * 2.0)
    assert reachable(3.5, y, tolerance=0.6) == 3.5
    assert reachable(-100.0, y) == -100.0
    assert reachable(7.0, np.array([2.0])) < 2.0
    assert reachable(1.0, np.empty(0)) == 1.0
    data = valley()
    fitted = KnownOptimum(4.0).fit(data, rng=np.random.default_rng(0))
    assert fitted.optimum < data.y.min()
    forecast = fitted.predict(np.random.default_rng(0).random((20, 2)))
    assert np.all(np.isfinite(forecast.loc))


def test_noise_may_cross_it():
    data = valley(20)
    noisy = replace(data, y=data.y + 0.01 * np.random.default_rng(0).standard_normal(20))
    noisy.y[3] = 2.99
    fitted = check_surrogate(KnownOptimum(3.0, moments="exact", tolerance=0.05), noisy)
    assert fitted.optimum == 3.0
    assert np.all(np.isfinite(fitted.smoothed()))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_outcomes_are_enough(n):
    data = valley(n)
    for flat in (data, replace(data, y=np.full(n, 3.0)), replace(data, y=np.full(n, 3.5))):
        forecast = KnownOptimum(3.0).fit(flat, rng=np.random.default_rng(0)).predict(np.full((2, 2), 0.5))
        assert np.all(np.isfinite(forecast.loc))
        assert np.all(forecast.scale > 0.0)


def test_it_may_stand_among_models():
    models = (("known optimum", KnownOptimum(3.0)), ("values", GaussianProcess()))
    check_surrogate(ModelChoice(models), valley(14))


def test_bad_input_is_told():
    with pytest.raises(InputError, match="`optimum` must be a finite number"):
        KnownOptimum(float("nan"))
    with pytest.raises(InputError, match="`moments` must be 'linear' or 'exact'"):
        KnownOptimum(0.0, moments="rough")
    with pytest.raises(InputError, match="`tolerance` must be a number of at least 0"):
        KnownOptimum(0.0, tolerance=-1.0)
    assert SquareRoot(0.0).beliefs == ()
