"""confopt: conformal quantile regression, with its own defaults.

It calls the objective itself. Here it runs in a thread whose objective hands out the point to evaluate and waits.
"""

import queue
import threading
import warnings
from typing import Any, Dict  # noqa: UP035  confopt inspects the annotation

from confopt.tuning import ConformalTuner
from confopt.wrapping import CategoricalRange, FloatRange, IntRange
from protocol import Task, serve

RANDOM = 15  # its default number of initial random searches, including the points given to it


class Confopt:
    """Ask and tell."""

    def __init__(self, task: Task) -> None:
        self.ranges = {name: _range(entry) for name, entry in task.space.items()}
        self.seed = task.seed
        self.known: list[tuple[dict[str, Any], float]] = []
        self.asked: queue.Queue[Any] = queue.Queue()
        self.told: queue.Queue[float] = queue.Queue()
        self.thread: threading.Thread | None = None
        self.following: Any = None

    def ask(self) -> dict[str, Any]:
        if self.thread is None:
            self.thread = threading.Thread(target=self._tune, daemon=True)
            self.thread.start()
            self.following = self.asked.get()
        answer = self.following
        if isinstance(answer, Exception):
            raise answer
        return {name: value.item() if hasattr(value, "item") else value for name, value in answer.items()}

    def tell(self, params: dict[str, Any], value: float) -> None:
        if self.thread is None:
            self.known.append((params, value))
        else:
            self.told.put(value)
            self.following = self.asked.get()  # so that model fitting is timed

    def _tune(self) -> None:
        def evaluate(configuration: Dict) -> float:  # noqa: UP006
            self.asked.put(dict(configuration))
            return self.told.get()

        try:
            tuner = ConformalTuner(evaluate, self.ranges, minimize=True, warm_starts=self.known)
            tuner.tune(max_searches=100_000, n_random_searches=RANDOM, random_state=self.seed, verbose=False)
        except Exception as error:  # raised in ask
            self.asked.put(error)


def _range(entry: dict[str, Any]) -> Any:
    if entry["kind"] == "categorical":
        return CategoricalRange(choices=entry["choices"])
    kind = IntRange if entry["kind"] == "int" else FloatRange
    return kind(min_value=entry["low"], max_value=entry["high"], log_scale=bool(entry.get("log")))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    serve(Confopt, ("confopt", "scikit-learn"))
