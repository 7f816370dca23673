"""The first hour with calibo: a tuning run with a typo, an afternoon in the lab, and the questions after both."""

import tempfile
from pathlib import Path

import calibo

folder = Path(tempfile.mkdtemp())
storage = f"sqlite:///{folder}/first.db"
space = {"rate": (1e-4, 1.0), "depth": (1, 8), "kind": ["tree", "forest"]}  # a Float, an Int, a Categorical


def loss(rate, depth, kind):
    if kind == "forest" and depth > 6:
        raise MemoryError("too deep")  # a failure that depends on the point: the run goes on and avoids it
    return (rate - 0.3) ** 2 + abs(depth - 5) / 10 + (kind == "tree") / 5


def with_a_typo(rate, depth, kind):
    return loss(rate, depth + deeper, kind)  # noqa: F821


# A typo stops the run after three trials, which are ignored once it is fixed.
try:
    calibo.minimize(with_a_typo, space, 25, seed=0, storage=storage, study_name="model", progress=False)
except calibo.ObjectiveError as error:
    print(f"Stopped:\n{error.frames}\n")
result = calibo.minimize(loss, space, 25, seed=0, storage=storage, study_name="model", n_jobs=2)
print(result, result.recommendation, sep="\n")
print(result.to_dataframe().tail(3), "\n")

# The forecast of any point, and whether such forecasts held. Both take a study, a result or an optimizer.
print(calibo.forecast(result, {"rate": 0.2, "depth": 4, "kind": "forest"}))
print(calibo.audit(result), "\n")

# Mistakes can be put right: a wrong value, a broken trial, bounds that were too narrow.
calibo.amend(result.study, 7, 0.9)
calibo.drop(result.study, 8, 9)
wider = {**space, "rate": (1e-4, 2.0), "depth": (1, 12)}
calibo.widen(result.study, wider)
result = calibo.minimize(loss, wider, 28, seed=0, storage=storage, study_name="model", progress=False)
print("After corrections:", result, "\n")

# In the lab: values that a person can set, in any order, and a record that survives a crash.
paint = calibo.Optimizer({"temperature": calibo.Float(20, 90), "minutes": calibo.Float(1, 60, step=0.5)}, seed=0)
paint.save(folder / "paint.jsonl")
for _ in range(10):
    params = paint.ask(digits="auto")
    paint.tell(params, (params["temperature"] - 61.4) ** 2 / 100 + abs(params["minutes"] - 20) / 10)
again = calibo.Optimizer.load(folder / "paint.jsonl")
print("Next:", again.ask(digits=3), again.recommend(), sep="\n")

# A finite space ends when everything has been tried.
calibo.minimize(lambda a, b: a + len(b), {"a": (0, 2), "b": ["x", "yy"]}, 50, seed=0, progress=False)
result.plot().write_html(folder / "history.html")
print(f"The trace is in {folder}/history.html; `calibo show model --storage {storage}` prints it.")
