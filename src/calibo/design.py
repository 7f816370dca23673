"""Initial designs: space-filling points evaluated before a model is fitted."""

from functools import lru_cache
from typing import Literal

import numpy as np

from calibo.arrays import Array, read_only

Design = Literal["sobol", "latin", "random"]


def design_points(kind: Design, d: int, size: int, start: int, count: int, seed: int) -> Array:
    """(count, d) points of a design, from index ``start`` on; ``size`` is that of a Latin hypercube."""
    if kind == "sobol":
        return sobol_points(d, start, count, seed)
    rng = np.random.default_rng(seed)
    first = _latin(d, size, rng) if kind == "latin" else np.empty((0, d))
    return np.concatenate([first, rng.random((start + count, d))])[start : start + count]


def _latin(d: int, size: int, rng: np.random.Generator) -> Array:
    """(size, d) points, one in each of ``size`` equal slices of every column [MBC79]."""
    slices = np.stack([rng.permutation(size) for _ in range(d)], axis=1) if d else np.empty((size, 0))
    return np.asarray((slices + rng.random((size, d))) / max(size, 1))


def sobol_points(d: int, start: int, count: int, seed: int) -> Array:
    """(count, d) points of one scrambled Sobol sequence, from index ``start`` on."""
    return _sequence(d, seed, 1 << (start + count - 1).bit_length())[start : start + count]


@lru_cache(maxsize=4)
def _sequence(d: int, seed: int, count: int) -> Array:
    from scipy.stats import qmc  # takes 0.3 s: deferred to the first suggestion

    return read_only(np.asarray(qmc.Sobol(d, scramble=True, rng=np.random.default_rng(seed)).random(count)))
