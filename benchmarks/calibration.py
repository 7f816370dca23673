"""What calibration costs, as ratios in one run, and what each recalibrator makes of streams with a known fault.

python benchmarks/calibration.py cost       writes docs/results/calibration-cost.md
python benchmarks/calibration.py streams    writes docs/results/recalibrators.md
"""

import argparse
import os
import time
from dataclasses import dataclass, replace
from pathlib import Path

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
from scipy.special import ndtr

from calibo import Float, Optimizer
from calibo.calibration import (
    EmpiricalRecalibrator,
    Fit,
    Gate,
    GPRecalibrator,
    LeaderRecalibrator,
    MLPRecalibrator,
    NoRecalibration,
    OnlineRecalibrator,
    RefittedLeaveOneOut,
    ShiftScaleRecalibrator,
    SigmaScaleRecalibrator,
)
from calibo.cube import Axis, Cube
from calibo.gp.process import Process
from calibo.observations import Observations
from calibo.presets import named
from calibo.scoring import calibration_error
from calibo.strategy import Strategy
from calibo.surrogate import FittedGaussianProcess, GaussianProcess

RESULTS = Path(__file__).parent.parent / "docs" / "results"
D = 6


# Cost


@dataclass(frozen=True)
class Sampled(GaussianProcess):
    """A mixture of processes around the best hyper-parameters: what sampling them gives."""

    rows: int = 8

    def fit(self, observations, *, rng, previous=None):
        one = super().fit(observations, rng=rng, previous=previous)
        process = one.processes[0]
        moves = np.random.default_rng(0).normal(0.0, 0.3, (self.rows, len(process.theta)))
        noise = np.full(len(process.y), np.nan)
        processes = tuple(
            Process.condition(process.kernel, process.theta + move, process.x, process.y, noise) for move in moves
        )
        weights = np.full(self.rows, 1.0 / self.rows)
        return FittedGaussianProcess(processes, weights, one.center, one.spread, one.state)


def known(n: int) -> Observations:
    """Outcomes of Hartmann6 with scores that were recorded: too optimistic and too sure, so that the gate opens."""
    from problems import PROBLEMS

    rng = np.random.default_rng(n)
    x = rng.random((n, D))
    y = np.array([PROBLEMS["hartmann6"][0](row) for row in x])
    scores = 1.3 * rng.standard_normal(n) + 0.5
    everything = np.ones(n, dtype=bool)
    return Observations(Cube((Axis(),) * D), x, y, np.full(n, np.nan), everything, np.empty((0, D)), None, scores)


def step_ratio(strategy: Strategy, n: int, repeats: int) -> tuple[float, float, float]:
    """Milliseconds of a step with and without calibration, taken in turns, and the median of the ratios of neighbours."""
    observations = known(n)
    pair = (strategy.recalibrating("auto"), strategy.recalibrating("never"))
    fits = strategy.propose(observations, seed=0).state  # so that no step refits: calibration weighs most in those
    seconds = np.empty((repeats, 2))
    for i in range(repeats + 1):
        scores = observations.scores.copy()
        scores[-1] = 0.01 * i  # the outcome just told: what was cached before does not know it
        observations = replace(observations, scores=scores)
        for k in (0, 1) if i % 2 else (1, 0):
            start = time.perf_counter()
            pair[k].propose(observations, seed=i, previous=fits)
            if i:
                seconds[i - 1, k] = time.perf_counter() - start
    calibrated, plain = 1000 * np.median(seconds, axis=0)
    return calibrated, plain, float(np.median(seconds[:, 0] / seconds[:, 1]))


def choice_ratio(n: int) -> tuple[float, float, float]:
    """Milliseconds a step of ten in a row, by the default and with one model, and their ratio."""
    from problems import PROBLEMS

    observations = replace(known(n), scores=None)
    spent = []
    for strategy in (named(None), named("default+single")):
        optimizer = Optimizer({f"x{i}": Float(0, 1) for i in range(D)}, strategy=strategy, seed=0)
        for x, y in zip(observations.x, observations.y, strict=True):
            optimizer.tell({f"x{i}": v for i, v in enumerate(x)}, y)
        optimizer.tell(params := optimizer.ask(), PROBLEMS["hartmann6"][0](np.array(list(params.values()))))
        start = time.perf_counter()
        for _ in range(10):
            optimizer.tell(params := optimizer.ask(), PROBLEMS["hartmann6"][0](np.array(list(params.values()))))
        spent.append(100 * (time.perf_counter() - start))
    return spent[0], spent[1], spent[0] / spent[1]


def refit_ratio(n: int, repeats: int) -> tuple[float, float, float]:
    """Milliseconds of refitted leave-one-out and of one fit, and their ratio."""
    observations, surrogate = known(n), GaussianProcess()
    rng = np.random.default_rng(0)
    fitted = surrogate.fit(observations, rng=rng)
    spent = np.empty((repeats, 2))
    for i in range(repeats):
        start = time.perf_counter()
        RefittedLeaveOneOut().scores(Fit(surrogate, fitted, observations, rng))
        middle = time.perf_counter()
        surrogate.fit(observations, rng=rng)
        spent[i] = middle - start, time.perf_counter() - middle
    all_of_them, one = 1000 * np.median(spent, axis=0)
    return all_of_them, one, all_of_them / one


