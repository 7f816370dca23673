"""The command `calibo-bench`: measure, report, and reproduce."""

import argparse
import sys
import warnings
from collections.abc import Iterable, Sequence, Set
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.text import Text

import calibo
from calibo.errors import CaliboError, CaliboWarning, InputError
from calibo.html import figures_html, markdown_to_html, plotly, write_page
from calibo.presets import PARTS
from calibo.progress import progress
from calibo_bench.catalog import TARGETS
from calibo_bench.clients import ENVIRONMENTS, PEERS, PRESET_NAMES, client_of, peers_folder
from calibo_bench.experiments.experience import stored
from calibo_bench.install import install
from calibo_bench.page import page
from calibo_bench.problems.suites import GROUPS, HELD_OUT, SUITES, problems_of
from calibo_bench.provenance import is_intact, provenance, source_commit
from calibo_bench.report import is_peer, markdown
from calibo_bench.runner import OWN, Cell, Key, Measurement, Row, missing, parsed_start, read_rows, row_key, run
from calibo_bench.statistics import Results, is_comparable
from calibo_bench.targets import Archive, Target

__all__ = ["main"]

QUICK_SEEDS = 3
LISTED = 20  # changed rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is 2 after an expected error."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", CaliboWarning)
        warnings.showwarning = _show_warning
        try:
            options = _parser().parse_args(arguments)
            return int(options.execute(options))
        except CaliboError as error:
            _complain(f"calibo-bench: {error}")
            return 2
        except OSError as error:
            _complain(f"calibo-bench: {error.filename or 'A file'} could not be read or written: {error.strerror}.")
            return 2
        except KeyboardInterrupt:
            _complain("Stopped. Run the same command again to resume.")
            return 130


class _Parser(argparse.ArgumentParser):
    """Reports usage errors in one line, like all other errors."""

    def error(self, message: str) -> Any:
        raise InputError(f"{message}. See `{self.prog} --help`.")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="calibo-bench", description="Benchmark optimizers and reproduce papers.")
    parser.add_argument("--version", action="version", version=f"calibo-bench {calibo.__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    runs = commands.add_parser("run", help="run what is missing in a result file")
    runs.add_argument("--suite", default="smoke", metavar="NAMES", help="comma-separated suites or problems")
    runs.add_argument("--strategies", default="calibo,random", metavar="NAMES", help="comma-separated; see `list`")
    runs.add_argument("--seeds", type=int, default=20, metavar="N", help="the seeds 0 to N - 1")
    runs.add_argument("--seed", type=int, metavar="N", help="only this seed")
    runs.add_argument(
        "--budget", type=int, default=40, metavar="N", help="evaluations per run, initial points included"
    )
    runs.add_argument(
        "--start",
        default="",
        metavar="NAME",
        help="initial points: random3, sobol4, latin4, missed3 (away from the minimum), outside3, own (none); "
        "default: max(5, d + 1)",
    )
    runs.add_argument("--jobs", type=int, default=1, metavar="N", help="processes, with one BLAS thread each")
    runs.add_argument("--timeout", type=float, default=300.0, metavar="SECONDS", help="limit per suggestion")
    runs.add_argument(
        "--held-out", action="store_true", help="also run calibo on problems that confirm a finished default"
    )
    runs.add_argument("--out", default="bench.jsonl", metavar="FILE", help="result file; new rows are appended")
    runs.set_defaults(execute=_run)
    reports = commands.add_parser("report", help="write tables and a page from a result file")
    reports.add_argument("file", metavar="FILE", help="result file; FILE.gz is read, too")
    reports.add_argument("--reference", default="calibo", metavar="NAME", help="reference strategy of the comparison")
    reports.add_argument(
        "--budget", type=int, metavar="N", help="compare runs after N evaluations; default: the shortest"
    )
    reports.add_argument("--start", metavar="NAME", help="required if the file has several")
    reports.add_argument("--title", default="Benchmark", metavar="TEXT")
    reports.add_argument("--markdown", metavar="FILE", help="write the tables to FILE")
    reports.add_argument("--html", metavar="FILE", help="write the page to FILE")
    reports.set_defaults(execute=_report)
    peers = commands.add_parser("install-peers", help="create virtual environments for other optimizers")
    peers.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(ENVIRONMENTS)}; default: all")
    peers.set_defaults(execute=_install)
    commands.add_parser("list", help="list suites, problems and strategies").set_defaults(execute=_list)
    again = commands.add_parser("reproduce", help="tables and figures of papers, and our own experiments")
    again.add_argument("names", nargs="*", metavar="TARGET", help="see --list; 'all' for all targets")
    again.add_argument("--list", action="store_true", help="list targets and their runs per seed")
    again.add_argument("--seeds", type=int, metavar="N", help="the seeds 0 to N - 1; 20 for most, 3 with --quick")
    again.add_argument("--jobs", type=int, default=1, metavar="N", help="processes, with one BLAS thread each")
    again.add_argument("--quick", action="store_true", help="short runs, for a quick check")
    again.add_argument("--out", default="reproduced", metavar="FOLDER", help="output folder for tables and pages")
    again.add_argument("--runs", metavar="FILE", help="result file to append to; default: FOLDER/runs.jsonl")
    again.add_argument("--report-only", action="store_true", help="run nothing, report existing rows")
    again.set_defaults(execute=_reproduce)
    table = commands.add_parser("learn", help="make the table of experience that calibo ships from measured rows")
    table.add_argument("file", metavar="FILE", help="rows of `reproduce experience`; FILE.gz is read, too")
    table.add_argument("--out", required=True, metavar="FILE", help="the table, as JSON")
    table.set_defaults(execute=_learn)
    checks = commands.add_parser("verify", help="recompute some rows of a result file and compare them")
    checks.add_argument("file", metavar="FILE", help="result file; FILE.gz is read, too")
    checks.add_argument("--rows", type=int, default=10, metavar="N", help="number of rows, drawn at random (10)")
    checks.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the draw")
    checks.add_argument("--strategies", metavar="NAMES", help="only these, comma-separated")
    checks.set_defaults(execute=_verify)
    return parser


