"""Targets of `calibo-bench reproduce`: measurements to run, and a report of them.

Notation of CAL24 App. A.1: m the best value of a run; f the share of paired runs in which a baseline does not find a
lower minimum than the method; a the normalised area under the curve of best values.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import sqrt
from typing import Any, Protocol

import numpy as np
from scipy.special import ndtr

from calibo.arrays import Array
from calibo.scoring import calibration_score
from calibo_bench.runner import Cell, Measurement, Row, parsed_start, row_key

__all__ = ["Archive", "Curves", "Report", "Reproduction", "Run", "Target", "mean_and_error"]

SAME = 1e-4  # of the range of all curves: smaller differences of final values are ties
QUICK_STEPS = 8


@dataclass(frozen=True)
class Run:
    """One method on one problem, over all seeds."""

    problem: str
    strategy: str
    start: str = "random3"
    steps: int = 25
    """Evaluations after the initial points."""

    def cell(self, seed: int) -> Cell:
        budget = parsed_start(self.start)[1] + self.steps
        return Cell(self.problem, self.strategy, seed, budget, timeout=600.0, start=self.start)


@dataclass(frozen=True)
class Report:
    """The report of a target."""

    text: str
    """Markdown, without the title."""

    draw: Callable[[], Sequence[Any]] = tuple
    """The figures; they need Plotly."""

    wide: bool = False
    """Stack the figures instead of placing them side by side."""


class Target(Protocol):
    """A target of `calibo-bench reproduce`."""

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def seeds(self) -> int:
        """The default number of seeds."""
        ...

    @property
    def alone(self) -> bool:
        """Whether measurements must run one at a time."""
        ...

    def cells(self, seeds: int, *, quick: bool) -> Sequence[Measurement]: ...

    @property
    def report(self) -> Callable[["Archive"], Report]: ...


@dataclass(frozen=True)
class Reproduction:
    """A table or a figure of a paper."""

    name: str
    title: str
    runs: tuple[Run, ...]
    report: Callable[["Archive"], Report]
    seeds: int = 20
    alone: bool = False

    def cells(self, seeds: int, *, quick: bool) -> list[Cell]:
        runs = [shortened(run) for run in self.runs] if quick else self.runs
        return [run.cell(seed) for seed in range(seeds) for run in dict.fromkeys(runs)]


def shortened(run: Run) -> Run:
    """The run with fewer steps, for a quick check."""
    return replace(run, steps=min(run.steps, QUICK_STEPS))


Curves = dict[int, Array]
"""By seed, the best value after the initial points and after each step."""


@dataclass(frozen=True, eq=False)
class Archive:
    """Rows of the first ``seeds`` seeds."""

    rows: Sequence[Row]
    seeds: int
    quick: bool = False
    _known: dict[Run, dict[int, Row]] = field(default_factory=dict)

    @cached_property
    def _by_key(self) -> Mapping[Any, Row]:
        return {row_key(row): row for row in self.rows if not row["error"]}

    def cell(self, run: Run, seed: int) -> Cell:
        """The run of a seed, shortened if ``quick``."""
        return (shortened(run) if self.quick else run).cell(seed)

    def of(self, run: Run) -> dict[int, Row]:
        """The rows of a run, by seed."""
        if run not in self._known:
            cells = [self.cell(run, seed) for seed in range(self.seeds)]
            found = {cell.seed: self._by_key.get(cell.key) for cell in cells}
            self._known[run] = {seed: row for seed, row in found.items() if row is not None}
        return self._known[run]

    def curves(self, run: Run) -> Curves:
        return {
            seed: np.minimum.accumulate(np.array(row["values"]))[max(row["initial"], 1) - 1 :]
            for seed, row in self.of(run).items()
        }

    def minimum(self, run: Run) -> str:
        """m of a run, with its standard error."""
        return mean_and_error([curve[-1] for curve in self.curves(run).values()])

    def beaten(self, ours: Run, theirs: Run) -> tuple[int, int, int]:
        """Wins, ties and losses of ours, by the minimum found; negligible differences are ties."""
        mine, other = self.curves(ours), self.curves(theirs)
        pairs = [(mine[seed], other[seed]) for seed in mine if seed in other]
        if not pairs:
            return 0, 0, 0
        span = max(float(max(a.max(), b.max())) for a, b in pairs) - min(float(min(a[-1], b[-1])) for a, b in pairs)
        gaps = np.array([a[-1] - b[-1] for a, b in pairs])
        wins, losses = int((gaps < -SAME * span).sum()), int((gaps > SAME * span).sum())
        return wins, len(pairs) - wins - losses, losses

    def shared(self, runs: Sequence[Run]) -> "Archive":
        """Only the seeds that all of these runs have, apart from runs without any: those are compared."""
        sets = [set(self.of(run)) for run in runs if self.of(run)]
        seeds = set.intersection(*sets) if sets else set()
        return replace(self, rows=[row for row in self.rows if row["seed"] in seeds], _known={})

    def steps(self, run: Run) -> int:
        """Number of evaluations after the initial points."""
        return (shortened(run) if self.quick else run).steps

    def areas(self, runs: Sequence[Run]) -> dict[Run, Array]:
        """a of every seed: the mean of (best - lo) / (hi - lo), lo and hi over all runs given, all seeds and steps."""
        curves = {run: self.curves(run) for run in runs}
        everything = [curve for group in curves.values() for curve in group.values()]
        if not everything:
            return {run: np.empty(0) for run in runs}
        low, high = min(float(c.min()) for c in everything), max(float(c.max()) for c in everything)
        if high == low:  # no run has improved: the worst value
            return {run: np.ones(len(group)) for run, group in curves.items()}
        return {
            run: np.array([float((curve - low).mean()) / (high - low) for curve in group.values()])
            for run, group in curves.items()
        }

    def scores(self, run: Run) -> tuple[Array, Array]:
        """The calibration score (steps,) of all forecasts up to each step, mean over seeds: raw, and as used."""
        rows = [np.array(row["forecasts"]) for row in self.of(run).values() if row["forecasts"]]
        if not rows:
            return np.empty(0), np.empty(0)
        steps = min(len(row) for row in rows)
        return tuple(  # type: ignore[return-value]
            np.array([np.mean([calibration_score(ndtr(row[: t + 1, column])) for row in rows]) for t in range(steps)])
            for column in (3, 4)
        )


def mean_and_error(values: Sequence[float] | Array, digits: int = 4) -> str:
    """The mean, with its standard error in brackets."""
    values = np.asarray(values, dtype=float)
    if not len(values):
        return ""
    if len(values) == 1:
        return f"{values[0]:.{digits}g}"
    return f"{values.mean():.{digits}g} ({values.std(ddof=1) / sqrt(len(values)):.2g})"
