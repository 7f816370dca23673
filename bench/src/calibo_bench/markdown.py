"""Helpers of reports: tables and their cells."""

from collections.abc import Sequence
from math import isfinite

from calibo_bench.targets import Archive, Run

__all__ = ["count", "fraction", "interval", "percent", "table"]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def fraction(archive: Archive, ours: Run, theirs: Run) -> str:
    """f, and wins, ties and losses of ours."""
    wins, ties, losses = archive.beaten(ours, theirs)
    pairs = wins + ties + losses
    return f"{(wins + ties) / pairs:.2f} ({wins}/{ties}/{losses})" if pairs else ""


def count(archive: Archive, runs: Sequence[Run]) -> str:
    """The number of seeds of the runs."""
    seeds = {len(archive.of(run)) for run in runs}
    return f"{min(seeds)}" if len(seeds) == 1 else f"{min(seeds)} to {max(seeds)}"


def interval(values: tuple[float, float, float]) -> str:
    """A ratio and its interval, if there are enough seeds."""
    middle, low, _ = values
    if not isfinite(middle):
        return ""
    shown = [f"{value:,.0f}" if value >= 1000 else f"{value:.3g}" for value in values]
    return f"{shown[0]} ({shown[1]} to {shown[2]})" if isfinite(low) else shown[0]


def percent(share: float) -> str:
    return f"{100.0 * share:.0f} %"