def _say(text: str) -> None:
    Console(highlight=False).print(Text(_printable(text)), soft_wrap=True)


def _complain(text: str) -> None:
    Console(stderr=True, highlight=False).print(Text(_printable(text)), soft_wrap=True)


def _printable(text: str) -> str:
    """Escape control characters except newlines: names may come from anywhere."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    _complain(f"{category.__name__}: {message}")


# run, report


def _run(options: argparse.Namespace) -> int:
    if options.seeds < 1 or options.jobs < 1 or (options.seed or 0) < 0:
        raise InputError("--seeds and --jobs must be at least 1, and --seed at least 0.")
    if not options.timeout > 0.0:
        raise InputError(f"--timeout must be a positive number of seconds, but got {options.timeout}.")
    given = 0 if options.start == OWN else parsed_start(options.start)[1] if options.start else 5
    if options.budget <= given:
        raise InputError(
            f"--budget must exceed the number of initial points, at least {given}, but got {options.budget}."
        )
    strategies = options.strategies.split(",")
    for name in strategies:
        client_of(name, options.timeout).close()  # unknown names raise before anything runs
    problems = [problem.name for problem in problems_of(options.suite)]
    held_out = sorted(HELD_OUT.intersection(problems))
    if held_out and not options.held_out and not all(map(is_peer, strategies)):
        raise InputError(
            f"--suite must leave out {held_out[0]!r}, which confirms a finished default and is not for trying. "
            "Use --held-out for the confirmation."
        )
    seeds = range(options.seeds) if options.seed is None else [options.seed]
    cells = [
        Cell(problem, strategy, seed, options.budget, options.timeout, options.start)
        for seed in seeds
        for problem in problems
        for strategy in strategies
    ]
    return 1 if _measure(cells, _result_file(options.out), options.jobs) else 0


def _result_file(name: str) -> Path:
    """The file that rows are appended to; its compressed form is read, too."""
    return Path(name.removesuffix(".gz"))


def _measure(cells: Sequence[Measurement], path: Path, jobs: int) -> int:
    """Append what the file lacks; return the number of failed runs."""
    todo, failed = missing(cells, path), 0
    before = len(cells) - len(todo)
    with progress("runs", len(cells), before) as advance:
        for done, row in enumerate(run(todo, path, jobs), start=before + 1):
            name = " ".join(str(row[part]) for part in ("problem", "strategy", "seed"))
            advance(done, name)
            if row["error"] is not None:
                failed += 1
                _complain(f"{name}: {row['error']}")
    _say(f"{len(cells) - failed} of {len(cells)} runs are in {path}, {failed} failed.")
    return failed


def _report(options: argparse.Namespace) -> int:
    rows = read_rows(_result_file(options.file))
    if not rows:
        raise InputError(f"FILE must be a result file, but {options.file!r} has no rows.")
    budgets = sorted({row["budget"] for row in rows})
    if options.budget is not None and options.budget not in budgets:
        raise InputError(f"--budget must be one of {budgets}, but got {options.budget}.")
    start = _one_of("--start", options.start, sorted({row.get("start", "") for row in rows}))
    rows = [row for row in rows if row["budget"] >= (options.budget or budgets[0]) and row.get("start", "") == start]
    results = Results([row for row in rows if is_comparable(row)])
    if not results.rows:
        raise InputError(f"FILE must have runs of a strategy on a problem, but {options.file!r} has none.")
    if options.reference not in results.strategies:
        raise InputError(f"--reference must be one of {results.strategies}, but got {options.reference!r}.")
    failures = [row for row in rows if row["error"] is not None]
    text = markdown(results, options.reference, options.title, GROUPS, failures) + f"\n{provenance(rows)}\n"
    if options.markdown is not None:
        Path(options.markdown).write_text(text, encoding="utf-8")
    if options.html is not None:
        page(results, options.reference, options.title, text, Path(options.html))
    if options.markdown is None and options.html is None:
        _say(text)
    return 0


def _one_of(option: str, given: Any, known: Sequence[Any]) -> Any:
    """The given value, or the only known one."""
    if given is None and len(known) > 1:
        raise InputError(f"{option} must be one of {known}, because the file has runs of all.")
    return known[0] if given is None else given


# learn


def _learn(options: argparse.Namespace) -> int:
    rows = [row for row in read_rows(_result_file(options.file)) if not row["error"] and "honesty" in row]
    families = {row["problem"] for row in rows} & {problem.name for problem in SUITES["experience"]}
    if len(families) < len(SUITES["experience"]):
        raise InputError(
            f"FILE must have rows of `reproduce experience`, of every family, but {options.file!r} has those of "
            f"{len(families)}."
        )
    Path(options.out).write_text(stored(rows), encoding="utf-8")
    _say(f"{options.out}: learned from {len(rows)} runs.")
    return 0


# verify


def _verify(options: argparse.Namespace) -> int:
    """By default only calibo's own runs: other optimizers may not be deterministic."""
    wanted = None if options.strategies is None else options.strategies.split(",")
    if options.rows < 1 or options.seed < 0:
        raise InputError("--rows must be at least 1, and --seed at least 0.")
    everything = read_rows(_result_file(options.file))
    changed = [row for row in everything if is_intact(row) is False]
    _say(f"{len(everything)} rows. {provenance(everything)} This is commit {source_commit()}.")
    for row in changed[:LISTED]:
        _say(f"{' '.join(map(str, row_key(row)[:3]))}: changed after it was written")
    rows = [
        row
        for row in everything
        if (row["strategy"] in wanted if wanted else row["strategy"].startswith(("calibo", "choices/", "corrections/")))
        and row["wall"]  # other rows hold no suggestions
        and row["error"] is None
    ]
    if not rows:
        raise InputError(f"FILE must have runs of calibo's strategies to recompute, but {options.file!r} has none.")
    chosen = np.random.default_rng(options.seed).choice(len(rows), min(options.rows, len(rows)), replace=False)
    different = 0
    for row in (rows[i] for i in sorted(chosen.tolist())):
        key = row_key(row)
        again = Cell(*key[:4], start=key[4]).measured()
        told = again["error"] or _difference(row, again)
        different += told is not None
        _say(f"{' '.join(map(str, key[:3]))}: {told or 'identical'}")
    _say(f"{len(chosen) - different} of {len(chosen)} are identical.")
    return 1 if different or changed else 0


