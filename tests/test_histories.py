"""Random spaces and random histories: nothing raises, everything asked lies in the space, a journal tells it all."""

import warnings

import numpy as np
import pytest

from calibo import CaliboWarning, Categorical, Float, Int, Optimizer, Strategy
from calibo.search import Search

PARAMETERS = [
    Float(-3, 7),
    Float(1e-9, 1e3, log=True),
    Float(0, 1, step=0.1),
    Float(2, 2),
    Int(-5, 5),
    Int(1, 4096, log=True),
    Int(0, 10**12),
    Int(0, 30, step=10),
    Categorical(["a", "b", None]),
    Categorical([True]),
    Categorical([f"choice {i}" for i in range(40)]),
]
VALUES = [0.0, 1.0, -1.0, 1e-300, 1e300, -1e300, np.nan, np.inf, 5.0]
QUICK = Strategy(search=Search(candidates=64, local=5, starts=2, iterations=10))


@pytest.mark.parametrize("seed", range(20))
def test_any_history_can_be_lived_and_told_again(seed, tmp_path):
    rng = np.random.default_rng(seed)
    chosen = rng.choice(len(PARAMETERS), size=int(rng.integers(1, 5)), replace=False)
    space = {f'Größe "{i}"; \'\n': PARAMETERS[i] for i in chosen}
    optimizer = Optimizer(space, direction=str(rng.choice(["minimize", "maximize"])), strategy=QUICK, seed=seed)
    optimizer.save(tmp_path / "run.jsonl")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CaliboWarning)  # finite spaces are exhausted, duplicates have no noise
        for _ in range(25):
            act(optimizer, rng)
        again = Optimizer.load(tmp_path / "run.jsonl", strategy=QUICK)
        assert repr(again.trials) == repr(optimizer.trials)
        assert again.pending == optimizer.pending
        assert again.ask(2) == optimizer.ask(2)
        if any(trial.feasible for trial in optimizer.trials):
            recommended = optimizer.recommend()
            assert np.all(np.isfinite([recommended.median, *recommended.interval]))


def act(optimizer: Optimizer, rng: np.random.Generator) -> None:
    roll = rng.random()
    if roll < 0.1 and optimizer.pending:
        optimizer.cancel(optimizer.pending[0])
        return
    if roll < 0.2:
        optimizer.enqueue(some(optimizer, rng))
    params = optimizer.ask(fixed=some(optimizer, rng) if roll > 0.9 else None)
    assert optimizer.space.plain(params) == params
    if roll < 0.3:
        return
    if roll < 0.4:
        optimizer.tell_failed(params)
        return
    value = float(rng.choice(VALUES)) if rng.random() < 0.4 else float(rng.normal())
    noise = float(rng.choice([0.0, 0.1, 1e5])) if rng.random() < 0.3 else None
    optimizer.tell(params, value, noise=noise, constraints=(rng.normal() - 1.0,) if rng.random() < 0.3 else ())


def some(optimizer: Optimizer, rng: np.random.Generator) -> dict:
    point = optimizer.space.from_cube(rng.random(len(optimizer.space)))
    return {name: value for name, value in point.items() if rng.random() < 0.5}
