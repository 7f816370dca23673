"""Figures of an audit: forecasts against outcomes."""

from collections.abc import Mapping
from math import sqrt
from typing import Any

import numpy as np

from calibo.arrays import Array
from calibo.html import plotly

COLORS = {"raw": "#d62728", "calibrated": "#1f77b4", "reported": "#2ca02c"}
BINS = 10


def reliability_diagram(pits: Mapping[str, Array]) -> Any:
    """The share of outcomes below each forecast quantile, for each kind of forecast; the diagonal is ideal."""
    go = plotly()
    figure = go.Figure()
    levels = np.linspace(0.0, 1.0, 101)
    n = max((len(values) for values in pits.values()), default=0)
    # pointwise 90 % band of calibrated forecasts, given the number of outcomes
    band = 1.645 * np.sqrt(levels * (1.0 - levels) / max(n, 1))
    edge = np.concatenate([np.minimum(levels + band, 1.0), np.maximum(levels - band, 0.0)[::-1]])
    around = np.concatenate([levels, levels[::-1]])
    shade = {"fill": "toself", "fillcolor": "rgba(0,0,0,.07)", "line": {"width": 0}, "hoverinfo": "skip"}
    figure.add_trace(go.Scatter(x=around.tolist(), y=edge.tolist(), name="90 % band if calibrated", **shade))
    figure.add_trace(go.Scatter(x=[0, 1], y=[0, 1], name="ideal", line={"color": "#888", "dash": "dot"}))
    for name, values in pits.items():
        shares = (values[:, None] <= levels).mean(axis=0) if len(values) else np.full(len(levels), np.nan)
        line = {"color": COLORS[name], "shape": "hv", "width": 2.5}
        figure.add_trace(go.Scatter(x=levels.tolist(), y=shares.tolist(), name=name, line=line))
    axis = {"range": [-0.02, 1.02], "tickformat": ".0%"}
    return _laid_out(
        figure,
        f"Reliability: {n} outcomes",
        {"title": "forecast probability of a value at least as good", **axis},
        {"title": "share of outcomes at least as good", **axis},
    )


def pit_histogram(pits: Mapping[str, Array]) -> Any:
    """Histogram of the PIT values of the outcomes; flat is ideal."""
    go = plotly()
    figure = go.Figure()
    edges = np.linspace(0.0, 1.0, BINS + 1)
    middles = 0.5 * (edges[1:] + edges[:-1])
    for name, values in pits.items():
        counts = np.histogram(values, edges)[0]
        figure.add_trace(go.Bar(x=middles.tolist(), y=counts.tolist(), name=name, marker={"color": COLORS[name]}))
    n = max((len(values) for values in pits.values()), default=0)
    usual, spread = n / BINS, sqrt(n / BINS * (1.0 - 1.0 / BINS))
    figure.add_hline(y=usual, line={"color": "#888", "dash": "dot"})
    ends = {"y0": max(usual - 1.645 * spread, 0.0), "y1": usual + 1.645 * spread}
    figure.add_hrect(**ends, fillcolor="black", opacity=0.07, line_width=0, layer="below")
    axis = {"title": "outcome compared with its forecast (PIT)", "tickvals": [0.05, 0.5, 0.95]}
    return _laid_out(
        figure,
        f"PIT histogram: {n} outcomes",
        {**axis, "ticktext": ["better", "as expected", "worse"]},
        {"title": "outcomes"},
    )


def _laid_out(figure: Any, title: str, x: Mapping[str, Any], y: Mapping[str, Any]) -> Any:
    return figure.update_layout(
        title=title,
        template="plotly_white",
        height=420,
        margin={"l": 60, "r": 10, "t": 50, "b": 50},
        xaxis=dict(x),
        yaxis=dict(y),
        legend={"orientation": "h", "y": 1.08},
    )
