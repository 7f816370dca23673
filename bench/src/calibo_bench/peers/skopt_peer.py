"""scikit-optimize: its Gaussian process with its own defaults."""

import warnings
from typing import Any

from protocol import Task, serve
from skopt import Optimizer
from skopt.space import Categorical, Dimension, Integer, Real


class Skopt:
    """Ask and tell."""

    def __init__(self, task: Task) -> None:
        self.names = list(task.space)
        dimensions = [_dimension(entry) for entry in task.space.values()]
        self.optimizer = Optimizer(dimensions, base_estimator="GP", n_initial_points=1, random_state=task.seed)

    def ask(self) -> dict[str, Any]:
        values = self.optimizer.ask()
        plain = [value.item() if hasattr(value, "item") else value for value in values]
        return dict(zip(self.names, plain, strict=True))

    def tell(self, params: dict[str, Any], value: float) -> None:
        self.optimizer.tell([params[name] for name in self.names], value)


def _dimension(entry: dict[str, Any]) -> Dimension:
    prior = "log-uniform" if entry.get("log") else "uniform"
    if entry["kind"] == "categorical":
        return Categorical(entry["choices"])
    return (Integer if entry["kind"] == "int" else Real)(entry["low"], entry["high"], prior=prior)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    serve(Skopt, ("scikit-optimize", "scikit-learn"))
