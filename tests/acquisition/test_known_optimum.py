"""Acquisitions where the least value is known, against integrals and differences."""

import mpmath
import numpy as np
import pytest
from scipy import integrate, stats

from calibo import InputError
from calibo.acquisition import BoundedImprovement, ExpectedRegret, GuardedRegret, LogExpectedImprovement
from calibo.acquisition.known_optimum import GuardedRegretLandscape
from calibo.forecasts import CalibrationMap, Forecast
from calibo.models import GaussianProcess, KnownOptimum, ModelChoice
from calibo.optimum import Optimum
from calibo.research import ImprovementOnOptimum, KnownEntropySearch, RegretBound
from calibo.research.known_optimum import FAR, log_entropy
from calibo.testing import check_acquisition
from calibo.transforms import IDENTITY

from ..models.test_known_optimum import valley

LEAST = Optimum(3.0)
MAPS = [
    CalibrationMap(),
    CalibrationMap.shift_scale(0.4, 1.5),
    CalibrationMap(np.array([-1.0, 0.5, 2.0]), np.array([-2.0, 0.1, 1.0]), 0.7, 1.2),
]
ACQUISITIONS = [
    ExpectedRegret(LEAST),
    ImprovementOnOptimum(LEAST),
    RegretBound(LEAST),
    RegretBound(LEAST, beta="srinivas"),
    RegretBound(LEAST, beta="paper"),
    RegretBound(LEAST, beta=4.0),
    KnownEntropySearch(LEAST),
]
RECIPES = {
    "plain": GaussianProcess(),
    "sampled": GaussianProcess(samples=3),
    "transformed": KnownOptimum(LEAST),
    "linearised": KnownOptimum(LEAST, moments="linear"),
}


@pytest.mark.parametrize("map", MAPS, ids=["identity", "line", "pieces"])
@pytest.mark.parametrize("acquisition", ACQUISITIONS)
@pytest.mark.parametrize("recipe", RECIPES)
def test_they_keep_the_contract(recipe, acquisition, map):
    data = valley(12)
    check_acquisition(acquisition, data, RECIPES[recipe].fit(data, rng=np.random.default_rng(0)), map)


def criterion(acquisition, map=MAPS[0]):
    data = valley(12)
    fitted = GaussianProcess().fit(data, rng=np.random.default_rng(0))
    return acquisition.prepare(data, fitted, map).criterion


@pytest.mark.parametrize("map", MAPS, ids=["identity", "line", "pieces"])
@pytest.mark.parametrize(("loc", "scale"), [(3.5, 0.4), (3.0, 1.0), (2.0, 0.5), (4.0, 0.2), (30.0, 2.0)])
def test_the_expected_regret_is_the_integral_above(loc, scale, map):
    """E[(Y - f*)+] = integral of P(Y > y) from f* up."""
    forecast = Forecast.normal(np.array([loc]), np.array([scale]))

    def above(y):
        return stats.norm.sf(map((y - loc) / scale))

    expected, _ = integrate.quad(above, 3.0, loc + 40.0 * scale, points=[loc], limit=200)
    found = np.exp(-criterion(ExpectedRegret(LEAST), map).value(forecast)[0])
    assert found == pytest.approx(expected, rel=1e-6)


def test_the_expected_regret_of_a_mixture_is_the_mean():
    weights, transforms = np.array([0.3, 0.7]), (IDENTITY, IDENTITY)
    rows = Forecast(np.array([[3.5], [4.0]]), np.array([[0.4], [1.0]]), weights, transforms)
    each = [criterion(ExpectedRegret(LEAST)).value(Forecast.normal(rows.loc[s], rows.scale[s]))[0] for s in (0, 1)]
    both = criterion(ExpectedRegret(LEAST)).value(rows)[0]
    assert np.exp(-both) == pytest.approx(0.3 * np.exp(-each[0]) + 0.7 * np.exp(-each[1]))


