"""`calibo reproduce`: tables and figures of papers, run again."""

import argparse
from pathlib import Path

from calibo.bench.runner import read_rows
from calibo.cli.measuring import measure, result_file
from calibo.cli.terminal import complain, printable, say
from calibo.errors import InputError
from calibo.pages import drawn, plotly, rendered, write_page
from calibo.reproduce import TARGETS, Archive, Target

__all__ = ["add_arguments", "execute"]

QUICK_SEEDS = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="TARGET", help="see --list; 'all' for every one")
    parser.add_argument("--list", action="store_true", help="targets, and how many runs a seed of each takes")
    parser.add_argument("--seeds", type=int, metavar="N", help="the seeds 0 to N - 1; 20, or 3 with --quick")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes, with one BLAS thread each")
    parser.add_argument("--quick", action="store_true", help="runs of eight steps, for a first look")
    parser.add_argument("--out", default="reproduced", metavar="FOLDER", help="tables and pages are written there")
    parser.add_argument("--runs", metavar="FILE", help="result file, FOLDER/runs.jsonl if none; more is appended to it")
    parser.add_argument("--report-only", action="store_true", help="run nothing, report what there is")


def execute(options: argparse.Namespace) -> int:
    if options.list:
        for target in TARGETS.values():
            say(f"{target.name:16s} {len(set(target.runs)):3d} runs a seed  {target.title}")
        return 0
    seeds = options.seeds if options.seeds is not None else QUICK_SEEDS if options.quick else 20
    if seeds < 1 or options.jobs < 1:
        raise InputError("--seeds and --jobs must be at least 1.")
    unknown = [name for name in options.names if name not in TARGETS and name != "all"]
    if unknown or not options.names:
        raise InputError(f"TARGET must be of {list(TARGETS)}, or 'all', but got {unknown or 'none'}.")
    targets = [target for target in TARGETS.values() if target.name in options.names or "all" in options.names]
    folder, pages = _folder(options.out), _pages()
    path = result_file(options.runs) if options.runs else folder / "runs.jsonl"
    failed = 0
    if not options.report_only:
        cells = [cell for target in targets for cell in target.cells(seeds, quick=options.quick)]
        # all of a seed first: whoever stops has something
        failed = measure(sorted(dict.fromkeys(cells), key=lambda cell: cell.seed), path, options.jobs)
    rows = read_rows(path)
    if not rows:
        raise InputError(f"There must be runs to report, but {str(path)!r} has none.")
    for target in targets:
        _report(target, Archive(rows, seeds, options.quick), folder, pages=pages)
    return 1 if failed else 0


def _folder(name: str) -> Path:
    folder = Path(name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out must be a folder that can be written, but got {name!r}: {error.strerror}.") from None
    return folder


def _pages() -> bool:
    """Whether pages can be drawn; told before anything runs."""
    try:
        plotly()
    except InputError as error:
        complain(f"{error} Tables are written without it.", "yellow")
        return False
    return True


def _made_by(target: Target, archive: Archive) -> str:
    """Whether the runs were made by one state of the code."""
    rows = [row for run in dict.fromkeys(target.runs) for row in archive.of(run).values()]
    states = sorted({str(row.get("versions", {}).get("calibo source", "unknown")) for row in rows})
    return f"{len(rows)} runs, by {len(states)} state{'s' * (len(states) != 1)} of calibo's code: {', '.join(states)}."


def _report(target: Target, archive: Archive, folder: Path, *, pages: bool) -> None:
    words = f"calibo reproduce {target.name} --seeds {archive.seeds}{' --quick' if archive.quick else ''}"
    text = f"# {target.title}\n\n`{words}`\n\n"
    if archive.quick:
        text += "**A first look: eight steps at most.**\n\n"
    lacking = archive.lacking(target.runs)
    if lacking:
        text += (
            "Not made, or failed, and left out of what is compared:\n\n" + "\n".join(f"* {w}" for w in lacking) + "\n\n"
        )
    report = target.report(archive)
    text += f"{report.text}\n\n{_made_by(target, archive)}\n"
    name = f"{target.name}-quick" if archive.quick else target.name
    table, page = folder / f"{name}.md", folder / f"{name}.html"
    table.write_text(text, encoding="utf-8")
    if pages:
        write_page(page, target.title, rendered(text) + drawn(list(report.draw()), wide=report.wide))
    say(f"{target.name}: {printable(str(table))}{f' and {printable(str(page))}' if pages else ''}")
