"""Cost of calibration, model choice, warping and sampled hyperparameters, as ratios in one run."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibo import Float, Optimizer, Strategy
from calibo.calibration import FittedModel
from calibo.gp.process import Process
from calibo.models import FittedGaussianProcess, GaussianProcess, forget_fits
from calibo.observations import Observations
from calibo.parts import register
from calibo.presets import get_strategy
from calibo.research import RefittedLeaveOneOut
from calibo_bench.experiments.experiment import Experiment
from calibo_bench.experiments.speed import D, hartmann, random_outcomes
from calibo_bench.experiments.timing import Timing, times_of
from calibo_bench.markdown import table
from calibo_bench.problems.synthetic import plain
from calibo_bench.targets import Archive, Report

__all__ = ["CALIBRATION_COST", "JOBS", "WARPING_COST"]

SIZES, REPEATS, FEW = (30, 100, 200), 151, 11
METHODS = ("plain", "plain+warped", "plain+sampled", "plain+warped+sampled")
N, STEPS, RUNS = 50, 10, 7


@register("spread")
@dataclass(frozen=True)
class Spread(GaussianProcess):
    """A mixture of processes around the MAP hyperparameters: as many components as sampling gives, at no cost."""

    rows: int = 8

    def fit(self, observations: Observations, *, rng: np.random.Generator, previous: Any = None) -> Any:
        one = super().fit(observations, rng=rng, previous=previous)
        process = one.processes[0]
        moves = np.random.default_rng(0).normal(0.0, 0.3, (self.rows, len(process.theta)))
        noise = np.full(len(process.y), np.nan)
        processes = tuple(
            Process.from_data(process.kernel, process.theta + move, process.x, process.y, noise) for move in moves
        )
        weights = np.full(self.rows, 1.0 / self.rows)
        return FittedGaussianProcess(processes, weights, one.center, one.spread, one.state)


def _scored(n: int) -> Observations:
    """Outcomes with recorded scores: biased and over-confident, so that the gate opens."""
    return replace(random_outcomes(n, n), scores=1.3 * np.random.default_rng(n).standard_normal(n) + 0.5)


def calibrated_step(n: int, repeats: int) -> dict[str, list[list[float]]]:
    """Seconds per step with and without calibration, alternating: of one process, and of a mixture of eight."""
    single = get_strategy("default+single")
    mixture = replace(single, surrogate=Spread())
    return {"one row": _in_turns(single, n, repeats), "mixture of 8 rows": _in_turns(mixture, n, repeats)}


def _in_turns(strategy: Strategy, n: int, repeats: int) -> list[list[float]]:
    """(repeats, 2)"""
    observations = _scored(n)
    pair = (strategy.with_recalibration("auto"), strategy.with_recalibration("never"))
    fits = strategy.propose(observations, seed=0).state  # no step refits: the relative cost is highest there
    seconds = np.empty((repeats + 1, 2))
    for i in range(repeats + 1):
        scores = np.append(np.asarray(observations.scores)[:-1], 0.01 * i)
        observations = replace(observations, scores=scores)  # a new outcome, which is not cached
        for k in (0, 1) if i % 2 else (1, 0):
            start = time.perf_counter()
            pair[k].propose(observations, seed=i, previous=fits)
            seconds[i, k] = time.perf_counter() - start
    return [[float(both[0]), float(both[1])] for both in seconds[1:]]


def chosen_step(n: int, _: int) -> dict[str, float]:
    """Seconds per step over ten consecutive steps, of the default and with one model."""
    observations, spent = random_outcomes(n, n), {}
    for label in ("default", "default+single"):
        optimizer = Optimizer({f"x{i}": Float(0, 1) for i in range(D)}, strategy=label, seed=0)
        for x, y in zip(observations.x, observations.y, strict=True):
            optimizer.tell({f"x{i}": v for i, v in enumerate(x)}, y)
        for turn in range(11):
            if turn == 1:
                start = time.perf_counter()
            params = optimizer.ask()
            optimizer.tell(params, hartmann(np.array(list(params.values()), dtype=float)))
        spent[label] = 0.1 * (time.perf_counter() - start)
    return spent


def refits(n: int, repeats: int) -> dict[str, list[float]]:
    """Seconds of refitted leave-one-out, and of one fit with all its restarts."""
    observations, surrogate = random_outcomes(n, n), GaussianProcess()
    rng = np.random.default_rng(0)
    fitted = surrogate.fit(observations, rng=rng)
    spent: dict[str, list[float]] = {"refitted": [], "one": []}
    for _ in range(repeats):
        forget_fits()
        start = time.perf_counter()
        RefittedLeaveOneOut().scores(FittedModel(surrogate, fitted, observations, rng))
        middle = time.perf_counter()
        surrogate.fit(observations, rng=rng)
        spent["refitted"].append(middle - start)
        spent["one"].append(time.perf_counter() - middle)
    return spent


def warped_steps(_: int, seed: int) -> dict[str, list[float]]:
    """Seconds of ten consecutive suggestions of each method; the evaluated points are those of the plain strategy."""
    return {method: _warped(method, seed) for method in METHODS}


def _warped(strategy: str, seed: int) -> list[float]:
    instance = plain("hartmann6").at(seed)
    optimizer, guide = (Optimizer(instance.space, strategy=name, seed=seed) for name in (strategy, "plain"))
    taken = []
    for i in range(N + STEPS):
        params = guide.ask()
        value = instance.value(params)
        if i >= N - 1:
            forget_fits()  # do not reuse fits of another method
            begun = time.perf_counter()
            suggested = optimizer.ask()
            taken.append(time.perf_counter() - begun)
            optimizer.cancel(suggested)  # so that nothing is pending
        guide.tell(params, value)
        optimizer.tell(params, value)
    return taken[1:]  # the first one includes all earlier fits


JOBS: dict[str, Callable[[int, int], Any]] = {
    job.__name__: job for job in (calibrated_step, chosen_step, refits, warped_steps)
}


def _calibration_measurements(_: int, quick: bool) -> list[Timing]:
    sizes, repeats = (SIZES[:1], FEW) if quick else (SIZES, REPEATS)
    steps = [Timing("calibrated_step", n, repeats) for n in sizes]
    return [*steps, *(Timing("chosen_step", n) for n in sizes), Timing("refits", 50, 5)]


def _calibration_report(archive: Archive) -> Report:
    rows, repeats = list(archive.rows), FEW if archive.quick else REPEATS
    about = (
        "One step on the same data with and without calibration, alternating, in one run, one BLAS thread, d = "
        f"{D}, medians of {repeats}. These steps do not refit hyperparameters, so the relative cost is highest. "
        "Forecasts were recorded with the trials, as always; the gate is open."
    )
    lines = []
    for label, target in (("one row", 1.10), ("mixture of 8 rows", 1.5)):
        for n in SIZES:
            found = times_of(rows, Timing("calibrated_step", n, repeats))
            if found:
                seconds = np.array(found[label])
                with_map, without = 1e3 * np.median(seconds, axis=0)
                ratio = float(np.median(seconds[:, 0] / seconds[:, 1]))
                lines.append([label, str(n), f"{with_map:.1f}", f"{without:.1f}", f"{ratio:.2f}", f"{target:.2f}"])
    parts = [about, table(["surrogate", "n", "calibrated, ms", "uncalibrated, ms", "ratio", "target"], lines)]
    refitted = times_of(rows, Timing("refits", 50, 5))
    if refitted:
        many, one = (1e3 * float(np.median(refitted[part])) for part in ("refitted", "one"))
        parts.append(
            "Refitted leave-one-out at n = 50 versus one fit from scratch with all its restarts: "
            f"{many:.0f} ms and {one:.0f} ms, ratio {many / one:.1f} (target 15)."
        )
    chosen = {n: found for n in SIZES if (found := times_of(rows, Timing("chosen_step", n)))}
    words = [
        f"n = {n}: {1e3 * found['default']:.0f} and {1e3 * found['default+single']:.0f}, ratio "
        f"{found['default'] / found['default+single']:.1f}"
        for n, found in chosen.items()
    ]
    parts.append(
        "The default selects among three models at every step. Ten consecutive steps from n on, refits included, of "
        f"the default and of one model with the same calibration, milliseconds per step: {'; '.join(words)}."
    )
    return Report("\n\n".join(parts))


def _warping_measurements(seeds: int, quick: bool) -> list[Timing]:
    return [Timing("warped_steps", N, seed) for seed in range(1 if quick else seeds)]


def _warping_report(archive: Archive) -> Report:
    found = [times_of(list(archive.rows), Timing("warped_steps", N, seed)) for seed in range(archive.seeds)]
    runs = [times for times in found if times]
    about = (
        f"{STEPS} consecutive suggestions from n = {N} on, d = 6, refits included, the same outcomes for all methods, "
        f"alternating, one BLAS thread; medians of {len(runs)} runs. Ratios are medians of the ratios within a run. "
        "Sampled: ten samples of all hyperparameters. Target: 12 for warped and sampled."
    )
    lines = []
    for name in METHODS:
        cells = []
        for part in (np.mean, np.max):
            ours, reference = (np.array([1e3 * part(run[method]) for run in runs]) for method in (name, "plain"))
            cells += [f"{np.median(ours):.0f}", f"{np.median(ours / reference):.1f}"] if runs else ["", ""]
        lines.append([name, *cells])
    head = ["method", "ms per suggestion", "ratio", "ms, slowest of ten, with a refit", "ratio"]
    return Report(f"{about}\n\n{table(head, lines)}")


CALIBRATION_COST = Experiment(
    "calibration-cost", "Cost of calibration", _calibration_measurements, _calibration_report, seeds=1, alone=True
)
WARPING_COST = Experiment(
    "warping-cost", "Cost of warping and sampling", _warping_measurements, _warping_report, seeds=RUNS, alone=True
)
