"""Threads: the same study with one and with four threads, for an objective that waits."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import optuna
from optuna.samplers import BaseSampler

from calibo import CalibratedSampler
from calibo_bench.experiments.experiment import Experiment
from calibo_bench.experiments.timing import Timing, times_of
from calibo_bench.markdown import table
from calibo_bench.targets import Archive, Report

__all__ = ["JOBS", "PARALLEL"]

SAMPLERS: dict[str, Callable[[int], BaseSampler]] = {
    "calibo": lambda seed: CalibratedSampler(seed=seed),
    "TPE": lambda seed: optuna.samplers.TPESampler(seed=seed),
    "GPSampler": lambda seed: optuna.samplers.GPSampler(seed=seed),
}
TRIALS, THREADS = 30, 4
TARGETS = {200: 0.5, 50: 0.8}  # milliseconds of the objective: seconds with four threads over those with one
WORST = 1.1


def parallel(milliseconds: int, seed: int) -> dict[str, list[float]]:
    """Seconds of a study with one thread and with four, by sampler."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return {
        name: [_seconds(make(seed), milliseconds, jobs) for jobs in (1, THREADS)] for name, make in SAMPLERS.items()
    }


def _seconds(sampler: BaseSampler, milliseconds: int, jobs: int) -> float:
    def objective(trial: optuna.Trial) -> float:
        value = sum((trial.suggest_float(f"x{i}", -5.0, 5.0) - i) ** 2 for i in range(4))
        time.sleep(milliseconds / 1e3)
        return value

    study = optuna.create_study(sampler=sampler)
    start = time.perf_counter()
    study.optimize(objective, n_trials=TRIALS, n_jobs=jobs)
    return time.perf_counter() - start


JOBS: dict[str, Callable[[int, int], Any]] = {"parallel": parallel}


def _timing(milliseconds: int, seed: int) -> Timing:
    return Timing("parallel", milliseconds, seed, threads=None)


def _measurements(seeds: int, quick: bool) -> list[Timing]:
    return [_timing(ms, seed) for seed in range(1 if quick else seeds) for ms in TARGETS]


def _report(archive: Archive) -> Report:
    about = (
        f"{TRIALS} trials in four dimensions of an objective that sleeps, with n_jobs=1 and n_jobs={THREADS}. Each "
        "round runs in a process of its own with the default number of BLAS threads. Seconds are medians over rounds; "
        f"ratios are those of n_jobs={THREADS} to n_jobs=1 in the same round. No ratio of calibo may exceed {WORST}."
    )
    lines = []
    for ms, target in TARGETS.items():
        rounds = [found for seed in range(archive.seeds) if (found := times_of(list(archive.rows), _timing(ms, seed)))]
        for name in SAMPLERS if rounds else ():
            one, four = np.array([found[name] for found in rounds]).T
            ratios = four / one
            wanted = f"{target:.1f}" if name == "calibo" else ""
            seconds = [f"{np.median(one):.2f}", f"{np.median(four):.2f}"]
            lines.append([f"{ms} ms", name, *seconds, f"{np.median(ratios):.2f}", f"{ratios.max():.2f}", wanted])
    head = ["objective", "sampler", "n_jobs=1, s", f"n_jobs={THREADS}, s", "ratio", "worst ratio", "target"]
    return Report(f"{about}\n\n{table(head, lines)}")


PARALLEL = Experiment("threads", "Threads", _measurements, _report, seeds=10, alone=True)
