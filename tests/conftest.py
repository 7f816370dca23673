"""Shared data and the Hypothesis profile."""

import os
import signal
from dataclasses import dataclass, field, is_dataclass

# one BLAS thread, set before NumPy is loaded: on a busy machine several wait for each other
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

# whoever started the tests in the background may have ignored it, and every process begun here would, too
signal.signal(signal.SIGINT, signal.default_int_handler)

import numpy as np
import pytest
from hypothesis import settings

from calibo.cube import Axis, Cube
from calibo.models import GaussianProcess
from calibo.observations import Observations
from calibo.parts import register

settings.register_profile("calibo", deadline=None, derandomize=True)
settings.load_profile("calibo")


def pytest_make_parametrize_id(val):
    """Short ids: a part is its class."""
    if is_dataclass(val):
        return val.__name__ if isinstance(val, type) else type(val).__name__
    return str(val)[:30] if isinstance(val, dict | list | tuple) else None


def observations(n: int = 15, d: int = 3, seed: int = 0, axes: tuple[Axis, ...] | None = None) -> Observations:
    """A smooth function of n random points."""
    rng = np.random.default_rng(seed)
    cube = Cube(axes or (Axis(),) * d)
    x = cube.snap(rng.random((n, len(cube))))
    y = np.sin(5 * x[:, 0]) + ((x - 0.4) ** 2).sum(axis=1)
    return Observations(cube, x, y, np.full(n, np.nan), np.ones(n, dtype=bool), np.empty((0, len(cube))))


@register("counting")
@dataclass(frozen=True)
class Counting(GaussianProcess):
    """A recipe that remembers how many observations each of its fits had."""

    calls: tuple[list, ...] = field(default=([],), compare=False)

    def fit(self, observations, *, rng, previous=None):
        self.calls[0].append(len(observations))
        return super().fit(observations, rng=rng, previous=previous)


@pytest.fixture
def data() -> Observations:
    return observations()
