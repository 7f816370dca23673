"""The package bayesian-optimization, with its own defaults."""

import warnings
from typing import Any

from bayes_opt import BayesianOptimization
from protocol import Task, position, serve, value_at


class Maximizer:
    """It maximises over real numbers in a box."""

    def __init__(self, task: Task) -> None:
        self.space = task.space
        box = dict.fromkeys(self.space, (0.0, 1.0))
        self.optimizer = BayesianOptimization(None, box, random_state=task.seed, verbose=0, allow_duplicate_points=True)

    def ask(self) -> dict[str, Any]:
        return {name: value_at(self.space[name], u) for name, u in self.optimizer.suggest().items()}

    def tell(self, params: dict[str, Any], value: float) -> None:
        place = {name: position(self.space[name], value) for name, value in params.items()}
        self.optimizer.register(place, -value)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    serve(Maximizer, ("bayesian-optimization", "scikit-learn"))
