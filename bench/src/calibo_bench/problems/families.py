"""Random functions from which calibo learns how wrong its forecasts tend to be.

None is a draw from calibo's own prior, which would teach that nothing is wrong, and none is used in a comparison. A
seed draws the dimension, the function, the shape of outcomes, and the noise.
"""

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from calibo.arrays import Array
from calibo.space import Float, Space
from calibo_bench.problems.synthetic import Instance

__all__ = ["FAMILIES", "NOISES", "drawn_from"]

DIMENSIONS = (1, 2, 2, 3, 3, 4, 5, 6, 8, 10)
SAMPLE = 500  # uniform points, over which a function is standardized

Values = Callable[[Array], Array]
"""A function of points (m, d)."""

Generator = np.random.Generator


def network(d: int, rng: Generator) -> Values:
    """A neural network with random weights."""
    widths = [d, *rng.integers(6, 40, rng.integers(1, 4)), 1]
    activation: Values = (np.tanh, np.sin, lambda z: np.maximum(z, 0.0))[rng.integers(3)]
    size = np.exp(rng.uniform(np.log(0.7), np.log(3.0)))
    layers = [(size * rng.standard_normal((a, b)) / np.sqrt(a), rng.standard_normal(b)) for a, b in pairwise(widths)]

    def values(x: Array) -> Array:
        z = 2.0 * np.sqrt(3.0) * (x - 0.5) * np.sqrt(d) ** 0.5
        for weights, bias in layers[:-1]:
            z = activation(z @ weights + bias)
        return np.asarray((z @ layers[-1][0])[:, 0])

    return values


def trees(d: int, rng: Generator) -> Values:
    """A sum of random regression trees: flat pieces with steps between them, on a slope."""
    made = [_tree(d, int(rng.integers(2, 6)), rng) for _ in range(rng.integers(3, 25))]
    slope = rng.standard_normal(d) * rng.uniform(0.0, 2.0)
    return lambda x: np.asarray(np.sum([tree(x) for tree in made], axis=0) + x @ slope)


def _tree(d: int, depth: int, rng: Generator) -> Values:
    axes, cuts = rng.integers(d, size=2**depth - 1), rng.uniform(0.1, 0.9, 2**depth - 1)
    leaves = rng.standard_normal(2**depth)

    def values(x: Array) -> Array:
        at = np.zeros(len(x), dtype=int)
        for _ in range(depth):
            at = 2 * at + 1 + (x[np.arange(len(x)), axes[at]] > cuts[at])
        return np.asarray(leaves[at - (2**depth - 1)])

    return values


def bumps(d: int, rng: Generator) -> Values:
    """Cauchy-shaped hills and basins of random size on a tilted bowl."""
    count = int(rng.integers(3, 30))
    centers, signs = rng.random((count, d)), rng.standard_normal(count)
    widths = 0.2 * np.sqrt(d) * np.exp(rng.normal(0.0, 0.6, (count, d)))
    bowl, middle = rng.uniform(0.0, 3.0), rng.random(d)

    def values(x: Array) -> Array:
        r2 = np.square((x[:, None] - centers) / widths).sum(axis=2)
        return np.asarray((signs / (1.0 + r2) ** 2).sum(axis=1) + bowl * np.square(x - middle).mean(axis=1))

    return values


def draws(d: int, rng: Generator) -> Values:
    """A draw from a process with another kernel: rough, or infinitely smooth, or a sum of one per axis."""
    freedom = [1.0, 3.0, np.inf][rng.integers(3)]  # Matern 1/2, Matern 3/2, squared exponential
    lengths = 0.2 * np.sqrt(d) * np.exp(rng.normal(0.0, 0.8, d))
    additive, count = rng.random() < 0.3, 600
    tails = np.ones(count) if np.isinf(freedom) else np.sqrt(freedom / rng.chisquare(freedom, count))
    waves = rng.standard_normal((count, d)) * tails[:, None] / (lengths / (np.sqrt(d) if additive else 1.0))
    if additive:
        waves *= np.eye(d)[rng.integers(d, size=count)]
    phases, sizes = rng.uniform(0.0, 2.0 * np.pi, count), rng.standard_normal(count)
    return lambda x: np.asarray(np.cos(x @ waves.T + phases) @ sizes)


