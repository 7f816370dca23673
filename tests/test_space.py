import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibo import Categorical, Float, InputError, Int, Space

finite = st.floats(-1e300, 1e300)


@given(finite, finite, st.floats(0, 1))
def test_a_float_returns_from_the_cube_and_stays_in_its_bounds(a, b, share):
    low, high = min(a, b), max(a, b)
    parameter = Float(low, high)
    value = min(max(low + share * (high / 2 - low / 2) * 2, low), high)
    x = parameter.encode(value)
    back = parameter.decode(x)
    assert 0.0 <= x <= 1.0
    assert low <= back <= high
    assert abs(back - value) <= 1e-12 * max(abs(low), abs(high))


@given(st.floats(1e-300, 1e300), st.floats(1e-300, 1e300), st.floats(0, 1))
def test_a_log_float_returns_from_the_cube_to_relative_precision(a, b, share):
    low, high = min(a, b), max(a, b)
    parameter = Float(low, high, log=True)
    value = min(max(math.exp((1 - share) * math.log(low) + share * math.log(high)), low), high)
    assert math.isclose(parameter.decode(parameter.encode(value)), value, rel_tol=1e-12)
    assert low <= parameter.decode(share) <= high
    assert (parameter.decode(0.0), parameter.decode(1.0)) == (low, high)


@given(st.integers(-(10**12), 10**12), st.integers(0, 10**12), st.integers(1, 1000), st.data())
def test_an_int_returns_exactly(low, count, step, data):
    parameter = Int(low, low + count * step, step=step)
    value = low + step * data.draw(st.integers(0, count))
    back = parameter.decode(parameter.encode(value))
    assert back == value
    assert type(back) is int


@given(st.integers(1, 2**40), st.integers(1, 2**40), st.data())
def test_a_log_int_returns_exactly(a, b, data):
    low, high = min(a, b), max(a, b)
    parameter = Int(low, high, log=True)
    value = data.draw(st.integers(low, high))
    assert parameter.decode(parameter.encode(value)) == value


@given(st.integers(-1000, 1000), st.integers(1, 500), st.integers(1, 4), st.data())
def test_a_stepped_float_returns_exactly_and_reads_like_a_decimal(low, count, digits, data):
    scale = 10.0**digits
    parameter = Float(low / scale, (low + 3 * count) / scale, step=3 / scale)
    index = data.draw(st.integers(0, count))
    value = (low + 3 * index) / scale
    assert parameter.decode(parameter.encode(value)) == value


def test_a_step_of_a_tenth_gives_three_tenths():
    assert Float(0, 1, step=0.1).decode(0.3) == 0.3


@given(
    st.lists(
        st.one_of(st.none(), st.booleans(), st.integers(), st.text()), min_size=1, unique_by=lambda c: (type(c), c)
    )
)
def test_a_choice_returns_exactly(choices):
    parameter = Categorical(choices)
    for choice in choices:
        back = parameter.decode(parameter.encode(choice))
        assert back == choice
        assert type(back) is type(choice)


def test_cells_without_log_have_equal_width():
    edges = np.linspace(0, 1, 6)
    inside = (edges[:-1] + edges[1:]) / 2
    assert [Int(3, 7).decode(x) for x in inside] == [3, 4, 5, 6, 7]
    assert [Int(3, 7).decode(x - 1e-12) for x in edges[1:]] == [3, 4, 5, 6, 7]
    assert [Int(3, 7).decode(x + 1e-12) for x in edges[:-1]] == [3, 4, 5, 6, 7]


def test_cells_with_log_lie_between_half_way_values_in_logs():
    low, high = math.log(0.5), math.log(8.5)
    for value in range(1, 9):
        for edge, inward in ((value - 0.5, 1e-9), (value + 0.5, -1e-9)):
            x = (math.log(edge) - low) / (high - low) + inward
            assert Int(1, 8, log=True).decode(x) == value


@pytest.mark.parametrize(
    "parameter", [Float(2, 2), Float(2, 2, log=True), Int(5, 5), Int(5, 5, log=True), Categorical(["a"])]
)
def test_a_parameter_may_have_one_value(parameter):
    value = parameter.decode(0.9)
    assert parameter.decode(parameter.encode(value)) == value
    assert parameter.axis.cells == 1


