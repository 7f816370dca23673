"""One HTML page with tables and curves that needs nothing from outside."""

import html
from pathlib import Path

import numpy as np

from calibo.bench.statistics import Results
from calibo.pages import drawn, plotly, write_page

__all__ = ["page"]


def page(results: Results, reference: str, title: str, text: str, path: Path) -> None:
    """One HTML file: the tables of the Markdown ``text`` and the curves of every problem."""
    go = plotly()
    figures = []
    for problem in results.problems:
        figure = go.Figure()
        for i, name in enumerate(results.strategies):
            curves = np.array([curve for (p, _), curve in results.curves[name].items() if p == problem])
            if len(curves):
                start = next(row["initial"] for row in results.rows if row["problem"] == problem)
                steps = list(range(start, start + curves.shape[1]))
                middle = np.exp(np.log(curves).mean(axis=0))
                style = {
                    "color": COLORS[i % len(COLORS)],
                    "width": 3 if name == reference else 1.5,
                    "dash": DASHES[i // len(COLORS) % 3],
                }
                figure.add_trace(go.Scatter(x=steps, y=middle.tolist(), name=name, line=style))
        figure.update_layout(
            title=problem,
            template="plotly_white",
            height=340,
            margin={"l": 60, "r": 10, "t": 40, "b": 40},
            xaxis_title="evaluations",
            yaxis={"title": "regret, geometric mean", "type": "log", "exponentformat": "power"},
            legend={"font": {"size": 11}, "tracegroupgap": 0},
        )
        figures.append(figure)
    tables = _tables(text)
    write_page(path, title, f"{tables[0]}<h2>Curves</h2>{drawn(figures)}{tables[1]}")


COLORS = ("#d62728", "#1f77b4", "#2ca02c", "#ff7f0e", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f")
DASHES = ("solid", "dash", "dot")


def _tables(text: str) -> tuple[str, str]:
    """The Markdown of the report as HTML: what stands before the tables of single problems, and the rest."""
    out: list[str] = []
    for block in text.split("\n\n"):
        lines = block.splitlines()
        if block.startswith("#"):
            level = len(block) - len(block.lstrip("#"))
            out.append(f"<h{level}>{_inline(block.lstrip('# '))}</h{level}>")
        elif lines and lines[0].startswith("|"):
            rows = [
                [_inline(cell.strip()) for cell in line.strip().strip("|").split("|")]
                for line in lines
                if "---" not in line
            ]
            head = "".join(f"<th>{cell}</th>" for cell in rows[0])
            cells = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows[1:])
            out.append(f"<table><thead><tr>{head}</tr></thead><tbody>{cells}</tbody></table>")
        elif lines and lines[0].startswith("* "):
            out.append("<ul>" + "".join(f"<li>{_inline(line[2:])}</li>" for line in lines) + "</ul>")
        elif block.strip():
            out.append(f"<p>{_inline(block)}</p>")
    split = next((i for i, part in enumerate(out) if part == "<h2>Each problem</h2>"), len(out))
    return "".join(out[:split]), "".join(out[split:])


def _inline(text: str) -> str:
    """Escaped, with bold kept."""
    escaped = html.escape(text)
    while "**" in escaped:
        escaped = escaped.replace("**", "<b>", 1).replace("**", "</b>", 1)
    return escaped
