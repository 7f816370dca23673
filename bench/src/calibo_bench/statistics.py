"""Statistics of result files: regrets, areas, ranks, and their uncertainty.

Notation: the regret of a run after t evaluations is its best noise-free value so far minus the minimum of the problem;
if that is unknown, minus the lowest value that any run found there. Regrets are floored at 1e-6 of the problem's range,
so that log ratios exist. Strategies are compared on the cells (problem, seed) that both have.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np
from scipy.special import ndtr, stdtrit

from calibo.arrays import Array
from calibo.scoring import Scores, score_normal, summary

__all__ = ["Comparison", "Results", "critical_difference"]

FLOOR = 1e-6  # of the range of a problem
RESAMPLES = 4000
FEWEST = 5  # seeds per problem: fewer give no interval

Cell = tuple[str, int]  # problem and seed


@dataclass(frozen=True)
class Comparison:
    """One strategy compared with a reference, on the cells that both have."""

    cells: int
    regret: tuple[float, float, float]
    """Geometric mean of the ratio of final regrets, and its 95 % interval; below 1 if the strategy is better."""

    area: tuple[float, float, float]
    """The same for the areas under the regret curves."""

    wins: int
    ties: int
    losses: int
    fraction: float
    """Share of runs not worse than the reference: final value, then how early it was found; CAL24 App. A.1."""


@dataclass(frozen=True, eq=False)
class Results:
    """Rows without an error, of one budget."""

    rows: Sequence[dict[str, Any]]

    @cached_property
    def problems(self) -> list[str]:
        return list(dict.fromkeys(row["problem"] for row in self.rows))

    @cached_property
    def strategies(self) -> list[str]:
        return list(dict.fromkeys(row["strategy"] for row in self.rows))

    @cached_property
    def curves(self) -> dict[str, dict[Cell, Array]]:
        """By strategy and cell, the regret after each evaluation from the last initial point on, in ranges."""
        least: dict[str, float] = {}
        for row in self.rows:
            least[row["problem"]] = min(least.get(row["problem"], np.inf), *row["values"])
        curves: dict[str, dict[Cell, Array]] = {name: {} for name in self.strategies}
        for row in self.rows:
            best = np.minimum.accumulate(np.array(row["values"]))[max(row["initial"], 1) - 1 :]
            lowest = least[row["problem"]] if row["minimum"] is None else row["minimum"]  # a seed may have its own
            regret = (best - lowest) / row["range"]
            curves[row["strategy"]][row["problem"], row["seed"]] = np.maximum(regret, FLOOR)
        return curves

    def finals(self, strategy: str, problem: str) -> Array:
        """(seeds,) final regrets, in units of the range."""
        return np.array([curve[-1] for (name, _), curve in self.curves[strategy].items() if name == problem])

    def areas(self, strategy: str, problem: str) -> Array:
        """(seeds,) mean of (best - lo) / (hi - lo) over each run, lo and hi over all strategies of that seed."""
        areas = []
        for cell, curve in self.curves[strategy].items():
            if cell[0] == problem:
                others = [theirs[cell] for theirs in self.curves.values() if cell in theirs]
                low, high = min(other.min() for other in others), max(other.max() for other in others)
                areas.append(float(((curve - low) / (high - low)).mean()) if high > low else 0.0)
        return np.array(areas)

    def compared(self, strategy: str, reference: str, seed: int = 0) -> Comparison:
        """Paired by cell; intervals by resampling seeds, with the problems fixed."""
        ours, theirs = (self.curves.get(name, {}) for name in (strategy, reference))
        cells = [cell for cell in ours if cell in theirs]
        final = {cell: float(np.log(ours[cell][-1] / theirs[cell][-1])) for cell in cells}
        area = {cell: float(np.log(ours[cell].mean() / theirs[cell].mean())) for cell in cells}
        outcomes = [_outcome(ours[cell], theirs[cell]) for cell in cells]
        wins, ties, losses = (sum(outcome == sign for outcome in outcomes) for sign in (1, 0, -1))
        fraction = (wins + ties) / len(cells) if cells else np.nan
        return Comparison(len(cells), _ratio(final, seed), _ratio(area, seed), wins, ties, losses, fraction)

    def ranks(self) -> tuple[dict[str, float], float, list[str]]:
        """Mean rank over problems, the critical difference at 5 %, and the strategies left out because of missing runs.

        A problem's ranks are those of the mean log regret over its seeds.
        """
        from scipy.stats import rankdata

        every = {cell for curves in self.curves.values() for cell in curves}
        full = [name for name in self.strategies if set(self.curves[name]) == every]
        others = [name for name in self.strategies if name not in full]
        if not full:
            return {}, np.nan, others
        means = np.array([[np.log(self.finals(name, p)).mean() for name in full] for p in self.problems])
        ranks = rankdata(means, axis=1).mean(axis=0)
        return dict(zip(full, ranks.tolist(), strict=True)), critical_difference(len(full), len(self.problems)), others

    def scores(self, strategy: str, problem: str | None = None) -> Scores | None:
        """Scores of the strategy's forecasts; None if it makes none."""
        rows = [
            r for r in self.rows if r["strategy"] == strategy and problem in (None, r["problem"]) and r["forecasts"]
        ]
        if not rows:
            return None
        # in units of the range, so that problems can be pooled
        loc, scale, y = np.concatenate([np.array(row["forecasts"])[:, :3] / row["range"] for row in rows]).T
        widths = {len(row["forecasts"][0]) for row in rows}
        if widths == {3}:
            return score_normal(loc, scale, y)
        bent = np.concatenate([np.array(row["forecasts"])[:, 4] for row in rows])
        if widths != {7}:  # rows written before these were recorded
            return score_normal(loc, scale, y, bent)
        crps = np.concatenate([np.array(row["forecasts"])[:, 5] / row["range"] for row in rows])
        log_density = np.concatenate([np.array(row["forecasts"])[:, 6] + np.log(row["range"]) for row in rows])
        return summary(bent, crps, log_density, scale)

    def seconds(self, strategy: str) -> tuple[float, float]:
        """Mean wall and CPU time of one suggestion."""
        rows = [row for row in self.rows if row["strategy"] == strategy]
        return tuple(  # type: ignore[return-value]
            float(np.mean([value for row in rows for value in row[part]] or [np.nan])) for part in ("wall", "processor")
        )


