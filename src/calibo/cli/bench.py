"""`calibo bench`: strategies on problems, and what came out."""

import argparse
from pathlib import Path

from calibo.bench.install import install
from calibo.bench.page import page
from calibo.bench.report import markdown
from calibo.bench.runner import Cell, parsed_start, read_rows
from calibo.bench.statistics import Results
from calibo.bench.strategies import ENVIRONMENTS, PEERS, client_of, peers_folder
from calibo.bench.suites import GROUPS, SUITES, problems_of
from calibo.cli.measuring import measure, result_file
from calibo.cli.terminal import printable, say
from calibo.errors import InputError
from calibo.presets import PARTS, PRESETS

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    runs = commands.add_parser("run", help="measure what a result file lacks")
    runs.add_argument("--suite", default="smoke", metavar="NAMES", help="suites or problems, separated by commas")
    runs.add_argument("--strategies", default="calibo,random", metavar="NAMES", help="separated by commas; see `list`")
    runs.add_argument("--seeds", type=int, default=20, metavar="N", help="the seeds 0 to N - 1")
    runs.add_argument("--seed", type=int, metavar="N", help="this seed alone")
    runs.add_argument(
        "--budget", type=int, default=40, metavar="N", help="evaluations of a run, the given ones included"
    )
    runs.add_argument(
        "--start",
        default="",
        metavar="NAME",
        help="given points: random3, sobol4, latin4, missed3 (away from the minimum); max(5, d + 1) if none",
    )
    runs.add_argument("--jobs", type=int, default=1, metavar="N", help="processes, with one BLAS thread each")
    runs.add_argument("--timeout", type=float, default=300.0, metavar="SECONDS", help="for one suggestion")
    runs.add_argument("--out", default="bench.jsonl", metavar="FILE", help="result file; more is appended to it")
    reports = commands.add_parser("report", help="tables and a page of a result file")
    reports.add_argument("file", metavar="FILE", help="result file; FILE.gz beside it is read, too")
    reports.add_argument("--reference", default="calibo", metavar="NAME", help="the strategy others are compared with")
    reports.add_argument("--budget", type=int, metavar="N", help="where the file has runs of several")
    reports.add_argument("--start", metavar="NAME", help="where the file has runs of several")
    reports.add_argument("--title", default="Benchmark", metavar="TEXT")
    reports.add_argument("--markdown", metavar="FILE", help="write the tables there")
    reports.add_argument("--html", metavar="FILE", help="write the page there")
    peers = commands.add_parser("install-peers", help="make the environments of other optimizers")
    peers.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(ENVIRONMENTS)}; all if none is given")
    commands.add_parser("list", help="suites, problems and strategies")


def execute(options: argparse.Namespace) -> int:
    return {"run": _run, "report": _report, "install-peers": _install, "list": _list}[options.action](options)


def _run(options: argparse.Namespace) -> int:
    if options.seeds < 1 or options.jobs < 1 or (options.seed or 0) < 0:
        raise InputError("--seeds and --jobs must be at least 1, and --seed at least 0.")
    given = parsed_start(options.start)[1] if options.start else 5
    if options.budget <= given:
        raise InputError(
            f"--budget must leave something after the given points, {given} at least, but got {options.budget}."
        )
    strategies = options.strategies.split(",")
    for name in strategies:
        client_of(name, options.timeout).close()  # a name that is not known is told before anything runs
    problems, out = problems_of(options.suite), result_file(options.out)
    seeds = range(options.seeds) if options.seed is None else [options.seed]
    cells = [
        Cell(problem.name, strategy, seed, options.budget, options.timeout, options.start)
        for seed in seeds
        for problem in problems
        for strategy in strategies
    ]
    return 1 if measure(cells, out, options.jobs) else 0


def _report(options: argparse.Namespace) -> int:
    path = result_file(options.file)
    rows = read_rows(path)
    if not rows:
        raise InputError(f"FILE must be a result file, but {options.file!r} has no rows.")
    budgets = sorted({row["budget"] for row in rows})
    budget = options.budget or budgets[0]
    if len(budgets) > 1 and options.budget is None:
        raise InputError(f"--budget must be one of {budgets}, of which the file has runs.")
    starts = sorted({row.get("start", "") for row in rows})
    start = starts[0] if options.start is None else options.start
    if len(starts) > 1 and options.start is None:
        raise InputError(f"--start must be one of {starts}, of which the file has runs.")
    rows = [row for row in rows if row["budget"] == budget and row.get("start", "") == start]
    whole = [row for row in rows if row["error"] is None]
    results = Results(whole)
    if options.reference not in results.strategies:
        raise InputError(f"--reference must be one of {results.strategies}, but got {options.reference!r}.")
    failures = [row for row in rows if row["error"] is not None]
    text = markdown(results, options.reference, options.title, GROUPS, failures)
    if options.markdown is not None:
        Path(options.markdown).write_text(text, encoding="utf-8")
    if options.html is not None:
        page(results, options.reference, options.title, text, Path(options.html))
    if options.markdown is None and options.html is None:
        say(text)
    return 0


def _install(options: argparse.Namespace) -> int:
    names = options.names or list(ENVIRONMENTS)
    unknown = [name for name in names if name not in ENVIRONMENTS]
    if unknown:
        raise InputError(f"NAME must be one of {list(ENVIRONMENTS)}, but got {unknown}.")
    failed = 0
    say(f"Environments are made in {printable(str(peers_folder()))}.")
    for name in names:
        problem = install(name)
        failed += problem is not None
        say(f"{name}: {'installed' if problem is None else printable(f'could not be installed: {problem}')}")
    return 1 if failed else 0


def _list(_: argparse.Namespace) -> int:
    for suite, problems in SUITES.items():
        say(f"suite {suite}: {', '.join(problem.name for problem in problems)}")
    presets = [f"calibo-{name}" for name in PRESETS if name != "default"]
    say(f"strategies: {', '.join(['calibo', *presets, *PEERS])}")
    say(f"parts, as in calibo-plain+online: {', '.join(PARTS)}")
    return 0
