"""The array aliases used in every signature, and arrays that nobody may change."""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
"""Float64 values; shapes are (n, d) for points and (n,) for values."""

Flags = NDArray[np.bool_]
Indices = NDArray[np.intp]

A = TypeVar("A", bound=NDArray[Any])


def read_only(array: A) -> A:
    """The same array, which raises where it is written to: caches hand it out again."""
    array.setflags(write=False)
    return array
