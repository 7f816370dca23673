"""Self-contained HTML pages with tables and Plotly figures."""

import html
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from calibo.errors import InputError

COLORS = ("#d62728", "#1f77b4", "#2ca02c", "#ff7f0e", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f")
STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;color:#222;margin:0}main{max-width:1200px;margin:auto;padding:1rem 2rem}"
    "table{border-collapse:collapse;margin:.6rem 0;font-variant-numeric:tabular-nums;font-size:.9em}"
    "td,th{border-bottom:1px solid #ddd;padding:.2rem .7rem;text-align:left;"
    "white-space:nowrap}th{border-bottom:2px solid #888}"
    ".figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(500px,1fr));gap:1rem}"
    ".figure{break-inside:avoid}@media print{main{max-width:none;padding:0}.figures{grid-template-columns:1fr 1fr}}"
)


def plotly() -> Any:
    """Plotly's graph objects."""
    try:
        import plotly.graph_objects as go
    except ImportError:
        raise InputError("Figures need Plotly, which is not installed. Run `pip install calibo[plot]`.") from None
    return go


def short(value: Any) -> str:
    """A value in a table or a line of output."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def table(rows: Iterable[Sequence[Any]]) -> str:
    """Rows of a name and values, as a notebook shows them."""
    out = []
    for name, *values in rows:
        cells = "".join(f"<td>{html.escape(short(value))}</td>" for value in values)
        out.append(f"<tr><th>{html.escape(name)}</th>{cells}</tr>")
    return f"<table>{''.join(out)}</table>"


def paragraphs(sentences: Iterable[str]) -> str:
    return "".join(f"<p>{html.escape(sentence)}</p>" for sentence in sentences)


def figures_html(figures: list[Any], *, wide: bool = False) -> str:
    """Plotly figures side by side, or ``wide`` below each other, as HTML."""
    config = {"displayModeBar": False}
    parts = [figure.to_html(full_html=False, include_plotlyjs=False, config=config) for figure in figures]
    return (
        f"<div class={'wide' if wide else 'figures'}>"
        + "".join(f"<div class=figure>{part}</div>" for part in parts)
        + "</div>"
    )


def markdown_to_html(text: str) -> str:
    """The Markdown of our reports as HTML: headings, tables, lists and paragraphs."""
    out: list[str] = []
    for block in text.split("\n\n"):
        lines = block.strip().splitlines()
        if not lines:
            continue
        if lines[0].startswith("#"):
            level = len(lines[0]) - len(lines[0].lstrip("#"))
            out.append(
                f"<h{level}>{_inline(lines[0].lstrip('# '))}</h{level}>{markdown_to_html(chr(10).join(lines[1:]))}"
            )
        elif lines[0].startswith("|"):
            rows = [
                [_inline(cell.strip()) for cell in line.strip().strip("|").split("|")]
                for line in lines
                if "---" not in line
            ]
            head = "".join(f"<th>{cell}</th>" for cell in rows[0])
            cells = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows[1:])
            out.append(f"<table><thead><tr>{head}</tr></thead><tbody>{cells}</tbody></table>")
        elif lines[0].startswith("* "):
            out.append("<ul>" + "".join(f"<li>{_inline(line[2:])}</li>" for line in lines) + "</ul>")
        else:
            out.append(f"<p>{_inline(block.strip())}</p>")
    return "".join(out)


def _inline(text: str) -> str:
    """Escape HTML, and convert bold and code."""
    escaped = html.escape(text)
    for mark, tag in (("**", "b"), ("`", "code")):
        while escaped.count(mark) > 1:
            escaped = escaped.replace(mark, f"<{tag}>", 1).replace(mark, f"</{tag}>", 1)
    return escaped


def write_page(path: Path, title: str, body: str) -> None:
    """Write ``body`` as a single HTML file."""
    plotly()
    from plotly.offline import get_plotlyjs

    text = (
        f"<!doctype html><html lang=en><head><meta charset=utf-8><title>{html.escape(title)}</title>"
        f'<meta name=viewport content="width=device-width"><style>{STYLE}</style>'
        f"<script>{get_plotlyjs()}</script></head><body><main>{body}</main></body></html>"
    )
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"The page {str(path)!r} could not be written: {error.strerror}.") from error
