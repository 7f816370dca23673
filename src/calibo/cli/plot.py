"""`calibo plot`: figures of learned warps and task correlations."""

import argparse
import html
from pathlib import Path

from calibo.cli.options import add_json, add_storage, existing_study, print_result
from calibo.cli.terminal import printable
from calibo.diagnostics.learned import learned_tasks, learned_warps
from calibo.errors import InputError
from calibo.html import figures_html, plotly, write_page
from calibo.optuna.internals import storage_of
from calibo.optuna.storages import storage_errors

PARTS = {"warps": "hyperparameter", "tasks": "correlation"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    figures = parser.add_subparsers(dest="figure", metavar="FIGURE", required=True)
    warps = figures.add_parser(
        "warps", help="learned input warps, which make the objective vary evenly along each axis"
    )
    tasks = figures.add_parser("tasks", help="correlations between a study and the prior studies it learns from")
    for figure, drawn_words, page in ((warps, "warps", "warps.html"), (tasks, "correlations", "tasks.html")):
        figure.add_argument("study", nargs="?", metavar="STUDY", help="may be omitted if there is only one")
        figure.add_argument(
            "--samples", type=int, default=100, metavar="N", help=f"number of {drawn_words} to draw from the posterior"
        )
        figure.add_argument("--html", default=page, metavar="FILE", help="HTML page to write")
        add_storage(figure)
        add_json(figure)


def execute(options: argparse.Namespace) -> int:
    if options.samples < 1:
        raise InputError(f"--samples must be at least 1, but got {options.samples}.")
    plotly()  # raises before anything is sampled
    study = existing_study(options)
    with storage_errors(storage_of(study)):
        learned = learned_warps if options.figure == "warps" else learned_tasks
        found = learned(study, draws=options.samples)
    quality = (
        f"{len(found.values[found.count])} draws in {found.seconds:.1f} s; worst {PARTS[options.figure]}: effective "
        f"sample size {found.effective:.0f}, R-hat {found.reduction:.2f}."
    )
    words = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in [*found.sentences(), quality])
    title = f"Learned {options.figure} of {study.study_name}"
    write_page(
        Path(options.html), title, f"<h1>{html.escape(title)}</h1>{words}{figures_html([found.figure()], wide=True)}"
    )
    lines = [*found.sentences(), quality, f"Figure written to {options.html}"]
    known = {"study": study.study_name, "html": options.html, "sentences": found.sentences(), "quality": quality}
    print_result(options, "\n".join(map(printable, lines)), known)
    return 0
