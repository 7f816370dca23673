"""The posterior of the hyperparameters: learned input warps, and correlations between tasks.

WARP14 Fig. 4 and 5a: the mean of posterior draws with a band, for increasing numbers of outcomes.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from optuna.study import Study

from calibo.arrays import Array
from calibo.errors import InputError
from calibo.gp.slice import effective_sample_size, split_rhat
from calibo.gp.warping import WarpedCovariance
from calibo.html import COLORS, paragraphs, plotly
from calibo.models import GaussianProcess, ModelChoice, Transfer
from calibo.observations import Observations
from calibo.optimizer import Optimizer
from calibo.optuna.reader import read_outcomes, read_study
from calibo.side_information import PRIOR_STUDIES
from calibo.space import Parameter
from calibo.study import Result
from calibo.threads import one_blas_thread

POSITIONS = np.linspace(0.0, 1.0, 101)
FEWEST_FOR_WARPS, FEWEST_FOR_TASKS = 4, 2  # outcomes
BURN_IN = 20
WARPS = {
    "low": "the objective varies most at the low end, as on a log scale",
    "high": "the objective varies most at the high end",
    "middle": "the objective varies most in the middle",
    "ends": "the objective varies most at both ends",
    "even": "the objective varies evenly, given the outcomes so far",
}


@dataclass(frozen=True, eq=False, repr=False)
class PosteriorDraws(ABC):
    """Posterior draws of some quantities, by the number of outcomes they were learned from."""

    values: Mapping[int, Array]
    """(draws, ...)"""

    effective: float
    """Effective sample size of the worst quantity, with all outcomes."""

    reduction: float
    """R-hat of the worst quantity: near 1 if the chains agree."""

    seconds: float

    def __repr__(self) -> str:
        quality = f"effective sample size {self.effective:.0f}, R-hat {self.reduction:.2f}"
        return f"{type(self).__name__}({self.count} outcomes, {len(self._draws(None))} draws, {quality})"

    @abstractmethod
    def sentences(self) -> list[str]:
        """What was learned, in words."""

    def _repr_html_(self) -> str:
        """For notebooks."""
        return paragraphs([*self.sentences(), repr(self)])

    @property
    def count(self) -> int:
        """The number of all outcomes."""
        return max(self.values)

    def _draws(self, n: int | None) -> Array:
        return self.values[self.count if n is None else n]


def _band(draws: Array, level: float) -> tuple[Array, Array]:
    low, high = np.quantile(draws, [0.5 - 0.5 * level, 0.5 + 0.5 * level], axis=0)
    return low, high


@dataclass(frozen=True, eq=False, repr=False)
class LearnedWarps(PosteriorDraws):
    """Warps at ``POSITIONS``: values are (draws, parameters, m)."""

    parameters: Mapping[str, Parameter]
    """The parameters that may be warped."""

    def mean(self, name: str, n: int | None = None) -> Array:
        """(m,) posterior mean of the warp of a parameter, learned from ``n`` outcomes or from all."""
        return np.asarray(self._of(name, n).mean(axis=0))

    def band(self, name: str, level: float = 0.9, n: int | None = None) -> tuple[Array, Array]:
        """(m,) lower and upper end of the central posterior interval."""
        return _band(self._of(name, n), level)

    def shape(self, name: str) -> str:
        """Where the mean stretches the axis: "low", "high", "middle", "ends" or "even"."""
        quarter, half, three = (float(np.interp(u, POSITIONS, self.mean(name))) for u in (0.25, 0.5, 0.75))
        if abs(half - 0.5) >= 0.1:
            return "low" if half > 0.5 else "high"
        return "even" if abs(three - quarter - 0.5) < 0.15 else "middle" if three - quarter > 0.5 else "ends"

    def sentences(self) -> list[str]:
        """The learned warp of each parameter, as a sentence."""
        return [f"{name}: {WARPS[self.shape(name)]}." for name in self.parameters]

    def figure(self) -> Any:
        """One panel per parameter: mean and 90 % band of the warps, and the means from fewer outcomes."""
        go = plotly()
        from plotly.subplots import make_subplots

        columns = min(len(self.parameters), 3)
        rows = -(-len(self.parameters) // columns)
        figure = make_subplots(
            rows=rows, cols=columns, subplot_titles=list(self.parameters), vertical_spacing=0.5 / rows / 2
        )
        for i, (name, parameter) in enumerate(self.parameters.items()):
            panel = {"row": i // columns + 1, "col": i % columns + 1}
            for trace in self._traces(go, name):
                trace.showlegend = i == 0
                figure.add_trace(trace, **panel)
            ticks = [float(str(parameter.decode(u))) for u in (0.0, 0.5, 1.0)]
            places = [parameter.encode(tick) for tick in ticks]  # an integer lies in the middle of its cell
            figure.update_xaxes(tickvals=places, ticktext=[f"{tick:.3g}" for tick in ticks], **panel)
        return figure.update_layout(
            title=f"Learned warps: {self.count} outcomes",
            template="plotly_white",
            height=90 + 260 * rows,
            width=120 + 340 * columns,
            margin={"l": 40, "r": 10, "t": 80, "b": 40},
        )

    def _traces(self, go: Any, name: str) -> list[Any]:
        low, high = self.band(name)
        u = POSITIONS.tolist()
        shade = {"fill": "toself", "fillcolor": "rgba(214,39,40,.15)", "line": {"width": 0}, "hoverinfo": "skip"}
        straight = {"name": "no warp", "mode": "lines", "line": {"color": "#888", "dash": "dot"}}
        traces = [
            go.Scatter(x=[*u, *u[::-1]], y=[*high, *low[::-1]], name="90 % band", mode="lines", **shade),
            go.Scatter(x=[0, 1], y=[0, 1], **straight),
        ]
        for n, color in zip(sorted(self.values, reverse=True), COLORS, strict=False):
            line = {"color": color, "width": 3 if n == self.count else 1}
            label = f"mean, {n} outcomes"
            traces.append(go.Scatter(x=u, y=self.mean(name, n).tolist(), name=label, mode="lines", line=line))
        return traces

    def _of(self, name: str, n: int | None) -> Array:
        return self._draws(n)[:, list(self.parameters).index(name)]


def learned_warps(
    source: Study | Result | Optimizer, *, draws: int = 100, chains: int = 4, sizes: Sequence[int] | None = None
) -> LearnedWarps:
    """The input warps learned from the outcomes of a study with any sampler, a `Result` or an `Optimizer`.

    ``sizes`` are the numbers of outcomes to learn from, by default a quarter, half and all of them.
    """
    _check_effort(draws, chains)
    observations, parameters = _observations(source)
    n, columns = len(observations), observations.cube.warped
    if n < FEWEST_FOR_WARPS or not columns:
        raise InputError(
            f"`source` must have at least {FEWEST_FOR_WARPS} successful outcomes and a numeric parameter that may be "
            f"warped, but it has {n} and {len(columns)}."
        )
    wanted = _sizes(n, FEWEST_FOR_WARPS) if sizes is None else sorted({*sizes, n})
    if not all(isinstance(size, int | np.integer) and FEWEST_FOR_WARPS <= size <= n for size in wanted):
        raise InputError(f"`sizes` must lie between {FEWEST_FOR_WARPS} and {n}, but got {sizes!r}.")
    process = GaussianProcess(warped=True)
    kernel = process.covariance(observations.cube)
    assert isinstance(kernel, WarpedCovariance), "some column may be warped"

    def sample(known: Observations, each: int) -> tuple[Array, Array]:
        posterior = process.hyper_posterior(known)
        found = [posterior.draws(each, np.random.default_rng(c), burn_in=BURN_IN) for c in range(chains)]
        thetas = np.concatenate(found)[:, : len(kernel.labels)]
        return np.array([kernel.warps(theta, POSITIONS) for theta in thetas]), np.array(found)

    names = list(parameters)
    return LearnedWarps(
        *_sample_each(observations, wanted, draws, chains, sample), {names[j]: parameters[names[j]] for j in columns}
    )


@dataclass(frozen=True, eq=False, repr=False)
class LearnedTasks(PosteriorDraws):
    """Correlations between tasks: values are (draws, tasks, tasks)."""

    names: tuple[str, ...]
    """Names of the tasks, the study itself first."""

    def mean(self, n: int | None = None) -> Array:
        """(tasks, tasks) posterior mean, learned from ``n`` outcomes or from all."""
        return np.asarray(self._draws(n).mean(axis=0))

    def band(self, level: float = 0.9, n: int | None = None) -> tuple[Array, Array]:
        """(tasks, tasks) lower and upper end of the central posterior interval."""
        return _band(self._draws(n), level)

    def sentences(self) -> list[str]:
        """How similar each prior study is to this one, as a sentence."""
        mean, (low, high) = self.mean()[0], self.band()
        return [
            f"{name}: {_similarity(low[0, t], high[0, t])} (correlation {mean[t]:.2f}, 90 % interval "
            f"[{low[0, t]:.2f}, {high[0, t]:.2f}])."
            for t, name in enumerate(self.names)
            if t > 0
        ]

    def figure(self) -> Any:
        """The mean correlations of all tasks, and those with the study by number of outcomes, with 90 % intervals."""
        go = plotly()
        from plotly.subplots import make_subplots

        figure = make_subplots(cols=2, subplot_titles=["all tasks", f"with {self.names[0]}"], horizontal_spacing=0.2)
        mean, names = self.mean(), list(self.names)
        words = [[f"{value:.2f}" for value in row] for row in mean]
        scale = {"zmin": -1.0, "zmax": 1.0, "colorscale": "RdBu", "reversescale": True, "colorbar": {"x": 0.42}}
        heatmap = go.Heatmap(z=mean, x=names, y=names, text=words, texttemplate="%{text}", **scale)
        figure.add_trace(heatmap, col=1, row=1)
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


def _similarity(low: float, high: float) -> str:
    if low > 0.5:
        return "similar"
    if high < -0.5:
        return "opposite"
    return "somewhat similar" if low > 0.0 else "somewhat opposite" if high < 0.0 else "unclear so far"


def learned_tasks(source: Study | Result, *, draws: int = 100, chains: int = 4) -> LearnedTasks:
    """The posterior correlations between a study, or that of a `Result`, and the prior studies it learns from.

    From a quarter, half and all of its outcomes, with ``draws`` of the hyperparameters in total from all ``chains``.
    """
    study = source.study if isinstance(source, Result) else source
    if not isinstance(study, Study):
        raise InputError(f"`source` must be an Optuna study or a Result, but got {source!r}.")
    _check_effort(draws, chains)
    data = read_study(study)
    observations = data.observations.impute().valid()
    if len(observations) < FEWEST_FOR_TASKS:
        raise InputError(
            f"`source` must have at least {FEWEST_FOR_TASKS} successful outcomes, but it has {len(observations)}."
        )
    surrogate = data.strategy.surrogate
    model = dict(surrogate.recipes).get(PRIOR_STUDIES) if isinstance(surrogate, ModelChoice) else None
    if not isinstance(model, Transfer):
        raise InputError(
            f"`source` must learn from prior studies, but {study.study_name!r} does not. "
            "Pass them with `transfer_from`."
        )
    rows, columns = np.tril_indices(len(model.sources) + 1, -1)

    def sample(known: Observations, each: int) -> tuple[Array, Array]:
        found = model.correlations(known, each, chains, BURN_IN)
        return found.reshape(-1, *found.shape[2:]), found[:, :, rows, columns]

    names = (study.study_name, *(task.name for task in model.sources))
    sizes = _sizes(len(observations), FEWEST_FOR_TASKS)
    return LearnedTasks(*_sample_each(observations, sizes, draws, chains, sample), names)


def _sizes(n: int, fewest: int) -> list[int]:
    return sorted({max(n // 4, fewest), max(n // 2, fewest), n})


def _sample_each(
    observations: Observations,
    sizes: Sequence[int],
    draws: int,
    chains: int,
    sample: Callable[[Observations, int], tuple[Array, Array]],
) -> tuple[Mapping[int, Array], float, float, float]:
    """The fields of `PosteriorDraws`; ``sample`` returns values and the chains (c, s, k) to diagnose."""
    start, values, last = time.perf_counter(), {}, np.empty((0, 0, 0))
    with one_blas_thread():
        for size in sizes:
            values[size], last = sample(observations.head(size), max(-(-draws // chains), 4))
    effective, reduction = float(effective_sample_size(last).min()), float(split_rhat(last).max())
    return values, effective, reduction, time.perf_counter() - start


def _check_effort(draws: int, chains: int) -> None:
    for name, value in (("draws", draws), ("chains", chains)):
        if not isinstance(value, int | np.integer) or value < 1:
            raise InputError(f"`{name}` must be a whole number of at least 1, but got {value!r}.")


def _observations(source: Study | Result | Optimizer) -> tuple[Observations, Mapping[str, Parameter]]:
    if isinstance(source, Result):
        return _observations(source.study)
    if isinstance(source, Optimizer):
        return source.history()[0].impute().valid(), dict(source.space)
    if not isinstance(source, Study):
        raise InputError(f"`source` must be an Optuna study, a Result or an Optimizer, but got {source!r}.")
    columns, _, observations = read_outcomes(source)
    return observations.impute().valid(), columns.parameters
