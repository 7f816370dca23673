"""Optuna's samplers with their own defaults."""

import sys
import warnings
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from protocol import serve

SAMPLERS = {"tpe": optuna.samplers.TPESampler, "gp": optuna.samplers.GPSampler}


class Study:
    """A study in memory."""

    def __init__(self, space: list[dict[str, Any]], seed: int) -> None:
        self.distributions = {entry["name"]: _distribution(entry) for entry in space}
        # the initial points are told and count as startup trials
        self.study = optuna.create_study(sampler=SAMPLERS[sys.argv[1]](seed=seed, n_startup_trials=1))
        self.asked: Any = None

    def ask(self) -> dict[str, Any]:
        self.asked = self.study.ask(self.distributions)
        return dict(self.asked.params)

    def tell(self, params: dict[str, Any], value: float) -> None:
        if self.asked is not None and self.asked.params == params:
            self.study.tell(self.asked, value)
            self.asked = None
        else:
            self.study.add_trial(optuna.create_trial(params=params, distributions=self.distributions, value=value))


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
