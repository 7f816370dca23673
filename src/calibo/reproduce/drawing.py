"""Figures of targets: curves of best values, calibration scores, and selected steps in one dimension."""

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any

import numpy as np

from calibo.bench.functions import function
from calibo.optimizer import Optimizer
from calibo.pages import plotly
from calibo.reproduce.targets import Archive, Run
from calibo.space import Float

__all__ = ["improvement", "scores", "steps", "traces"]

COLORS = ("#d62728", "#1f77b4", "#2ca02c", "#ff7f0e", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f")
GRID = np.linspace(0.0, 1.0, 201)


def traces(archive: Archive, title: str, runs: Mapping[str, Run]) -> Any:
    """The best value so far: mean over seeds, and one standard error on both sides."""
    go = plotly()
    figure = go.Figure()
    for (label, run), color in zip(runs.items(), COLORS, strict=False):
        curves = np.array(list(archive.curves(run).values()))
        if len(curves):
            _band(figure, go, label, curves, color)
    return _laid_out(figure, title, "steps", "best value")


def improvement(archive: Archive, title: str, pairs: Mapping[str, tuple[Run, Run]]) -> Any:
    """Best of the first less best of the second, per run: above 0 where the second is ahead."""
    go = plotly()
    figure = go.Figure()
    for (label, (first, second)), color in zip(pairs.items(), COLORS, strict=False):
        one, two = archive.curves(first), archive.curves(second)
        gaps = np.array([one[seed] - two[seed] for seed in one if seed in two])
        if len(gaps):
            _band(figure, go, label, gaps, color)
    figure.add_hline(y=0.0, line={"color": "#888", "dash": "dot"})
    return _laid_out(figure, title, "steps", "uncalibrated less calibrated")


def scores(archive: Archive, title: str, runs: Mapping[str, Run]) -> Any:
    """The calibration score of all forecasts so far: of the raw ones dotted, of those that were used full."""
    go = plotly()
    figure = go.Figure()
    for (label, run), color in zip(runs.items(), COLORS, strict=False):
        raw, used = archive.scores(run)
        x = list(range(1, len(raw) + 1))
        if len(raw) and not np.allclose(raw, used):
            dotted = {"color": color, "dash": "dot"}
            figure.add_trace(
                go.Scatter(x=x, y=raw.tolist(), name=f"{label}, before correction", mode="lines", line=dotted)
            )
        figure.add_trace(go.Scatter(x=x, y=used.tolist(), name=label, mode="lines", line={"color": color}))
    return _laid_out(figure, title, "steps", "calibration score")


def steps(strategies: Mapping[str, Any], initial: Sequence[float], shown: Sequence[int], seed: int) -> Any:
    """Selected steps on Forrester's function: what was believed, the bound that was minimised, and the next point."""
    go = plotly()
    from plotly.subplots import make_subplots

    titles = [f"{name}, step {step}" for name in strategies for step in shown]
    shape = {"rows": len(strategies), "cols": len(shown)}
    grid = make_subplots(
        **shape, subplot_titles=titles, shared_yaxes=True, horizontal_spacing=0.02, vertical_spacing=0.12
    )
    truth = function("forrester")
    for i, strategy in enumerate(strategies.values(), start=1):
        for step, known in enumerate(_followed(strategy, initial, max(shown), seed), start=1):
            if step in shown:
                for trace in _drawn_step(go, truth, known):
                    trace.showlegend = i == 1 and step == shown[0]
                    grid.add_trace(trace, row=i, col=shown.index(step) + 1)
    grid.update_yaxes(range=[-12, 18]).update_xaxes(range=[-0.03, 1.03])
    return grid.update_layout(
        template="plotly_white", height=620, width=1150, margin={"l": 40, "r": 10, "t": 50, "b": 30}, font_size=11
    )


def _followed(strategy: Any, initial: Sequence[float], count: int, seed: int) -> list[dict[str, Any]]:
    """What was known, believed and chosen at every step."""
    truth = function("forrester")
    optimizer = Optimizer({"x": Float(0, 1)}, strategy=strategy, seed=seed)
    for x in initial:
        optimizer.tell({"x": x}, truth(np.array([x])))
    found = []
    for _ in range(count):
        points = [optimizer.forecast({"x": float(x)}) for x in GRID]
        quantiles = np.array([[point.quantile(p) for p in (0.05, 0.5, 0.95)] for point in points]).T
        data = np.array([[trial.params["x"], trial.value] for trial in optimizer.trials])
        asked = optimizer.ask()
        found.append({"data": data, "quantiles": quantiles, "next": asked["x"]})
        optimizer.tell(asked, truth(np.array([asked["x"]])))
    return found


def _drawn_step(go: Any, truth: Any, known: Mapping[str, Any]) -> list[Any]:
    low, middle, high = known["quantiles"]
    band = {
        "fill": "toself",
        "fillcolor": "rgba(31,119,180,.2)",
        "line": {"width": 0},
        "mode": "lines",
        "hoverinfo": "skip",
    }
    red = {"color": "#d62728"}
    values = [truth(np.array([x])) for x in GRID]
    dots = {"x": known["data"][:, 0].tolist(), "y": known["data"][:, 1].tolist()}
    return [
        go.Scatter(x=[*GRID, *GRID[::-1]], y=[*high, *low[::-1]], name="90 % interval", **band),
        go.Scatter(x=GRID.tolist(), y=middle.tolist(), name="median", line={"color": "#1f77b4"}),
        go.Scatter(x=GRID.tolist(), y=values, name="truth", line={"color": "#2ca02c", "dash": "dot"}),
        go.Scatter(**dots, name="known", mode="markers", marker={"color": "black"}),
        go.Scatter(x=[known["next"]] * 2, y=[-12, 18], name="next", mode="lines", line=red),
    ]


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
