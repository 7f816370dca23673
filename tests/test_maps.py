import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from calibo.calibration import FittedModel, NoRecalibration, NoScores
from calibo.forecasts import CalibrationMap, usable_scores
from calibo.testing import check_map

BENT = CalibrationMap(np.array([-1.0, 0.0, 2.0]), np.array([-3.0, -0.5, 0.1]), left=0.5, right=2.0)


@pytest.mark.parametrize("map", [CalibrationMap(), CalibrationMap.shift_scale(0.7, 2.0), BENT, BENT.negate()])
def test_a_map_keeps_its_contract(map):
    check_map(map)


@given(
    st.lists(st.floats(-30, 30), min_size=1, max_size=20, unique_by=lambda z: round(z, 3)),
    st.floats(0.01, 10),
    st.floats(0.01, 10),
    st.data(),
)
def test_any_increasing_knots_make_a_map(knots, left, right, data):
    steps = data.draw(st.lists(st.floats(0.001, 5), min_size=len(knots), max_size=len(knots)))
    check_map(CalibrationMap(np.array(sorted(knots)), np.cumsum(steps) - 10, left, right))


def test_a_flat_piece_is_allowed_and_infinite_scores_stay_infinite():
    flat = CalibrationMap(np.array([-1.0, 1.0]), np.array([0.0, 0.0]))
    check_map(flat)
    assert flat(-np.inf) == -np.inf
    assert flat(np.inf) == np.inf
    assert flat(np.array([-3.0, 0.3, 3.0])).tolist() == [-2.0, 0.0, 2.0]


def test_shift_scale_standardizes():
    np.testing.assert_allclose(CalibrationMap.shift_scale(0.5, 2.0)(np.array([0.5, 2.5])), [0.0, 1.0])


def test_no_recalibration_is_the_identity():
    assert NoRecalibration().fit(np.array([5.0, 7.0])).is_identity
    assert not CalibrationMap.shift_scale(0.1, 1.0).is_identity
    assert not BENT.is_identity


def test_no_evidence_scores_nothing(data):
    assert np.isnan(NoScores().scores(FittedModel(None, None, data, None)).scores).all()


def test_a_broken_map_is_found():
    with pytest.raises(AssertionError, match="decrease"):
        check_map(CalibrationMap(np.array([0.0, 1.0]), np.array([1.0, 0.0])))
    with pytest.raises(AssertionError, match="increase outside"):
        check_map(CalibrationMap(left=0.0, right=0.0))


def test_points_that_coincide_make_a_map_that_still_increases():
    map = CalibrationMap.through(np.array([0.0, 0.0, 1.0, 1.0]), np.array([-1.0, 2.0, 2.0, 3.0]))
    check_map(map)
    assert np.all(map.slopes > 0)
    np.testing.assert_allclose(map.inverse(map(np.array([-3.0, 0.5, 7.0]))), [-3.0, 0.5, 7.0], atol=1e-6)
    assert CalibrationMap.through(np.empty(0), np.empty(0)).is_identity


@pytest.mark.parametrize("map", [CalibrationMap.shift_scale(0.7, 2.0), BENT], ids=["line", "bent"])
def test_a_weakened_map_lies_between_the_identity_and_itself(map):
    z = np.linspace(-4.0, 4.0, 33)
    for strength in (0.0, 0.3, 1.0):
        weak = map.shrink(strength)
        check_map(weak)
        np.testing.assert_allclose(weak(z), z + strength * (map(z) - z), atol=1e-12)
        assert weak.strength == strength


@pytest.mark.parametrize("map", [CalibrationMap.shift_scale(0.7, 2.0), BENT], ids=["line", "bent"])
def test_the_gain_is_that_of_the_log_density(map):
    z, h = np.array([-2.03, -0.3, 1.07, 3.0]), 1e-6
    raw, bent = ((stats.norm.cdf(of(z + h)) - stats.norm.cdf(of(z - h))) / (2 * h) for of in (lambda z: z, map))
    np.testing.assert_allclose(map.log_gain(z), np.log(bent / raw), atol=1e-6)


def test_unknown_scores_are_left_out_and_infinite_ones_made_finite():
    np.testing.assert_array_equal(usable_scores(np.array([np.nan, -np.inf, 1.0, 1e9])), [-100.0, 1.0, 100.0])
