"""The set-up of CAL21 and CAL24 on synthetic functions.

Their base is a Gaussian process with RBF kernel by maximum likelihood on normalised outcomes, three random points, 25
steps; "calibrated" is refitted leave-one-out, or time series where a table says so, with a GP recalibrator that
scales sigma. What they leave open is ours: LCB with weight 2, EI and PI over the lowest posterior mean, PI with a
margin of a hundredth of the spread, 19 levels of the calibration score. Each comparison is made a second time on the
Gaussian process of calibo (Matern 5/2, priors on hyper-parameters).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from calibo.reproduce.targets import Archive, Run

__all__ = ["BASES", "BOUND", "DEFAULT", "OURS", "PAPERS", "TITLES", "count", "fraction", "made", "start", "table"]

PAPERS, OURS, DEFAULT = "calibo-papers-base", "calibo-plain", "calibo"
BASES = {"the papers' base": PAPERS, "our base": OURS}
BOUND = "+lcb2"  # what the papers call UCB
TITLES = {
    "forrester": "Forrester",
    "ackley2": "Ackley 2D",
    "cosines": "Cosines 2D",
    "alpine10": "Alpine 10D",
    "alpine7": "Alpine 7D",
    "alpine15": "Alpine 15D",
    "camel6": "Six-Hump Camel",
}


def start(problem: str) -> str:
    """The papers' three points on Forrester's function miss the valley of the global minimum."""
    return "missed3" if problem == "forrester" else "random3"


def made(problem: str, base: str, part: str, acquisition: str | None = None, **more: Any) -> Run:
    """A base with a part; by itself a bound on Forrester's function, and on the others the base's EI."""
    usual = BOUND if problem == "forrester" else ""
    given = usual if acquisition is None else acquisition
    return replace(Run(problem, f"{base}{part}{given}", start(problem)), **more)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """In Markdown."""
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def fraction(archive: Archive, ours: Run, theirs: Run) -> str:
    """f: the share of paired runs in which ours is not worse, and wins, ties and losses."""
    wins, ties, losses = archive.beaten(ours, theirs)
    pairs = wins + ties + losses
    return f"{(wins + ties) / pairs:.2f} ({wins}/{ties}/{losses})" if pairs else ""


def count(archive: Archive, runs: Sequence[Run]) -> str:
    """How many seeds the runs have."""
    seeds = {len(archive.of(run)) for run in runs}
    return f"{min(seeds)}" if len(seeds) == 1 else f"{min(seeds)} to {max(seeds)}"
