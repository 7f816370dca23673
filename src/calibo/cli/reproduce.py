"""`calibo reproduce`: tables and figures of papers, run again."""

import argparse
from pathlib import Path

from calibo.bench.runner import missing, read_rows, run
from calibo.cli.terminal import complain, printable, say
from calibo.errors import InputError
from calibo.pages import drawn, rendered, write_page
from calibo.progress import progress
from calibo.reproduce import TARGETS, Archive, Target

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="TARGET", help="see --list; 'all' for every one")
    parser.add_argument("--list", action="store_true", help="targets, and how many runs a seed of each takes")
    parser.add_argument("--seeds", type=int, default=20, metavar="N", help="the seeds 0 to N - 1")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes, with one BLAS thread each")
    parser.add_argument("--quick", action="store_true", help="three seeds of eight steps, for a first look")
    parser.add_argument("--out", default="reproduced", metavar="FOLDER", help="tables and pages are written there")
    parser.add_argument("--runs", metavar="FILE", help="result file, FOLDER/runs.jsonl if none; more is appended to it")
    parser.add_argument("--report-only", action="store_true", help="run nothing, report what there is")


def execute(options: argparse.Namespace) -> int:
    if options.list:
        for target in TARGETS.values():
            say(f"{target.name:16s} {len(set(target.runs)):3d} runs a seed  {target.title}")
        return 0
    if options.seeds < 1 or options.jobs < 1:
        raise InputError("--seeds and --jobs must be at least 1.")
    names = list(TARGETS) if options.names == ["all"] else options.names
    unknown = [name for name in names if name not in TARGETS]
    if unknown or not names:
        raise InputError(f"TARGET must be of {list(TARGETS)}, or 'all', but got {unknown or 'none'}.")
    targets, folder = [TARGETS[name] for name in names], Path(options.out)
    path = Path(options.runs) if options.runs else folder / "runs.jsonl"
    failed = 0 if options.report_only else _run(targets, path, options)
    archive = Archive(read_rows(path), options.seeds, options.quick)
    folder.mkdir(parents=True, exist_ok=True)
    for target in targets:
        _report(target, archive, folder)
    return 1 if failed else 0


def _run(targets: list[Target], path: Path, options: argparse.Namespace) -> int:
    """How many runs failed."""
    cells = [cell for target in targets for cell in target.cells(options.seeds, quick=options.quick)]
    cells = sorted(dict.fromkeys(cells), key=lambda cell: cell.seed)  # all of a seed first: whoever stops has something
    todo, failed = missing(cells, path), 0
    with progress("last") as bar:
        task = bar.add_task("runs", total=len(cells), completed=len(cells) - len(todo), last="")
        for row in run(todo, path, options.jobs):
            bar.update(task, advance=1, last=f"{row['problem']} {row['strategy']} {row['seed']}")
            if row["error"] is not None:
                failed += 1
                complain(f"{row['problem']} {row['strategy']} {row['seed']}: {row['error']}", "yellow")
    say(f"{len(cells) - failed} of {len(cells)} runs are in {printable(str(path))}, {failed} failed.")
    return failed


def _report(target: Target, archive: Archive, folder: Path) -> None:
    report = target.report(archive)
    told = "--quick" if archive.quick else f"--seeds {archive.seeds}"
    head = f"# {target.title}\n\n`calibo reproduce {target.name} {told}`"
    text = f"{head}\n\n{report.text}\n"
    table, page = folder / f"{target.name}.md", folder / f"{target.name}.html"
    table.write_text(text, encoding="utf-8")
    write_page(page, target.title, rendered(text) + drawn(list(report.figures), wide=report.wide))
    say(f"{target.name}: {printable(str(table))} and {printable(str(page))}")
