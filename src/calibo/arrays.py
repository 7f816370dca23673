"""Array type aliases, read-only arrays, and arrays packed as strings.

Packed arrays are little-endian floats in base64, with their type as a prefix:

"f8:AAAAAAAA8D8="              [1.0], exactly, in half the characters of its decimal form
"f4:2:AACAPwAAAEAAAEBAAACAQA=="  [[1, 2], [3, 4]] in two rows, to seven digits
"""

from base64 import b64decode, b64encode
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
"""Float64 values; shapes are (n, d) for points and (n,) for values."""

Flags = NDArray[np.bool_]
Indices = NDArray[np.intp]

A = TypeVar("A", bound=NDArray[Any])


def read_only(array: A) -> A:
    """The same array, made read-only because caches share it."""
    array.setflags(write=False)
    return array


def pack(numbers: Any, kind: Literal["f8", "f4"] = "f8") -> Any:
    """A list of floats, or of equally long lists of them, as a string; anything else unchanged."""
    if not isinstance(numbers, list) or not numbers or not (_floats(numbers) or all(_floats(row) for row in numbers)):
        return numbers
    try:
        array = np.array(numbers, dtype=f"<{kind}")
    except ValueError:  # rows of different lengths
        return numbers
    rows = f"{len(array)}:" if array.ndim == 2 else ""
    return f"{kind}:{rows}{b64encode(array.tobytes()).decode()}"


def _floats(values: Any) -> bool:
    """Whether it is a non-empty list of floats, which survives a round trip."""
    return isinstance(values, list) and bool(values) and all(type(value) is float for value in values)


def unpack(stored: Any) -> Any:
    """Inverse of ``pack``; anything else unchanged, and None for a malformed string."""
    if not isinstance(stored, str) or stored[:3] not in ("f8:", "f4:"):
        return stored
    rows, _, text = stored[3:].rpartition(":")
    try:
        numbers = np.frombuffer(b64decode(text, validate=True), dtype=f"<{stored[:2]}").astype(float)
        return numbers.reshape(int(rows), -1).tolist() if rows else numbers.tolist()
    except (OverflowError, ValueError):
        return None