def cost(repeats: int) -> str:
    lines = [
        "# What calibration costs",
        "",
        "`python benchmarks/calibration.py cost`: one step on the same data with and without calibration, in turns, in one run, "
        f"one BLAS thread, d = {D}, medians of {repeats}. No hyper-parameters are refitted in these steps: there calibration "
        "weighs most. Forecasts were recorded with the trials, as they always are; the gate is open.",
        "",
        "| surrogate | n | calibrated, ms | not, ms | ratio | target |",
        "|---|---|---|---|---|---|",
    ]
    single = named("default+single")
    mixture = replace(single, surrogate=Sampled())
    for name, strategy, target in (("one row", single, 1.10), ("mixture of 8 rows", mixture, 1.5)):
        for n in (30, 100, 200):
            calibrated, plain, ratio = step_ratio(strategy, n, repeats)
            lines.append(f"| {name} | {n} | {calibrated:.1f} | {plain:.1f} | {ratio:.2f} | {target:.2f} |")
    choices = [(n, *choice_ratio(n)) for n in (30, 100, 200)]
    refits, one, ratio = refit_ratio(50, 5)
    lines += [
        "",
        "Leave-one-out with refits at n = 50, against one fit from scratch with all its starts: "
        f"{refits:.0f} ms and {one:.0f} ms, ratio {ratio:.1f} (target 15).",
        "",
        "The default chooses among three models at every step. Ten steps in a row from n on, refits included, by the default and by one "
        "model with the same calibration, milliseconds a step: "
        + "; ".join(f"n = {n}: {three:.0f} and {single:.0f}, ratio {ratio:.1f}" for n, three, single, ratio in choices)
        + ".",
    ]
    return "\n".join(lines) + "\n"


# Streams

FAULTS = {
    "none": lambda rng, t: rng.standard_normal(t.shape),
    "over-confident": lambda rng, t: 2.0 * rng.standard_normal(t.shape),
    "under-confident": lambda rng, t: 0.5 * rng.standard_normal(t.shape),
    "biased": lambda rng, t: 0.8 + rng.standard_normal(t.shape),
    "skewed": lambda rng, t: 1.5 * (rng.chisquare(3, t.shape) - 3.0) / np.sqrt(6.0),
    "drifting": lambda rng, t: 1.5 * (1.0 - t) + rng.standard_normal(t.shape),
}
RECALIBRATORS = {
    "identity": NoRecalibration(),
    "EmpiricalRecalibrator": EmpiricalRecalibrator(),
    "GPRecalibrator": GPRecalibrator(),
    "MLPRecalibrator": MLPRecalibrator(),
    "SigmaScaleRecalibrator": SigmaScaleRecalibrator(),
    "ShiftScaleRecalibrator": ShiftScaleRecalibrator(),
    "OnlineRecalibrator": OnlineRecalibrator(),
    "LeaderRecalibrator": LeaderRecalibrator(),
    "Gate(ShiftScaleRecalibrator)": Gate(),
}


def streams(seeds: int) -> str:
    lines, widest = [], 0.0
    for n in (20, 50, 200):
        lines += ["", f"## After {n} outcomes", "", "| | " + " | ".join(FAULTS) + " | mean |"]
        lines.append("|---" * (len(FAULTS) + 2) + "|")
        for name, recalibrator in RECALIBRATORS.items():
            errors = np.array(
                [[after(recalibrator, fault, n, seed) for fault in FAULTS.values()] for seed in range(seeds)]
            )
            widest = max(widest, float((errors.std(axis=0, ddof=1) / np.sqrt(seeds)).max()))
            means = errors.mean(axis=0)
            lines.append(f"| {name} | " + " | ".join(f"{error:.3f}" for error in [*means, means.mean()]) + " |")
            print(lines[-1], flush=True)
    head = [
        "# Recalibrators on streams with a known fault",
        "",
        f"`python benchmarks/calibration.py streams`: each recalibrator is fitted to n scores of a stream, and its map applied to the "
        f"4,000 that follow; calibration error (root mean square over 19 levels) of those, mean of {seeds} streams; standard errors are "
        f"at most {widest:.3f}. Over-confident: scores of standard deviation 2; under-confident: 1/2; biased: by 0.8; skewed: chi-squared "
        "with 3 degrees, of standard deviation 1.5; drifting: the bias falls from 1.5 to 0 over the n scores and then stays 0. "
        "Chance alone leaves about 0.01.",
    ]
    return "\n".join([*head, *lines]) + "\n"


def after(recalibrator, fault, n: int, seed: int) -> float:
    """Calibration error of what follows n scores."""
    rng = np.random.default_rng([seed, n])
    past, future = fault(rng, np.linspace(0.0, 1.0, n)), fault(rng, np.ones(4000))
    return calibration_error(ndtr(recalibrator.fit(past)(future)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["cost", "streams"])
    parser.add_argument("--repeats", type=int, default=0, help="fewer for a first look; nothing is written then")
    arguments = parser.parse_args()
    page, text = {
        "cost": lambda: ("calibration-cost.md", cost(arguments.repeats or 151)),
        "streams": lambda: ("recalibrators.md", streams(arguments.repeats or 20)),
    }[arguments.what]()
    print(text)
    if not arguments.repeats:
        (RESULTS / page).write_text(text)
