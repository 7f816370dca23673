"""Selected steps of runs on Forrester's function, drawn: CAL24 Figures 1 and 6."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import ndtr

from calibo import Optimizer
from calibo.html import plotly
from calibo.space import Float
from calibo_bench.problems.functions import function

__all__ = ["steps"]

GRID = np.linspace(0.0, 1.0, 201)
LEVELS = (float(ndtr(-2.0)), 0.05, 0.5, 0.95)  # the first is the bound that is minimised


def steps(strategies: Mapping[str, Any], initial: Sequence[float], shown: Sequence[int], seed: int) -> Any:
    """Selected steps on Forrester's function: the posterior, the bound that was minimised, and the next point."""
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
    """Data, forecast quantiles and next point of every step."""
    truth = function("forrester")
    optimizer = Optimizer({"x": Float(0, 1)}, strategy=strategy, seed=seed)
    for x in initial:
        optimizer.tell({"x": x}, truth(np.array([x])))
    found = []
    for _ in range(count):
        points = [optimizer.forecast({"x": float(x)}) for x in GRID]
        quantiles = np.array([[point.quantile(p) for p in LEVELS] for point in points]).T
        data = np.array([[trial.params["x"], trial.value] for trial in optimizer.trials])
        asked = optimizer.ask()
        found.append({"data": data, "quantiles": quantiles, "next": asked["x"]})
        optimizer.tell(asked, truth(np.array([asked["x"]])))
    return found


def _drawn_step(go: Any, truth: Any, known: Mapping[str, Any]) -> list[Any]:
    bound, low, middle, high = known["quantiles"]
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
        go.Scatter(x=GRID.tolist(), y=bound.tolist(), name="bound", line={"color": "#9467bd", "width": 1}),
        go.Scatter(x=GRID.tolist(), y=values, name="truth", line={"color": "#2ca02c", "dash": "dot"}),
        go.Scatter(**dots, name="data", mode="markers", marker={"color": "black"}),
        go.Scatter(x=[known["next"]] * 2, y=[-12, 18], name="next", mode="lines", line=red),
    ]
