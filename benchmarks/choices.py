"""Compare values of the engine's defaults on textbook functions, paired by seed.

    python benchmarks/choices.py run [--seeds 20] [--jobs 2] [--only NAME ...]
    python benchmarks/choices.py table

`run` is resumable: it adds what is missing to results/choices.jsonl; rows made with other settings than today's do
not count. `table` writes docs/results/choices.md.
"""

import argparse
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from hashlib import sha256
from math import log
from multiprocessing import get_context
from pathlib import Path
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
from rich.progress import track

import calibo
from calibo.cube import Axis, Cube
from calibo.observations import Observations
from calibo.search import Search
from calibo.strategy import Strategy
from calibo.surrogate import FittedGaussianProcess, GaussianProcess, Priors
from problems import PROBLEMS

ROOT = Path(__file__).parent
RESULTS = ROOT / "results" / "choices.jsonl"
PAGE = ROOT.parent / "docs" / "results" / "choices.md"
BUDGET = 40
Cell = tuple[str, str, int]


def lengthscales(center: float, std: float) -> Strategy:
    belief = replace(Priors().lengthscale, center=log(center), std=std)
    return Strategy(GaussianProcess(priors=Priors(lengthscale=belief)))


def noise(center: float, std: float) -> Strategy:
    return Strategy(GaussianProcess(priors=Priors(noise=replace(Priors().noise, center=log(center), std=std))))


@dataclass(frozen=True)
class Imagining:
    """The default surrogate, with another way to imagine the outcomes of pending points."""

    how: str

    def fit(self, observations: Observations, *, rng: np.random.Generator, previous: Any = None) -> Any:
        fitted = GaussianProcess().fit(observations, rng=rng, previous=previous)
        return Imaginative(**vars(fitted), how=self.how, y=observations.y, rng=rng)


@dataclass(frozen=True, eq=False)
class Imaginative(FittedGaussianProcess):
    how: str = ""
    y: Any = None
    rng: np.random.Generator = field(default_factory=np.random.default_rng)

    def believing(self, x: Any) -> FittedGaussianProcess:
        if self.how == "draw":  # one joint sample from the posterior
            fitted: FittedGaussianProcess = self
            for row in x:
                fitted = fitted.given(row[None], fitted.latent(row[None]).at_score(self.rng.standard_normal(1)))
            return fitted
        imagined = {"lowest": self.y.min(), "mean": self.y.mean(), "highest": self.y.max()}[self.how]
        return self.given(x, np.full(len(x), imagined))


VARIANTS: dict[str, tuple[Callable[[int], Strategy], int]] = {
    "default": (lambda d: Strategy(), 1),
    "lengthscale 0.1, sd 1": (lambda d: lengthscales(0.1, 1.0), 1),
    "lengthscale 0.25, sd 1": (lambda d: lengthscales(0.25, 1.0), 1),
    "lengthscale 0.5, sd 1": (lambda d: lengthscales(0.5, 1.0), 1),
    "lengthscale 0.15, sd 0.7": (lambda d: lengthscales(0.15, 0.7), 1),
    "lengthscale 0.15, sd 1.4": (lambda d: lengthscales(0.15, 1.4), 1),
    "noise 1e-4, sd 2": (lambda d: noise(1e-4, 2.0), 1),
    "refit every step": (lambda d: Strategy(GaussianProcess(growth=0.0)), 1),
    "search 512, 6 starts": (lambda d: Strategy(search=Search(candidates=512, starts=6)), 1),
    "search 2048, 12 starts": (lambda d: Strategy(search=Search(candidates=2048, starts=12, iterations=100)), 1),
    "initial 4": (lambda d: Strategy(initial=4), 1),
    "initial 2 d": (lambda d: Strategy(initial=2 * d), 1),
    "four at a time: own mean": (lambda d: Strategy(), 4),
    "four at a time: lowest": (lambda d: Strategy(Imagining("lowest")), 4),
    "four at a time: mean": (lambda d: Strategy(Imagining("mean")), 4),
    "four at a time: highest": (lambda d: Strategy(Imagining("highest")), 4),
    "four at a time: a draw": (lambda d: Strategy(Imagining("draw")), 4),
}


