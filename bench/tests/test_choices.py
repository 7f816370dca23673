"""The functions by which defaults are chosen have the minimum they claim."""

import numpy as np
import pytest

from calibo_bench.problems.suites import SUITES

MINIMIZERS = {
    "branin": [(np.pi + 5) / 15, 2.275 / 15],
    "camel6": [(0.089842 + 2) / 4, (-0.712656 + 1) / 2],
    "hartmann3": [0.114614, 0.555649, 0.852547],
    "ackley3": [0.4] * 3,
    "rosenbrock4": [0.4] * 4,
    "alpine4": [7 / 17] * 4,
    "levy5": [7 / 16] * 5,
    "styblinski5": [0.2096466] * 5,
    "hartmann6": [0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573],
}


@pytest.mark.parametrize("problem", SUITES["choices"], ids=lambda problem: problem.name)
def test_the_minimum_is_zero_at_the_minimizer(problem):
    instance = problem.at(0)

    def value(x):
        return instance.value({f"x{j}": v for j, v in enumerate(x)})

    assert abs(value(MINIMIZERS[problem.name.removeprefix("cube-")])) < 1e-5
    assert min(value(x) for x in np.random.default_rng(0).random((2000, len(instance.space)))) > 0
