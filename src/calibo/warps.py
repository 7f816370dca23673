"""Learned warps: how the axes of a study would have to be bent for its outcomes to look the same everywhere.

WARP14 Fig. 4: the mean of warps drawn from their posterior, with a band, and how both have grown with the outcomes.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from optuna.study import Study

from calibo.adapters.reader import read_outcomes
from calibo.branches import filled
from calibo.errors import InputError
from calibo.gp.slice import effective_size, potential_reduction
from calibo.gp.warping import Warped
from calibo.observations import Observations
from calibo.optimizer import Optimizer
from calibo.pages import COLORS, plotly
from calibo.space import Parameter
from calibo.study import Result
from calibo.surrogate import GaussianProcess
from calibo.threads import one_blas_thread
from calibo.types import Array

__all__ = ["LearnedWarps", "learned_warps"]

POSITIONS = np.linspace(0.0, 1.0, 101)
FEWEST = 4  # outcomes
BURN_IN = 20
WORDS = {
    "low": "its low end matters most, as on a logarithmic scale",
    "high": "its high end matters most",
    "middle": "its middle matters most",
    "ends": "its ends matter most",
    "even": "evenly, as far as the outcomes tell",
}


@dataclass(frozen=True, eq=False)
class LearnedWarps:
    """Warps drawn from their posterior, by the number of outcomes they were learned from."""

    parameters: Mapping[str, Parameter]
    """Those whose axes may be bent."""

    values: Mapping[int, Array]
    """(draws, parameters, m) the warps at ``POSITIONS``."""

    effective: float
    """Independent draws that those of the worst hyper-parameter are worth, with all outcomes."""

    reduction: float
    """R-hat of the worst: near 1 where the chains agree."""

    seconds: float

    @property
    def count(self) -> int:
        """Of all outcomes."""
        return max(self.values)

    def mean(self, name: str, n: int | None = None) -> Array:
        """(m,) of the warps of a parameter, learned from ``n`` outcomes or from all."""
        return np.asarray(self._of(name, n).mean(axis=0))

    def band(self, name: str, level: float = 0.9, n: int | None = None) -> tuple[Array, Array]:
        """(m,) lower and upper end of the central share of them."""
        low, high = np.quantile(self._of(name, n), [0.5 - 0.5 * level, 0.5 + 0.5 * level], axis=0)
        return low, high

    def shape(self, name: str) -> str:
        """What the mean does to the axis: "low", "high", "middle", "ends" or "even"."""
        quarter, half, three = (float(np.interp(u, POSITIONS, self.mean(name))) for u in (0.25, 0.5, 0.75))
        if abs(half - 0.5) >= 0.1:
            return "low" if half > 0.5 else "high"
        return "even" if abs(three - quarter - 0.5) < 0.15 else "middle" if three - quarter > 0.5 else "ends"

    def sentences(self) -> list[str]:
        """What was learned of each parameter, in words."""
        return [f"{name}: {WORDS[self.shape(name)]}." for name in self.parameters]

    def figure(self) -> Any:
        """One panel a parameter: mean and 90 % band of the warps, and the means from fewer outcomes."""
        go = plotly()
        from plotly.subplots import make_subplots

        wide = min(len(self.parameters), 3)
        rows = -(-len(self.parameters) // wide)
        figure = make_subplots(
            rows=rows, cols=wide, subplot_titles=list(self.parameters), vertical_spacing=0.5 / rows / 2
        )
        for i, (name, parameter) in enumerate(self.parameters.items()):
            place = {"row": i // wide + 1, "col": i % wide + 1}
            for trace in self._traces(go, name):
                trace.showlegend = i == 0
                figure.add_trace(trace, **place)
            ends = [float(str(parameter.decode(u))) for u in (0.0, 0.5, 1.0)]
            figure.update_xaxes(tickvals=[0.0, 0.5, 1.0], ticktext=[f"{end:.3g}" for end in ends], **place)
        return figure.update_layout(
            title=f"Learned warps: {self.count} outcomes",
            template="plotly_white",
            height=90 + 260 * rows,
            width=120 + 340 * wide,
            margin={"l": 40, "r": 10, "t": 80, "b": 40},
        )

    def _traces(self, go: Any, name: str) -> list[Any]:
        low, high = self.band(name)
        u = POSITIONS.tolist()
        shade = {"fill": "toself", "fillcolor": "rgba(214,39,40,.15)", "line": {"width": 0}, "hoverinfo": "skip"}
        traces = [go.Scatter(x=[*u, *u[::-1]], y=[*high, *low[::-1]], name="90 % band", mode="lines", **shade)]
        traces.append(
            go.Scatter(x=[0, 1], y=[0, 1], name="unbent", mode="lines", line={"color": "#888", "dash": "dot"})
        )
        for n, color in zip(sorted(self.values, reverse=True), COLORS, strict=False):
            line = {"color": color, "width": 3 if n == self.count else 1}
            told = f"mean, {n} outcomes"
            traces.append(go.Scatter(x=u, y=self.mean(name, n).tolist(), name=told, mode="lines", line=line))
        return traces

    def _of(self, name: str, n: int | None) -> Array:
        return self.values[self.count if n is None else n][:, list(self.parameters).index(name)]


def learned_warps(
    source: Study | Result | Optimizer, *, draws: int = 100, chains: int = 4, sizes: Sequence[int] | None = None
) -> LearnedWarps:
    """The warps that the outcomes of a study, of what `optimize` gives, or of an optimizer ask for, whoever ran it.

    ``sizes`` are the numbers of outcomes to learn from, a quarter, a half and all of them if not given.
    """
    for name, value in (("draws", draws), ("chains", chains)):
        if not isinstance(value, int | np.integer) or value < 1:
            raise InputError(f"`{name}` must be a whole number of at least 1, but got {value!r}.")
    observations, parameters = _known(source)
    n, columns = len(observations), observations.cube.warped
    if n < FEWEST or not columns:
        raise InputError(
            f"`source` must have at least {FEWEST} successful outcomes and a numeric parameter whose axis may be bent, "
            f"but it has {n} and {len(columns)}."
        )
    wanted = sorted({max(n // 4, FEWEST), max(n // 2, FEWEST), n} if sizes is None else {*sizes, n})
    if not all(isinstance(size, int | np.integer) and FEWEST <= size <= n for size in wanted):
        raise InputError(f"`sizes` must lie between {FEWEST} and {n}, but got {sizes!r}.")
    begun, values, last = time.perf_counter(), {}, np.empty((0, 0, 0))
    with one_blas_thread():
        for size in wanted:
            values[size], last = _drawn(observations.head(size), draws, chains)
    names = list(parameters)
    return LearnedWarps(
        {names[j]: parameters[names[j]] for j in columns},
        values,
        float(effective_size(last).min()),
        float(potential_reduction(last).max()),
        time.perf_counter() - begun,
    )


def _drawn(observations: Observations, draws: int, chains: int) -> tuple[Array, Array]:
    """Warps (draws, columns, m) and the draws (chains, draws a chain, k) of all hyper-parameters."""
    recipe = GaussianProcess(warped=True)
    kernel = recipe.covariance(observations.cube)
    assert isinstance(kernel, Warped), "some column may be bent"
    posterior, each = recipe.posterior(observations), max(-(-draws // chains), 4)
    found = [posterior.draws(each, np.random.default_rng(c), burn_in=BURN_IN) for c in range(chains)]
    thetas = np.concatenate(found)[:, : len(kernel.labels)]
    return np.array([kernel.warps(theta, POSITIONS) for theta in thetas]), np.array(found)


def _known(source: Study | Result | Optimizer) -> tuple[Observations, Mapping[str, Parameter]]:
    if isinstance(source, Result):
        return _known(source.study)
    if isinstance(source, Optimizer):
        return filled(source.history()[0]).valid(), dict(source.space)
    if not isinstance(source, Study):
        raise InputError(f"`source` must be an Optuna study, a Result or an Optimizer, but got {source!r}.")
    columns, _, observations = read_outcomes(source)
    return filled(observations).valid(), columns.parameters