def valleys(d: int, rng: Generator) -> Values:
    """A narrow, perhaps curved valley in any direction, perhaps with ripples."""
    q, _ = np.linalg.qr(rng.standard_normal((d, d)))
    sizes, place = np.exp(rng.uniform(0.0, rng.uniform(0.0, 7.0), d)), rng.uniform(0.1, 0.9, d)
    bend, ripple, rate = rng.uniform(0.0, 2.0), max(rng.normal(0.0, 0.5), 0.0), rng.uniform(5.0, 25.0)

    def values(x: Array) -> Array:
        z = (x - place) @ q
        z = np.column_stack([z[:, :1], z[:, 1:] - bend * np.square(z[:, :1])])
        return np.asarray((np.square(z) @ sizes) / sizes.mean() + ripple * (1.0 - np.cos(rate * z)).mean(axis=1))

    return values


def cliffs(d: int, rng: Generator) -> Values:
    """Smooth slopes, cut by steep steps in some direction."""
    count = int(rng.integers(1, 4))
    ways = rng.standard_normal((count, d))
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    steep, heights = np.exp(rng.uniform(1.5, 4.0, count)), rng.standard_normal(count)
    places, smooth = rng.uniform(0.2, 0.8, (count, d)), draws_smooth(d, rng)

    def values(x: Array) -> Array:
        steps = np.tanh(steep * np.einsum("mcd,cd->mc", x[:, None] - places, ways))
        return np.asarray(steps @ heights + smooth(x))

    return values


def ripples(d: int, rng: Generator) -> Values:
    """A bowl under waves along every axis: many local minima."""
    rates, phases = rng.uniform(2.0, 8.0, d), rng.uniform(0.0, 2.0 * np.pi, d)
    middle, size, sharp = rng.uniform(0.2, 0.8, d), np.exp(rng.uniform(np.log(0.1), np.log(3.0))), rng.uniform(0.3, 1.0)

    def values(x: Array) -> Array:
        waves = np.abs(np.sin(np.pi * rates * x + phases)) ** (2.0 * sharp)
        return np.asarray(np.square(3.0 * (x - middle)).mean(axis=1) + size * waves.mean(axis=1))

    return values


def draws_smooth(d: int, rng: Generator) -> Values:
    """A few slow waves."""
    waves = rng.standard_normal((8, d)) * rng.uniform(1.0, 5.0) / np.sqrt(d)
    phases, size = rng.uniform(0.0, 2.0 * np.pi, 8), rng.uniform(0.1, 0.7)
    return lambda x: np.asarray(size * np.cos(x @ waves.T + phases).sum(axis=1))


FAMILIES: Mapping[str, Callable[[int, Generator], Values]] = {
    "networks": network,
    "trees": trees,
    "bumps": bumps,
    "draws": draws,
    "valleys": valleys,
    "cliffs": cliffs,
    "ripples": ripples,
}

SHAPES: tuple[Callable[[Array, float], Array], ...] = (
    lambda z, _: z,
    lambda z, _: z,
    lambda z, a: np.expm1(np.minimum((0.5 + a) * z, 50.0)),  # losses over orders of magnitude
    lambda z, a: np.sign(z) * np.abs(z) ** (1.0 + a),
    lambda z, a: np.arcsinh((1.0 + 2.0 * a) * z),
)
"""Monotone functions of standardized values, with a parameter in [0, 1]."""

NOISES = ("none", "gaussian", "gaussian", "heteroscedastic", "heavy-tailed")


def drawn_from(family: str, seed: int) -> tuple[Instance, float]:
    """An instance of a family, and the standard deviation of its values over the cube."""
    rng = np.random.default_rng([seed, list(FAMILIES).index(family)])
    d = int(rng.choice(DIMENSIONS))
    function, shape, bend = FAMILIES[family](d, rng), SHAPES[rng.integers(len(SHAPES))], rng.random()
    across = function(rng.random((SAMPLE, d)))
    center, spread = float(across.mean()), float(across.std()) or 1.0
    wide = float(shape((across - center) / spread, bend).std()) or 1.0
    space = Space({f"x{j}": Float(0.0, 1.0) for j in range(d)})

    def value(params: Mapping[str, Any]) -> float:
        x = np.array([[params[name] for name in space]])
        return float(shape((function(x) - center) / spread, bend)[0])

    kind, share = NOISES[rng.integers(len(NOISES))], float(np.exp(rng.uniform(np.log(0.02), np.log(0.7))))
    first = f"x{rng.integers(d)}"

    def noise(params: Mapping[str, Any], rng: Generator) -> float:
        if kind == "heteroscedastic":
            return share * wide * float(2.0 * params[first] * rng.standard_normal())
        unit = rng.standard_t(3) / np.sqrt(3.0) if kind == "heavy-tailed" else rng.standard_normal()
        return share * wide * float(unit)

    return Instance(space, value, None, None if kind == "none" else noise), wide
