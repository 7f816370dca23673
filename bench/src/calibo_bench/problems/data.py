"""Real data, which are not part of the package: they are read from the directory CALIBO_DATA."""

import os
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibo.errors import InputError

__all__ = ["Contents", "data_arrays", "data_file"]


@dataclass(frozen=True)
class Contents:
    """Required contents of arrays, however they were packed."""

    source: str
    digest: str
    """The sha256 of their bytes, one array after another."""


def data_file(file: str, digest: str, source: str) -> Path:
    """A file of the data directory; its digest must match."""
    advice = f"Put it there; it is made from {source}."
    path = _path(file, f"{file} with the sha256 {digest}", advice)
    found = sha256(path.read_bytes()).hexdigest()
    if found != digest:
        raise InputError(f"{str(path)!r} must have the sha256 {digest}, but has {found}. {advice}")
    return path


def data_arrays(file: str, contents: Contents, names: tuple[str, ...]) -> tuple[NDArray[Any], ...]:
    """The arrays of an .npz file of the data directory; their digest must match."""
    advice = f"Put it there with `numpy.savez`, as arrays {', '.join(names)}; it is made from {contents.source}."
    path = _path(file, file, advice)
    with np.load(path) as packed:
        lacking = [name for name in names if name not in packed]
        if lacking:
            raise InputError(f"{str(path)!r} must have the arrays {list(names)}, but lacks {lacking}. {advice}")
        arrays = tuple(packed[name] for name in names)
    found = sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()
    if found != contents.digest:
        raise InputError(
            f"The arrays of {str(path)!r} must have the sha256 {contents.digest}, but have {found}. {advice}"
        )
    return arrays


def _path(file: str, wanted: str, advice: str) -> Path:
    folder = os.environ.get("CALIBO_DATA")
    if not folder:
        raise InputError(
            f"The environment variable CALIBO_DATA must name a directory with {wanted}, but is not set. {advice}"
        )
    path = Path(folder) / file
    if not path.is_file():
        raise InputError(f"CALIBO_DATA must name a directory with {wanted}, but there is no {str(path)!r}. {advice}")
    return path
