import numpy as np
import pytest

from calibo.design import shifted_net, sobol_points


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
