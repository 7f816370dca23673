"""Figures of targets: curves of best values and calibration scores."""

from collections.abc import Mapping
from math import sqrt
from typing import Any

import numpy as np

from calibo.html import COLORS, plotly
from calibo_bench.targets import Archive, Run

__all__ = ["improvement", "regrets", "scores", "traces"]

LEAST = 1e-8  # below the precision of stored values


def traces(archive: Archive, title: str, runs: Mapping[str, Run]) -> Any:
    """Best value so far: mean over seeds ± one standard error."""
    go = plotly()
    figure = go.Figure()
    for (label, run), color in zip(runs.items(), COLORS, strict=False):
        curves = np.array(list(archive.curves(run).values()))
        if len(curves):
            _band(figure, go, label, curves, color)
    return _laid_out(figure, title, "steps", "best value")


def regrets(archive: Archive, title: str, runs: Mapping[str, Run], minimum: float) -> Any:
    """Best value so far minus the minimum: geometric mean over seeds, on a log axis."""
    go = plotly()
    figure = go.Figure()
    for (label, run), color in zip(runs.items(), COLORS, strict=False):
        curves = np.array(list(archive.curves(run).values())) - minimum
        if len(curves):
            middle = np.exp(np.log(np.maximum(curves, LEAST)).mean(axis=0))
            x = list(range(len(middle)))
            figure.add_trace(go.Scatter(x=x, y=middle.tolist(), name=label, mode="lines", line={"color": color}))
    return _laid_out(figure, title, "steps", "regret").update_yaxes(type="log", exponentformat="power")


def improvement(archive: Archive, title: str, pairs: Mapping[str, tuple[Run, Run]]) -> Any:
    """Best value of the first minus that of the second, per run: positive if the second is ahead."""
    go = plotly()
    figure = go.Figure()
    for (label, (first, second)), color in zip(pairs.items(), COLORS, strict=False):
        one, two = archive.curves(first), archive.curves(second)
        gaps = np.array([one[seed] - two[seed] for seed in one if seed in two])
        if len(gaps):
            _band(figure, go, label, gaps, color)
    figure.add_hline(y=0.0, line={"color": "#888", "dash": "dot"})
    return _laid_out(figure, title, "steps", "uncalibrated minus calibrated")


def scores(archive: Archive, title: str, runs: Mapping[str, Run]) -> Any:
    """The calibration score of all forecasts so far: raw ones dotted, used ones solid."""
    go = plotly()
    figure = go.Figure()
    for (label, run), color in zip(runs.items(), COLORS, strict=False):
        raw, used = archive.scores(run)
        x = list(range(1, len(raw) + 1))
        if len(raw) and not np.allclose(raw, used):
            dotted = {"color": color, "dash": "dot"}
            figure.add_trace(
                go.Scatter(x=x, y=raw.tolist(), name=f"{label}, before recalibration", mode="lines", line=dotted)
            )
        figure.add_trace(go.Scatter(x=x, y=used.tolist(), name=label, mode="lines", line={"color": color}))
    return _laid_out(figure, title, "steps", "calibration score")


def _band(figure: Any, go: Any, label: str, curves: Any, color: str) -> None:
    x = list(range(curves.shape[1]))
    middle = curves.mean(axis=0)
    error = curves.std(axis=0, ddof=1) / sqrt(len(curves)) if len(curves) > 1 else np.zeros_like(middle)
    shade = {
        "fill": "toself",
        "fillcolor": color,
        "opacity": 0.15,
        "line": {"width": 0},
        "mode": "lines",
        "hoverinfo": "skip",
    }
    edge = [*(middle + error), *(middle - error)[::-1]]
    figure.add_trace(go.Scatter(x=[*x, *x[::-1]], y=edge, showlegend=False, legendgroup=label, **shade))
    figure.add_trace(
        go.Scatter(x=x, y=middle.tolist(), name=label, legendgroup=label, mode="lines", line={"color": color})
    )


def _laid_out(figure: Any, title: str, x: str, y: str) -> Any:
    return figure.update_layout(
        title=title,
        template="plotly_white",
        height=380,
        margin={"l": 60, "r": 10, "t": 45, "b": 45},
        xaxis_title=x,
        yaxis_title=y,
        legend={"orientation": "h", "y": -0.2},
    )
