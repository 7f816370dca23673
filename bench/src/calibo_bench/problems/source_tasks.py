"""Problems with a source task, either similar and helpful or misleading."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any
from zlib import crc32

import numpy as np

from calibo import Optimizer
from calibo.models import SourceTask
from calibo_bench.problems.synthetic import Instance, Problem

__all__ = ["RELATIONS", "after", "source_task_of"]

EVALUATIONS = 30  # of a source task
SHIFT = 0.4  # along every axis, with wrap-around

Value = Callable[[Mapping[str, Any]], float]


def _moved(instance: Instance, shift: float) -> Value:
    space = instance.space

    def value(params: Mapping[str, Any]) -> float:
        u = np.array([space.encode(name, params[name]) for name in space])
        return instance.value(space.from_cube(space.cube.snap(((u + shift) % 1.0)[None])[0]))

    return value


def _alike(instance: Instance, _: int) -> Value:
    moved = _moved(instance, 0.02)
    return lambda params: 3.0 * moved(params) + 7.0


def _shifted(instance: Instance, _: int) -> Value:
    return _moved(instance, SHIFT)


def _negated(instance: Instance, _: int) -> Value:
    return lambda params: -instance.value(params)


def _random(_: Instance, seed: int) -> Value:
    return lambda params: float(np.random.default_rng([seed, crc32(repr(params).encode())]).standard_normal())


RELATIONS: Mapping[str, Callable[[Instance, int], Value]] = {
    "alike": _alike,
    "shifted": _shifted,
    "negated": _negated,
    "random": _random,
}
"""How the source task relates to the problem: the same in other units and shifted a little; the same with its minimum
elsewhere; negated; unrelated."""


def after(problem: Problem, kind: str) -> Problem:
    """The same problem with a source task."""

    def at(seed: int) -> Instance:
        instance = problem.at(seed)
        other = replace(instance, value=RELATIONS[kind](instance, seed), noise=None)
        return replace(instance, source_tasks=cache(lambda: (source_task_of(kind, other, seed),)))

    return Problem(f"{problem.name}-after_{kind}", at)


def source_task_of(name: str, instance: Instance, seed: int) -> SourceTask:
    """The observations of a run of the plain strategy."""
    optimizer = Optimizer(instance.space, strategy="plain", seed=seed)
    for i in range(EVALUATIONS):
        params = optimizer.ask()
        optimizer.tell(params, instance.evaluate(params, np.random.default_rng([seed, i]))[1])
    observations, _, _ = optimizer.history()
    return SourceTask(name, observations.x, observations.y, observations.noise_std)
