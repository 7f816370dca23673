"""Progress bars on stderr, with the time left."""

import sys

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


def progress(*fields: str, shown: bool = True) -> Progress:
    """A bar that also shows these fields of its tasks."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        *(TextColumn(f"{{task.fields[{field}]}}", markup=False) for field in fields),
    )
    terminal = sys.stdout.isatty()  # what is printed to a file meanwhile must go there
    return Progress(*columns, console=Console(stderr=True), disable=not shown, redirect_stdout=terminal)
