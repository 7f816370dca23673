"""Random and Sobol points: the baselines."""

import sys
from typing import Any

import numpy as np
from protocol import Task, serve, value_at
from scipy.stats import qmc


class Sampling:
    """Points that ignore the values."""

    def __init__(self, task: Task) -> None:
        self.space, seed = list(task.space.values()), task.seed
        self.rng = np.random.default_rng([seed, 77])
        self.sobol = (
            qmc.Sobol(len(self.space), rng=np.random.default_rng([seed, 78])) if sys.argv[1] == "sobol" else None
        )

    def ask(self) -> dict[str, Any]:
        u = self.rng.random(len(self.space)) if self.sobol is None else self.sobol.random(1)[0]
        return {entry["name"]: self._value(entry, at) for entry, at in zip(self.space, u, strict=True)}

    def tell(self, params: dict[str, Any], value: float) -> None:
        pass

    def _value(self, entry: dict[str, Any], at: float) -> Any:
        if entry["kind"] == "categorical":
            return entry["choices"][min(int(at * len(entry["choices"])), len(entry["choices"]) - 1)]
        if entry["kind"] == "int" and not entry.get("log"):  # cells of equal width, the ends included
            return min(entry["low"] + int(at * (entry["high"] - entry["low"] + 1)), entry["high"])
        return value_at(entry, at)


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")  # Sobol points are used one at a time
    serve(Sampling, ("numpy", "scipy"))
