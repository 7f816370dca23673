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


def test_flags_say_what_a_column_is():
    assert CUBE.free.tolist() == [True, True, True, True, False]
    assert CUBE.categorical.tolist() == [False, False, False, True, False]
    assert CUBE.discrete.tolist() == [False, True, True, True, True]
