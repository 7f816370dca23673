"""Deciding: does the default find better points than the one before it, and when should decisions be calibrated?"""

from collections.abc import Mapping, Sequence
from functools import partial

from calibo_bench.experiments.experiment import Experiment
from calibo_bench.markdown import interval, table
from calibo_bench.problems.forecasting import HONESTY, HONESTY_HELD_OUT, kind_of
from calibo_bench.problems.suites import SUITES
from calibo_bench.problems.synthetic import Problem
from calibo_bench.runner import Cell, Row
from calibo_bench.statistics import Results, is_comparable
from calibo_bench.targets import Archive, Report

__all__ = ["DECIDING"]

BUDGET, QUICK = 40, 12
TIMEOUT = 60.0
BEFORE = "calibo+unreported+decide-always"
STRATEGIES: Mapping[str, str] = {
    "calibo": "default",
    "calibo+decide-always": "always calibrated",
    "calibo+decide-never": "never calibrated",
    BEFORE: "before",
}
CONFIRMED = ("calibo", BEFORE)

ABOUT = f"""
{BUDGET} evaluations from the same first points. "Before" decides with calibrated forecasts and recommends by the
forecasts that it decides with; the default decides with them until its model has found that outcomes are exact, and
recommends by the reported forecasts. Ratios to "before", below 1 is better; 95 % intervals resample problems and seeds.
Area: mean regret over a run; final: regret at its end, floored at 1e-3 of the problem's range. Under noise a regret is
that of the recommended point.
""".strip().replace("\n", " ")


def _problems(suites: Sequence[str], judged: Sequence[Problem]) -> list[str]:
    """Those of the suites, and the noisy ones on which forecasts are judged."""
    noisy = [problem.name for problem in judged if kind_of(problem.name) not in ("none", "real")]
    return [*(problem.name for suite in suites for problem in SUITES[suite]), *noisy]


def _cells(problems: Sequence[str], strategies: Sequence[str], seeds: int, quick: bool) -> list[Cell]:
    budget = QUICK if quick else BUDGET
    chosen = [*problems[:2], *problems[-2:]] if quick else problems
    return [Cell(p, s, seed, budget, TIMEOUT) for seed in range(seeds) for p in chosen for s in strategies]


def _report(archive: Archive, problems: Sequence[str], strategies: Sequence[str], told: str) -> Report:
    rows = [
        row
        for row in archive.rows
        if is_comparable(row)
        and row["problem"] in problems
        and row["strategy"] in strategies
        and row["seed"] < archive.seeds
    ]
    head = ["outcomes", "strategy", "problems", "runs", "area", "final"]
    lines = [
        [label, STRATEGIES[strategy], *_compared(chosen, strategy)]
        for label, chosen in _groups(rows).items()
        for strategy in strategies
        if strategy != BEFORE and any(row["strategy"] == strategy for row in chosen)
    ]
    each = [
        [problem, *_compared([row for row in rows if row["problem"] == problem], strategies[0])[2:]]
        for problem in dict.fromkeys(row["problem"] for row in rows)
    ]
    parts = [f"{told} {archive.seeds} seeds. {ABOUT}", table(head, lines), "## By problem"]
    parts += ["The default. Intervals resample seeds.", table(["problem", "area", "final"], each)]
    return Report("\n\n".join(parts))


def _groups(rows: Sequence[Row]) -> dict[str, list[Row]]:
    noisy = [row for row in rows if row["recommended"] is not None]
    exact = [row for row in rows if row["recommended"] is None]
    return {"no noise": exact, "noise": noisy, "all": list(rows)}


def _compared(rows: Sequence[Row], strategy: str) -> list[str]:
    if not any(row["strategy"] == BEFORE for row in rows):
        return ["0", "0", "", ""]
    found = Results(rows).compared(strategy, BEFORE)
    return [str(found.problems), str(found.cells), interval(found.area), interval(found.regret)]


def _experiment(name: str, title: str, problems: list[str], strategies: Sequence[str], told: str) -> Experiment:
    return Experiment(
        name,
        title,
        partial(_cells, problems, strategies),
        lambda archive: _report(archive, problems, strategies, told),
    )


DECIDING = (
    _experiment(
        "deciding",
        "When should decisions read calibrated forecasts?",
        _problems(("functions", "tuning"), HONESTY),
        tuple(STRATEGIES),
        "**Development half:** the rule was chosen on these problems, when noise was still measured in units of the "
        "value and not on the scale of the model.",
    ),
    _experiment(
        "deciding-held-out",
        "Does the default find better points than before? Confirmation",
        _problems(("functions-held-out", "tuning-held-out"), HONESTY_HELD_OUT),
        CONFIRMED,
        "**Confirmation half:** nothing was chosen on these problems.",
    ),
)
