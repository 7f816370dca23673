"""Runs with a bar: what a result file lacks is measured and appended to it."""

from pathlib import Path

from calibo.bench.runner import Cell, missing, run
from calibo.cli.terminal import complain, printable, say
from calibo.progress import progress

__all__ = ["measure", "result_file"]


def result_file(name: str) -> Path:
    """Where rows are written; what is compressed beside it is read, too."""
    return Path(name.removesuffix(".gz"))


def measure(cells: list[Cell], path: Path, jobs: int) -> int:
    """How many of the runs failed."""
    todo, failed = missing(cells, path), 0
    with progress("last") as bar:
        task = bar.add_task("runs", total=len(cells), completed=len(cells) - len(todo), last="")
        for row in run(todo, path, jobs):
            bar.update(task, advance=1, last=f"{row['problem']} {row['strategy']} {row['seed']}")
            if row["error"] is not None:
                failed += 1
                complain(f"{row['problem']} {row['strategy']} {row['seed']}: {row['error']}", "yellow")
    say(f"{len(cells) - failed} of {len(cells)} runs are in {printable(str(path))}, {failed} failed.")
    return failed
