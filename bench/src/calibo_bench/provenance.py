"""Where a row comes from: the commit that made it, and a seal that shows whether it was changed afterwards."""

import json
import subprocess
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

__all__ = ["CHANGED", "UNKNOWN", "is_intact", "sealed", "source_commit"]

UNKNOWN = "unknown"
CHANGED = "+changes"
"""Ends the commit of a row that was made by source files with uncommitted changes."""


@cache
def source_commit() -> str:
    """The commit of this checkout; unknown if there is none."""
    here = Path(__file__).resolve().parent
    root = _git(here, "rev-parse", "--show-toplevel")
    commit = _git(here, "rev-parse", "--short=12", "HEAD")
    if root is None or commit is None:
        return UNKNOWN
    changes = _git(
        Path(root), "status", "--porcelain", "--", "src", "bench/src", "pyproject.toml", "bench/pyproject.toml"
    )
    return commit if changes == "" else f"{commit}{CHANGED}"


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def sealed(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with a digest of its contents."""
    return {**row, "seal": _digest(row)}


def is_intact(row: Mapping[str, Any]) -> bool | None:
    """Whether the row is as it was written; None if it has no seal."""
    return row["seal"] == _digest(row) if "seal" in row else None


def _digest(row: Mapping[str, Any]) -> str:
    contents = {name: value for name, value in row.items() if name != "seal"}
    return sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()[:16]