def _difference(row: Row, again: Row) -> str | None:
    """Where a repeated run differs: in its values, or in the recommended points, which rows under noise have."""
    for part, offset in (("values", 1), ("recommended", row["initial"])):
        pairs = zip(row.get(part) or [], again[part] or [], strict=False)
        first = next((i for i, (a, b) in enumerate(pairs) if a != b), None)
        if first is not None:
            what = "the point" if part == "values" else "the recommendation"
            return f"{what} of evaluation {first + offset} differs"
    return None


# install-peers, list


def _install(options: argparse.Namespace) -> int:
    names = options.names or list(ENVIRONMENTS)
    unknown = [name for name in names if name not in ENVIRONMENTS]
    if unknown:
        raise InputError(f"NAME must be one of {list(ENVIRONMENTS)}, but got {unknown}.")
    failed = 0
    _say(f"Creating environments in {peers_folder()}.")
    for name in names:
        problem = install(name)
        failed += problem is not None
        _say(f"{name}: {'installed' if problem is None else f'could not be installed: {problem}'}")
    return 1 if failed else 0


def _list(_: argparse.Namespace) -> int:
    for suite, problems in SUITES.items():
        _say(f"suite {suite}: {', '.join(problem.name for problem in problems)}")
    _say(f"strategies: {', '.join([*PRESET_NAMES, *PEERS])}")
    _say(f"parts, as in calibo-plain+online: {', '.join(PARTS)}")
    return 0


