import numpy as np
import pytest

from calibo.design import design_points, sobol_points
from calibo.search import shifted_net


def test_the_sequence_is_the_same_whatever_part_is_asked_for():
    whole = sobol_points(3, 0, 32, seed=5)
    for start in (0, 1, 7, 20):
        np.testing.assert_array_equal(sobol_points(3, start, 4, seed=5), whole[start : start + 4])
    assert not np.array_equal(whole, sobol_points(3, 0, 32, seed=6))


@pytest.mark.parametrize("d", [1, 6, 30])
def test_points_are_spread_more_evenly_than_random_ones(d):
    rng = np.random.default_rng(0)
    for points in (sobol_points(d, 0, 64, seed=1), shifted_net(d, 64, rng)):
        assert points.shape == (64, d)
        assert np.all((points >= 0) & (points < 1))
        # one point in each of 64 equal slices of every axis: a random design leaves a third of them empty;
        # a shift may push two points across the same slice border
        filled = [len(set(np.floor(64 * points[:, j]).astype(int))) for j in range(d)]
        assert min(filled) >= 63


def test_a_latin_hypercube_has_one_point_in_every_slice():
    points = design_points("latin", 4, 9, 0, 9, seed=3)
    for column in points.T:
        assert sorted(np.floor(9 * column).astype(int)) == list(range(9))
    following = design_points("latin", 4, 9, 5, 10, seed=3)
    np.testing.assert_array_equal(following[:4], points[5:])
    assert np.all((following >= 0.0) & (following < 1.0))


def test_random_points_are_the_same_from_wherever_they_begin():
    whole = design_points("random", 2, 5, 0, 12, seed=1)
    np.testing.assert_array_equal(design_points("random", 2, 5, 7, 5, seed=1), whole[7:])
