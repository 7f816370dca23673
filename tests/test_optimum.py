"""What is known of the best value."""

import numpy as np
import pytest

from calibo import InputError
from calibo.optimum import Optimum, span


def test_an_outcome_below_shows_that_the_value_was_wrong():
    y = np.array([5.0, 3.0, 4.0])
    assert Optimum(3.0).within_reach(y) == 3.0
    assert Optimum(3.001).within_reach(y) == 3.001, "a thousandth of the range is rounding"
    assert Optimum(3.5).within_reach(y) == pytest.approx(3.0 - 0.05 * 2.0)
    assert Optimum(3.5, tolerance=0.6).within_reach(y) == 3.5
    assert Optimum(-100.0).within_reach(y) == -100.0
    assert Optimum(7.0).within_reach(np.array([2.0])) < 2.0
    assert Optimum(1.0).within_reach(np.empty(0)) == 1.0


def test_noise_of_known_size_is_no_proof():
    y = np.array([5.0, 3.0, 4.0])
    assert not Optimum(3.5).surpassed(y, np.array([np.nan, 0.2, np.nan]))
    assert Optimum(3.5).surpassed(y, np.array([0.2, np.nan, 0.2]))
    assert Optimum(3.5).surpassed(y, np.array([0.2, 0.1, 0.2]))


def test_it_is_reached_within_the_tolerance():
    y = np.array([5.0, 3.0, 4.0])
    assert Optimum(3.0).reached(y)
    assert Optimum(2.9985).reached(y)
    assert not Optimum(2.9).reached(y)
    assert Optimum(2.9, tolerance=0.2).reached(y)
    assert not Optimum(4.0).reached(y), "a wrong value is not reached"
    assert not Optimum(0.0).reached(np.empty(0))


def test_outliers_do_not_widen_the_tolerance():
    y = np.array([1.0, 2.0, 3.0, 4.0, 1e9])
    assert span(y) == 10.0 * 2.0
    assert span(y[:4]) == 3.0
    assert span(np.full(3, 2.0)) == 0.0
    assert span(np.array([1.0, 1.0, 1.0, 4.0])) == 3.0
    assert Optimum(0.5).turned(-1.0) == Optimum(-0.5)


def test_bad_input_is_told():
    with pytest.raises(InputError, match="`known_optimum` must be a finite number"):
        Optimum(float("nan"))
    with pytest.raises(InputError, match="`optimum_tolerance` must be a number of at least 0"):
        Optimum(0.0, tolerance=-1.0)
    with pytest.raises(InputError, match="`optimum_is_bound` must be True or False"):
        Optimum(0.0, bound="yes")
