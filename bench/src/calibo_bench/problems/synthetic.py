"""Problems: objectives in a search space, with variants that make a textbook function harder.

A problem is a recipe; `at(seed)` makes the instance of a run, so that its random parts (the cropped box, the warp of an
axis) are the same for every strategy compared under that seed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any
from zlib import crc32

import numpy as np
from scipy.optimize import minimize

from calibo.arrays import Array
from calibo.design import sobol_points
from calibo.errors import InputError
from calibo.models import SourceTask
from calibo.space import Float, Int, Params, Space
from calibo_bench.problems.functions import Function, function

__all__ = [
    "Instance",
    "Problem",
    "axis_warp",
    "cropped",
    "drawn",
    "heavy_tailed",
    "heteroscedastic",
    "integers",
    "noisy",
    "on_cube",
    "plain",
    "proportional",
    "warped",
    "with_outliers",
]


@dataclass(frozen=True, eq=False)
class Instance:
    """One problem of one seed, to be minimised."""

    space: Space
    value: Callable[[Mapping[str, Any]], float]
    """The objective, free of noise."""

    minimum: float | None
    """The minimum, if it is known."""

    noise: Callable[[Mapping[str, Any], np.random.Generator], float] | None = None
    """Added to the value at each evaluation."""

    samples: int = 256
    """Number of points used to estimate the range; fewer if an evaluation is slow."""

    source_tasks: Callable[[], tuple[SourceTask, ...]] = tuple
    """Returns the source tasks, for strategies that transfer from them."""

    drawn: Callable[[Mapping[str, Any], np.random.Generator], float] | None = None
    """A random evaluation, if the value free of noise is unknown."""

    truth: Callable[[Mapping[str, Any]], float] | None = None
    """The mean of many random evaluations. It is expensive, so only recommended points are judged by it."""

    bound: float | None = None
    """A lower bound of the values, if the minimum is unknown."""

    conditions: Mapping[str, tuple[str, list[Any]]] = field(default_factory=dict)
    """Of each conditional parameter, its parent and the values of the parent for which it is active. Parents come first
    in the space."""

    @property
    def is_noisy(self) -> bool:
        """Whether results are judged by the recommended point, because the best observation may be a lucky one."""
        return self.noise is not None or self.truth is not None

    def true_value(self, params: Mapping[str, Any]) -> float:
        """The value free of noise, as well as it can be known."""
        return (self.value if self.truth is None else self.truth)(params)

    def is_active(self, name: str, params: Mapping[str, Any]) -> bool:
        """Whether a parameter is active, given those before it."""
        if name not in self.conditions:
            return True
        parent, values = self.conditions[name]
        return parent in params and self.is_active(parent, params) and params[parent] in values

    def active(self, params: Mapping[str, Any]) -> Params:
        """Without the inactive parameters."""
        return {name: params[name] for name in self.space if self.is_active(name, params)}

    def complete(self, params: Mapping[str, Any]) -> Params:
        """With inactive parameters in the middle of their range, for optimizers that leave them out."""
        middle = self.space.from_cube(self.space.cube.snap(np.full((1, len(self.space)), 0.5))[0])
        lacking = {name: middle[name] for name in self.space if name not in params and name in self.conditions}
        return self.space.plain({**params, **lacking})

    def evaluate(self, params: Params, rng: np.random.Generator) -> tuple[float, float]:
        """The value, and the observation passed to a strategy."""
        if self.drawn is not None:
            value = self.drawn(params, rng)
            return value, value
        value = self.value(params)
        return value, value if self.noise is None else value + self.noise(params, rng)

    @cached_property
    def range(self) -> float:
        """From the minimum to the median over the space: the unit of regrets."""
        least = float(self._values.min()) if self.minimum is None else self.minimum
        return float(np.median(self._values)) - least

    @cached_property
    def _values(self) -> Array:
        """Values at points across the space."""
        points = sobol_points(len(self.space), 0, self.samples, 0)
        return np.array([self.value(self.space.from_cube(self.space.cube.snap(x[None])[0])) for x in points])

    def least(self, off: float = 0.0) -> float | None:
        """The minimum or bound given to a strategy, wrong by a share ``off`` of the range up to the maximum."""
        known = self.bound if self.minimum is None else self.minimum
        return known if known is None or not off else known + off * (float(self._values.max()) - known)


@dataclass(frozen=True)
class Problem:
    """A recipe for instances."""

    name: str
    at: Callable[[int], Instance]
    """The instance of a seed."""


def plain(name: str) -> Problem:
    """A textbook function in its usual box."""
    made = function(name)
    return Problem(name, lambda _: _instance(made, made.low, made.high))


def on_cube(name: str, low: float | None = None, high: float | None = None) -> Problem:
    """The regret of a textbook function on the unit cube, in its usual box or in another one."""

    def at(_: int) -> Instance:
        made = function(name)
        bottom, top = made.low if low is None else low, made.high if high is None else high
        space = Space({f"x{j}": Float(0.0, 1.0) for j in range(made.d)})

        def value(params: Mapping[str, Any]) -> float:
            x = np.array([params[name] for name in space])
            return made(bottom + (top - bottom) * x) - made.minimum

        return Instance(space, value, 0.0)

    return Problem(f"cube-{name}", at)


def cropped(name: str) -> Problem:
    """A textbook function in a smaller box, its minimiser at a random relative position in [0.2, 0.8] of every axis.

    If possible, at least half of each axis is kept.
    """

    def at(seed: int) -> Instance:
        made = function(name)
        rng = np.random.default_rng([seed, crc32(name.encode())])
        left, right, whole = made.minimizer - made.low, made.high - made.minimizer, made.high - made.low
        if min(left.min(), right.min()) <= 0.0:
            raise InputError(f"`name` must have its minimum inside its box, but that of {name!r} lies on the boundary.")
        # a position r keeps the share min(left / r, right / (1 - r)) of the axis
        first = np.clip(1.0 - 2.0 * right / whole, 0.2, 0.8)
        last = np.clip(2.0 * left / whole, 0.2, 0.8)
        place = rng.uniform(np.minimum(first, last), np.maximum(first, last))
        width = np.minimum(left / place, right / (1.0 - place))
        low = made.minimizer - place * width
        return _instance(made, low, low + width)

    return Problem(f"{name}-cropped", at)


def _instance(made: Function, low: Any, high: Any) -> Instance:
    space = Space({f"x{j}": Float(float(a), float(b)) for j, (a, b) in enumerate(zip(low, high, strict=True))})

    def value(params: Mapping[str, Any]) -> float:
        return made(np.array([params[name] for name in space]))

    return Instance(space, value, made.minimum)


def noisy(problem: Problem, share: float = 0.1) -> Problem:
    """With Gaussian noise whose standard deviation is a ``share`` of the range."""

    def with_noise(instance: Instance) -> Instance:
        return replace(instance, noise=lambda _, rng: share * instance.range * rng.standard_normal())

    return _varied(problem, "noisy", with_noise)


def heteroscedastic(problem: Problem, share: float = 0.2) -> Problem:
    """With Gaussian noise that grows along the first axis from zero to a ``share`` of the range."""

    def with_noise(instance: Instance) -> Instance:
        first = next(iter(instance.space))

        def noise(params: Mapping[str, Any], rng: np.random.Generator) -> float:
            return share * instance.range * instance.space.encode(first, params[first]) * rng.standard_normal()

        return replace(instance, noise=noise)

    return _varied(problem, "heteroscedastic", with_noise)


def heavy_tailed(problem: Problem, share: float = 0.05) -> Problem:
    """With Student t noise with two degrees of freedom, scaled by a ``share`` of the range."""

    def with_noise(instance: Instance) -> Instance:
        return replace(instance, noise=lambda _, rng: share * instance.range * rng.standard_t(2))

    return _varied(problem, "heavy_tailed", with_noise)


def proportional(problem: Problem, share: float = 0.3) -> Problem:
    """With Gaussian noise whose standard deviation is a ``share`` of the height above the minimum, and at least 2 % of
    the range.
    """

    def with_noise(instance: Instance) -> Instance:
        assert instance.minimum is not None
        least = instance.minimum

        def noise(params: Mapping[str, Any], rng: np.random.Generator) -> float:
            height = min(instance.value(params) - least, instance.range)
            return max(share * height, 0.02 * instance.range) * rng.standard_normal()

        return replace(instance, noise=noise)

    return _varied(problem, "proportional", with_noise)


def with_outliers(problem: Problem, share: float = 0.05, chance: float = 0.1) -> Problem:
    """With Gaussian noise of a ``share`` of the range; some evaluations go wrong, and are higher by up to a range."""

    def with_noise(instance: Instance) -> Instance:
        def noise(_: Mapping[str, Any], rng: np.random.Generator) -> float:
            small, wrong, off = share * rng.standard_normal(), rng.random() < chance, rng.random()
            return instance.range * (small + (off if wrong else 0.0))

        return replace(instance, noise=noise)

    return _varied(problem, "outliers", with_noise)


def warped(problem: Problem) -> Problem:
    """With every axis warped by a known power, which makes the function non-stationary.

    Position u of an axis becomes u**p, or 1 - (1 - u)**p, with p between 2 and 4 drawn by the seed.
    """

    def at(seed: int) -> Instance:
        inner = problem.at(seed)
        outer, bend = Space({name: Float(0.0, 1.0) for name in inner.space}), axis_warp(problem, seed)

        def bent(params: Mapping[str, Any]) -> Params:
            return inner.space.from_cube(bend(np.array([params[name] for name in outer])))

        return _composed(inner, outer, bent)

    return Problem(f"{problem.name}-warped", at)


def axis_warp(problem: Problem, seed: int) -> Callable[[Array], Array]:
    """The warp of ``warped``, for positions (..., d)."""
    rng, d = np.random.default_rng([seed, crc32(b"warp"), crc32(problem.name.encode())]), len(problem.at(seed).space)
    powers, flipped = rng.uniform(2.0, 4.0, d), rng.random(d) < 0.5
    return lambda u: np.where(flipped, 1.0 - (1.0 - u) ** powers, u**powers)


def integers(problem: Problem, cells: int = 15) -> Problem:
    """With every second axis reduced to integers.

    The minimum on the grid may be higher than that of the function, to which regret is relative.
    """

    def at(seed: int) -> Instance:
        inner = problem.at(seed)
        whole = set(list(inner.space)[::2])
        outer = Space({n: Int(0, cells - 1) if n in whole else Float(0.0, 1.0) for n in inner.space})

        def stepped(params: Mapping[str, Any]) -> Params:
            share = np.array([params[n] / (cells - 1) if n in whole else params[n] for n in outer])
            return inner.space.from_cube(share)

        return _composed(inner, outer, stepped)

    return Problem(f"{problem.name}-integers", at)


def _composed(inner: Instance, outer: Space, translate: Callable[[Mapping[str, Any]], Params]) -> Instance:
    noise = inner.noise
    return Instance(
        outer,
        lambda params: inner.value(translate(params)),
        inner.minimum,
        None if noise is None else lambda params, rng: noise(translate(params), rng),
    )


def _varied(problem: Problem, word: str, change: Callable[[Instance], Instance]) -> Problem:
    return Problem(f"{problem.name}-{word}", lambda seed: change(problem.at(seed)))


FEATURES = 512


def drawn(d: int, lengthscale: float) -> Problem:
    """A draw from a stationary Gaussian process, by random Fourier features [RR07].

    The features of a Matern 5/2 kernel: frequencies of a t distribution with five degrees of freedom.
    """

    def at(seed: int) -> Instance:
        rng = np.random.default_rng([seed, d])
        tails = np.sqrt(5.0 / rng.chisquare(5.0, FEATURES))
        frequencies = rng.standard_normal((FEATURES, d)) * tails[:, None] / lengthscale
        phases, weights = rng.uniform(0.0, 2.0 * np.pi, FEATURES), rng.standard_normal(FEATURES)
        weights *= np.sqrt(2.0 / FEATURES)
        space = Space({f"x{j}": Float(0.0, 1.0) for j in range(d)})

        def value(u: Array) -> float:
            return float(weights @ np.cos(frequencies @ u + phases))

        return Instance(space, lambda p: value(np.array([p[n] for n in space])), _least(value, d))

    return Problem(f"drawn{d}", at)


def _least(value: Callable[[Array], float], d: int) -> float:
    """The minimum in the unit cube, by local search from the best of many points."""
    points = sobol_points(d, 0, 2048, 0)
    best = points[np.argsort([value(u) for u in points])[:10]]
    found = [minimize(value, u, bounds=[(0.0, 1.0)] * d, method="L-BFGS-B") for u in best]
    return min(float(result.fun) for result in found)
