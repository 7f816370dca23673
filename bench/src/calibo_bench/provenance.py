"""Where a row comes from: the commit that made it, and a seal that shows whether it was changed afterwards."""

import json
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

__all__ = ["CHANGED", "UNKNOWN", "is_intact", "provenance", "sealed", "source_commit"]

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


def provenance(rows: Sequence[Mapping[str, Any]]) -> str:
    """Sentences: how many states of the code made the rows, and whether rows were changed afterwards."""
    states = Counter(_state(row) for row in rows)
    listed = ", ".join(f"{state} ({count})" if len(states) > 1 else state for state, count in sorted(states.items()))
    made = f"Made by {'one state' if len(states) == 1 else f'{len(states)} states'} of the code: {listed}."
    intact = Counter(is_intact(row) for row in rows)
    changed = f" **{intact[False]} rows were changed after they were written.**" if intact[False] else ""
    unsealed = f" {intact[None]} rows have no seal that would show a change." if intact[None] else ""
    return f"{made}{changed}{unsealed}"


def _state(row: Mapping[str, Any]) -> str:
    """The commit that made a row; for rows without one, the digest of calibo's source code."""
    commit = row.get("commit", UNKNOWN)
    source = row.get("versions", {}).get("calibo source", "unknown")
    return f"commit {commit}" if commit != UNKNOWN else f"source {source}"


def _digest(row: Mapping[str, Any]) -> str:
    contents = {name: value for name, value in row.items() if name != "seal"}
    return sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()[:16]