def critical_difference(k: int, n: int) -> float:
    """Critical difference at 5 % between mean ranks of ``k`` strategies on ``n`` problems [DEM06, Nemenyi]."""
    from scipy.stats import studentized_range

    return float(studentized_range.ppf(0.95, k, np.inf)) / sqrt(2) * sqrt(k * (k + 1) / (6 * n)) if k > 1 else np.nan


def _outcome(ours: Array, theirs: Array) -> int:
    """1 if our run is better than theirs, -1 if worse, 0 for a tie."""
    if not np.isclose(ours[-1], theirs[-1], rtol=1e-9, atol=FLOOR * 1e-3):
        return 1 if ours[-1] < theirs[-1] else -1
    first = [int(np.argmax(np.isclose(curve, curve[-1], rtol=1e-9, atol=FLOOR * 1e-3))) for curve in (ours, theirs)]
    return int(np.sign(first[1] - first[0]))


def _ratio(logs: dict[Cell, float], seed: int) -> tuple[float, float, float]:
    """The geometric mean over problems of the mean over seeds, and its 95 % interval; none for fewer than five seeds.

    Seeds are resampled within each problem. The percentiles are expanded to make up for few seeds [HES15].
    """
    groups: dict[str, list[float]] = {}
    for (problem, _), value in logs.items():
        groups.setdefault(problem, []).append(value)
    if not groups:
        return np.nan, np.nan, np.nan
    middle = float(np.mean([np.mean(values) for values in groups.values()]))
    n = min(len(values) for values in groups.values())
    if n < FEWEST:
        return float(np.exp(middle)), np.nan, np.nan
    rng = np.random.default_rng(seed)
    means = [np.array(v)[rng.integers(len(v), size=(RESAMPLES, len(v)))].mean(axis=1) for v in groups.values()]
    tail = float(ndtr(-sqrt(n / (n - 1)) * stdtrit(n - 1, 0.975)))
    low, high = np.exp(np.quantile(np.mean(means, axis=0), [tail, 1.0 - tail]))
    return float(np.exp(middle)), float(low), float(high)
