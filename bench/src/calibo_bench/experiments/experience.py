"""Experience: what calibo learns from runs on functions made for it, and how it is made into its table."""

import json
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from scipy.special import ndtri

from calibo.arrays import Array
from calibo.parts import identity
from calibo.strategy import REPORT
from calibo_bench.experiments.experiment import Experiment
from calibo_bench.experiments.honesty import BUDGET, QUICK, Asking
from calibo_bench.markdown import table
from calibo_bench.problems.forecasting import EXPERIENCE as PROBLEMS
from calibo_bench.runner import Row
from calibo_bench.targets import Archive, Report

__all__ = ["EXPERIENCE", "learned", "stored"]

STAGES = (3, 4, 5, 6, 8, 11, 16, 21, 31, 41)  # known outcomes, from which on a row of the table applies
TAIL = 0.05  # the quantiles that the correction puts right: the ends of a 90 % interval
ROUNDED = 2  # digits


def _cells(seeds: int, quick: bool) -> list[Asking]:
    budget = QUICK if quick else BUDGET
    return [Asking(problem.name, seed, budget) for seed in range(seeds) for problem in PROBLEMS]


def _log_widths(rows: Sequence[Row], first: int, last: int) -> Array:
    """By family, the log width of the Normal with the 5 and 95 % quantiles of the scores of a stage."""
    found = []
    for problem in PROBLEMS:
        runs = [row["honesty"]["reported"]["outcomes"] for row in rows if row["problem"] == problem.name]
        scores = [entry[2] for run in runs for entry in run if first <= entry[0] <= last]
        if scores:
            low, high = np.quantile(scores, [TAIL, 1.0 - TAIL])
            found.append(np.log(max(high - low, 1e-9) / (2.0 * ndtri(1.0 - TAIL))))
    return np.array(found)


def learned(rows: Sequence[Row]) -> list[tuple[int, float]]:
    """By stage, the width that one standard deviation between families is above their mean: the next function will be
    of another family. Forecasts are never made narrower.
    """
    found = []
    for first, after in pairwise(STAGES):
        widths = _log_widths(rows, first, after - 1)
        if len(widths) > 1:
            width = float(np.exp(widths.mean() + widths.std(ddof=1)))
            found.append((first, max(round(width, ROUNDED), 1.0)))
    return found


def stored(rows: Sequence[Row]) -> str:
    """The table as calibo ships it."""
    return json.dumps({identity(REPORT.surrogate): learned(rows)}) + "\n"


ABOUT = """
Runs of the default on functions of six families, none of which is in a comparison: random networks, trees, bumps, draws
of other kernels, valleys and cliffs, in one to ten dimensions, a fifth of them without noise. Scores are those of next
outcomes under reported forecasts before any correction; their width is that of the Normal with the same 5 and 95 %
quantiles. The stored width is one standard deviation between families above their mean, because the next function will
be of another family, and at least 1.
""".strip().replace("\n", " ")


def _report(archive: Archive) -> Report:
    rows = [row for row in archive.rows if not row["error"] and row["seed"] < archive.seeds]
    kept, lines = dict(learned(rows)), []
    for first, after in pairwise(STAGES):
        widths = np.exp(_log_widths(rows, first, after - 1))
        if first in kept:
            lines.append([_stage(first, after - 1), *(f"{width:.2f}" for width in widths), f"{kept[first]:.2f}"])
    families = [problem.name.partition("-")[2] for problem in PROBLEMS]
    text = table(["outcomes known", *families, "stored"], lines) if lines else ""
    return Report(f"{archive.seeds} functions of each family. {ABOUT}\n\n{text}".strip())


def _stage(first: int, last: int) -> str:
    return str(first) if first == last else f"{first} to {last}"


EXPERIENCE = Experiment("experience", "How much too narrow were first forecasts?", _cells, _report, seeds=60)
