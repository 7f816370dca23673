"""A progress bar with the remaining time: on stderr, or in the output of a notebook cell."""

import html
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

Advance = Callable[[int, str], None]
"""Takes the number completed so far, and words to show behind the bar."""

REFRESH = 0.1  # seconds between two updates in a notebook


@contextmanager
def progress(what: str, total: int | None, completed: int = 0, *, shown: bool = True) -> Iterator[Advance]:
    """Show how many of ``total`` (None if unknown) are completed; yields the function that moves the bar."""
    if not shown:
        yield _ignore
    elif _in_notebook():
        bar = _NotebookBar(what, total, completed)
        try:
            yield bar.advance
        finally:
            bar.show()
    else:
        with _terminal_bar() as bar:
            task = bar.add_task(what, total=total, completed=completed, words="")
            yield lambda completed, words: bar.update(task, completed=completed, words=words)


def _ignore(completed: int, words: str) -> None:
    pass


def _terminal_bar() -> Any:
    from rich.console import Console  # takes a tenth of a second
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.progress import TimeRemainingColumn as Remaining

    start = (TextColumn("{task.description}"), BarColumn(bar_width=20), MofNCompleteColumn(), TimeElapsedColumn())
    columns = (*start, TextColumn("ETA"), Remaining(), TextColumn("{task.fields[words]}", markup=False))
    terminal = sys.stdout.isatty()  # output redirected to a file must still go there
    return Progress(*columns, console=Console(stderr=True), redirect_stdout=terminal)


def _in_notebook() -> bool:
    """Whether this is the kernel of a notebook; IPython is loaded then."""
    shell = sys.modules.get("IPython")
    return shell is not None and hasattr(shell.get_ipython(), "kernel")


class _NotebookBar:
    """A bar in HTML, which needs no widgets and stays in the saved notebook as it was last shown."""

    def __init__(self, what: str, total: int | None, completed: int) -> None:
        self.what, self.total, self.first, self.completed, self.words = what, total, completed, completed, ""
        self.start = self.shown = time.monotonic()
        self.handle: Any = sys.modules["IPython"].display.display(self, display_id=True)

    def advance(self, completed: int, words: str) -> None:
        self.completed, self.words = completed, words
        if time.monotonic() - self.shown > REFRESH:
            self.show()

    def show(self) -> None:
        self.shown = time.monotonic()
        self.handle.update(self)

    def __repr__(self) -> str:
        passed, done = time.monotonic() - self.start, self.completed - self.first
        parts = [
            f"{self.what} {self.completed}" if self.total is None else f"{self.what} {self.completed}/{self.total}"
        ]
        parts.append(str(timedelta(seconds=round(passed))))
        if self.total is not None and done > 0 and self.total > self.completed:
            parts.append(f"ETA {timedelta(seconds=round(passed / done * (self.total - self.completed)))}")
        return ", ".join([*parts, self.words] if self.words else parts)

    def _repr_html_(self) -> str:
        ends = "" if self.total is None else f' value="{self.completed}" max="{self.total}"'
        return f"<progress{ends}></progress> {html.escape(repr(self))}"
