"""Learned tasks: how much a study and the earlier ones it learns from are alike."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from optuna.study import Study

from calibo.adapters.reader import StudyData, read_study
from calibo.branches import filled
from calibo.errors import InputError
from calibo.gp.slice import effective_size, potential_reduction
from calibo.knowledge import EARLIER
from calibo.pages import plotly
from calibo.study import Result
from calibo.surrogate import ModelChoice, Transfer
from calibo.threads import one_blas_thread
from calibo.types import Array

__all__ = ["LearnedTasks", "learned_tasks"]

FEWEST = 2  # outcomes of the study
BURN_IN = 20


@dataclass(frozen=True, eq=False)
class LearnedTasks:
    """Correlations between tasks, drawn from their posterior."""

    names: tuple[str, ...]
    """Of the tasks, the study itself first."""

    values: Mapping[int, Array]
    """(draws, tasks, tasks) correlations, by the number of the study's outcomes they were learned from."""

    effective: float
    """Independent draws that those of the worst correlation are worth, with all outcomes."""

    reduction: float
    """R-hat of the worst: near 1 where the chains agree."""

    seconds: float

    @property
    def count(self) -> int:
        """Of all outcomes."""
        return max(self.values)

    def mean(self, n: int | None = None) -> Array:
        """(tasks, tasks), learned from ``n`` outcomes or from all."""
        return np.asarray(self._of(n).mean(axis=0))

    def band(self, level: float = 0.9, n: int | None = None) -> tuple[Array, Array]:
        """(tasks, tasks) lower and upper end of the central share of them."""
        low, high = np.quantile(self._of(n), [0.5 - 0.5 * level, 0.5 + 0.5 * level], axis=0)
        return low, high

    def sentences(self) -> list[str]:
        """How much each earlier study is like this one, in words."""
        mean, (low, high) = self.mean()[0], self.band()
        return [
            f"{name}: {_word(low[0, t], high[0, t])} (correlation {mean[t]:.2f}, with probability 0.9 in "
            f"[{low[0, t]:.2f}, {high[0, t]:.2f}])."
            for t, name in enumerate(self.names)
            if t > 0
        ]

    def figure(self) -> Any:
        """The mean correlations of all tasks, and those with the study as its outcomes grew, with 90 % bands."""
        go = plotly()
        from plotly.subplots import make_subplots

        figure = make_subplots(cols=2, subplot_titles=["all tasks", f"with {self.names[0]}"], horizontal_spacing=0.2)
        mean, names = self.mean(), list(self.names)
        words = [[f"{value:.2f}" for value in row] for row in mean]
        scale = {"zmin": -1.0, "zmax": 1.0, "colorscale": "RdBu", "reversescale": True, "colorbar": {"x": 0.42}}
        figure.add_trace(
            go.Heatmap(z=mean, x=names, y=names, text=words, texttemplate="%{text}", **scale), col=1, row=1
        )
        figure.update_yaxes(autorange="reversed", col=1, row=1)
        sizes = sorted(self.values)
        for t, name in enumerate(names[1:], start=1):
            middles = [float(self.mean(n)[0, t]) for n in sizes]
            ends = [[float(end[0, t]) for end in self.band(n=n)] for n in sizes]
            gaps = [(middle - low, high - middle) for (low, high), middle in zip(ends, middles, strict=True)]
            down, up = (list(side) for side in zip(*gaps, strict=True))
            bars = {"type": "data", "symmetric": False, "array": up, "arrayminus": down}
            shown = go.Scatter(x=sizes, y=middles, name=name, error_y=bars, mode="lines+markers")
            figure.add_trace(shown, col=2, row=1)
        figure.update_yaxes(range=[-1.05, 1.05], title="correlation", col=2, row=1)
        figure.update_xaxes(title="outcomes", col=2, row=1)
        return figure.update_layout(
            title=f"Learned tasks: {self.count} outcomes",
            template="plotly_white",
            height=420,
            width=900,
            margin={"l": 40, "r": 10, "t": 80, "b": 60},
        )

    def _of(self, n: int | None) -> Array:
        return self.values[self.count if n is None else n]


def _word(low: float, high: float) -> str:
    if low > 0.5:
        return "alike"
    if high < -0.5:
        return "the opposite"
    return "somewhat alike" if low > 0.0 else "somewhat opposite" if high < 0.0 else "the outcomes do not tell yet"


def learned_tasks(source: Study | Result, *, draws: int = 100, chains: int = 4) -> LearnedTasks:
    """How much a study, or that of what `optimize` gives, and the earlier ones it learns from are alike.

    From a quarter, half and all of its outcomes; ``draws`` of hyper-parameters from their posterior, in some chains.
    """
    if isinstance(source, Result):
        return learned_tasks(source.study, draws=draws, chains=chains)
    if not isinstance(source, Study):
        raise InputError(f"`source` must be an Optuna study or a Result, but got {source!r}.")
    for name, value in (("draws", draws), ("chains", chains)):
        if not isinstance(value, int | np.integer) or value < 1:
            raise InputError(f"`{name}` must be a whole number of at least 1, but got {value!r}.")
    data = read_study(source)
    n = int(data.observations.feasible.sum())
    if n < FEWEST:
        raise InputError(f"`source` must have at least {FEWEST} successful outcomes, but it has {n}.")
    recipe, observations = _joint(source, data), filled(data.observations).valid()
    begun, values, each = time.perf_counter(), {}, max(-(-draws // chains), 4)
    with one_blas_thread():
        for size in sorted({max(n // 4, FEWEST), max(n // 2, FEWEST), n}):
            known = observations.head(size)
            found = recipe.alikeness(known, each, chains, BURN_IN)
            values[size] = found.reshape(-1, *found.shape[2:])
    rows, columns = np.tril_indices(len(recipe.sources) + 1, -1)
    last = found[:, :, rows, columns]
    return LearnedTasks(
        (source.study_name, *(task.name for task in recipe.sources)),
        values,
        float(effective_size(last).min()),
        float(potential_reduction(last).max()),
        time.perf_counter() - begun,
    )


def _joint(study: Study, data: StudyData) -> Transfer:
    surrogate = data.strategy.surrogate
    recipe = dict(surrogate.recipes).get(EARLIER) if isinstance(surrogate, ModelChoice) else None
    if not isinstance(recipe, Transfer):
        raise InputError(
            f"`source` must learn from earlier studies, but {study.study_name!r} does not. "
            "Name them with `transfer_from`."
        )
    return recipe