def measure(cell: Cell) -> dict[str, Any]:
    """One run: the lowest regret after each evaluation."""
    name, problem, seed = cell
    make, batch = VARIANTS[name]
    function, d = PROBLEMS[problem]
    strategy, cube, state = make(d), Cube((Axis(),) * d), None
    x, y = np.empty((0, d)), np.empty(0)
    while len(y) < BUDGET:
        pending = np.empty((0, d))
        for _ in range(min(batch, BUDGET - len(y))):
            data = Observations(cube, x, y, np.full(len(y), np.nan), np.ones(len(y), dtype=bool), pending)
            proposal = strategy.propose(data, seed=seed, previous=state)
            state = proposal.state
            pending = np.concatenate([pending, proposal.x[None]])
        x, y = np.concatenate([x, pending]), np.concatenate([y, [function(row) for row in pending]])
    regret = [float(f"{value:.4g}") for value in np.minimum.accumulate(y)]
    key = {"variant": name, "problem": problem, "seed": seed}
    return {**key, "settings": settings(name, d), "calibo": calibo.__version__, "regret": regret}


def settings(name: str, d: int) -> str:
    """A digest of everything that decides the run but the code itself."""
    make, batch = VARIANTS[name]
    return sha256(f"{batch} at a time, {BUDGET} evaluations, {make(d)!r}".encode()).hexdigest()[:12]


def run(seeds: int, jobs: int, only: list[str]) -> None:
    done = read()
    names = only or list(VARIANTS)
    cells = [(n, p, s) for s in range(seeds) for n in names for p in PROBLEMS if (n, p, s) not in done]
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("a") as file, get_context("spawn").Pool(jobs) as pool:
        for row in track(pool.imap(measure, cells), "runs", total=len(cells)):
            file.write(json.dumps(row) + "\n")
            file.flush()


def read() -> dict[Cell, list[float]]:
    """The curves that were made with today's settings."""
    lines = RESULTS.read_text().splitlines() if RESULTS.exists() else []
    rows = [row for row in map(json.loads, lines) if row["variant"] in VARIANTS]
    today = [row for row in rows if row["settings"] == settings(row["variant"], PROBLEMS[row["problem"]][1])]
    return {(row["variant"], row["problem"], row["seed"]): row["regret"] for row in today}


def ratios(curves: dict[Cell, list[float]], name: str, base: str, last: bool) -> list[tuple[float, float]]:
    """Per problem: mean and standard error of the log ratio of the area, or of the final regret."""
    rows = []
    for problem in PROBLEMS:
        logs = []
        for v, p, s in curves:
            if (v, p) == (name, problem) and (base, problem, s) in curves:
                a, b = np.array(curves[name, problem, s]), np.array(curves[base, problem, s])
                floor = 1e-4 * b[0]  # differences below it are no use to anyone
                pair = (a[-1], b[-1]) if last else (a.mean(), b.mean())
                logs.append(np.log(pair[0] + floor) - np.log(pair[1] + floor))
        rows.append((float(np.mean(logs)), float(np.std(logs, ddof=1) / np.sqrt(len(logs)))))
    return rows


def table() -> None:
    curves = read()
    seeds = len({s for _, _, s in curves})
    lines = [
        "# How the engine's defaults were chosen",
        "",
        "Written by `python benchmarks/choices.py table` from `benchmarks/results/choices.jsonl`, which `python",
        "benchmarks/choices.py run` makes.",
        f"Nine textbook functions whose optima lie off the centre, {BUDGET} evaluations, {seeds} seeds, initial designs",
        "paired. Each row is compared with the default of its group: one at a time, or four at a time with the model's",
        "own mean for pending points. Area: mean regret over the run; final: regret at its end (both plus 1e-4 of the first",
        "regret, so that differences too small to matter do not count). Ratios are geometric means, ± the standard error of",
        "the logarithm; below 1 the variant is better than the default. The last columns are areas, function by function.",
        "",
        "The defaults were chosen on these very functions and seeds, in several rounds of which this is the last: the table",
        "shows that they lie on a plateau, not how they do on problems they have not seen.",
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["run", "table"])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", nargs="*", default=[])
    arguments = parser.parse_args()
    run(arguments.seeds, arguments.jobs, arguments.only) if arguments.command == "run" else table()
