"""Points that fill the cube evenly: scrambled Sobol designs and shifted Sobol nets."""

from functools import lru_cache

import numpy as np

from calibo.cube import Cube
from calibo.types import Array

__all__ = ["design_size", "shifted_net", "sobol_points"]


def design_size(cube: Cube) -> int:
    """How many evaluations fill the cube well enough for a first model: the dimension, 4 to 10."""
    return int(np.clip(cube.free.sum(), 4, 10))


def sobol_points(d: int, start: int, count: int, seed: int) -> Array:
    """(count, d) points of one scrambled Sobol sequence, from number ``start`` on."""
    return _sequence(d, seed, _power_of_two(start + count))[start : start + count]


def shifted_net(d: int, count: int, rng: np.random.Generator) -> Array:
    """(count, d) points of a Sobol net, moved by a random shift and wrapped around: evenly spread, and cheap."""
    return np.asarray((_net(d, _power_of_two(count))[:count] + rng.random(d)) % 1.0)


@lru_cache(maxsize=4)
def _sequence(d: int, seed: int, count: int) -> Array:
    from scipy.stats import qmc  # takes 0.3 s to import: paid by the first suggestion, not by `import calibo`

    return np.asarray(qmc.Sobol(d, scramble=True, rng=np.random.default_rng(seed)).random(count))


@lru_cache(maxsize=8)
def _net(d: int, count: int) -> Array:
    from scipy.stats import qmc

    return np.asarray(qmc.Sobol(d, scramble=False).random(count))


def _power_of_two(count: int) -> int:
    return 1 << max(count - 1, 0).bit_length()
