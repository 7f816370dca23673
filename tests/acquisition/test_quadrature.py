"""Expected improvement of mixtures under maps: against closed forms, an independent integral and finite differences."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr

from calibo.acquisition.improvement import LogImprovementCriterion
from calibo.acquisition.quadrature import Improvements
from calibo.forecasts import CalibrationMap, Forecast
from calibo.research import EmpiricalRecalibrator, OnlineRecalibrator
from calibo.transforms import IDENTITY, Asinh

LINE = CalibrationMap.shift_scale(0.7, 1.3)
BENT = CalibrationMap(np.array([-1.0, 0.0, 2.0]), np.array([-3.0, -0.5, 0.1]), left=0.5, right=2.0)
STEPPED = CalibrationMap.through(np.linspace(-2.0, 2.0, 9), np.repeat(np.linspace(-2.2, 1.8, 5), 2)[:9])
MAPS = {"line": LINE, "bent": BENT, "stepped": STEPPED}
ROWS = {"same": (IDENTITY,) * 3, "other": (IDENTITY, Asinh(0.0, 0.5), Asinh(-1.0, 0.3))}
BESTS = [-6.0, -1.0, 0.5, 3.0]


def mixture(transforms=(IDENTITY,) * 3, n=12, spread=1.0, seed=0) -> Forecast:
    rng = np.random.default_rng(seed)
    loc, scale = rng.normal(0.0, spread, (len(transforms), n)), np.exp(rng.normal(-0.5, 0.6, (len(transforms), n)))
    weights = rng.dirichlet(np.ones(len(transforms)))
    return Forecast(loc, scale, weights, transforms)


@pytest.mark.parametrize("best", [-30.0, *BESTS, 50.0])
@pytest.mark.parametrize("spread", [0.1, 1.0, 8.0])
def test_without_a_map_it_is_the_mean_of_the_rows(best, spread):
    forecast = mixture((IDENTITY,) * 8, 40, spread)
    closed = LogImprovementCriterion(best, IDENTITY, CalibrationMap()).partials(forecast)
    found = Improvements(forecast, CalibrationMap(), IDENTITY, best)()
    np.testing.assert_allclose(found[0], closed[0], atol=1e-8)
    for ours, theirs in zip(found[1:], closed[1:], strict=True):
        np.testing.assert_allclose(ours * forecast.scale, theirs * forecast.scale, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("best", BESTS)
def test_one_row_is_the_integral_over_the_pieces_of_the_map(best):
    forecast = mixture((IDENTITY,))
    for map in MAPS.values():
        exact = LogImprovementCriterion(best, IDENTITY, map).partials(forecast)
        found = Improvements(forecast, map, IDENTITY, best)()
        np.testing.assert_allclose(found[0], exact[0], atol=1e-7)


@pytest.mark.parametrize("best", BESTS)
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("name", MAPS)
def test_it_is_the_integral_of_the_calibrated_distribution(name, rows, best):
    map, forecast = MAPS[name], mixture(ROWS[rows], 3)
    value = Improvements(forecast, map, IDENTITY, best)()[0]
    for i in range(3):
        one = Forecast(forecast.loc[:, [i]], forecast.scale[:, [i]], forecast.weights, forecast.transforms)
        scores = np.unique(np.concatenate([np.linspace(-30.0, 8.0, 120), map.knots]))
        cuts = [y for y in one.at_normal_score(scores[:, None])[:, 0].tolist() if y < best] + [best]

        def below(y: float, one: Forecast = one) -> float:
            return float(ndtr(map(one.normal_score(np.array([y]))))[0])

        total = sum(quad(below, a, b, epsabs=0, epsrel=1e-10)[0] for a, b in pairwise(cuts))
        assert value[i] == pytest.approx(np.log(total), abs=1e-7)


@pytest.mark.parametrize("best", BESTS)
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("name", MAPS)
def test_value_and_gradient_agree(name, rows, best):
    map, forecast = MAPS[name], mixture(ROWS[rows])

    def value(loc: np.ndarray, scale: np.ndarray) -> np.ndarray:
        return Improvements(Forecast(loc, scale, forecast.weights, forecast.transforms), map, IDENTITY, best)()[0]

    _, d_loc, d_scale = Improvements(forecast, map, IDENTITY, best)()
    loc, scale = forecast.loc, forecast.scale
    for s in range(3):
        step = np.zeros_like(loc)
        step[s] = 2e-5 * scale[s]
        by_loc = (value(loc + step, scale) - value(loc - step, scale)) / (2 * step[s])
        by_scale = (value(loc, scale + step) - value(loc, scale - step)) / (2 * step[s])
        # in units of the row's width; far below, log EI falls by some hundred of them
        size = 1.0 + np.abs(d_scale[s] * scale[s])
        np.testing.assert_allclose(d_loc[s] * scale[s] / size, by_loc * scale[s] / size, atol=1e-6)
        np.testing.assert_allclose(d_scale[s] * scale[s] / size, by_scale * scale[s] / size, atol=1e-6)


def test_improvement_in_a_unit_is_that_of_transformed_draws():
    unit, forecast = Asinh(-1.0, 0.3), mixture(ROWS["other"], 1)
    best = float(unit(np.array(0.2)))
    value = Improvements(forecast, LINE, unit, best)()[0][0]
    levels = (np.arange(200_000) + 0.5) / 200_000
    from scipy.special import ndtri

    outcomes = forecast.at_normal_score(LINE.inverse(ndtri(levels))[:, None])[:, 0]
    assert np.exp(value) == pytest.approx(np.maximum(best - unit(outcomes), 0.0).mean(), rel=1e-3)


def test_rows_of_very_different_widths_are_all_seen():
    narrow = Forecast(np.array([[0.0], [-3.0]]), np.array([[2.0], [1e-4]]), np.array([0.9, 0.1]), (IDENTITY,) * 2)
    closed = LogImprovementCriterion(1.0, IDENTITY, CalibrationMap()).value(narrow)
    np.testing.assert_allclose(Improvements(narrow, CalibrationMap(), IDENTITY, 1.0)()[0], closed, atol=1e-8)


def test_it_is_finite_far_from_everything():
    for best in (-1e4, 1e4):
        for map in MAPS.values():
            for part in Improvements(mixture(), map, IDENTITY, best)():
                assert np.all(np.isfinite(part))


def equal(*loc: float) -> Forecast:
    rows = len(loc)
    return Forecast(np.array(loc)[:, None], np.ones((rows, 1)), np.full(rows, 1.0 / rows), (IDENTITY,) * rows)


@pytest.mark.parametrize(
    ("map", "best"),
    [
        (EmpiricalRecalibrator().fit(np.random.default_rng(0).normal(0.5, 1.5, 2000)), 0.0),
        (OnlineRecalibrator(2.0).fit(np.random.default_rng(0).normal(0.5, 1.5, 50)), 11.0),
    ],
    ids=["many scores", "online"],
)
def test_steep_maps_over_gaps_between_rows_lose_nothing(map, best):
    forecast = equal(0.0, 10.0)
    y = np.linspace(-40.0, best, 2_000_001)
    mass = np.trapezoid(ndtr(map(forecast.normal_score(y[:, None])[:, 0])), y)
    assert Improvements(forecast, map, IDENTITY, best)()[0][0] == pytest.approx(np.log(mass), abs=1e-5)


def test_a_narrowing_map_and_a_row_far_away_overflow_nothing():
    for map, far in ((CalibrationMap.shift_scale(0.0, 0.01), -100.0), (CalibrationMap.shift_scale(0.0, 0.02), -1e4)):
        for part in Improvements(equal(*[0.0] * 7, far), map, IDENTITY, 0.0)():
            assert np.all(np.isfinite(part))