# reproduce


def _reproduce(options: argparse.Namespace) -> int:
    if options.list:
        for target in TARGETS.values():
            _say(f"{target.name:16s} {len(set(target.cells(1, quick=False))):3d} runs per seed  {target.title}")
        return 0
    if (options.seeds is not None and options.seeds < 1) or options.jobs < 1:
        raise InputError("--seeds and --jobs must be at least 1.")
    unknown = [name for name in options.names if name not in TARGETS and name != "all"]
    if unknown or not options.names:
        raise InputError(f"TARGET must be one of {list(TARGETS)}, or 'all', but got {unknown or 'none'}.")
    targets = [target for target in TARGETS.values() if target.name in options.names or "all" in options.names]
    alone = [target.name for target in targets if target.alone]
    if alone and options.jobs > 1 and not options.report_only:
        raise InputError(f"--jobs must be 1 for {alone}, which measure run time, but got {options.jobs}.")
    folder, pages = _folder(options.out), _pages()
    path = _result_file(options.runs) if options.runs else folder / "runs.jsonl"
    failed = 0
    if not options.report_only:
        cells = [cell for target in targets for cell in _cells(target, options)]
        # seed by seed, so that an interrupted run has whole seeds
        failed = _measure(sorted(dict.fromkeys(cells), key=lambda cell: cell.key[2]), path, options.jobs)
    rows = read_rows(path)
    if not rows:
        raise InputError(f"There must be runs to report, but {str(path)!r} has none.")
    for target in targets:
        _write(target, rows, options, folder, pages=pages)
    return 1 if failed else 0


def _seeds(target: Target, options: argparse.Namespace) -> int:
    if options.seeds is not None:
        return int(options.seeds)
    return min(QUICK_SEEDS, target.seeds) if options.quick else target.seeds


def _cells(target: Target, options: argparse.Namespace) -> Sequence[Measurement]:
    return target.cells(_seeds(target, options), quick=options.quick)


def _folder(name: str) -> Path:
    folder = Path(name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out must be a folder with write permission, but got {name!r}: {error.strerror}.") from None
    return folder


def _pages() -> bool:
    """Whether pages can be drawn; warns before anything runs."""
    try:
        plotly()
    except InputError as error:
        _complain(f"{error} Tables are written without it.")
        return False
    return True


def _write(target: Target, rows: Sequence[Row], options: argparse.Namespace, folder: Path, *, pages: bool) -> None:
    """Write the page of a target, from the rows of its measurements only."""
    seeds, wanted = _seeds(target, options), dict.fromkeys(cell.key for cell in _cells(target, options))
    made = [row for row in rows if row_key(row) in wanted]
    whole = {row_key(row) for row in made if not row["error"]}
    words = f"calibo-bench reproduce {target.name} --seeds {seeds}{' --quick' if options.quick else ''}"
    text = f"# {target.title}\n\n`{words}`\n\n"
    if options.quick:
        text += "**Quick check: short runs.**\n\n"
    lacking = _lacking(wanted, whole)
    if lacking:
        listed = "\n".join(f"* {entry}" for entry in lacking)
        text += f"Missing or failed runs:\n\n{listed}\n\n"
    report = target.report(Archive(made, seeds, options.quick))
    text += f"{report.text}\n\n{len(whole)} runs. {provenance(made)}\n"
    name = f"{target.name}-quick" if options.quick else target.name
    (folder / f"{name}.md").write_text(text, encoding="utf-8")
    figures = list(report.draw()) if pages else []
    if figures:
        write_page(
            folder / f"{name}.html", target.title, markdown_to_html(text) + figures_html(figures, wide=report.wide)
        )
    _say(f"{target.name}: {folder / name}.md{f' and {folder / name}.html' if figures else ''}")


def _lacking(wanted: Iterable[Key], whole: Set[Key]) -> list[str]:
    """Descriptions of the missing or failed runs."""
    runs: dict[str, list[Key]] = {}
    for key in wanted:
        runs.setdefault(key[1], []).append(key)
    told = []
    for strategy, keys in runs.items():
        lacking = [key for key in keys if key not in whole]
        problems = ", ".join(dict.fromkeys(key[0] for key in lacking if key[0]))
        where = f" on {problems}" if len(problems) < 200 and problems else ""
        told += [f"{strategy}: {len(lacking)} of {len(keys)}{where}"] if lacking else []
    return told


if __name__ == "__main__":
    sys.exit(main())
