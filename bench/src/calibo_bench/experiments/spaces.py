"""Realistic search spaces: conditional parameters, mixed types, constraints; compared with Optuna's samplers."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import optuna
from optuna.samplers import BaseSampler, GPSampler, RandomSampler, TPESampler

import calibo
from calibo import CalibratedSampler
from calibo_bench.clients import source_digest
from calibo_bench.experiments.experiment import Experiment
from calibo_bench.markdown import table
from calibo_bench.problems.declared import DECLARED
from calibo_bench.runner import Key, Row, blank_row
from calibo_bench.targets import Archive, Report

__all__ = ["SPACES"]

INITIAL, BUDGET, QUICK = 8, 40, 14
SAMPLERS: Mapping[str, Callable[[int], BaseSampler]] = {
    "calibo": lambda seed: CalibratedSampler(n_startup_trials=INITIAL, seed=seed),
    "TPE": lambda seed: TPESampler(n_startup_trials=INITIAL, seed=seed),
    "TPE, grouped": lambda seed: TPESampler(n_startup_trials=INITIAL, seed=seed, multivariate=True, group=True),
    "GPSampler": lambda seed: GPSampler(n_startup_trials=INITIAL, seed=seed),
    "random": lambda seed: RandomSampler(seed=seed + 10_000),
}
ABOUT = f"""
The first {INITIAL} trials are random and the same for every sampler. calibo's `CalibratedSampler` and Optuna's samplers
use their defaults with `n_startup_trials={INITIAL}`; "TPE, grouped" has multivariate=True and group=True. Smaller is
better. Mean ± standard error over seeds of the best feasible value; "calibo better" counts the seeds on which calibo's
final value is better / equal / worse. If a seed found nothing feasible, the mean is over the others and their number is
given; in the median such seeds count as the worst.

calibo was changed after a look at some of these problems: constraints were binary labels at first, and are modelled by
their values now because GPSampler was far ahead on the two constrained problems. So these problems are not held out.
""".strip()


@dataclass(frozen=True)
class Study:
    """One study of a sampler."""

    problem: str
    sampler: str
    seed: int
    budget: int

    @property
    def key(self) -> Key:
        return self.problem, self.sampler, self.seed, self.budget, f"random{INITIAL}"

    def measured(self) -> Row:
        """The values of its trials; infeasible ones are null."""
        row = blank_row(self.key)
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        objective = DECLARED[self.problem].objective
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            first = optuna.create_study(sampler=RandomSampler(seed=self.seed))
            first.optimize(objective, n_trials=INITIAL)
            study = optuna.create_study(sampler=SAMPLERS[self.sampler](self.seed))
            study.add_trials(first.trials)
            study.optimize(objective, n_trials=self.budget - INITIAL)
        feasible = [all(c <= 0 for c in trial.constraints.values()) for trial in study.trials]
        pairs = zip(study.trials, feasible, strict=True)
        row["values"] = [float(f"{trial.value:.8g}") if ok and trial.value is not None else None for trial, ok in pairs]
        row["initial"] = INITIAL
        row["versions"] = {
            "calibo": calibo.__version__,
            "calibo source": source_digest(),
            "optuna": optuna.__version__,
        }
        return row


def _measurements(seeds: int, quick: bool) -> list[Study]:
    budget = QUICK if quick else BUDGET
    return [
        Study(problem, sampler, seed, budget) for seed in range(seeds) for problem in DECLARED for sampler in SAMPLERS
    ]


def _report(archive: Archive) -> Report:
    budget = QUICK if archive.quick else BUDGET
    curves: dict[tuple[str, str], dict[int, np.ndarray]] = {}
    for row in archive.rows:
        if not row["error"] and row["budget"] == budget and row["seed"] < archive.seeds:
            values = np.array([np.inf if value is None else value for value in row["values"]])
            curves.setdefault((row["problem"], row["strategy"]), {})[row["seed"]] = np.minimum.accumulate(values)
    seeds = len({seed for found in curves.values() for seed in found})
    parts = [f"{seeds} seeds, {budget} trials. {ABOUT}"]
    middle = min(20, budget)
    for problem, about in DECLARED.items():
        parts += [f"## {problem}: {about.kind}", f"{about.objective.__doc__} Measured: {about.measure}."]
        ours, rows = curves.get((problem, "calibo"), {}), []
        for sampler in SAMPLERS:
            theirs = curves.get((problem, sampler), {})
            if theirs:
                cells = [_mean(np.array([curve[n - 1] for curve in theirs.values()])) for n in (middle, budget)]
                last = np.median([curve[-1] for curve in theirs.values()])
                rows.append([sampler, *cells, f"{last:.3g}", "" if sampler == "calibo" else _duel(ours, theirs)])
        head = ["sampler", f"after {middle} trials", f"after {budget} trials", "median", "calibo better"]
        parts.append(table(head, rows))
    return Report("\n\n".join(parts))


def _mean(values: np.ndarray) -> str:
    known = values[np.isfinite(values)]
    if not len(known):
        return "nothing feasible"
    missing = f" ({len(known)} of {len(values)} seeds)" if len(known) < len(values) else ""
    error = known.std(ddof=1) / len(known) ** 0.5 if len(known) > 1 else np.nan
    return f"{known.mean():.3g} ± {error:.2g}{missing}"


def _duel(ours: Mapping[int, np.ndarray], theirs: Mapping[int, np.ndarray]) -> str:
    pairs = [(float(ours[seed][-1]), float(theirs[seed][-1])) for seed in sorted(set(ours) & set(theirs))]
    return f"{sum(a < b for a, b in pairs)} / {sum(a == b for a, b in pairs)} / {sum(a > b for a, b in pairs)}"


SPACES = Experiment("spaces", "Realistic search spaces", _measurements, _report)
