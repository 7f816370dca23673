"""Numbers as text: they come back as they were, and what are no floats is left alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibo.arrays import pack, unpack

FLOATS = st.lists(st.floats(allow_nan=False), min_size=1, max_size=6)


@given(FLOATS | st.lists(st.tuples(*[st.floats(allow_nan=False)] * 3).map(list), min_size=1, max_size=4))
def test_floats_come_back_to_the_last_bit(numbers):
    text = pack(numbers)
    assert isinstance(text, str)
    assert unpack(text) == numbers


@pytest.mark.parametrize(
    "value",
    [[], [1, 2], [1.0, None], ["1"], [True], [[1.0], [1.0, 2.0]], [[[1.0]]], "text", None, 3.5, {"a": 1}, [2**60]],
)
def test_anything_else_is_left_alone(value):
    assert pack(value) == value
    assert unpack(pack(value)) == value


@pytest.mark.parametrize(
    "text", ["f8:%%%", "f8:AAAA", "f8:x:AAAAAAAA8D8=", "f8:3:AAAAAAAA8D8=", "f4:99999999999999999999:AAAA"]
)
def test_a_damaged_text_is_nothing(text):
    assert unpack(text) is None


def test_four_bytes_keep_seven_digits():
    assert unpack(pack([1.23456789, -3.8], "f4")) == pytest.approx([1.23456789, -3.8], rel=1e-7)