@pytest.mark.parametrize(
    ("declare", "advice"),
    [
        (lambda: Float(2, 1), "Swap"),
        (lambda: Int(2, 1), "Swap"),
        (lambda: Float(0, 1, log=True), "Raise it or drop log"),
        (lambda: Int(0, 9, log=True), "Raise it or drop log"),
        (lambda: Float(0, 1, step=0.3), "high=0.9"),
        (lambda: Int(0, 10, step=3), "high=9"),
        (lambda: Float(0, 1, step=-0.1), "positive"),
        (lambda: Float(0, 1e300, step=1e-9), "at most"),
        (lambda: Float(1, 2, log=True, step=0.5), "Categorical"),
        (lambda: Int(1, 9, log=True, step=2), "Categorical"),
        (lambda: Float(math.nan, 1), "finite"),
        (lambda: Float(0, math.inf), "finite"),
        (lambda: Float("0", 1), "finite number"),
        (lambda: Int(0.5, 3), "whole"),
        (lambda: Int(0, 2**60), "Float"),
        (lambda: Categorical([]), "at least one"),
        (lambda: Categorical("abc"), "list or tuple"),
        (lambda: Categorical({"a", "b"}), "list or tuple"),
        (lambda: Categorical([1, 1]), "duplicates"),
        (lambda: Categorical([math.nan]), "finite"),
        (lambda: Categorical([object()]), "name"),
        (lambda: Space({}), "dictionary"),
        (lambda: Space(None), "dictionary"),
        (lambda: Space(["x"]), "dictionary"),
        (lambda: Float(0, 10**400), "finite"),
        (lambda: Float(0, 1, step=1 / 3), "high=0.9999999999999999"),
        (lambda: Space([("x", Float(0, 1)), ("x", Int(0, 1))]), "Rename"),
        (lambda: Space({"x": (0, 1, 2)}), "Float"),
        (lambda: Space({3: Float(0, 1)}), "strings"),
    ],
)
def test_a_bad_declaration_says_what_to_do(declare, advice):
    with pytest.raises(InputError, match="must") as caught:
        declare()
    assert advice in str(caught.value)


SPACE = Space({"rate": Float(1e-5, 1, log=True), "depth": Int(1, 9), "kind": Categorical(["a", None, 1, True])})


def test_a_space_goes_to_the_cube_and_back():
    params = {"kind": True, "rate": 0.01, "depth": 3}
    x = SPACE.to_cube(params)
    assert x.shape == (3,)
    back = SPACE.from_cube(x)
    assert list(back) == ["rate", "depth", "kind"]
    assert back["depth"] == 3
    assert back["kind"] is True
    assert math.isclose(back["rate"], 0.01, rel_tol=1e-12)


def test_plain_parameters_keep_reals_to_the_last_bit():
    params = {"rate": np.float64(0.0123456789), "depth": np.int64(3), "kind": np.True_}
    plain = SPACE.plain(params)
    assert plain == {"rate": 0.0123456789, "depth": 3, "kind": True}
    assert [type(value) for value in plain.values()] == [float, int, bool]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"rate": 0.1, "depth": 3}, r"missing \['kind'\]"),
        ({"rate": 0.1, "depth": 3, "kind": "a", "extra": 1}, r"unknown \['extra'\]"),
        ({"rate": 2.0, "depth": 3, "kind": "a"}, r"`rate` must lie in \[1e-05, 1.0\]"),
        ({"rate": 0.1, "depth": 3.5, "kind": "a"}, "`depth` must be a whole number"),
        ({"rate": 0.1, "depth": 10, "kind": "a"}, "`depth` must be one of"),
        ({"rate": 0.1, "depth": 3, "kind": "b"}, "`kind` must be one of"),
        ({"rate": math.nan, "depth": 3, "kind": "a"}, "`rate` must be a finite number"),
        ([0.1, 3, "a"], "dictionary"),
    ],
)
def test_bad_parameters_are_named(params, message):
    with pytest.raises(InputError, match=message):
        SPACE.to_cube(params)


def test_a_value_off_the_grid_is_refused_and_rounding_is_forgiven():
    parameter = Float(0, 1, step=0.1)
    assert parameter.encode(0.1 + 0.2) == parameter.encode(0.3)
    with pytest.raises(InputError, match=r"multiple of 0\.1"):
        parameter.encode(0.33)


@pytest.mark.parametrize("kind", [Float, Int])
def test_an_axis_may_say_how_it_is_bent(kind):
    assert kind(1, 8).axis.warp == "auto"
    for warp in ("auto", "identity", "log", "exp", "sigmoid", None):
        assert kind(1, 8, warp=warp).axis.warp == warp
    with pytest.raises(InputError, match="`warp` must be None or one of"):
        kind(1, 8, warp="bend")
    assert Float(0, 1, step=0.1, warp="log").axis.warp == "log"


def test_a_space_written_before_there_were_warps_is_the_same():
    old = [{"name": "x", "kind": "float", "low": 0.0, "high": 1.0, "log": False, "step": None}]
    assert Space({"x": Float(0, 1)}).to_json() == old
    assert Space.from_json(old) == Space({"x": Float(0, 1)})
    bent = Space({"x": Float(0, 1, warp="log"), "y": Int(1, 9, warp=None)})
    assert Space.from_json(bent.to_json()) == bent
