from dataclasses import dataclass

import numpy as np
import pytest

from calibo.cube import Axis, Cube
from calibo.search import Search


@dataclass(frozen=True)
class Bowl:
    """-(distance to ``top``)^2."""

    top: np.ndarray

    def value(self, x: np.ndarray) -> np.ndarray:
        return -((x - self.top) ** 2).sum(axis=1)

    screen = value

    def value_and_gradient(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.value(x), -2 * (x - self.top)


def maximize(objective, cube, **options):
    d = len(cube)
    settings = {"anchors": np.full((1, d), 0.5), "fixed": np.full((1, d), np.nan), **options}
    points = settings.pop("excluded", np.empty((0, d)))
    rng, apart = np.random.default_rng(0), settings.pop("apart", 1e-9)
    return Search().maximize(objective, cube, rng=rng, excluded=lambda x: cube.among(x, points, apart), **settings)


def cube(*axes: Axis) -> Cube:
    return Cube(axes)


@pytest.mark.parametrize("top", [[0.3, 0.7], [0.0, 1.0], [-3.0, 0.4], [2.0, 2.0]])
def test_the_top_is_found_in_the_cube_and_on_its_boundary(top):
    found = maximize(Bowl(np.array(top)), cube(Axis(), Axis()))
    np.testing.assert_allclose(found, np.clip(top, 0, 1), atol=1e-4)


def test_the_best_of_many_hills_is_found():
    class Hills:
        def value(self, x):
            return np.cos(20 * x).sum(axis=1) - 3 * ((x - 0.62) ** 2).sum(axis=1)

        screen = value

        def value_and_gradient(self, x):
            return self.value(x), -20 * np.sin(20 * x) - 6 * (x - 0.62)

    found = maximize(Hills(), cube(Axis(), Axis(), Axis()))
    np.testing.assert_allclose(found, 0.6279, atol=5e-3)


def test_discrete_columns_end_on_their_cells():
    mixed = cube(Axis(), Axis("ordered", 100), Axis("categorical", 40), Axis("ordered", 500, origin=1))
    top = np.array([0.123, 0.777, 0.5 / 40 + 13 / 40, 0.4])
    found = maximize(Bowl(top), mixed)
    np.testing.assert_array_equal(mixed.snap(found[None])[0], found)
    np.testing.assert_allclose(found, mixed.snap(top[None])[0], atol=1e-4)


def test_a_small_cube_is_searched_whole():
    small = cube(Axis("ordered", 20), Axis("categorical", 20))
    rng = np.random.default_rng(5)
    heights = rng.random((20, 20))

    class Table:
        def value(self, x):
            return heights[np.floor(x[:, 0] * 20).astype(int), np.floor(x[:, 1] * 20).astype(int)]

    found = maximize(Table(), small)
    assert Table().value(found[None])[0] == heights.max()
    second = maximize(Table(), small, excluded=found[None])
    assert Table().value(second[None])[0] == np.sort(heights.ravel())[-2]


def test_fixed_columns_stay():
    found = maximize(Bowl(np.array([0.3, 0.7])), cube(Axis(), Axis()), fixed=np.array([[0.9, np.nan]]))
    assert found[0] == 0.9
    assert abs(found[1] - 0.7) < 1e-4


def test_an_excluded_top_is_not_returned():
    plane = cube(Axis(), Axis("ordered", 10_000))
    top = plane.snap(np.array([[0.3, 0.7]]))
    found = maximize(Bowl(top[0]), plane, excluded=maximize(Bowl(top[0]), plane)[None])
    assert np.abs(found - top).max() > 1e-9


def test_where_every_ascent_ends_too_near_the_best_candidate_is_taken():
    plane = cube(Axis(), Axis())
    top = np.array([0.3, 0.7])
    found = maximize(Bowl(top), plane, anchors=top[None], excluded=top[None], apart=1e-3)
    assert 1e-3 < np.abs(found - top).max() < 0.02  # one of those around the anchor


def test_nothing_is_returned_where_everything_is_excluded():
    three = cube(Axis("categorical", 3))
    every = np.array([[1 / 6], [1 / 2], [5 / 6]])
    assert maximize(Bowl(np.array([0.5])), three, excluded=every) is None


def test_nan_is_never_the_maximum():
    class Broken(Bowl):
        def value(self, x):
            return np.where(x[:, 0] > 0.5, np.nan, super().value(x))

        screen = value

    found = maximize(Broken(np.array([0.45, 0.5])), cube(Axis(), Axis()))
    assert found[0] <= 0.5


def test_the_point_agrees_with_one_of_the_ways_to_hold_columns():
    ways = np.array([[0.1, np.nan, np.nan], [0.9, 0.5, np.nan]])
    found = maximize(Bowl(np.array([0.8, 0.7, 0.2])), cube(Axis(), Axis(), Axis()), fixed=ways)
    np.testing.assert_allclose(found, [0.9, 0.5, 0.2], atol=1e-4)
    found = maximize(Bowl(np.array([0.3, 0.9, 0.2])), cube(Axis(), Axis(), Axis()), fixed=ways)
    np.testing.assert_allclose(found, [0.1, 0.9, 0.2], atol=1e-4)


def test_ways_of_a_small_cube_are_searched_whole():
    small = cube(Axis("ordered", 4), Axis("categorical", 3))
    ways = np.array([[0.125, np.nan], [np.nan, 0.5]])
    found = maximize(Bowl(np.array([0.125, 1.0])), small, fixed=ways)
    np.testing.assert_allclose(found, [0.125, 5 / 6])
