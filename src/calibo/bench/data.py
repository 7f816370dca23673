"""Real data, of which nothing is in the package: they lie in the directory that CALIBO_DATA names."""

import os
from hashlib import sha256
from pathlib import Path

from calibo.errors import InputError

__all__ = ["data_file"]


def data_file(file: str, digest: str, source: str) -> Path:
    """A file of the data directory, whose content must be the one that is known."""
    folder = os.environ.get("CALIBO_DATA")
    wanted = f"{file} with the sha256 {digest}"
    advice = f"Put it there; it is made from {source}."
    if not folder:
        raise InputError(
            f"The environment variable CALIBO_DATA must name a directory with {wanted}, but is not set. {advice}"
        )
    path = Path(folder) / file
    if not path.is_file():
        raise InputError(f"CALIBO_DATA must name a directory with {wanted}, but there is no {str(path)!r}. {advice}")
    found = sha256(path.read_bytes()).hexdigest()
    if found != digest:
        raise InputError(f"{str(path)!r} must have the sha256 {digest}, but has {found}. {advice}")
    return path
