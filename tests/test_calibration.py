import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibo.calibration import CalibrationMap, NoEvidence, NoRecalibration
from calibo.testing import check_map

BENT = CalibrationMap(np.array([-1.0, 0.0, 2.0]), np.array([-3.0, -0.5, 0.1]), left=0.5, right=2.0)


@pytest.mark.parametrize("map", [CalibrationMap(), CalibrationMap.shift_scale(0.7, 2.0), BENT, BENT.mirrored()])
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
    assert np.isnan(NoEvidence().scores(None, None, data, rng=np.random.default_rng(0)).scores).all()


def test_a_broken_map_is_found():
    with pytest.raises(AssertionError, match="decrease"):
        check_map(CalibrationMap(np.array([0.0, 1.0]), np.array([1.0, 0.0])))
    with pytest.raises(AssertionError, match="increase outside"):
        check_map(CalibrationMap(left=0.0, right=0.0))
