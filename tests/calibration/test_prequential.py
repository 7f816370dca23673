import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad
from scipy.special import ndtr

from calibo.calibration import Record
from calibo.calibration.prequential import recorded_scores
from calibo.forecasts import CalibrationMap, Forecast
from calibo.models import GaussianProcess
from calibo.transforms import IDENTITY, Asinh

NORMAL = Forecast.normal(np.array([1e9]), np.array([0.01]))
MIXTURE = Forecast(
    np.array([[0.0], [1.5], [0.4]]),
    np.array([[1.0], [0.2], [0.5]]),
    np.array([0.5, 0.3, 0.2]),
    (IDENTITY, IDENTITY, Asinh(0.0, 0.3)),
)
BENT = CalibrationMap(np.array([-1.0, 0.0, 2.0]), np.array([-2.0, -0.5, 1.1]), left=0.8, right=1.2)


def restored(record: Record) -> Record:
    return Record.from_json(json.loads(json.dumps(record.to_json())))


def test_a_normal_comes_back_as_it_was():
    record = Record.from_forecast(
        NORMAL[0].calibrated(CalibrationMap.shift_scale(0.5, 2.0).shrink(0.5)), GaussianProcess()
    )
    back = restored(record)
    assert (back.model, back.strength) == (record.model, 0.5)
    for y in (1e9 - 0.02, 1e9, 1e9 + 0.5):
        assert back.raw.normal_score(y) == pytest.approx(record.raw.normal_score(y), rel=1e-12)
        assert back.calibrated.normal_score(y) == pytest.approx(record.calibrated.normal_score(y), rel=1e-5, abs=1e-5)


@pytest.mark.parametrize(
    "map", [CalibrationMap(), CalibrationMap.shift_scale(0.3, 1.4), BENT], ids=["identity", "line", "bent"]
)
def test_anything_else_comes_back_by_its_quantiles(map):
    record = Record.from_forecast(MIXTURE[0].calibrated(map), GaussianProcess())
    back = restored(record)
    levels = ndtr(np.linspace(-3.8, 3.8, 39))
    np.testing.assert_allclose(
        back.calibrated.quantile(levels),
        record.calibrated.quantile(levels),
        rtol=0,
        atol=1e-9 if map.is_identity else 3e-5,
    )
    for y in (-1.0, 0.3, 1.4, 2.0):
        assert back.raw.normal_score(y) == pytest.approx(record.raw.normal_score(y), abs=0.1)


@pytest.mark.parametrize("map", [CalibrationMap(), BENT], ids=["identity", "bent"])
@pytest.mark.parametrize(
    "forecast", [Forecast.normal(np.array([0.3]), np.array([0.7])), MIXTURE], ids=["normal", "mixture"]
)
def test_densities_integrate_to_the_distribution(forecast, map):
    bent = forecast[0].calibrated(map)
    for high in (-0.2, 0.9):
        cuts = [
            -60.0,
            -5.0,
            *[float(y) for y in np.sort(bent.raw.at_normal_score(map.knots[:, None]).ravel()) if y < high],
            high,
        ]
        mass = sum(quad(lambda y: np.exp(bent.log_density(y)), a, b, limit=200)[0] for a, b in pairwise(cuts))
        assert mass == pytest.approx(stats.norm.cdf(bent.normal_score(high)), abs=1e-6)


def test_forecasts_beyond_all_numbers_are_not_recorded():
    assert Record.from_forecast(Forecast.normal(np.array([1e308]), np.array([1e308]))[0], GaussianProcess()) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5) | st.integers(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["format", "raw", "loc", "scale", "model", "forecast"]), inner)
    ),
    max_leaves=8,
)


@given(JSON)
def test_what_cannot_be_understood_is_nothing(stored):
    assert Record.from_json(stored) is None


