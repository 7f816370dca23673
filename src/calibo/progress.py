"""Progress bars on stderr, with the remaining time."""

import sys

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


def progress(*fields: str, shown: bool = True) -> Progress:
    """A progress bar that also shows these fields of its tasks."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("ETA"),
        TimeRemainingColumn(),
        *(TextColumn(f"{{task.fields[{field}]}}", markup=False) for field in fields),
    )
    terminal = sys.stdout.isatty()  # output redirected to a file must still go there
    return Progress(*columns, console=Console(stderr=True), disable=not shown, redirect_stdout=terminal)
