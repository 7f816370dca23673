"""`calibo audit`: check how well the forecasts of a study were calibrated."""

import argparse
import html
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.table import Table

from calibo.cli.options import add_json, add_storage, add_strategy, existing_study, requested_strategy
from calibo.cli.terminal import cell, output, print_json, print_line, printable
from calibo.diagnostics.audit import Audit, audit
from calibo.html import figures_html, write_page
from calibo.optuna.internals import storage_of
from calibo.optuna.storages import storage_errors
from calibo.study import Result


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", nargs="?", metavar="STUDY", help="may be omitted if there is only one")
    parser.add_argument("--html", metavar="FILE", help="write a reliability diagram and a PIT histogram to this page")
    add_strategy(parser)
    add_storage(parser)
    add_json(parser)


def execute(options: argparse.Namespace) -> int:
    study = existing_study(options)
    with storage_errors(storage_of(study)):
        found = audit(Result(study, requested_strategy(options)))
    if options.json:
        print_json(_summary(found))
    else:
        print_line(printable(found.title))
        if rows := found.table():
            table = Table(*found.head)
            for row in rows:
                table.add_row(*(cell(part) for part in row))
            output.print(table)
        for sentence in found.sentences():
            print_line(printable(sentence))
    if options.html is not None:
        path = Path(options.html)
        write_page(path, f"Audit of {found.name}", _body(found))
        if not options.json:
            print_line(f"Figures written to {printable(str(path))}")
    return 0


def _summary(found: Audit) -> dict[str, Any]:
    """As JSON."""
    scores = {name: asdict(scores) for name, scores in found.columns}
    return {"study": found.name, "outcomes": found.count, **scores, "sentences": found.sentences()}


def _body(found: Audit) -> str:
    head = "".join(f"<th>{name}</th>" for name in found.head)
    rows = ["<tr>" + "".join(f"<td>{html.escape(part)}</td>" for part in row) + "</tr>" for row in found.table()]
    sentences = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in found.sentences())
    figures = figures_html([found.reliability_diagram(), found.pit_histogram()])
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    return f"<h1>Audit</h1><p>{html.escape(found.title)}</p>{sentences}{figures}{table}"
