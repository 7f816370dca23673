import numpy as np

from calibo.conditional import BEST, MOST, ConditionalParameters
from calibo.cube import Axis, Cube
from calibo.observations import Observations
from calibo.strategy import Strategy

TWO = Axis("categorical", 2)
nan = np.nan


def observed(cube, rows, y=None, feasible=None):
    x = np.array(rows, dtype=float)
    n = len(x)
    return Observations(
        cube,
        x,
        np.arange(n, dtype=float) if y is None else y,
        np.full(n, nan),
        np.ones(n, dtype=bool) if feasible is None else np.array(feasible),
        np.empty((0, len(cube))),
    )


def learn(data, fixed=None):
    fixed = np.full(len(data.cube), nan) if fixed is None else np.array(fixed)
    return ConditionalParameters.learn(data, fixed, np.random.default_rng(0))


def presence(found):
    """Which columns each value of the first is believed to come with."""
    return {float(fixed[0]): (~inactive).tolist() for fixed, inactive in zip(found.fixed, found.inactive, strict=True)}


def test_without_inactive_columns_there_is_one_combination():
    found = learn(observed(Cube((TWO, Axis())), [[0.25, 0.1], [0.75, 0.9]]), [nan, 0.3])
    np.testing.assert_array_equal(found.fixed, [[nan, 0.3]])


def test_a_category_that_decides_about_columns_is_their_parent():
    cube = Cube((TWO, Axis(), Axis(), Axis()))
    found = learn(observed(cube, [[0.25, 0.1, nan, nan], [0.75, nan, 0.2, 0.3], [0.25, 0.5, nan, nan]]))
    assert presence(found) == {0.25: [True, True, False, False], 0.75: [True, False, True, True]}
    np.testing.assert_array_equal(found.deactivate(np.array([0.75, 0.5, 0.1, 0.2])), [0.75, nan, 0.1, 0.2])
    np.testing.assert_array_equal(found.deactivate(np.array([0.25, 0.5, 0.5, 0.5])), [0.25, 0.5, nan, nan])


def test_a_count_of_layers_is_the_parent_of_their_sizes_and_a_count_never_tried_is_like_the_nearest():
    layers = Axis("ordered", 4)
    cube = Cube((layers, Axis(), Axis(), Axis()))
    found = learn(observed(cube, [[0.125, 0.1, nan, nan], [0.375, 0.1, 0.2, nan], [0.625, 0.2, 0.2, 0.2]]))
    assert presence(found) == {
        0.125: [True, True, False, False],
        0.375: [True, True, True, False],
        0.625: [True, True, True, True],
        0.875: [True, True, True, True],
    }


def test_a_category_never_tried_is_offered_with_what_is_always_there():
    cube = Cube((Axis("categorical", 3), Axis(), Axis()))
    found = learn(observed(cube, [[1 / 6, 0.1, nan], [0.5, 0.1, 0.2]]))
    assert presence(found)[2.5 / 3] == [True, True, False]


def test_parents_have_parents():
    cube = Cube((TWO, TWO, Axis()))  # the second exists if the first is 1, the third if the second is 1
    found = learn(observed(cube, [[0.25, nan, nan], [0.75, 0.25, nan], [0.75, 0.75, 0.4]]))
    seen = sorted(tuple((~inactive).tolist()) for inactive in found.inactive)
    assert seen == [(True, False, False), (True, True, False), (True, True, True)]


def test_a_column_that_no_parent_explains_is_left_out_unless_it_is_fixed():
    cube = Cube((Axis(), Axis()))
    data = observed(cube, [[0.1, nan], [0.7, 0.2], [0.9, 0.4]])
    found = learn(data)
    np.testing.assert_array_equal(found.unexplained, [False, True])
    assert np.all(found.impute(data).x[:, 1] == 0.5), "its values must not look like information"
    np.testing.assert_array_equal(found.deactivate(np.array([0.3, 0.5])), [0.3, nan])
    kept = learn(data, [nan, 0.4])
    np.testing.assert_array_equal(kept.deactivate(np.array([0.3, 0.4])), [0.3, 0.4])
    assert kept.impute(data).x[2, 1] == 0.4


def test_what_is_fixed_chooses_the_combination():
    cube = Cube((TWO, Axis(), Axis()))
    data = observed(cube, [[0.25, 0.1, nan], [0.75, nan, 0.2]])
    assert presence(learn(data, [0.75, nan, nan])) == {0.75: [True, False, True]}
    assert presence(learn(data, [nan, 0.3, nan])) == {0.25: [True, True, False]}
    contradiction = learn(data, [0.75, 0.3, nan])
    np.testing.assert_array_equal(contradiction.fixed, [[0.75, 0.3, nan]])


def test_an_evaluation_that_ended_early_does_not_hide_the_parent():
    cube = Cube((TWO, Axis(), Axis()))
    rows = [[0.25, 0.1, nan], [0.75, nan, 0.2], [0.25, nan, nan]]
    found = learn(observed(cube, rows, feasible=[True, True, False]))
    assert presence(found) == {0.25: [True, True, False], 0.75: [True, False, True]}


def test_of_very_many_combinations_some_are_searched_with_those_of_the_best_outcomes():
    parents = 8
    cube = Cube((*[TWO] * parents, *[Axis()] * parents))
    rng = np.random.default_rng(1)
    on = rng.integers(0, 2, (200, parents))
    x = np.column_stack([0.25 + 0.5 * on, np.where(on == 1, 0.3, nan)])
    data = observed(cube, x, rng.random(200))
    found = learn(data)
    assert MOST <= len(found.fixed) <= MOST + BEST
    for row in data.x[np.argsort(data.y)[:BEST]]:
        assert (found.fixed[:, :parents] == row[:parents]).all(axis=1).any()


def test_imputing_puts_inactive_columns_at_the_center():
    cube = Cube((TWO, Axis("ordered", 4), Axis()))
    np.testing.assert_array_equal(observed(cube, [[nan, nan, nan]]).impute().x, [[0.75, 0.625, 0.5]])


def test_the_better_combination_is_proposed_and_its_own_columns_are_moved():
    cube = Cube((TWO, Axis(), Axis()))
    rng = np.random.default_rng(0)
    rows, y = [], []
    for i in range(24):
        u = rng.random()
        rows.append([0.25, u, nan] if i % 2 else [0.75, nan, u])
        y.append(5.0 + u if i % 2 else (u - 0.3) ** 2)
    proposal = Strategy().propose(observed(cube, rows, np.array(y)), seed=0)
    assert proposal.x[0] == 0.75
    assert np.isnan(proposal.x[1])
    assert abs(proposal.x[2] - 0.3) < 0.15


def test_every_combination_gets_its_turn_in_the_design():
    cube = Cube((TWO, Axis(), Axis()))
    rows = [[0.25, 0.1, nan], [0.75, nan, 0.2]]
    strategy = Strategy(initial=8)
    for i in range(6):
        rows.append(strategy.propose(observed(cube, rows), seed=3).x)
        assert np.isnan(rows[-1]).sum() == 1, i
    assert sum(row[0] == 0.25 for row in rows) == 4
