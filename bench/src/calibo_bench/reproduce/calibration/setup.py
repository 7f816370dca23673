"""The set-up of CAL21 and CAL24 on synthetic functions, and what their reports share."""

from dataclasses import replace
from typing import Any

from calibo_bench.targets import Run

__all__ = [
    "BASES",
    "BOUND",
    "DEFAULT",
    "OURS",
    "PAPERS",
    "RULES",
    "SETTINGS",
    "TITLES",
    "made",
    "start",
]

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

SETTINGS = """
The papers' base is a Gaussian process with RBF kernel by maximum likelihood on normalised outcomes; calibrated means
refitted leave-one-out, or time series where a table says so, and a GP recalibrator that scales sigma. Ours, because
the papers leave it open: LCB with weight 2, EI and PI over the lowest posterior mean at the data, PI with a margin of
a hundredth of the spread, 19 levels of the calibration score. Our base is calibo's plain Gaussian process (Matern 5/2,
beliefs about hyper-parameters).
""".strip().replace("\n", " ")

RULES = """
m: the best value, mean over seeds (standard error). f: the share of paired runs in which the baseline does not find a
lower minimum (wins/ties/losses of the calibrated method; minima that differ by less than a ten-thousandth of the range
of all curves are the same). a: the area under the curve of best values, normalised per run so that 0 is the best and 1
the worst value of any method, seed and step of the comparison; mean (standard error). Five runs in the papers.
""".strip().replace("\n", " ")


def start(problem: str) -> str:
    """The papers' three points on Forrester's function miss the valley of the global minimum."""
    return "missed3" if problem == "forrester" else "random3"


def made(problem: str, base: str, part: str, acquisition: str | None = None, **more: Any) -> Run:
    """A base with a part; by itself a bound on Forrester's function, and on the others the base's EI."""
    usual = BOUND if problem == "forrester" else ""
    given = usual if acquisition is None else acquisition
    return replace(Run(problem, f"{base}{part}{given}", start(problem)), **more)
