"""Problems on which forecasts are judged, in two halves, each problem exact and with two kinds of noise.

The size of the noise is relative to the standard deviation of the values over the space. Cross-validated models have
the noise of their splits, and no other is added.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from calibo_bench.problems.families import FAMILIES, drawn_from
from calibo_bench.problems.held_out import FEW_MINIMA, MANY_MINIMA, peaks
from calibo_bench.problems.synthetic import Instance, Problem, cropped, drawn
from calibo_bench.problems.tables import table
from calibo_bench.problems.tuning import CONFIRMATION, DEVELOPMENT

__all__ = ["EXPERIENCE", "HONESTY", "HONESTY_HELD_OUT", "LONG", "NOISES", "kind_of", "unit"]

SAMPLE = 500  # uniform points, over which the standard deviation is estimated
DEGREES = 3  # of freedom, of heavy-tailed noise
NOISES: Mapping[str, float] = {"5%": 0.05, "20%": 0.2, "50%": 0.5, "uneven": 0.4, "tails": 0.2}
"""Kinds of noise. "uneven" grows along the first axis from zero to this share; "tails" has a Student t distribution."""


def unit(instance: Instance) -> float:
    """The standard deviation of the values over the space, by which widths and noise are measured."""
    points = np.random.default_rng(0).random((min(SAMPLE, 2 * instance.samples), len(instance.space)))
    values = [instance.value(instance.space.from_cube(x)) for x in instance.space.cube.snap(points)]
    return float(np.std(values)) or 1.0


def with_noise(problem: Problem, kind: str) -> Problem:
    def at(seed: int) -> Instance:
        instance = problem.at(seed)
        size, first = NOISES[kind] * unit(instance), next(iter(instance.space))

        def noise(params: Mapping[str, Any], rng: np.random.Generator) -> float:
            if kind == "uneven":
                return size * instance.space.encode(first, params[first]) * float(rng.standard_normal())
            if kind == "tails":
                return size * float(rng.standard_t(DEGREES)) / float(np.sqrt(DEGREES / (DEGREES - 2)))
            return size * float(rng.standard_normal())

        return replace(instance, noise=noise)

    return Problem(f"{problem.name}+{kind}", at)


def kind_of(name: str) -> str:
    """The kind of noise of a problem of these suites: "none", one of NOISES, or "real"."""
    return "real" if name.startswith("cv-") else name.partition("+")[2] or "none"


def _half(functions: Sequence[Problem], tasks: Sequence[Problem]) -> list[Problem]:
    """Exact and with two kinds of noise, each of which is assigned equally often."""
    kinds, made = list(NOISES), []
    for i, problem in enumerate(functions):
        first, second = i % len(kinds), (i + 1 + i // len(kinds)) % len(kinds)
        made += [problem, *(with_noise(problem, kinds[k]) for k in (first, second))]
    return [*made, *tasks]


def _tasks(half: Sequence[Any], *names: str) -> list[Problem]:
    return [task.problem() for task in half if task.name in names]


_CONFIRMING = {problem.name: problem for problem in (*MANY_MINIMA, *FEW_MINIMA)}

_FUNCTIONS = [
    *(cropped(name) for name in ("branin", "ackley5", "rosenbrock4", "hartmann6", "alpine5")),
    *(drawn(d, lengthscale) for d, lengthscale in ((2, 0.25), (3, 0.4), (6, 0.8))),
    *(table(name) for name in ("lda", "svm")),
]
_OTHERS = [
    *(_CONFIRMING[name] for name in ("salomon4", "bird2", "helical3", "powell8", "lunacek5")),
    *(peaks(2), peaks(5), _CONFIRMING["oscillator"]),
    *(table(name) for name in ("fcnet-naval", "fcnet-slice")),
]

HONESTY = _half(_FUNCTIONS, _tasks(DEVELOPMENT, "svr-diabetes", "trees-wine"))
HONESTY_HELD_OUT = _half(_OTHERS, _tasks(CONFIRMATION, "splines-visits", "features-skin"))

LONG = frozenset(problem.name for problem in (*_FUNCTIONS[::4], *_OTHERS[::4]))
"""Problems with twice as many outcomes: a quarter."""


def _family(name: str) -> Problem:
    return Problem(f"family-{name}", lambda seed: drawn_from(name, seed)[0])


EXPERIENCE = [_family(name) for name in FAMILIES]
"""From which a correction is learned: no problem of this list is in a comparison."""
