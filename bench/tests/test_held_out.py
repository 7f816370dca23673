"""Functions that confirm a default have the minimum that they claim, at a place that differs by seed."""

from zlib import crc32

import numpy as np
import pytest
from scipy.optimize import minimize

from calibo_bench.problems.held_out import (
    EPIDEMIC,
    FEW_MINIMA,
    MANY_MINIMA,
    OSCILLATOR,
    PREDATORS,
    TETRAHEDRON,
    bird,
    cluster,
    egg_crate,
    ellipsoid,
    helical,
    lunacek,
    moved,
    peaks,
    powell,
    qing,
    salomon,
    schaffers,
    trid,
    vincent,
)
from calibo_bench.problems.suites import GROUPS, HELD_OUT, SUITES

FUNCTIONS = {  # function, minimiser, half the width of the largest box around it, minimum
    "salomon": (salomon, np.zeros(4), 12.0, 0.0),
    "egg_crate": (egg_crate, np.zeros(4), 10.0, 0.0),
    "bird": (bird, [4.701043130195973, 3.152938503721904], 12.0, -106.76453674926468),
    "vincent": (vincent, [np.exp(np.pi / 20)] * 3, 4.0, -1.0),
    "lunacek": (lunacek, [2.5] * 5, 8.0, 0.0),
    "schaffers": (schaffers, np.zeros(6), 40.0, 0.0),
    "powell": (powell, np.zeros(8), 8.0, 0.0),
    "ellipsoid": (ellipsoid(1e3), np.zeros(6), 4.0, 0.0),
    "qing": (qing, np.sqrt(np.arange(1, 6)), 5.0, 0.0),
    "helical": (helical, [1.0, 0.0, 0.0], 10.0, 0.0),
    "trid": (trid, [i * (11 - i) for i in range(1, 11)], 120.0, 0.0),
    "cluster": (cluster, TETRAHEDRON, 3.0, 0.0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_minimum_is_at_the_minimizer_and_nothing_is_below(name):
    call, minimizer, width, minimum = FUNCTIONS[name]
    best, rng = np.array(minimizer, dtype=float), np.random.default_rng(0)
    assert call(best) == pytest.approx(minimum, abs=1e-6)
    for scale in (1.0, 1e-1, 1e-2):
        around = best + scale * rng.uniform(-width, width, (2000, len(best)))
        assert min(call(x) for x in around) >= minimum - 1e-9


@pytest.mark.parametrize("rotated", [False, True])
def test_the_minimizer_lies_well_inside_the_box_at_a_place_of_its_seed(rotated):
    best, widths = np.array([3.0, -2.0]), np.array([1.0, 4.0])
    problem = moved("bowl", lambda x: float(((x - best) ** 2).sum()), best, widths, rotated=rotated)
    places = []
    for seed in (0, 1, 1):
        instance = problem.at(seed)
        found = minimize(lambda u, made=instance: made.value({"x0": u[0], "x1": u[1]}), [0.5, 0.5], tol=1e-12)
        assert found.fun == pytest.approx(0.0, abs=1e-9)
        assert np.all((found.x > 0.14) & (found.x < 0.86))
        places.append(found.x)
    np.testing.assert_allclose(places[1], places[2])
    assert not np.allclose(places[0], places[1], atol=1e-3)


def test_the_highest_peak_is_the_minimum_and_only_some_axes_are_noticed():
    rng = np.random.default_rng(0)
    plain, hidden = peaks(2).at(3), peaks(9, noticed=2).at(3)
    values = [plain.value({"x0": a, "x1": b}) for a, b in rng.random((4000, 2))]
    assert 0.0 <= min(values) < 0.1
    point = {f"x{j}": 0.5 for j in range(9)}
    matter = [j for j in range(9) if hidden.value({**point, f"x{j}": 0.6}) != hidden.value(point)]
    assert len(matter) == 2


@pytest.mark.parametrize("problem", [OSCILLATOR, EPIDEMIC, PREDATORS], ids=lambda problem: problem.name)
def test_a_simulation_is_fitted_exactly_by_its_hidden_parameters_only(problem):
    instance = problem.at(0)
    rng = np.random.default_rng([0, crc32(problem.name.encode())])
    hidden = instance.space.from_cube(rng.uniform(0.15, 0.85, len(instance.space)))
    assert instance.value(hidden) == 0.0
    name = next(iter(hidden))
    assert instance.value({**hidden, name: 1.05 * hidden[name]}) > 1e-4


def test_confirmation_problems_are_many_kinds_and_no_others():
    named = {problem.name for suite in ("functions", "tuning") for problem in SUITES[suite]}
    assert not HELD_OUT & named
    assert len(SUITES["functions-held-out"]) >= 20
    assert len({*SUITES["tuning"], *SUITES["tuning-held-out"]}) >= 12
    dimensions = {len(problem.at(0).space) for problem in (*MANY_MINIMA, *FEW_MINIMA)}
    assert {2, 20} <= dimensions
    everything = {problem.name for suite in SUITES.values() for problem in suite}
    assert all(set(names) <= everything for names in GROUPS.values())


def test_problems_of_the_confirmation_have_finite_values_and_a_range():
    for problem in SUITES["functions-held-out"]:
        instance = problem.at(1)
        assert np.isfinite(instance.range), problem.name
        assert instance.range > 0.0
