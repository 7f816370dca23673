"""Timings: each measurement in its own process, with one BLAS thread or the default number.

python -m calibo_bench.experiments.timing NAME [NUMBER ...]    prints one as JSON
"""

import importlib
import json
import os
import platform
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from calibo_bench.clients import THREADS, source_digest
from calibo_bench.runner import Key, Row, blank_row

__all__ = ["PACKAGES", "Timing", "times_of"]

PACKAGES = ("calibo", "numpy", "scipy", "optuna", "torch", "gpytorch", "botorch")
MODULES = tuple(f"calibo_bench.experiments.{name}" for name in ("speed", "costs", "parallel"))


@dataclass(frozen=True)
class Timing:
    """A timing by one of JOBS at one size."""

    job: str
    n: int = 0
    seed: int = 0
    threads: int | None = 1
    """Of BLAS; None for the default number."""

    @property
    def key(self) -> Key:
        return self.job, "", self.seed, self.n, f"{self.threads or 'default'} threads"

    def measured(self) -> Row:
        environment = {name: value for name, value in os.environ.items() if name not in THREADS}
        environment |= dict.fromkeys(THREADS, str(self.threads)) if self.threads else {}
        command = [sys.executable, "-m", "calibo_bench.experiments.timing", self.job, str(self.n), str(self.seed)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        row = blank_row(self.key)
        row["machine"] = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
        versions = {name: found for name in PACKAGES if (found := _version(name))}
        row["versions"] = {**versions, "calibo source": source_digest()}
        if done.returncode:
            return {**row, "error": (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]}
        return {**row, "times": json.loads(done.stdout.splitlines()[-1])}


def times_of(rows: list[Row], timing: Timing) -> Any:
    """The measured times; None if they are missing."""
    keys = ("problem", "strategy", "seed", "budget", "start")
    found = [row["times"] for row in rows if tuple(row[key] for key in keys) == timing.key and not row["error"]]
    return found[-1] if found else None


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _main(job: str, *numbers: str) -> None:
    warnings.simplefilter("ignore")
    jobs: dict[str, Callable[[int, int], Any]] = {}
    for name in MODULES:
        jobs |= importlib.import_module(name).JOBS
    print(json.dumps(jobs[job](*map(int, numbers))))


if __name__ == "__main__":
    _main(*sys.argv[1:])
