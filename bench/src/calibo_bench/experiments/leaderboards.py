"""Leaderboards: calibo beside other optimizers, on test functions and on real tuning tasks.

Each has two halves. On the development problems anything may be tried. The confirmation problems are run once for a
finished default, so that its result there was not chosen.
"""

from collections.abc import Mapping

from calibo_bench.experiments.experiment import Experiment
from calibo_bench.page import curves
from calibo_bench.problems.suites import GROUPS, SUITES
from calibo_bench.report import markdown
from calibo_bench.runner import Cell
from calibo_bench.statistics import Results, is_comparable
from calibo_bench.targets import Archive, Report

__all__ = ["LEADERBOARDS"]

BUDGET, QUICK = 40, 12
TIMEOUT = 60.0  # seconds for one suggestion: about ten times what the slowest peer needs
REFERENCE = "calibo"
OURS = (REFERENCE, "calibo-plain")  # they run on to twice the budget
PEERS = ("optuna-gp", "optuna-tpe", "optuna-cmaes")
FEW = 10  # seeds of peers that take more than 0.5 s for a suggestion
SLOW = ("hebo", "smac", "ax", "botorch-saas")

DEVELOPMENT: Mapping[str, int] = {**dict.fromkeys(PEERS, 20), "botorch": FEW}
CONFIRMATION: Mapping[str, int] = {**dict.fromkeys((*PEERS, "botorch"), 20), **dict.fromkeys(SLOW, FEW)}
MIXED: Mapping[str, int] = {**CONFIRMATION, "botorch": FEW}  # it takes seconds for categories and conditions
"""By peer, the largest number of seeds."""

CHOSEN = "**Development half:** anything may be tried on these problems, and defaults were chosen on some of them."
HELD_OUT = "**Confirmation half:** no default was chosen on these problems; they are run once for a finished default."


def _board(name: str, title: str, peers: Mapping[str, int], told: str) -> Experiment:
    problems = [problem.name for problem in SUITES[name]]

    def cells(seeds: int, quick: bool) -> list[Cell]:
        budget = QUICK if quick else BUDGET
        chosen = [p for p in problems if not p.endswith("20")][:4] if quick else problems
        own = [Cell(p, s, seed, 2 * budget, TIMEOUT) for seed in range(seeds) for p in chosen for s in OURS]
        others = [
            Cell(problem, peer, seed, budget, TIMEOUT)
            for seed in range(seeds)
            for problem in chosen
            for peer, most in peers.items()
            if seed < most
        ]
        return [*own, *others]

    return Experiment(name, title, cells, lambda archive: _report(archive, told))


def _report(archive: Archive, told: str) -> Report:
    rows = [row for row in archive.rows if is_comparable(row)]
    if not any(row["strategy"] == REFERENCE for row in rows):
        return Report(f"{told}\n\nThere are no runs of {REFERENCE!r} to compare with.")
    results = Results(rows)
    failures = [row for row in archive.rows if row["error"]]
    text = markdown(results, REFERENCE, "", GROUPS, failures)
    return Report(f"{told}\n\n{text.strip()}", lambda: curves(results, REFERENCE))


LEADERBOARDS = (
    _board("functions", "Leaderboard: test functions", DEVELOPMENT, CHOSEN),
    _board("tuning", "Leaderboard: real tuning tasks", DEVELOPMENT, CHOSEN),
    _board("functions-held-out", "Leaderboard: test functions, confirmation", CONFIRMATION, HELD_OUT),
    _board("tuning-held-out", "Leaderboard: real tuning tasks, confirmation", MIXED, HELD_OUT),
)
