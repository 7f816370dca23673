"""Acquisitions against closed forms, Monte Carlo and finite differences."""

import numpy as np
import pytest
from scipy import stats

from calibo.acquisition import (
    ExpectedImprovement,
    LogExpectedImprovement,
    LowerBound,
    ProbabilityOfImprovement,
)
from calibo.acquisition.improvement import LogImprovementCriterion, ProbabilityCriterion
from calibo.errors import InputError
from calibo.forecasts import CalibrationMap, Forecast
from calibo.models import GaussianProcess
from calibo.testing import check_acquisition
from calibo.transforms import IDENTITY, Asinh

MAPS = {
    "identity": CalibrationMap(),
    "shift and scale": CalibrationMap.shift_scale(0.4, 1.5),
    "bent": CalibrationMap(np.array([-1.03, 0.11, 2.0]), np.array([-2.0, -0.5, 1.1]), left=0.8, right=1.2),
}
ACQUISITIONS = [
    ExpectedImprovement(),
    LogExpectedImprovement(),
    LogExpectedImprovement(xi=0.1),
    ProbabilityOfImprovement(),
    LowerBound(1.5),
    LowerBound("srinivas"),
]
MIXTURE = Forecast(
    np.array([[0.0, 1.0], [0.5, -1.0]]), np.array([[1.0, 0.3], [0.2, 2.0]]), np.array([0.3, 0.7]), (IDENTITY, IDENTITY)
)


@pytest.mark.parametrize("map", MAPS.values(), ids=MAPS)
@pytest.mark.parametrize("acquisition", ACQUISITIONS)
def test_an_acquisition_keeps_its_contract(acquisition, map, data):
    fitted = GaussianProcess().fit(data, rng=np.random.default_rng(0))
    check_acquisition(acquisition, data, fitted, map)


def test_expected_improvement_is_the_closed_form():
    forecast = Forecast.normal(np.array([0.0, 2.0]), np.array([1.0, 0.5]))
    best = 0.3
    z = (best - forecast.loc[0]) / forecast.scale[0]
    closed = forecast.scale[0] * (stats.norm.pdf(z) + z * stats.norm.cdf(z))
    value = LogImprovementCriterion(best, IDENTITY, CalibrationMap()).value(forecast)
    np.testing.assert_allclose(value, np.log(closed), rtol=1e-10)


def test_log_expected_improvement_is_stable_far_below():
    forecast = Forecast.normal(np.array([1e8, 1e4]), np.ones(2))
    value, d_loc, d_scale = LogImprovementCriterion(0.0, IDENTITY, CalibrationMap()).partials(forecast)
    # log h(z) -> -z^2/2 - log sqrt(2 pi) - 2 log|z|
    np.testing.assert_allclose(value, [-5e15, -5e7 - 0.9189385 - 2 * np.log(1e4)], rtol=1e-10)
    np.testing.assert_allclose(d_loc[0], [-1e8, -1e4], rtol=1e-7)
    np.testing.assert_allclose(d_scale[0], [1e16, 1e8], rtol=1e-7)


def test_a_mixture_improves_by_the_mean_of_its_rows():
    value = LogImprovementCriterion(-0.2, IDENTITY, CalibrationMap()).value(MIXTURE)
    rows = []
    for loc, scale in zip(MIXTURE.loc, MIXTURE.scale, strict=True):
        z = (-0.2 - loc) / scale
        rows.append(scale * (stats.norm.pdf(z) + z * stats.norm.cdf(z)))
    np.testing.assert_allclose(np.exp(value), MIXTURE.weights @ np.array(rows), rtol=1e-8)


def test_shift_scale_improvement_is_that_of_the_corrected_normal():
    shift, scale = 0.7, 1.4
    forecast = Forecast.normal(np.array([0.5, -1.0]), np.array([2.0, 0.3]))
    corrected = Forecast(forecast.loc + shift * forecast.scale, scale * forecast.scale)
    map = CalibrationMap.shift_scale(shift, scale)
    np.testing.assert_allclose(
        LogImprovementCriterion(0.1, IDENTITY, map).value(forecast),
        LogImprovementCriterion(0.1, IDENTITY, CalibrationMap()).value(corrected),
        rtol=1e-10,
    )


