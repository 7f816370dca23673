"""A self-contained HTML page with tables and curves."""

from pathlib import Path
from typing import Any

import numpy as np

from calibo.html import COLORS, figures_html, markdown_to_html, plotly, write_page
from calibo_bench.statistics import Results

__all__ = ["curves", "page"]


def page(results: Results, reference: str, title: str, text: str, path: Path) -> None:
    """One HTML file: the tables of the Markdown ``text`` and the curves of every problem."""
    before, heading, after = text.partition("## Each problem")
    drawn = figures_html(curves(results, reference))
    body = f"{markdown_to_html(before)}<h2>Curves</h2>{drawn}{markdown_to_html(heading + after)}"
    write_page(path, title, body)


def curves(results: Results, reference: str) -> list[Any]:
    """A figure for every problem: the regret of every strategy after each evaluation."""
    go = plotly()
    figures = []
    for problem in results.problems:
        figure = go.Figure()
        for i, name in enumerate(results.strategies):
            runs = np.array([curve for (p, _), curve in results.curves[name].items() if p == problem])
            if len(runs):
                start = results.initial[problem]
                steps = list(range(start, start + runs.shape[1]))
                middle = np.exp(np.log(runs).mean(axis=0))
                rank = 0 if name == reference else 1
                style = {
                    "color": COLORS[i % len(COLORS)],
                    "width": 3 if name == reference else 1.5,
                    "dash": DASHES[i // len(COLORS) % 3],
                }
                curve = go.Scatter(x=steps, y=middle.tolist(), name=name, line=style, legendrank=rank)
                figure.add_trace(curve)
        figure.update_layout(
            title=problem,
            template="plotly_white",
            height=max(340, 120 + 19 * len(results.strategies)),  # a legend that scrolls would hide strategies
            margin={"l": 60, "r": 10, "t": 40, "b": 40},
            xaxis_title="evaluations",
            yaxis={"title": "regret, geometric mean", "type": "log", "exponentformat": "power"},
            legend={"font": {"size": 11}, "tracegroupgap": 0},
        )
        figures.append(figure)
    return figures


DASHES = ("solid", "dash", "dot")
