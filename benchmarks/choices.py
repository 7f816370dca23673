"""Compare values of the engine's defaults on textbook functions, paired by seed.

python benchmarks/choices.py run [--seeds 20] [--only NAME ...]    resumable; adds to results/choices.jsonl
python benchmarks/choices.py table                                 writes docs/results/choices.md
"""

import argparse
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import log
from pathlib import Path
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
from rich.progress import track

from calibo.cube import Axis, Cube
from calibo.design import sobol_points
from calibo.gp.likelihood import Belief
from calibo.observations import Observations
from calibo.search import Search
from calibo.strategy import Strategy
from calibo.surrogate import FittedGaussianProcess, GaussianProcess, Priors
from problems import PROBLEMS

ROOT = Path(__file__).parent
RESULTS = ROOT / "results" / "choices.jsonl"
PAGE = ROOT.parent / "docs" / "results" / "choices.md"
BUDGET = 40


def lengthscales(center: float, std: float) -> Strategy:
    return Strategy(GaussianProcess(priors=Priors(lengthscale=Belief(log(center), std, log(1e-3), log(1e3)))))


def noise(center: float, std: float) -> Strategy:
    return Strategy(GaussianProcess(priors=Priors(noise=Belief(log(center), std, log(1e-8), 0.0))))


@dataclass(frozen=True)
class Imagining:
    """The default surrogate, with another way to imagine the outcomes of pending points."""

    how: str

    def fit(self, observations: Observations, *, rng: np.random.Generator, previous: Any = None) -> Any:
        fitted = GaussianProcess().fit(observations, rng=rng, previous=previous)
        return Imaginative(*vars(fitted).values(), self.how, observations.y, rng)


@dataclass(frozen=True, eq=False)
class Imaginative(FittedGaussianProcess):
    how: str
    y: Any
    rng: Any

    def believing(self, x: Any) -> FittedGaussianProcess:
        if self.how == "lowest":
            return self.given(x, np.full(len(x), self.y.min()))
        if self.how == "mean":
            return self.given(x, np.full(len(x), self.y.mean()))
        if self.how == "highest":
            return self.given(x, np.full(len(x), self.y.max()))
        fitted: FittedGaussianProcess = self
        for row in x:  # "draw": one joint sample from the posterior
            latent = fitted.latent(row[None])
            fitted = fitted.given(row[None], latent.at_score(self.rng.standard_normal(1)))
        return fitted


VARIANTS: dict[str, tuple[Strategy, int]] = {
    "default": (Strategy(), 1),
    "lengthscale 0.1, sd 1": (lengthscales(0.1, 1.0), 1),
    "lengthscale 0.25, sd 1": (lengthscales(0.25, 1.0), 1),
    "lengthscale 0.5, sd 1": (lengthscales(0.5, 1.0), 1),
    "lengthscale 0.15, sd 0.7": (lengthscales(0.15, 0.7), 1),
    "lengthscale 0.15, sd 1.4": (lengthscales(0.15, 1.4), 1),
    "noise 1e-4, sd 2": (noise(1e-4, 2.0), 1),
    "refit every step": (Strategy(GaussianProcess(growth=0.0)), 1),
    "search 512, 6 starts": (Strategy(search=Search(candidates=512, starts=6)), 1),
    "search 2048, 12 starts": (Strategy(search=Search(candidates=2048, starts=12, iterations=100)), 1),
    "initial 4": (Strategy(initial=4), 1),
    "initial 2 d": (Strategy(initial=-2), 1),
    "four at a time: own mean": (Strategy(), 4),
    "four at a time: lowest": (Strategy(Imagining("lowest")), 4),
    "four at a time: mean": (Strategy(Imagining("mean")), 4),
    "four at a time: highest": (Strategy(Imagining("highest")), 4),
    "four at a time: a draw": (Strategy(Imagining("draw")), 4),
}


