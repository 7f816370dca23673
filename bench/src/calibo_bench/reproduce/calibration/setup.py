"""The setup of CAL21 and CAL24 on synthetic functions, and the text their reports share."""

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
The papers' base is a Gaussian process with RBF kernel, fitted by maximum likelihood to normalised outcomes. Calibrated
means refitted leave-one-out scores, or time-series splits if a table says so, and a GP recalibrator that scales sigma.
Our choices where the papers are silent: LCB with weight 2, EI and PI over the lowest posterior mean at the data, PI
with a margin of a hundredth of the spread, 19 levels of the calibration score. Our base is calibo's plain Gaussian
process (Matern 5/2, priors on hyperparameters).
""".strip().replace("\n", " ")

RULES = """
m: the best value, mean over seeds (standard error). f: the share of paired runs in which the baseline does not find a
lower minimum (wins/ties/losses of the calibrated method; minima that differ by less than 1e-4 of the range of all
curves are ties). a: the area under the curve of best values, normalised per run so that 0 is the best and 1 the worst
value of any method, seed and step of the comparison; mean (standard error). The papers have five runs.
""".strip().replace("\n", " ")


def start(problem: str) -> str:
    """The papers' three points on Forrester's function miss the basin of the global minimum."""
    return "missed3" if problem == "forrester" else "random3"


def made(problem: str, base: str, part: str, acquisition: str | None = None, **more: Any) -> Run:
    """A base with a part; by default LCB on Forrester's function and the base's EI on the others."""
    usual = BOUND if problem == "forrester" else ""
    given = usual if acquisition is None else acquisition
    return replace(Run(problem, f"{base}{part}{given}", start(problem)), **more)
