"""Storage per trial beyond that of a study with RandomSampler: attributes and bytes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import optuna
from optuna.trial import Trial

from calibo import CalibratedSampler
from calibo_bench.clients import source_digest
from calibo_bench.experiments.experiment import Experiment
from calibo_bench.markdown import table
from calibo_bench.problems.declared import DECLARED
from calibo_bench.problems.suites import problems_of
from calibo_bench.runner import Key, Row, blank_row
from calibo_bench.targets import Archive, Report

__all__ = ["STORAGE"]

PROBLEMS = ("cube-branin", "cube-rosenbrock4", "cube-hartmann6", "three functions", "mixed")
STRATEGIES = ("default", "plain", "plain+sampled")
BUDGETS, QUICK = (20, 40, 100), (20,)
SECOND = "f4:" + "A" * 208  # 39 quantiles, the longest form of a forecast
ABOUT = """
Attributes per trial and their bytes as JSON, keys included, mean over trials and seeds, beyond those of a study with
RandomSampler in the same space. "With a second forecast" adds one in its longest form, 39 quantiles, to every trial.
Target: at most two attributes and 1,200 bytes with two forecasts.
""".strip().replace("\n", " ")


@dataclass(frozen=True)
class Stored:
    """One study of the sampler, compared with one of RandomSampler."""

    problem: str
    strategy: str
    seed: int
    budget: int

    @property
    def key(self) -> Key:
        return self.problem, self.strategy, self.seed, self.budget, "storage"

    def measured(self) -> Row:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        ours = self._mean(CalibratedSampler(strategy=self.strategy, seed=self.seed))
        random = self._mean(optuna.samplers.RandomSampler(seed=self.seed))
        beyond = {name: value - random[name] for name, value in ours.items()}
        return {**blank_row(self.key), "stored": beyond, "versions": {"calibo source": source_digest()}}

    def _mean(self, sampler: optuna.samplers.BaseSampler) -> dict[str, float]:
        study = optuna.create_study(sampler=sampler)
        study.optimize(self._value, n_trials=self.budget)
        held: list[Mapping[str, Any]] = [{**trial.system_attrs, **trial.user_attrs} for trial in study.trials]
        sizes = [sum(len(key) + len(json.dumps(value)) for key, value in attributes.items()) for attributes in held]
        return {"attributes": float(np.mean([len(each) for each in held])), "bytes": float(np.mean(sizes))}

    def _value(self, trial: Trial) -> float:
        if self.problem in DECLARED:
            return DECLARED[self.problem].objective(trial)
        (problem,) = problems_of(self.problem)
        instance = problem.at(self.seed)
        return instance.value({name: trial.suggest_float(name, 0.0, 1.0) for name in instance.space})


def _measurements(seeds: int, quick: bool) -> list[Stored]:
    sizes = QUICK if quick else BUDGETS
    return [
        Stored(p, s, seed, n)
        for seed in range(seeds)
        for p in PROBLEMS
        for s in STRATEGIES
        for n in sizes
        if n < max(BUDGETS) or s != "plain+sampled"
    ]


def _report(archive: Archive) -> Report:
    second = len(json.dumps({"loc": -1.2345678901234567, "scale": 1.2345678901234567, "quantiles": SECOND}))
    lines = []
    for problem in PROBLEMS:
        for strategy in STRATEGIES:
            for n in BUDGETS:
                found = [
                    row["stored"]
                    for row in archive.rows
                    if not row["error"] and (row["problem"], row["strategy"], row["budget"]) == (problem, strategy, n)
                ]
                if found:
                    attributes, size = (
                        float(np.mean([each[part] for each in found])) for part in ("attributes", "bytes")
                    )
                    lines.append(
                        [problem, strategy, str(n), f"{attributes:.2f}", f"{size:.0f}", f"{size + second:.0f}"]
                    )
    head = ["problem", "strategy", "trials", "attributes", "bytes", "with a second forecast"]
    return Report(f"{archive.seeds} seeds. {ABOUT}\n\n{table(head, lines)}")


STORAGE = Experiment("storage", "Storage per trial", _measurements, _report, seeds=5)