def test_a_wider_forecast_may_improve_less_when_the_map_shifts_up():
    forecast = Forecast.normal(np.array([-3.0]), np.ones(1))
    _, _, d_scale = LogImprovementCriterion(0.0, IDENTITY, CalibrationMap.shift_scale(0.7, 1.0)).partials(forecast)
    assert d_scale[0, 0] < 0


def test_improvement_in_a_unit_is_that_of_the_transformed_outcome():
    unit = Asinh(0.0, 2.0)
    forecast = Forecast(np.array([[0.3]]), np.array([[0.4]]), np.ones(1), (unit,))
    value = LogImprovementCriterion(float(unit(np.array(0.5))), unit, CalibrationMap()).value(forecast)
    draws = 0.3 + 0.4 * np.random.default_rng(0).standard_normal(1_000_000)
    gains = np.maximum(np.arcsinh(0.25) - draws, 0.0)
    assert abs(np.exp(value[0]) - gains.mean()) < 5 * gains.std() / 1000


@pytest.mark.parametrize("forecast", [Forecast.normal(np.array([0.2, -1.0]), np.array([1.0, 3.0])), MIXTURE])
def test_probability_of_improvement_is_the_calibrated_cdf(forecast):
    map = MAPS["bent"]
    value = ProbabilityCriterion(-0.4, map).value(forecast)
    score = stats.norm.ppf(forecast.cdf(np.full(2, -0.4)))
    np.testing.assert_allclose(value, stats.norm.logcdf(map(score)), rtol=1e-7)


def test_an_increasing_map_does_not_move_the_most_probable_improvement():
    rng = np.random.default_rng(0)
    forecast = Forecast.normal(rng.normal(size=200), rng.uniform(0.1, 2.0, size=200))
    raw = ProbabilityCriterion(-1.0, CalibrationMap()).value(forecast)
    for map in MAPS.values():
        np.testing.assert_array_equal(np.argsort(ProbabilityCriterion(-1.0, map).value(forecast)), np.argsort(raw))


def test_a_flat_map_leaves_ties_to_the_raw_probability():
    flat = CalibrationMap(np.array([-5.0, 5.0]), np.array([0.0, 0.0]))
    forecast = Forecast.normal(np.array([0.0, -1.0, 1.0]), np.ones(3))
    assert np.argmax(ProbabilityCriterion(0.0, flat).value(forecast)) == 1


def test_bounds_are_quantiles_of_the_calibrated_forecast(data):
    fitted = GaussianProcess().fit(data, rng=np.random.default_rng(0))
    x = np.full((1, 3), 0.5)
    forecast = fitted.posterior(x)
    bound = LowerBound(2.0).prepare(data, fitted, CalibrationMap()).value(x)
    np.testing.assert_allclose(-bound, forecast.loc[0] - 2.0 * forecast.scale[0])
    np.testing.assert_allclose(-bound, forecast.quantile(stats.norm.cdf(-2.0)), rtol=1e-10)
    wide = LowerBound(2.0).prepare(data, fitted, CalibrationMap.shift_scale(0.0, 3.0)).value(x)
    np.testing.assert_allclose(-wide, forecast.loc[0] - 6.0 * forecast.scale[0])


def test_the_schedule_grows_with_time_and_dimension(data):
    fitted = GaussianProcess().fit(data, rng=np.random.default_rng(0))
    score = LowerBound("srinivas", delta=0.1).prepare(data, fitted, CalibrationMap()).criterion.score
    t, d = len(data) + 1, 3
    assert score == pytest.approx(-np.sqrt(2 * np.log(t ** (d / 2 + 2) * np.pi**2 / 0.3)))


@pytest.mark.parametrize(
    "make",
    [
        lambda: LowerBound("wrong"),
        lambda: LowerBound(np.nan),
        lambda: LowerBound("srinivas", delta=0.0),
        lambda: LogExpectedImprovement(xi=np.nan),
        lambda: ProbabilityOfImprovement(xi=np.inf),
    ],
)
def test_bad_settings_are_refused(make):
    with pytest.raises(InputError, match="must"):
        make()
