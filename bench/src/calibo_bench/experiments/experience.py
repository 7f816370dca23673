"""Experience: what calibo learns from runs on functions made for it, and how it is made into its table."""

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import sqrt

import numpy as np
from scipy.special import ndtri

from calibo.arrays import Array
from calibo.parts import identity
from calibo.strategy import Strategy
from calibo_bench.experiments.experiment import Experiment
from calibo_bench.experiments.honesty import BUDGET, QUICK, Asking
from calibo_bench.markdown import table
from calibo_bench.problems.forecasting import EXPERIENCE as PROBLEMS
from calibo_bench.runner import Row
from calibo_bench.targets import Archive, Report

__all__ = ["EXPERIENCE", "learned", "stored"]

PARTS: Mapping[str, Sequence[tuple[int, int]]] = {
    "outcomes": ((3, 5), (6, 10), (11, 20), (21, 40)),
    "recommended": ((5, 5), (10, 10), (20, 20), (40, 40)),
}
"""Kinds of forecasts, and numbers of known outcomes over which their scores are pooled."""

LEVEL = 0.9  # of the intervals that the correction puts right
ROUNDED = 2  # digits
UNTIL = 150  # outcomes; with more the reported model is made of MAP estimates


def _cells(seeds: int, quick: bool) -> list[Asking]:
    budget = QUICK if quick else BUDGET
    return [Asking(problem.name, seed, budget) for seed in range(seeds) for problem in PROBLEMS]


def _widths(rows: Sequence[Row], part: str, first: int, last: int) -> Array:
    """By family, the factor with which intervals of this level would have held."""
    found = []
    for problem in PROBLEMS:
        runs = [row["honesty"]["reported"][part] for row in rows if row["problem"] == problem.name]
        scores = [entry[2] for run in runs for entry in run if first <= entry[0] <= last]
        if scores:
            found.append(np.quantile(np.abs(scores), LEVEL) / ndtri(0.5 + 0.5 * LEVEL))
    return np.array(found)


def learned(rows: Sequence[Row]) -> dict[str, list[tuple[int, float]]]:
    """By kind of forecast, the numbers of known outcomes from which on a width applies, and that width: the one with
    which intervals hold in every family. With more than UNTIL outcomes the model is another one.
    """
    found: dict[str, list[tuple[int, float]]] = {}
    for part, stages in PARTS.items():
        for start, (first, last) in zip(_starts(stages), stages, strict=True):
            widths = _widths(rows, part, first, last)
            if len(widths):
                found.setdefault(part, []).append((start, round(float(widths.max()), ROUNDED)))
    return {part: [*widths, (UNTIL + 1, 1.0)] for part, widths in found.items()}


def _starts(stages: Sequence[tuple[int, int]]) -> list[int]:
    """The first stage starts with the first reports, and others halfway to the one before on a log scale."""
    return [3, *(round(sqrt((before + 1) * first)) for (_, before), (first, _) in pairwise(stages))]


def stored(rows: Sequence[Row]) -> str:
    """The table as calibo ships it."""
    report = Strategy().report
    assert report is not None
    return json.dumps({identity(report.surrogate): learned(rows)}) + "\n"


ABOUT = """
Runs of the default on functions of seven families, none of which is in a comparison: random networks, trees, bumps,
draws of other kernels, valleys, cliffs and ripples, in one to ten dimensions, a fifth of them without noise. Widths are
the factors with which reported 90 % intervals would have held, had they not been corrected: of next outcomes, and of
the true value at the recommended point. The stored width is the largest, with which they hold in every family.
""".strip().replace("\n", " ")


def _report(archive: Archive) -> Report:
    rows = [row for row in archive.rows if not row["error"] and row["seed"] < archive.seeds]
    count = sum(len(row["honesty"]["reported"]["outcomes"]) for row in rows)
    families = [problem.name.partition("-")[2] for problem in PROBLEMS]
    parts = [f"{archive.seeds} functions of each family, {count:,} forecasts of next outcomes. {ABOUT}"]
    for part, stages in PARTS.items():
        lines = []
        for first, last in stages:
            widths = _widths(rows, part, first, last)
            if len(widths):
                values = [*widths, widths.max()]
                lines.append([_stage(first, last), *(f"{width:.{ROUNDED}f}" for width in values)])
        parts += [f"## {TITLES[part]}", table(["outcomes known", *families, "stored"], lines)] if lines else []
    return Report("\n\n".join(parts))


TITLES = {"outcomes": "Next outcomes", "recommended": "The recommended point"}


def _stage(first: int, last: int) -> str:
    return str(first) if first == last else f"{first} to {last}"


EXPERIENCE = Experiment("experience", "How much too narrow, or too wide, were forecasts?", _cells, _report, seeds=120)
