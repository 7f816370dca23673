"""Stopping: when a rule ends a run because an improvement has become unlikely, how much was left to gain?"""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import optuna

from calibo import CalibratedSampler, Result, StopWhenUnlikely
from calibo.presets import get_strategy
from calibo.strategy import Strategy
from calibo_bench.clients import distribution_of, source_digest
from calibo_bench.experiments.experiment import Experiment
from calibo_bench.markdown import percent, table
from calibo_bench.problems.forecasting import HONESTY, HONESTY_HELD_OUT, kind_of, unit
from calibo_bench.problems.suites import problems_of
from calibo_bench.problems.synthetic import Problem
from calibo_bench.runner import Key, Row, blank_row
from calibo_bench.targets import Archive, Report

__all__ = ["STOPPING"]

BUDGET, QUICK = 60, 14
EVERY = 3  # evaluations between two questions
ALPHA = 0.05
RESOLUTIONS = (0.1, 0.01)  # in standard deviations of the values over the space; the largest first

VIEWS: Mapping[str, Strategy] = {
    "raw": get_strategy("default+unreported", recalibrate="never"),
    "calibrated": get_strategy("default+unreported"),
    "reported": get_strategy("default"),
}


@dataclass(frozen=True)
class Stopping:
    """A run of the default, and where each rule would have ended it."""

    problem: str
    seed: int
    budget: int

    @property
    def key(self) -> Key:
        return self.problem, "default", self.seed, self.budget, "stopping"

    def measured(self) -> Row:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        (problem,) = problems_of(self.problem)
        instance = problem.at(self.seed)
        size, least = unit(instance), instance.minimum
        assert least is not None
        study = optuna.create_study(sampler=CalibratedSampler(seed=self.seed))
        distributions = {name: distribution_of(parameter) for name, parameter in instance.space.items()}
        ended: dict[str, list[float]] = {}
        regret = np.nan
        for n in range(self.budget):
            trial = study.ask(distributions)
            _, outcome = instance.evaluate(trial.params, np.random.default_rng([self.seed, n, 7]))
            study.tell(trial, outcome)
            asked = VIEWS if (n + 1) % EVERY == 0 else ()
            stopping = {rule: chance for view in asked for rule, chance in _stopping(view, study, size, ended)}
            if stopping or n + 1 == self.budget:
                taken = Result(study).recommendation.params
                regret = max(instance.value(taken) - least, 0.0) / size
            for rule, chance in stopping.items():
                ended[rule] = [n + 1, float(f"{chance:.3g}"), float(f"{regret:.4g}")]
        found_row = {"stopped": ended, "regret": float(f"{regret:.4g}")}
        return {**blank_row(self.key), "stopping": found_row, "versions": {"calibo source": source_digest()}}


def _stopping(view: str, study: optuna.Study, size: float, ended: Container[str]) -> Iterator[tuple[str, float]]:
    """The rules of a view that end the run now. A smaller improvement is never less likely than a larger one."""
    for resolution in RESOLUTIONS:
        rule = f"{view} {resolution:g}"
        if rule not in ended:
            chance = StopWhenUnlikely(resolution * size, ALPHA, VIEWS[view]).probability(study)
            if chance is None or chance >= ALPHA:
                return
            yield rule, chance


def _cells(problems: Sequence[Problem], seeds: int, quick: bool) -> list[Stopping]:
    known = [problem.name for problem in problems if kind_of(problem.name) != "real"]
    return [
        Stopping(name, seed, QUICK if quick else BUDGET)
        for seed in range(seeds)
        for name in known[: 3 if quick else None]
    ]


ABOUT = f"""
The problems of the honesty suite whose minimum is known, with and without noise; {BUDGET} evaluations. After every
third, three forecasts are asked for the probability that one of the most promising points improves by more than the
resolution; the first at which it is below {ALPHA:g} would end the run. Resolutions and regrets are in units of the
standard deviation of the values over the space. The regret is that of the point recommended then. Saved: share of the
{BUDGET} evaluations, mean over all runs. More left: share of the stopped runs whose regret exceeds the resolution,
± standard error; it should be at most {percent(ALPHA)} plus two standard errors. Lost: mean over the stopped runs of
their regret then, minus that after {BUDGET} evaluations.
""".strip().replace("\n", " ")


def _report(archive: Archive, half: Sequence[Problem], told: str) -> Report:
    names = {problem.name for problem in half}
    rows = [row for row in archive.rows if not row["error"] and row["problem"] in names and row["seed"] < archive.seeds]
    lines = []
    for resolution in RESOLUTIONS:
        for label, noisy in (("no noise", False), ("noise", True)):
            chosen = [row for row in rows if (kind_of(row["problem"]) != "none") == noisy]
            lines += [[f"{resolution:g}", label, view, *_line(chosen, f"{view} {resolution:g}")] for view in VIEWS]
    head = ["resolution", "", "forecast", "runs", "stopped", "saved", "more left", "regret then", "lost"]
    return Report(f"{told} {archive.seeds} seeds. {ABOUT}\n\n{table(head, lines)}")


def _line(rows: Sequence[Row], rule: str) -> list[str]:
    found: list[Any] = [(row["stopping"]["stopped"][rule], row) for row in rows if rule in row["stopping"]["stopped"]]
    if not rows or not found:
        return [str(len(rows)), *(["0 %", "0 %"] if rows else ["", ""]), "", "", ""]
    saved = sum(1.0 - stop[0] / row["budget"] for stop, row in found) / len(rows)
    resolution = float(rule.split()[1])
    left = np.array([stop[2] > resolution for stop, _ in found])
    error = np.sqrt(max(left.mean() * (1.0 - left.mean()), 1.0 / len(left)) / len(left))
    lost = np.mean([stop[2] - row["stopping"]["regret"] for stop, row in found])
    regret = np.mean([stop[2] for stop, _ in found])
    shares = [percent(len(found) / len(rows)), percent(saved), f"{percent(left.mean())} ± {percent(error)}"]
    return [str(len(rows)), *shares, f"{regret:.3g}", f"{lost:.2g}"]


CHOSEN = "**Development half:** the reported model was chosen on some of these problems, or on others like them."
CONFIRMED = "**Confirmation half:** nothing was chosen on these problems."


def _experiment(name: str, title: str, half: Sequence[Problem], told: str) -> Experiment:
    return Experiment(name, title, partial(_cells, half), lambda archive: _report(archive, half, told), seeds=10)


STOPPING = (
    _experiment("stopping", "When does a run stop?", HONESTY, CHOSEN),
    _experiment("stopping-held-out", "When does a run stop? Confirmation", HONESTY_HELD_OUT, CONFIRMED),
)
