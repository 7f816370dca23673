"""Problems that come after another task: alike, so that it helps to know it, or misleading."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any
from zlib import crc32

import numpy as np

from calibo import Optimizer
from calibo.models import SourceTask
from calibo_bench.problems.synthetic import Instance, Problem

__all__ = ["EARLIER", "after", "learned"]

EVALUATIONS = 30  # of an earlier task
SHIFT = 0.4  # of every axis, beyond whose end the other end follows

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


EARLIER: Mapping[str, Callable[[Instance, int], Value]] = {
    "alike": _alike,
    "shifted": _shifted,
    "negated": _negated,
    "random": _random,
}
"""What the earlier task had to do with the problem: the same in another unit and moved a little; the same with its
minimum elsewhere; its opposite; nothing."""


def after(problem: Problem, kind: str) -> Problem:
    """The same problem after a run on another task."""

    def at(seed: int) -> Instance:
        instance = problem.at(seed)
        other = replace(instance, value=EARLIER[kind](instance, seed), noise=None)
        return replace(instance, earlier=cache(lambda: (learned(kind, other, seed),)))

    return Problem(f"{problem.name}-after_{kind}", at)


def learned(name: str, instance: Instance, seed: int) -> SourceTask:
    """What a run of the plain strategy finds out."""
    optimizer = Optimizer(instance.space, strategy="plain", seed=seed)
    for i in range(EVALUATIONS):
        params = optimizer.ask()
        optimizer.tell(params, instance.evaluate(params, np.random.default_rng([seed, i]))[1])
    observations, _ = optimizer.history()
    return SourceTask(name, observations.x, observations.y, observations.noise_std)
