"""Terminal output: escaping of untrusted text, and plots of the optimization history."""

import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from math import isfinite, log10
from typing import Any

import numpy as np
from rich.console import Console
from rich.text import Text

from calibo.errors import hide_passwords


def replace_unprintable() -> None:
    """Print ? for characters that the terminal cannot encode."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """The reader, such as `head`, has closed the pipe: not an error."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(0)


output = _Console(highlight=False)
errors = Console(stderr=True, highlight=False)

HEIGHT = 10


def print_line(text: str, style: str = "") -> None:
    """Print one line on stdout, without markup or wrapping."""
    output.print(Text(text, style=style), soft_wrap=True)


def print_error(text: str, style: str) -> None:
    """Print one line on stderr."""
    errors.print(Text(printable(hide_passwords(text)), style=style), soft_wrap=True)


def printable(text: str) -> str:
    """The text in one line, with control characters escaped: names may come from anywhere."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def cell(value: Any, style: str = "") -> Text:
    """One cell of a table, never parsed as markup."""
    return Text(format_number(value) if isinstance(value, float) else printable(str(value)), style=style)


def format_number(value: float) -> str:
    return f"{value:.6g}"


def format_params(params: dict[str, Any], *, exact: bool = False) -> str:
    """Parameters in one line; floats are rounded unless ``exact``."""
    short = {name: format_number(v) if isinstance(v, float) and not exact else str(v) for name, v in params.items()}
    return ", ".join(f"{printable(name)} = {printable(value)}" for name, value in short.items())


def draw_trace(values: Sequence[float], best: Sequence[float], width: int = 64) -> list[str]:
    """The optimization history as text: values as dots and the best so far as a line, the newest trial on the right."""
    finite, tops = [v for v in (*values, *best) if isfinite(v)], [b for b in best if isfinite(b)]
    if not finite:
        return []
    low, high = min(finite), max(finite)
    if tops and tops[-1] <= tops[0]:  # a few outliers would squeeze all others into one line
        high = max(float(np.quantile(finite, 0.9)), max(tops))
    elif tops:
        low = min(float(np.quantile(finite, 0.1)), min(tops))
    logarithmic = low > 0 and high / low > 20
    places = [_scaled(low, logarithmic), _scaled(high, logarithmic)]
    columns = min(width, len(values))
    canvas = [[" "] * columns for _ in range(HEIGHT)]

    def row(value: float) -> int | None:
        if not isfinite(value):
            return None
        share = (_scaled(value, logarithmic) - places[0]) / ((places[1] - places[0]) or 1.0)
        return round((1.0 - share) * (HEIGHT - 1)) if -1e-9 <= share <= 1.0 + 1e-9 else None

    for mark, series in (("·", values), ("━", best)):
        for i, value in enumerate(series):
            at = row(value)
            if at is not None:
                canvas[at][i * columns // len(series)] = mark
    labels = [""] * HEIGHT
    labels[0], labels[-1] = format_number(high), format_number(low)
    margin = max(map(len, labels))
    lines = [f"{label:>{margin}} ┤{''.join(line)}" for label, line in zip(labels, canvas, strict=True)]
    foot = f"{'trial 0':<{max(columns - len(str(len(values) - 1)), 8)}}{len(values) - 1}"
    scale = "  (log scale)" if logarithmic else ""
    return [*lines, f"{'':>{margin}} └{'─' * columns}", f"{'':>{margin}}  {foot}{scale}"]


def _scaled(value: float, logarithmic: bool) -> float:
    return log10(value) if logarithmic and value > 0 else value
