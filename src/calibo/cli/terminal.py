"""Terminal output: escaping of untrusted text, and plots of the optimization history."""

import json
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
SQUEEZED = 4  # times narrower: what a few bad values may do to the others in a trace


def print_line(text: str, style: str = "") -> None:
    """Print one line on stdout, without markup or wrapping."""
    output.print(Text(text, style=style), soft_wrap=True)


def print_error(text: str, style: str) -> None:
    """Print one line on stderr."""
    errors.print(Text(printable(hide_passwords(text)), style=style), soft_wrap=True)


def print_json(value: Any) -> None:
    """Print one JSON value in one line; NaN and infinities, which JSON lacks, as null."""
    print_line(json.dumps(_finite(value), default=str))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not isfinite(value) else value


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


def draw_trace(
    values: Sequence[float], best: Sequence[float], numbers: Sequence[int] = (), width: int = 64
) -> list[str]:
    """The optimization history as text: values as dots and the best so far as a line, the newest trial on the right.

    ``numbers`` are those of the trials, by default from 0 on.
    """
    finite, tops = [v for v in (*values, *best) if isfinite(v)], [b for b in best if isfinite(b)]
    if not finite:
        return []
    minimizing = not tops or tops[-1] <= tops[0]
    low, high = _window(finite, tops) if minimizing else (-end for end in _window(*_negated(finite, tops))[::-1])
    logarithmic = _is_wide(low, high)
    places = [_scaled(low, logarithmic), _scaled(high, logarithmic)]
    columns = min(width, len(values))
    canvas = [[" "] * columns for _ in range(HEIGHT)]
    for outside, mark, series in (("", "·", values), ("▲▼", "━", best)):
        for i, value in enumerate(series):
            if not isfinite(value) or not (outside or low <= value <= high):
                continue
            share = (_scaled(min(max(value, low), high), logarithmic) - places[0]) / ((places[1] - places[0]) or 1.0)
            drawn = mark if low <= value <= high else outside[int(value < low)]
            canvas[round((1.0 - share) * (HEIGHT - 1))][i * columns // len(series)] = drawn
    labels = [""] * HEIGHT
    labels[0], labels[-1] = format_number(high), format_number(low)
    margin = max(map(len, labels))
    lines = [f"{label:>{margin}} ┤{''.join(line)}" for label, line in zip(labels, canvas, strict=True)]
    first, last = (numbers[0], numbers[-1]) if numbers else (0, len(values) - 1)
    start = f"trial {first}"
    foot = f"{start:<{max(columns - len(str(last)), len(start) + 1)}}{last}"
    scale = "  (log scale)" if logarithmic else ""
    for mark in "▲▼":
        scale += f"  {mark} off the scale" if any(mark in row for row in canvas) else ""
    return [*lines, f"{'':>{margin}} └{'─' * columns}", f"{'':>{margin}}  {foot}{scale}"]


def _window(values: Sequence[float], best: Sequence[float]) -> tuple[float, float]:
    """The range to draw, when minimizing: a few bad ones would squeeze the others into a line."""
    low, high = min(values), max(float(np.quantile(values, 0.9)), *best, *(values if not best else ()))
    most = sorted(values)[max(int(0.9 * len(values)), 1) - 1]
    start, end, rest = (_scaled(value, _is_wide(low, high)) for value in (low, high, most))
    return low, most if 0.0 < SQUEEZED * (rest - start) < end - start else high


def _negated(*series: Sequence[float]) -> list[list[float]]:
    return [[-value for value in each] for each in series]


def _is_wide(low: float, high: float) -> bool:
    """Whether a log scale shows more."""
    return low > 0 and high / low > 20


def _scaled(value: float, logarithmic: bool) -> float:
    return log10(value) if logarithmic and value > 0 else value
