"""Statistics of result files: regrets, areas, evaluations to another strategy's result, ranks, and their uncertainty.

Notation: B is the budget, t the number of evaluations, the given points included. The regret of a run after t
evaluations is the true value of its best point so far, or under noise of the point that the strategy recommends, minus
the minimum of the problem; if that is unknown, minus the lowest such value of any run. Regrets are in units of the
problem's range. Final ones are floored, because nobody pays for last digits. Strategies are compared on the cells
(problem, seed) that both have. A run that failed on its way keeps the point that it had.

Intervals resample problems, then seeds within each drawn problem; the seeds of compared strategies stay paired.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np
from scipy.special import ndtr, stdtrit

from calibo.arrays import Array
from calibo.scoring import Scores, score_normal, summary

__all__ = [
    "COARSE",
    "FLOOR",
    "Comparison",
    "Evaluations",
    "Interval",
    "Results",
    "holm",
    "is_comparable",
    "ratio_of_means",
    "share",
]

FLOOR, COARSE = 1e-3, 1e-2  # of final regrets, in ranges of a problem
TINY = 1e-6  # of all regrets, so that ratios of areas exist
RESAMPLES = 4000
MEDIANS = 1000  # resamples of medians of whole curves, which take longer
FEWEST = 5  # seeds per problem: fewer give no interval

Cell = tuple[str, int]  # problem and seed
Interval = tuple[float, float, float]
"""An estimate, and the ends of its 95 % interval."""


@dataclass(frozen=True)
class Comparison:
    """One strategy compared with a reference, on the cells that both have."""

    cells: int
    problems: int
    regret: Interval
    """Geometric mean of the ratio of final regrets, floored at 1e-3; below 1 if the strategy is better."""

    coarse: Interval
    """The same, floored at 1e-2."""

    area: Interval
    """The same for the mean regrets of the runs."""

    wins: int
    ties: int
    losses: int
    fraction: float
    """Share of runs not worse than the reference: final value, then how early it was found; CAL24 App. A.1."""

    area_p: float
    """p value of the signed-rank test over problems, of their mean log ratios of areas; not corrected."""

    regret_p: float
    """The same for final regrets floored at 1e-3."""


@dataclass(frozen=True)
class Evaluations:
    """The number of evaluations E after which a strategy is as good as another one after B: medians over seeds."""

    ratio: Interval
    """Geometric mean of E / B over problems; 2 if the result is never reached."""

    by_problem: Mapping[str, int]
    never: tuple[str, ...]
    """Problems on which the result is not reached within 2 B evaluations."""

    given: tuple[str, ...]
    """Problems left out because the given points suffice."""


@dataclass(frozen=True, eq=False)
class Results:
    """Comparable rows; the longer ones among them are cut where runs of one budget are compared."""

    rows: Sequence[dict[str, Any]]

    @cached_property
    def budget(self) -> int:
        return int(min(row["budget"] for row in self.rows))

    @cached_property
    def problems(self) -> list[str]:
        return list(dict.fromkeys(row["problem"] for row in self.rows))

    @cached_property
    def strategies(self) -> list[str]:
        return list(dict.fromkeys(row["strategy"] for row in self.rows))

    @cached_property
    def whole(self) -> dict[str, dict[Cell, Array]]:
        """By strategy and cell, the regret after each evaluation from the last initial point to the end of the run."""
        judged = [(row, _judged(row)) for row in self.rows]
        least: dict[str, float] = {}
        for row, values in judged:
            least[row["problem"]] = min(least.get(row["problem"], np.inf), float(values.min()))
        curves: dict[str, dict[Cell, Array]] = {name: {} for name in self.strategies}
        for row, values in judged:
            lowest = least[row["problem"]] if row["minimum"] is None else row["minimum"]  # a seed may have its own
            curve = np.maximum((values - lowest) / row["range"], TINY)
            cell = row["problem"], row["seed"]
            if len(curve) > len(curves[row["strategy"]].get(cell, ())):
                curves[row["strategy"]][cell] = curve
        return curves

    @cached_property
    def initial(self) -> dict[str, int]:
        """By problem, the evaluation at which its curves begin."""
        return {row["problem"]: max(row["initial"], 1) for row in self.rows}

    @cached_property
    def curves(self) -> dict[str, dict[Cell, Array]]:
        """The curves up to the budget."""
        return {
            name: {cell: curve[: self.budget - self.initial[cell[0]] + 1] for cell, curve in curves.items()}
            for name, curves in self.whole.items()
        }

    def seeds(self, strategy: str) -> int:
        """The number of seeds of the problem with most."""
        counts = [sum(p == problem for p, _ in self.curves[strategy]) for problem in self.problems]
        return max(counts, default=0)

    def shared(self) -> "Results":
        """Only the cells that every strategy has."""
        cells = set.intersection(*(set(curves) for curves in self.whole.values()))
        return Results([row for row in self.rows if (row["problem"], row["seed"]) in cells])

    def finals(self, strategy: str, problem: str) -> Array:
        """(seeds,) final regrets, in units of the range, floored at 1e-3."""
        return np.array([_final(curve) for (name, _), curve in self.curves[strategy].items() if name == problem])

    def areas(self, strategy: str, problem: str) -> Array:
        """(seeds,) mean of (best - lo) / (hi - lo) over each run, lo and hi over all strategies of that seed."""
        areas = []
        for cell, curve in self.curves[strategy].items():
            if cell[0] == problem:
                others = [theirs[cell] for theirs in self.curves.values() if cell in theirs]
                low, high = min(other.min() for other in others), max(other.max() for other in others)
                areas.append(float(((curve - low) / (high - low)).mean()) if high > low else 0.0)
        return np.array(areas)

    def compared(self, strategy: str, reference: str) -> Comparison:
        """Paired by cell."""
        ours, theirs = (self.curves.get(name, {}) for name in (strategy, reference))
        groups = _by_problem(cell for cell in ours if cell in theirs)

        def logs(measure: Callable[[Array], float]) -> list[Array]:
            return [np.array([np.log(measure(ours[c]) / measure(theirs[c])) for c in cells]) for cells in groups]

        area, final = logs(lambda curve: float(curve.mean())), logs(_final)
        coarse = logs(lambda curve: _final(curve, COARSE))
        outcomes = [_outcome(ours[cell], theirs[cell]) for cells in groups for cell in cells]
        wins, ties, losses = (sum(outcome == sign for outcome in outcomes) for sign in (1, 0, -1))
        fraction = (wins + ties) / len(outcomes) if outcomes else np.nan
        return Comparison(
            len(outcomes),
            len(groups),
            _ratio(final),
            _ratio(coarse),
            _ratio(area),
            wins,
            ties,
            losses,
            fraction,
            _signed_rank(area),
            _signed_rank(final),
        )

    def evaluations(self, strategy: str, to: str) -> Evaluations | None:
        """Of ``strategy``, to the result of ``to``; None if no run of ``strategy`` has twice the budget."""
        ours, theirs = self.whole[strategy], self.curves[to]
        twice = 2 * self.budget
        groups = _by_problem(
            cell for cell in ours if cell in theirs and len(ours[cell]) >= twice - self.initial[cell[0]] + 1
        )
        if not groups:
            return None
        found: dict[str, float] = {}
        drawn, rng = [], np.random.default_rng(0)
        for cells in groups:
            first = self.initial[cells[0][0]]
            mine = np.array([ours[cell][: twice - first + 1] for cell in cells])
            other = np.array([_final(theirs[cell]) for cell in cells])
            resampled = rng.integers(len(cells), size=(MEDIANS, len(cells)))
            found[cells[0][0]] = float(_reached(mine[None], other[None], first, twice)[0])
            drawn.append(np.log(_reached(mine[resampled], other[resampled], first, twice) / self.budget))
        logs = np.array([np.log(e / self.budget) for e in found.values() if np.isfinite(e)])
        middle = float(logs.mean()) if len(logs) else np.nan
        fewest = min(len(cells) for cells in groups)
        return Evaluations(
            _interval(middle, drawn, fewest, rng),
            {problem: int(e) for problem, e in found.items() if np.isfinite(e)},
            tuple(problem for problem, e in found.items() if e == twice),
            tuple(problem for problem, e in found.items() if np.isnan(e)),
        )

    def ranks(self) -> tuple[dict[str, float], list[str]]:
        """Mean rank over problems, and the strategies left out because of missing runs.

        A problem's ranks are those of the mean log regret over its seeds.
        """
        from scipy.stats import rankdata

        every = {cell for curves in self.curves.values() for cell in curves}
        full = [name for name in self.strategies if set(self.curves[name]) == every]
        others = [name for name in self.strategies if name not in full]
        if not full:
            return {}, others
        means = np.array([[np.log(self.finals(name, p)).mean() for name in full] for p in self.problems])
        ranks = rankdata(means.round(9), axis=1).mean(axis=0)
        return dict(zip(full, ranks.tolist(), strict=True)), others

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


def is_comparable(row: Mapping[str, Any]) -> bool:
    """Whether the run came beyond its given points: a failure afterwards is a loss, one before is a missing run."""
    if row["range"] is None or row["initial"] is None:
        return False
    judged = row["values"] if row.get("recommended") is None else row["recommended"]
    return bool(judged) and len(row["values"]) >= max(row["initial"], 1)


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """The p values of several tests, corrected for their number [HOL79]."""
    corrected, largest = {}, 0.0
    for i, (name, p) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        largest = max(largest, min((len(p_values) - i) * p, 1.0))
        corrected[name] = largest
    return {name: corrected[name] for name in p_values}


def _judged(row: Mapping[str, Any]) -> Array:
    """The true value of the best or the recommended point, from the last initial point to the end of the run."""
    first = max(row["initial"], 1)
    if row.get("recommended") is None:
        values = np.minimum.accumulate(np.array(row["values"], dtype=float))[first - 1 :]
    else:
        values = np.array(row["recommended"], dtype=float)
    lacking = row["budget"] - first + 1 - len(values)  # of a run that failed
    return np.append(values, np.full(max(lacking, 0), values[-1]))


def _final(curve: Array, floor: float = FLOOR) -> float:
    return max(float(curve[-1]), floor)


def _by_problem(cells: Any) -> list[list[Cell]]:
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell[0], []).append(cell)
    return list(groups.values())


def _outcome(ours: Array, theirs: Array) -> int:
    """1 if our run is better than theirs, -1 if worse, 0 for a tie."""
    ours, theirs = np.maximum(ours, FLOOR), np.maximum(theirs, FLOOR)
    if not np.isclose(ours[-1], theirs[-1], rtol=1e-9):
        return 1 if ours[-1] < theirs[-1] else -1
    first = [int(np.argmax(np.isclose(curve, curve[-1], rtol=1e-9))) for curve in (ours, theirs)]
    return int(np.sign(first[1] - first[0]))


def _reached(ours: Array, theirs: Array, first: int, never: int) -> Array:
    """(R,) evaluations of curves (R, seeds, T) that begin at ``first`` to final regrets (R, seeds), by their medians;
    NaN if the first point of the curves suffices.
    """
    as_good = np.median(ours, axis=1) <= np.median(theirs, axis=1)[:, None] * (1.0 + 1e-9)
    evaluations = np.where(as_good.any(axis=1), first + as_good.argmax(axis=1), never).astype(float)
    return np.where(as_good[:, 0], np.nan, evaluations)


def share(groups: Sequence[Array]) -> Interval:
    """The mean over problems of the mean over runs, of shares by problem."""
    middle, low, high = np.log(_ratio(groups))  # which takes logarithms
    return float(middle), float(low), float(high)


def ratio_of_means(groups: Sequence[Array]) -> Interval:
    """Of the first column to the second, means over problems of means over runs: for scores, which must be averaged as
    they are, because a logarithm would reward a forecast that is mostly too sure and sometimes far off.
    """
    if not groups:
        return np.nan, np.nan, np.nan
    means = np.array([group.mean(axis=0) for group in groups])
    first, second = means.mean(axis=0)
    if min(map(len, groups)) < FEWEST or len(groups) < 2:
        return float(first / second), np.nan, np.nan
    rng = np.random.default_rng(0)
    again = np.array([g[rng.integers(len(g), size=(RESAMPLES, len(g)))].mean(axis=1) for g in groups])
    chosen = rng.integers(len(groups), size=(RESAMPLES, len(groups)))
    sums = again[chosen, rng.integers(RESAMPLES, size=chosen.shape)].sum(axis=1)
    low, high = np.quantile(sums[:, 0] / sums[:, 1], _tails(len(groups)))
    return float(first / second), float(low), float(high)


def _tails(count: int) -> tuple[float, float]:
    """Levels of the ends of a 95 % interval, expanded to make up for few of what was resampled [HES15]."""
    tail = float(ndtr(-sqrt(count / (count - 1)) * stdtrit(count - 1, 0.975)))
    return tail, 1.0 - tail


def _ratio(groups: Sequence[Array]) -> Interval:
    """The geometric mean over problems of the mean over seeds, of log ratios by problem."""
    if not groups:
        return np.nan, np.nan, np.nan
    rng = np.random.default_rng(0)
    drawn = [logs[rng.integers(len(logs), size=(RESAMPLES, len(logs)))].mean(axis=1) for logs in groups]
    return _interval(float(np.mean([logs.mean() for logs in groups])), drawn, min(map(len, groups)), rng)


def _interval(middle: float, drawn: Sequence[Array], fewest: int, rng: np.random.Generator) -> Interval:
    """Around the geometric mean exp(``middle``): ``drawn`` has log ratios by problem, with its seeds resampled, and NaN
    where the problem is left out. None for fewer than five seeds.

    The percentiles are expanded to make up for few problems, or few seeds of a single problem [HES15].
    """
    n, table = len(drawn), np.array(drawn)
    if fewest < FEWEST or np.isnan(middle):
        return float(np.exp(middle)), np.nan, np.nan
    problems = rng.integers(n, size=(table.shape[1], n))
    means = table[problems, rng.integers(table.shape[1], size=problems.shape)]
    counted = np.isfinite(means).sum(axis=1)
    sums = np.nansum(means, axis=1)[counted > 0] / counted[counted > 0]
    low, high = np.exp(np.quantile(sums, _tails(n if n > 1 else fewest)))
    return float(np.exp(middle)), float(low), float(high)


def _signed_rank(groups: Sequence[Array]) -> float:
    """p value of the two-sided signed-rank test of the problems' mean log ratios [WIL45]; 1 if all are zero."""
    from scipy.stats import wilcoxon

    means = np.array([logs.mean() for logs in groups]).round(9)
    if len(means) < 2 or not means.any():
        return 1.0
    return float(wilcoxon(means, zero_method="pratt").pvalue)