def test_a_damaged_record_is_nothing():
    good = Record.from_forecast(NORMAL[0].calibrated(CalibrationMap.shift_scale(0.5, 2.0)), GaussianProcess()).to_json()
    assert Record.from_json(good) is not None
    first = {
        "format": 1,
        "model": "m",
        "finished": 3,
        "raw": {"loc": 1.0, "scale": 2.0},
        "recalibrated": {"loc": 1.0, "scale": 2.0},
    }
    assert Record.from_json(first).raw.mean_and_std == (1.0, 2.0)
    for broken in (
        {**good, "forecast": {"loc": [1.0], "scale": [0.0]}},
        {**good, "forecast": {"loc": [float("nan")], "scale": [1.0]}},
        {**good, "forecast": {"loc": [], "scale": []}},
        {**good, "forecast": {"loc": [1.0, 2.0], "scale": [1.0, 1.0], "weights": [1.0]}},
        {**good, "forecast": {"loc": [1.0], "scale": [1.0], "transforms": [{"part": "nothing"}]}},
        {**good, "forecast": {"loc": 0.0, "scale": 1.0, "quantiles": [1.0, 2.0]}},
        {**good, "map": {"left": -1.0, "intercept": 0.0}},
        {key: value for key, value in good.items() if key != "model"},
        {**first, "raw": {"quantiles": list(range(38, -1, -1))}},
        {**first, "raw": {"loc": 1.0, "scale": 0.0}},
    ):
        assert Record.from_json(broken) is None


def test_unknown_fields_and_later_formats_are_survived():
    good = Record.from_forecast(NORMAL[0].calibrated(CalibrationMap()), GaussianProcess()).to_json()
    later = Record.from_json({**good, "format": 9, "reported": {"anything": 1}, "models": None})
    assert later.raw.mean_and_std == (1e9, 0.01)
    assert later.to_json()["reported"] == {"anything": 1}, "stored again it is the same"


def test_forecasts_of_many_rows_are_stored_by_quantiles_of_six_digits():
    rng = np.random.default_rng(0)
    rows = Forecast(
        1e9 + rng.standard_normal((20, 1)), rng.uniform(0.5, 2.0, (20, 1)), np.full(20, 0.05), (IDENTITY,) * 20
    )
    record = Record.from_forecast(rows[0].calibrated(CalibrationMap.shift_scale(0.3, 1.4)), GaussianProcess())
    stored = record.to_json()
    assert len(stored["forecast"]["quantiles"]) == 3 + 4 * 39 * 4 // 3, "39 numbers of four bytes"
    back = restored(record)
    scores = np.linspace(-3.8, 3.8, 39)
    # a line is stored beside the raw quantiles: the calibrated ones are exact where the line maps their scores
    for part, levels in (("raw", ndtr(scores)), ("calibrated", ndtr(record.calibrated.map(scores)))):
        wanted = getattr(record, part).quantile(levels)
        np.testing.assert_allclose(getattr(back, part).quantile(levels) - 1e9, wanted - 1e9, atol=4e-6)


@pytest.mark.parametrize("forecast", [NORMAL, MIXTURE], ids=["normal", "rows"])
def test_what_follows_is_not_stored(forecast):
    plain, shifted, bent = (
        Record.from_forecast(forecast[0].calibrated(map), GaussianProcess()).to_json()
        for map in (CalibrationMap(), CalibrationMap.shift_scale(0.3, 1.4), BENT)
    )
    assert set(plain) == {"format", "model", "forecast"}
    assert set(shifted) == {*plain, "map"}
    assert set(bent) == {*plain, "recalibrated"}


def test_a_stream_knows_only_forecasts_of_its_own_model():
    ours, theirs = (
        Record.from_forecast(NORMAL[0].calibrated(CalibrationMap()), model)
        for model in (GaussianProcess(), GaussianProcess(growth=0.5))
    )
    y = np.array([1e9 + 0.01, 1e9, 1e9, np.nan])
    scores = recorded_scores([ours, theirs, None, ours], y, np.full(4, np.nan), GaussianProcess())
    assert scores[0] == pytest.approx(1.0, rel=1e-4)
    assert np.isnan(scores[1:]).all()


def test_a_noise_that_is_told_takes_the_place_of_what_was_assumed():
    observed, function = (Forecast.normal(np.array([2.0]), np.array([scale])) for scale in (0.5, 0.3))
    record = restored(
        Record.from_forecast(
            observed[0].calibrated(CalibrationMap.shift_scale(0.5, 2.0)), GaussianProcess(), function[0]
        )
    )
    assert record.noise == pytest.approx(0.4)
    told = record.with_noise(1.2)
    width = np.hypot(0.3, 1.2)
    assert told.raw.normal_score(3.0) == pytest.approx(1.0 / width)
    assert told.calibrated.normal_score(3.0) == pytest.approx((1.0 / width - 0.5) / 2.0)
    assert record.with_noise(float("nan")) is record
    scores = recorded_scores([record, record], np.array([3.0, 3.0]), np.array([np.nan, 1.2]), GaussianProcess())
    np.testing.assert_allclose(scores, [2.0, 1.0 / width])
