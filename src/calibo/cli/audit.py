"""`calibo audit`: how far the forecasts of a study could be trusted."""

import argparse
import html
from pathlib import Path

from rich.table import Table

from calibo.adapters.internals import storage_of
from calibo.adapters.storage import guarded
from calibo.audits import Audit, audit
from calibo.cli.places import add_storage, add_strategy, strategy_in, study_of
from calibo.cli.terminal import cell, output, printable, say
from calibo.pages import drawn, write_page
from calibo.study import Result

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", nargs="?", metavar="STUDY", help="may be left out where there is only one")
    parser.add_argument("--html", metavar="FILE", help="write a page with a reliability diagram and a PIT histogram")
    add_strategy(parser)
    add_storage(parser)


def execute(options: argparse.Namespace) -> int:
    study = study_of(options)
    with guarded(storage_of(study)):
        found = audit(Result(study, strategy_in(options)))
    say(printable(found.title))
    if found.outcomes:
        table = Table("", "raw", "recalibrated", "right")
        for row in found.table():
            table.add_row(*(cell(part) for part in row))
        output.print(table)
    for sentence in found.sentences():
        say(printable(sentence))
    if options.html is not None:
        path = Path(options.html)
        write_page(path, f"Audit of {found.name}", _body(found))
        say(f"Figures are in {printable(str(path))}")
    return 0


def _body(found: Audit) -> str:
    head = "".join(f"<th>{name}</th>" for name in ("", "raw", "recalibrated", "right"))
    rows = [
        "<tr>" + "".join(f"<td>{html.escape(part)}</td>" for part in row) + "</tr>"
        for row in (found.table() if found.outcomes else [])
    ]
    sentences = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in found.sentences())
    figures = drawn([found.reliability_diagram(), found.pit_histogram()])
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    return f"<h1>Audit</h1><p>{html.escape(found.title)}</p>{sentences}{figures}{table}"
