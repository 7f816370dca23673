"""What is known of the best value."""

from fractions import Fraction

import numpy as np
import pytest

from calibo import InputError
from calibo.optimum import Optimum, span


def test_an_outcome_below_shows_that_the_value_was_wrong():
    y = np.array([5.0, 3.0, 4.0])
    assert Optimum(3.0).feasible_value(y) == 3.0
    assert Optimum(3.0009).feasible_value(y) == 3.0009, "a thousandth of the distance of good ones is rounding"
    assert Optimum(3.5).feasible_value(y) == pytest.approx(3.0 - 0.05 * 2.0)
    assert Optimum(3.5).counterexample(y, np.full(3, np.nan)) == 3.0
    assert Optimum(3.5).counterexample(y, np.array([0.0, 1.0, 0.0])) is None
    assert Optimum(3.5, tolerance=0.6).feasible_value(y) == 3.5
    assert Optimum(-100.0).feasible_value(y) == -100.0
    assert Optimum(7.0).feasible_value(np.array([2.0])) < 2.0
    assert Optimum(1.0).feasible_value(np.empty(0)) == 1.0


def test_noise_of_known_size_is_no_proof():
    y = np.array([5.0, 3.0, 4.0])
    assert not Optimum(3.5).is_refuted_by(y, np.array([np.nan, 0.2, np.nan]))
    assert Optimum(3.5).is_refuted_by(y, np.array([0.2, np.nan, 0.2]))
    assert Optimum(3.5).is_refuted_by(y, np.array([0.2, 0.1, 0.2]))


TEN = np.array([5.0, 3.0, 4.0, 8.0, 9.0, 7.0, 6.0, 5.0, 4.5, 6.5])


def test_it_is_near_within_the_tolerance():
    assert Optimum(3.0).is_reached_by(TEN)
    assert Optimum(2.9985).is_reached_by(TEN)
    assert not Optimum(2.9).is_reached_by(TEN)
    assert Optimum(2.9, tolerance=0.2).is_reached_by(TEN)
    assert Optimum(2.9, tolerance=0.2).is_reached_by(TEN[:2])
    assert not Optimum(0.0).is_reached_by(np.empty(0))


def test_a_few_outcomes_do_not_tell_what_is_near():
    assert not Optimum(0.0).is_reached_by(np.array([5.0, 1e9])), "one of two outcomes may be anything"
    assert not Optimum(2.9999).is_reached_by(TEN[:9])
    assert Optimum(3.0).is_reached_by(TEN[:3]), "unless it is the value itself"


def test_the_tolerance_does_not_shrink_as_the_search_comes_nearer():
    later = np.concatenate([TEN, np.full(50, 3.0 + 1e-9)])
    assert Optimum(2.9).tolerance_for(later) == Optimum(2.9).tolerance_for(TEN) == pytest.approx(1e-3 * (4.5 - 2.9))


def test_outliers_do_not_widen_the_tolerance():
    wild = np.where(np.arange(10) % 10 < 7, 1e9, TEN)
    assert Optimum(0.0).tolerance_for(wild) < 1e-2
    assert span(np.array([1.0, 2.0, 3.0, 4.0, 1e9])) == 10.0 * 2.0
    assert span(np.full(3, 2.0)) == 0.0
    assert Optimum(0.5).with_sign(-1.0) == Optimum(-0.5)


def test_any_number_will_do():
    for tolerance in (np.float32(0.5), Fraction(1, 2), np.int64(1)):
        assert isinstance(Optimum(np.int64(1), tolerance=tolerance).tolerance, float)
    assert Optimum(-1.7e308).value == -1e300


def test_bad_input_is_told():
    with pytest.raises(InputError, match="`known_optimum` must be a finite number"):
        Optimum(float("nan"))
    with pytest.raises(InputError, match="`optimum_tolerance` must be a number of at least 0"):
        Optimum(0.0, tolerance=-1.0)
    with pytest.raises(InputError, match="`optimum_is_bound` must be True or False"):
        Optimum(0.0, bound="yes")
    with pytest.raises(InputError, match="`known_optimum` must be a finite number"):
        Optimum(10**400)
