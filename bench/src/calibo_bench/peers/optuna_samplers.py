"""Optuna's samplers with their own defaults, told what they can be told: exact values, a first guess, conditions."""

import sys
import warnings
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, CmaEsSampler, GPSampler, TPESampler
from protocol import Task, serve


class Study:
    """A study in memory; it recommends the best observation, as `study.best_params` does."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.study = optuna.create_study(sampler=_sampler(task))
        self.asked: Any = None

    def ask(self) -> dict[str, Any]:
        if self.asked is None and isinstance(self.study.sampler, CmaEsSampler):
            best = {name: self.study.best_params.get(name) for name in self._numbers()}
            self.study.sampler = CmaEsSampler(x0=best, seed=self.task.seed, n_startup_trials=1)
        trial = self.asked = self.study.ask()
        params: dict[str, Any] = {}
        for name, entry in self.task.space.items():
            if self.task.is_active(name, params):
                params[name] = _suggested(trial, name, entry)
        return params

    def _numbers(self) -> list[str]:
        """The parameters that CMA-ES treats: numbers that are always active."""
        space = self.task.space
        return [name for name in space if space[name]["kind"] != "categorical" and name not in self.task.conditions]

    def tell(self, params: dict[str, Any], value: float) -> None:
        active = self.task.active(params)
        if self.asked is not None and self.asked.params == active:
            self.study.tell(self.asked, value)
        else:
            distributions = {name: _distribution(self.task.space[name]) for name in active}
            self.study.add_trial(optuna.create_trial(params=active, distributions=distributions, value=value))


def _sampler(task: Task) -> BaseSampler:
    # the initial points are told and count as startup trials
    if sys.argv[1] == "gp":
        return GPSampler(seed=task.seed, n_startup_trials=1, deterministic_objective=task.exact)
    if sys.argv[1] == "cmaes":
        return CmaEsSampler(seed=task.seed)
    return TPESampler(seed=task.seed, n_startup_trials=1)


def _suggested(trial: optuna.Trial, name: str, entry: dict[str, Any]) -> Any:
    if entry["kind"] == "categorical":
        return trial.suggest_categorical(name, entry["choices"])
    suggest = trial.suggest_int if entry["kind"] == "int" else trial.suggest_float
    return suggest(name, entry["low"], entry["high"], log=entry["log"], step=entry["step"])


def _distribution(entry: dict[str, Any]) -> BaseDistribution:
    if entry["kind"] == "categorical":
        return CategoricalDistribution(entry["choices"])
    if entry["kind"] == "int":
        return IntDistribution(entry["low"], entry["high"], log=entry["log"], step=entry["step"])
    return FloatDistribution(entry["low"], entry["high"], log=entry["log"], step=entry["step"])


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    serve(Study, ("optuna", "torch"))
