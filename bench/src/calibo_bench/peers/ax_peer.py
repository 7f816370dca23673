"""Ax, with the generation strategy it chooses itself; told that values are exact where they are."""

import logging
import warnings
from typing import Any

import torch
from ax.api.client import Client
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
from protocol import Task, serve


class AxClient:
    """An experiment in memory; the first points are attached to it."""

    def __init__(self, task: Task) -> None:
        torch.manual_seed(task.seed)
        self.client = Client(random_seed=task.seed)
        self.client.configure_experiment(parameters=[_parameter(entry) for entry in task.space.values()])
        self.client.configure_optimization(objective="-value")
        self.client.configure_generation_strategy(initialization_budget=1, initialize_with_center=False)
        self.exact = task.exact
        self.open: dict[str, int] = {}

    def ask(self) -> dict[str, Any]:
        ((index, params),) = self.client.get_next_trials(max_trials=1).items()
        self.open[repr(sorted(params.items()))] = index
        return dict(params)

    def tell(self, params: dict[str, Any], value: float) -> None:
        index = self.open.pop(repr(sorted(params.items())), None)
        if index is None:
            index = self.client.attach_trial(params)
        self.client.complete_trial(index, raw_data={"value": (value, 0.0) if self.exact else value})

    def recommend(self) -> dict[str, Any]:
        return dict(self.client.get_best_parameterization()[0])


def _parameter(entry: dict[str, Any]) -> Any:
    if entry["kind"] == "categorical":
        return ChoiceParameterConfig(
            name=entry["name"], values=entry["choices"], parameter_type="str", is_ordered=False
        )
    return RangeParameterConfig(
        name=entry["name"],
        bounds=(entry["low"], entry["high"]),
        parameter_type=entry["kind"],
        scaling="log" if entry.get("log") else None,
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    torch.set_num_threads(1)
    serve(AxClient, ("ax-platform", "botorch", "torch"))
