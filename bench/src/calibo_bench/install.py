"""Install peers, each group in its own virtual environment."""

import subprocess
import sys
import tempfile
from pathlib import Path

from calibo_bench.clients import ENVIRONMENTS, TORCH, peers_folder

__all__ = ["install"]


def install(name: str) -> str | None:
    """Create or update one environment; returns None, or the last line of output if it failed."""
    folder = peers_folder() / name
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as constraints:
        constraints.write(f"{TORCH}\n")
        constraints.flush()
        options = ["--quiet", "--disable-pip-version-check", "--constraint", constraints.name]
        wanted, pip = ENVIRONMENTS[name], [_python(folder), "-m", "pip", "install", *options]
        commands = [[sys.executable, "-m", "venv", str(folder)], [*pip, "--prefer-binary", *wanted.requirements]]
        if wanted.bare:
            commands.append([*pip, "--no-deps", *wanted.bare])
        for command in commands:
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                said = (done.stderr or done.stdout).strip().splitlines()
                return said[-1] if said else f"exit code {done.returncode}"
    return None


def _python(folder: Path) -> str:
    return str(folder / "bin" / "python")
