"""How the defaults were chosen: one changed at a time, on textbook functions, paired by seed."""

from collections.abc import Mapping

import numpy as np

from calibo_bench.experiments.experiment import Experiment
from calibo_bench.markdown import table
from calibo_bench.problems.suites import SUITES
from calibo_bench.runner import OWN, Cell, Row
from calibo_bench.targets import Archive, Report
from calibo_bench.variants import CHOICES as VARIANTS
from calibo_bench.variants import choice

__all__ = ["CHOICES"]

BUDGET, QUICK = 40, 12
FLOOR = 1e-4  # of the first regret: smaller differences are negligible
PROBLEMS = [problem.name for problem in SUITES["choices"]]
REFERENCES = {1: "plain", 4: "four at a time: own mean"}
"""By batch size."""

ABOUT = """
Nine textbook functions with off-centre optima, with the strategies' own initial designs, paired. Each row changes one
default of the plain strategy and is compared with it: one point at a time, or batches of four with the posterior mean
for pending points. Area: mean regret over the run; final: final regret (both plus 1e-4 of the first regret, so that
negligible differences do not count). Ratios are geometric means ± the standard error of the logarithm; below 1 the
variant is better. The last columns are areas by function.

The defaults were chosen on these functions and seeds: the table shows that they lie on a plateau, not how they perform
on unseen problems.
""".strip()


def _cells(seeds: int, quick: bool) -> list[Cell]:
    budget = QUICK if quick else BUDGET
    return [
        Cell(problem, choice(label), seed, budget, start=OWN)
        for seed in range(seeds)
        for label in VARIANTS
        for problem in PROBLEMS
    ]


def _report(archive: Archive) -> Report:
    budget = QUICK if archive.quick else BUDGET
    known: dict[tuple[str, str], dict[int, Row]] = {}
    for row in archive.rows:
        if not row["error"] and row["budget"] == budget and row["seed"] < archive.seeds:
            known.setdefault((row["strategy"], row["problem"]), {})[row["seed"]] = row
    rows = []
    for label, variant in VARIANTS.items():
        reference = REFERENCES[variant.batch]
        if label == reference:
            continue
        pairs = [
            _paired(known.get((choice(label), problem), {}), known.get((choice(reference), problem), {}))
            for problem in PROBLEMS
        ]
        if all(len(part) > 1 for part in pairs):
            areas, finals = ([_mean(part[:, side]) for part in pairs] for side in (0, 1))
            each = [f"{np.exp(middle):.2f} ± {error:.2f}" for middle, error in areas]
            rows.append([label, _joint(areas), _joint(finals), *each])
    seeds = len({row["seed"] for found in known.values() for row in found.values()})
    head = ["variant", "area", "final", *(name.removeprefix("cube-") for name in PROBLEMS)]
    shown = table(head, rows) if rows else "There are fewer than two seeds to compare."
    return Report(f"{budget} evaluations, {seeds} seeds. {ABOUT}\n\n{shown}")


def _paired(ours: Mapping[int, Row], theirs: Mapping[int, Row]) -> np.ndarray:
    """(seeds, 2) log ratios of area and of final regret."""
    logs = []
    for seed in sorted(set(ours) & set(theirs)):
        a, b = (np.minimum.accumulate(np.array(rows[seed]["values"])) for rows in (ours, theirs))
        floor = FLOOR * b[0]
        logs.append([np.log(x + floor) - np.log(y + floor) for x, y in ((a.mean(), b.mean()), (a[-1], b[-1]))])
    return np.array(logs).reshape(-1, 2)


def _mean(logs: np.ndarray) -> tuple[float, float]:
    return float(logs.mean()), float(logs.std(ddof=1) / np.sqrt(len(logs)))


def _joint(parts: list[tuple[float, float]]) -> str:
    """Over all functions."""
    error = np.sqrt(np.sum([error**2 for _, error in parts])) / len(parts)
    return f"{np.exp(np.mean([middle for middle, _ in parts])):.3f} ± {error:.3f}"


CHOICES = Experiment("choices", "How the defaults were chosen", _cells, _report)
