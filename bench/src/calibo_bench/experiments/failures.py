"""Failures: half a space, a ball at the optimum, or one evaluation in five fails."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import gamma, pi

import numpy as np
from scipy.optimize import NonlinearConstraint, minimize
from scipy.stats import qmc

from calibo import Float, Optimizer
from calibo_bench.clients import source_digest
from calibo_bench.experiments.experiment import Experiment
from calibo_bench.markdown import table
from calibo_bench.runner import Key, Row, blank_row
from calibo_bench.targets import Archive, Report

__all__ = ["FAILURES"]

BUDGET, QUICK, LAST = 40, 10, 15
RATE, BALL = 0.2, 0.03  # of failures by chance; volume of the ball
FLOOR = 1e-3  # of the range of the function over the cube
ABOUT = f"""
{BUDGET} evaluations. "half": the half of the cube that holds the optimum fails. "ball": a ball of {BALL:.0%} of the
volume around the optimum fails. "random": {RATE:.0%} of the evaluations fail, wherever they are. Each is told as a
failure, and the first two also as a measured constraint. For the third the comparison is a run in which failed
evaluations are canceled. Share: mean share of failures among the last {LAST} suggestions ± standard error. Regret:
median over seeds, to the feasible optimum. Ratio: regret told as a failure to that of the comparison, as it is and
with {FLOOR:g} of the function's range added to both. Targets: a share of at most 25 %, for "random" at most 5 points
above its rate; a ratio of at most 1.5.
""".strip().replace("\n", " ")


def _branin(x: np.ndarray) -> float:
    a, b = 15.0 * x[0] - 5.0, 15.0 * x[1]
    valley = (b - 5.1 / (4.0 * pi**2) * a * a + 5.0 / pi * a - 6.0) ** 2
    return float(valley + 10.0 * (1.0 - 1.0 / (8.0 * pi)) * np.cos(a) + 10.0)


def _bowl(x: np.ndarray) -> float:
    return float(10.0 * np.square(x - [0.75, 0.35]).sum())


def _hartmann(x: np.ndarray) -> float:
    a = np.array([[3.0, 10.0, 30.0], [0.1, 10.0, 35.0], [3.0, 10.0, 30.0], [0.1, 10.0, 35.0]])
    p = np.array([[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]]) * 1e-4
    return -float(np.array([1.0, 1.2, 3.0, 3.2]) @ np.exp(-(a * np.square(x - p)).sum(axis=1)))


FUNCTIONS: dict[str, tuple[Callable[[np.ndarray], float], np.ndarray]] = {
    "Branin": (_branin, np.array([(pi + 5.0) / 15.0, 2.275 / 15.0])),
    "bowl": (_bowl, np.array([0.75, 0.35])),
    "Hartmann 3D": (_hartmann, np.array([0.114614, 0.555649, 0.852547])),
}
"""Functions of the unit cube, and where their minimum is."""

KINDS, WAYS = ("half", "ball", "random"), ("failed", "constraint")


def _excess(kind: str, optimum: np.ndarray, x: np.ndarray) -> float:
    """Above 0 where an evaluation fails."""
    if kind == "half":  # an oblique plane through the centre
        away = optimum - 0.5
        normal = np.where(np.abs(away) == np.abs(away).max(), away, 0.5 * away)
        return float(normal @ (x - 0.5) / np.linalg.norm(normal))
    d = len(optimum)
    radius = (BALL * gamma(d / 2.0 + 1.0) / pi ** (d / 2.0)) ** (1.0 / d)
    return float(radius - np.linalg.norm(x - optimum))


@dataclass(frozen=True)
class Failing:
    """One run of the default strategy."""

    function: str
    kind: str
    way: str
    seed: int
    budget: int

    @property
    def key(self) -> Key:
        return f"{self.function}, {self.kind}", self.way, self.seed, self.budget, "failures"

    def measured(self) -> Row:
        f, optimum = FUNCTIONS[self.function]
        optimizer = Optimizer({f"x{i}": Float(0.0, 1.0) for i in range(len(optimum))}, seed=self.seed)
        chance = np.random.default_rng([self.seed, 1])
        failed, values = [], []
        for _ in range(self.budget):
            params = optimizer.ask()
            x = np.array(list(params.values()), dtype=float)
            value, excess = f(x), _excess(self.kind, optimum, x)
            bad = bool(chance.random() < RATE) if self.kind == "random" else excess > 0.0
            failed.append(bad)
            values.append(float("inf") if bad else value)
            if self.way == "constraint" and self.kind != "random":
                optimizer.tell(params, value, constraints=(excess,))
            elif self.way == "constraint" and bad:
                optimizer.cancel(params)
            elif bad:
                optimizer.tell_failed(params)
            else:
                optimizer.tell(params, value)
        found = {"share": float(np.mean(failed[-LAST:])), "best": min(values)}
        return {**blank_row(self.key), "failures": found, "versions": {"calibo source": source_digest()}}


@cache
def _reference(function: str, kind: str) -> tuple[float, float]:
    """The feasible minimum, and the range of the function."""
    f, optimum = FUNCTIONS[function]
    x = qmc.Sobol(len(optimum), seed=0).random(2**13)
    y = np.array([f(row) for row in x])
    if kind == "random":
        return f(optimum), float(np.ptp(y))
    limit = NonlinearConstraint(lambda z: np.array([_excess(kind, optimum, z)]), -np.inf, 0.0)
    inside = np.array([_excess(kind, optimum, row) <= 0.0 for row in x])
    starts = x[inside][np.argsort(y[inside])[:20]]
    bounds = [(0.0, 1.0)] * len(optimum)
    runs = [minimize(f, s, method="SLSQP", bounds=bounds, constraints=limit) for s in starts]
    best = min(float(run.fun) for run in runs if _excess(kind, optimum, run.x) <= 1e-9)
    return best, float(np.ptp(y))


def _cells(seeds: int, quick: bool) -> list[Failing]:
    budget = QUICK if quick else BUDGET
    runs = [(name, kind, way) for name in FUNCTIONS for kind in KINDS for way in WAYS]
    return [Failing(*run, seed, budget) for seed in range(seeds) for run in runs]


def _report(archive: Archive) -> Report:
    known: dict[tuple[str, str], list[dict[str, float]]] = {}
    for row in archive.rows:
        if not row["error"] and row["seed"] < archive.seeds:
            known.setdefault((row["problem"], row["strategy"]), []).append(row["failures"])
    lines, shares = [], dict[str, list[float]]()
    for kind in KINDS:
        for name in FUNCTIONS:
            ours, theirs = (known.get((f"{name}, {kind}", way), []) for way in WAYS)
            if not ours or not theirs:
                continue
            least, size = _reference(name, kind)
            rates = np.array([run["share"] for run in ours])
            a, b = (max(float(np.median([run["best"] for run in runs])) - least, 0.0) for runs in (ours, theirs))
            error = rates.std(ddof=1) / np.sqrt(len(rates)) if len(rates) > 1 else np.nan
            floor = FLOOR * size
            shares.setdefault(kind, []).append(float(rates.mean()))
            share = [f"{rates.mean():.0%} ± {error:.0%}", f"{np.mean([run['share'] for run in theirs]):.0%}"]
            ratios = [f"{a / b:.1f}" if b else "-", f"{(a + floor) / (b + floor):.2f}"]
            lines.append([kind, name, *share, f"{a:.1e}", f"{b:.1e}", *ratios])
    head = ["", "function", "share", "comparison", "regret", "comparison", "ratio", f"ratio, floor {FLOOR:g}"]
    means = ", ".join(f"{kind} {np.mean(rates):.0%}" for kind, rates in shares.items())
    return Report(f"{archive.seeds} seeds. {ABOUT}\n\n{table(head, lines)}\n\nMean share over the functions: {means}.")


FAILURES = Experiment("failures", "Failures", _cells, _report)
