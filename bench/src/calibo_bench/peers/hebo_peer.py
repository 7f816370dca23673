"""HEBO, with its own defaults."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
import torch
from hebo.design_space.design_space import DesignSpace
from hebo.optimizers.hebo import HEBO
from protocol import Task, serve


class Hebo:
    """Suggest and observe."""

    def __init__(self, task: Task) -> None:
        np.random.seed(task.seed)  # noqa: NPY002
        torch.manual_seed(task.seed)
        self.names = list(task.space)
        self.optimizer = HEBO(
            DesignSpace().parse([_parameter(entry) for entry in task.space.values()]),
            rand_sample=2,
            scramble_seed=task.seed,
        )

    def ask(self) -> dict[str, Any]:
        row = self.optimizer.suggest(1).iloc[0]
        return {name: row[name].item() if hasattr(row[name], "item") else row[name] for name in self.names}

    def tell(self, params: dict[str, Any], value: float) -> None:
        self.optimizer.observe(pd.DataFrame([params])[self.names], np.array([[value]]))


def _parameter(entry: dict[str, Any]) -> dict[str, Any]:
    if entry["kind"] == "categorical":
        return {"name": entry["name"], "type": "cat", "categories": entry["choices"]}
    kind = {"float": "num", "int": "int"}[entry["kind"]]
    if entry.get("log"):
        kind = {"num": "pow", "int": "pow_int"}[kind]
    return {"name": entry["name"], "type": kind, "lb": entry["low"], "ub": entry["high"]}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    serve(Hebo, ("HEBO", "gpytorch", "torch"))