def test_the_bound_has_its_two_parts_and_schedules():
    forecast = Forecast.normal(np.array([3.5, 2.0]), np.array([0.4, 0.5]))
    np.testing.assert_allclose(-criterion(RegretBound(LEAST, beta=4.0)).value(forecast), [0.5 + 0.8, 1.0 + 1.0])
    np.testing.assert_allclose(
        -criterion(RegretBound(LEAST)).value(forecast), [0.5, 1.0] + np.sqrt(0.1 * np.log(13)) * np.array([0.4, 0.5])
    )
    y = valley(12).y  # 12 outcomes in two dimensions, delta 0.1
    weights = {
        "paper": 2.0 * abs((3.0 - y.mean()) / y.std()) + 300.0 * np.log(130.0) ** 3,
        "srinivas": 2.0 * np.log(13.0**3 * np.pi**2 / 0.3),
    }
    for schedule, beta in weights.items():
        expected = [0.5, 1.0] + np.sqrt(beta) * np.array([0.4, 0.5])
        np.testing.assert_allclose(-criterion(RegretBound(LEAST, beta=schedule)).value(forecast), expected)


def test_entropy_matches_its_definition_and_its_series():
    gamma = np.linspace(-6.0, FAR - 1e-6, 200)
    phi, below = stats.norm.pdf(gamma), stats.norm.cdf(gamma)
    exact = gamma * phi / (2.0 * below) - stats.norm.logcdf(gamma)
    value, slope = log_entropy(gamma)
    np.testing.assert_allclose(value, np.log(exact), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(np.gradient(value, gamma)[1:-1], slope[1:-1], rtol=2e-3, atol=2e-3)
    ends = np.array([FAR - 1e-9, FAR + 1e-9])
    np.testing.assert_allclose(*log_entropy(ends)[0], rtol=1e-7)
    np.testing.assert_allclose(*log_entropy(ends)[1], rtol=1e-6)
    far, slopes = log_entropy(np.array([-1e9, -1e3, 50.0, 1e6]))
    assert np.all(np.isfinite(far))
    assert np.all(np.isfinite(slopes))


@pytest.mark.parametrize("gamma", [-1e8, -1e4, -51.0, -49.0, -12.0, -1.0, 7.0, 9.0, 30.0])
def test_entropy_is_exact_far_away_too(gamma):
    """Against six hundred digits: at 30 the probability above has two hundred zeros."""
    mpmath.mp.dps = 600

    def log_of(g):
        below = mpmath.erfc(-g / mpmath.sqrt(2)) / 2
        density = mpmath.exp(-g * g / 2) / mpmath.sqrt(2 * mpmath.pi)
        return mpmath.log(g * density / (2 * below) - mpmath.log(below))

    expected, slope = log_of(mpmath.mpf(gamma)), mpmath.diff(log_of, mpmath.mpf(gamma))
    value, found = log_entropy(np.array([gamma]))
    assert value[0] == pytest.approx(float(expected), rel=1e-7)
    assert found[0] == pytest.approx(float(slope), rel=1e-6)


def test_far_away_and_at_the_optimum_nothing_is_lost():
    """Neither where the root's mean is 0 nor a thousand sigmas off."""
    forecast = Forecast.normal(np.array([3.0, 1e8, -1e8, 3.0]), np.array([1e-9, 1e-3, 1e-3, 1e9]))
    for acquisition in (*ACQUISITIONS, BoundedImprovement(Optimum(2.5))):
        for part in criterion(acquisition).partials(forecast):
            assert np.all(np.isfinite(part))


def test_other_scales_are_refused():
    data = valley(12)
    fitted = ModelChoice().recipes[1][1].fit(data, rng=np.random.default_rng(0))
    for acquisition in (ExpectedRegret(LEAST), KnownEntropySearch(LEAST)):
        landscape = acquisition.prepare(data, fitted, MAPS[0])
        with pytest.raises(InputError, match="needs forecasts of untransformed outcomes"):
            landscape.value(data.x)


def test_bad_input_is_told():
    with pytest.raises(InputError, match="`beta` must be"):
        RegretBound(LEAST, beta=-1.0)
    with pytest.raises(InputError, match="`delta` must lie"):
        RegretBound(LEAST, delta=2.0)
    with pytest.raises(InputError, match="`known_optimum` must be given"):
        criterion(ExpectedRegret())


# improvement down to the least value, and the choice between it and the expected regret


@pytest.mark.parametrize("map", MAPS, ids=["identity", "line", "pieces"])
@pytest.mark.parametrize("recipe", [*RECIPES.values(), *(recipe for _, recipe in ModelChoice().recipes[1:])])
def test_bounded_improvement_keeps_the_contract(recipe, map):
    data = valley(12)
    fitted = recipe.fit(data, rng=np.random.default_rng(0))
    check_acquisition(BoundedImprovement(Optimum(2.9)), data, fitted, map)


@pytest.mark.parametrize("map", MAPS, ids=["identity", "line", "pieces"])
@pytest.mark.parametrize(("loc", "scale"), [(3.5, 0.4), (3.0, 1.0), (2.0, 0.5), (4.0, 0.2)])
def test_improvement_is_counted_down_to_the_least_value(loc, scale, map):
    """E[(best - max(f, f*))+] = integral of the CDF from f* to the best."""
    data = valley(12)
    fitted = GaussianProcess().fit(data, rng=np.random.default_rng(0))
    best = float(fitted.in_sample_mean(data.x).min())
    found = BoundedImprovement(Optimum(2.5)).prepare(data, fitted, map).criterion
    expected, _ = integrate.quad(lambda y: stats.norm.cdf(map((y - loc) / scale)), 2.5, best, limit=200)
    value = np.exp(found.value(Forecast.normal(np.array([loc]), np.array([scale])))[0])
    assert value == pytest.approx(expected, rel=1e-6)


def test_far_below_it_is_the_expected_improvement():
    data = valley(12)
    fitted = GaussianProcess().fit(data, rng=np.random.default_rng(0))
    x = np.random.default_rng(4).random((50, 2))
    bounded = BoundedImprovement(Optimum(-1e6)).prepare(data, fitted, MAPS[1]).value(x)
    usual = LogExpectedImprovement().prepare(data, fitted, MAPS[1]).value(x)
    np.testing.assert_allclose(bounded, usual, rtol=1e-9)


@pytest.mark.parametrize(("gap", "expected"), [(1e-5, 1e-5), (0.0, 0.01), (-0.005, 0.01)])
def test_the_last_digits_count_until_the_least_value_is_reached(gap, expected):
    data = valley(12)
    fitted = GaussianProcess().fit(data, rng=np.random.default_rng(0))
    best = float(fitted.in_sample_mean(data.x).min())
    found = BoundedImprovement(Optimum(best - gap, tolerance=0.01)).prepare(data, fitted, MAPS[0]).criterion
    everything = Forecast.normal(np.array([best - 1.0]), np.array([1e-3]))  # surely lower than both
    assert np.exp(found.value(everything)[0]) == pytest.approx(expected, rel=1e-6)


def test_a_value_that_was_surpassed_counts_no_more():
    data = valley(12)
    fitted = GaussianProcess().fit(data, rng=np.random.default_rng(0))
    x = np.random.default_rng(4).random((50, 2))
    usual = LogExpectedImprovement().prepare(data, fitted, MAPS[0]).value(x)
    for acquisition in (
        BoundedImprovement(Optimum(3.4)),
        GuardedRegret(Optimum(3.4), BoundedImprovement(Optimum(3.4))),
    ):
        assert acquisition._refuted(data, fitted)
        np.testing.assert_array_equal(acquisition.prepare(data, fitted, MAPS[0]).value(x), usual)
    assert not BoundedImprovement(Optimum(2.9))._refuted(data, fitted)


def test_the_regret_is_trusted_where_the_value_is_within_reach():
    """Nowhere, if it is far too low; near the optimum, if it is right."""
    data = valley(16)
    for least, reach in ((-50.0, False), (3.0, True)):
        fitted = KnownOptimum(Optimum(least)).fit(data, rng=np.random.default_rng(0))
        landscape = GuardedRegret(Optimum(least), BoundedImprovement(Optimum(least))).prepare(data, fitted, MAPS[0])
        assert isinstance(landscape, GuardedRegretLandscape)
        x = np.random.default_rng(0).random((500, 2))
        assert (landscape.fallback(x[np.argmax(landscape.value(x))]) is None) == reach
    plain = GaussianProcess().fit(data, rng=np.random.default_rng(0))
    other = GuardedRegret(LEAST, BoundedImprovement(LEAST)).prepare(data, plain, MAPS[0])
    assert not isinstance(other, GuardedRegretLandscape), "a model that does not know the value leads"
