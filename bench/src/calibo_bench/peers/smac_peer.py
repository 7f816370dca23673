"""SMAC3: its BlackBoxFacade, a Gaussian process."""

import logging
import tempfile
import warnings
from pathlib import Path
from typing import Any

from ConfigSpace import Categorical, Configuration, ConfigurationSpace, Float, InCondition, Integer
from protocol import Task, serve
from smac import BlackBoxFacade, Scenario
from smac.runhistory.dataclasses import TrialInfo, TrialValue


class Smac:
    """Ask and tell."""

    def __init__(self, task: Task) -> None:
        seed, self.task = task.seed, task
        self.space = ConfigurationSpace(seed=seed)
        self.space.add([_parameter(entry) for entry in task.space.values()])
        self.space.add([InCondition(self.space[n], self.space[p], v) for n, (p, v) in task.conditions.items()])
        self.folder = tempfile.TemporaryDirectory(prefix="smac")  # removed after the run
        folder = Path(self.folder.name)
        scenario = Scenario(self.space, deterministic=task.exact, n_trials=100_000, seed=seed, output_directory=folder)
        design = BlackBoxFacade.get_initial_design(scenario, n_configs=1)
        self.facade = BlackBoxFacade(scenario, _unused, initial_design=design, logging_level=False)
        self.asked: Any = None

    def ask(self) -> dict[str, Any]:
        self.asked = self.facade.ask()
        return _plain_values(self.asked.config)

    def tell(self, params: dict[str, Any], value: float) -> None:
        info = self.asked
        if info is None or _plain_values(info.config) != self.task.active(params):
            info = TrialInfo(Configuration(self.space, values=self.task.active(params)), seed=self.facade.scenario.seed)
        self.asked = None
        self.facade.tell(info, TrialValue(cost=value), save=False)

    def recommend(self) -> dict[str, Any] | None:
        """The incumbent, if there is one yet."""
        found = self.facade.intensifier.get_incumbents()
        return _plain_values(found[0]) if found else None


def _plain_values(config: Configuration) -> dict[str, Any]:
    return {name: _plain(value) for name, value in dict(config).items()}


def _unused(config: Any, seed: int = 0) -> float:  # noqa: ARG001  SMAC inspects the names
    """Never called: SMAC is used through ask and tell."""
    return 0.0


def _parameter(entry: dict[str, Any]) -> Any:
    if entry["kind"] == "categorical":
        return Categorical(entry["name"], entry["choices"])
    kind = Float if entry["kind"] == "float" else Integer
    return kind(entry["name"], (entry["low"], entry["high"]), log=entry["log"])


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    serve(Smac, ("smac", "scikit-learn"))