def regrets(strategy: Strategy, batch: int, problem: str, seed: int) -> list[float]:
    function, d = PROBLEMS[problem]
    cube = Cube((Axis(),) * d)
    if strategy.initial is not None and strategy.initial < 0:  # a multiple of the dimension
        strategy = replace(strategy, initial=-strategy.initial * d)
    x, y, state = np.empty((0, d)), np.empty(0), None
    while len(y) < BUDGET:
        pending = np.empty((0, d))
        for _ in range(min(batch, BUDGET - len(y))):
            count = len(y) + len(pending)
            if count < strategy.initial_size(cube):
                point = sobol_points(d, count, 1, seed)
            else:
                n = len(y)
                data = Observations(cube, x, y, np.full(n, np.nan), np.ones(n, dtype=bool), pending)
                rng = np.random.default_rng([seed, count])
                proposal = strategy.propose(data, rng=rng, previous=state)
                point, state = proposal.x[None], proposal.state
            pending = np.concatenate([pending, point])
        x, y = np.concatenate([x, pending]), np.concatenate([y, [function(row) for row in pending]])
    return np.minimum.accumulate(y).tolist()


def cells(seeds: int, only: list[str]) -> Iterator[tuple[str, str, int]]:
    for seed in range(seeds):
        for name in VARIANTS:
            if not only or name in only:
                for problem in PROBLEMS:
                    yield name, problem, seed


def run(seeds: int, only: list[str]) -> None:
    done = {(r["variant"], r["problem"], r["seed"]) for r in read()}
    todo = [cell for cell in cells(seeds, only) if cell not in done]
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("a") as file:
        for name, problem, seed in track(todo, "runs"):
            curve = regrets(*VARIANTS[name], problem, seed)
            row = {"variant": name, "problem": problem, "seed": seed, "regret": [float(f"{r:.4g}") for r in curve]}
            file.write(json.dumps(row) + "\n")
            file.flush()


def read() -> list[dict[str, Any]]:
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []


def ratios(curves: dict[tuple[str, str, int], Any], name: str, base: str, last: bool) -> list[tuple[float, float]]:
    """Per problem: mean and standard error of the log ratio of the area, or of the final regret."""
    rows = []
    for problem in PROBLEMS:
        seeds = [s for (v, p, s) in curves if v == name and p == problem and (base, problem, s) in curves]
        logs = []
        for s in seeds:
            a, b = np.array(curves[name, problem, s]), np.array(curves[base, problem, s])
            floor = 1e-4 * b[0]  # differences below it are no use to anyone
            logs.append(np.log((a[-1] if last else a.mean()) + floor) - np.log((b[-1] if last else b.mean()) + floor))
        rows.append((float(np.mean(logs)), float(np.std(logs, ddof=1) / np.sqrt(len(logs)))))
    return rows


def table() -> None:
    curves = {(r["variant"], r["problem"], r["seed"]): r["regret"] for r in read()}
    lines = [
        "# How the engine's defaults were chosen",
        "",
        "Written by `python benchmarks/choices.py table` from `benchmarks/results/choices.jsonl`.",
        f"Each row against the default of its group: {BUDGET} evaluations, "
        f"{len({s for _, _, s in curves})} seeds with paired initial designs, nine textbook functions whose optima",
        "lie off the centre. Area: mean regret over the run; final: regret at its end (plus 1e-4 of the first, so that",
        "differences too small to matter do not count). Geometric means over functions of the ratio to the default,",
        "± the standard error of their logarithm; below 1 is better than the default. Then the area of each function.",
        "",
        "| variant | area | final | " + " | ".join(PROBLEMS) + " |",
        "|---|---|---|" + "---|" * len(PROBLEMS),
    ]
    for name, (_, batch) in VARIANTS.items():
        base = "default" if batch == 1 else "four at a time: own mean"
        if name == base or not any(v == name for v, _, _ in curves):
            continue
        areas, finals = ratios(curves, name, base, False), ratios(curves, name, base, True)
        summary = [
            f"{np.exp(np.mean([m for m, _ in rows])):.3f} ± {np.sqrt(np.sum([e**2 for _, e in rows])) / len(rows):.3f}"
            for rows in (areas, finals)
        ]
        each = [f"{np.exp(m):.2f} ± {e:.2f}" for m, e in areas]
        lines.append(f"| {name} | " + " | ".join([*summary, *each]) + " |")
    PAGE.write_text("\n".join(lines) + "\n")
    print(PAGE.read_text())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=["run", "table"])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--only", nargs="*", default=[])
    arguments = parser.parse_args()
    run(arguments.seeds, arguments.only) if arguments.command == "run" else table()
