import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from calibo.cube import Axis, Cube

CUBE = Cube((Axis(), Axis("ordered", 5), Axis("ordered", 30, origin=1), Axis("categorical", 3), Axis("ordered", 1)))


@given(st.lists(st.lists(st.floats(0, 1), min_size=5, max_size=5), min_size=1))
def test_snapping_twice_is_snapping_once(rows):
    once = CUBE.snap(np.array(rows))
    assert np.all((once >= 0) & (once <= 1))
    np.testing.assert_array_equal(CUBE.snap(once), once)


def test_points_in_the_same_cells_are_the_same():
    fine = Cube((Axis("ordered", 10**12), Axis()))
    x = np.array([[0.5, 0.5], [0.5 + 2e-12, 0.5], [0.5, 0.5 + 1e-12], [0.5, 0.6]])
    x = fine.snap(x)
    assert fine.among(x, x[:1]).tolist() == [True, False, True, False]
    assert fine.among(x, x[:1], tolerance=0.2).tolist() == [True, False, True, True]
    assert fine.among(x, x[:0]).tolist() == [False] * 4


def test_points_of_a_finite_cube_are_counted_and_listed():
    cube = Cube((Axis("ordered", 5), Axis("categorical", 3), Axis()))
    assert cube.count(np.full(3, np.nan)) == np.inf
    fixed = np.array([np.nan, np.nan, 0.25])
    assert cube.count(fixed) == 15
    points = cube.points(fixed)
    assert len(np.unique(points, axis=0)) == 15
    assert np.all(points[:, 2] == 0.25)


def test_flags_say_what_a_column_is():
    assert CUBE.free.tolist() == [True, True, True, True, False]
    assert CUBE.categorical.tolist() == [False, False, False, True, False]
    assert CUBE.discrete.tolist() == [False, True, True, True, True]
