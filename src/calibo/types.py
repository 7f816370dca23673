"""The array alias used in every signature."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Flags", "Indices"]

Array = NDArray[np.float64]
"""Float64 values; shapes are (n, d) for points and (n,) for values."""

Flags = NDArray[np.bool_]
Indices = NDArray[np.intp]
