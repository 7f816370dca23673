"""`calibo run`: optimize a function in a Python file."""

import argparse
import shlex
import sys
from contextlib import nullcontext, redirect_stdout

from calibo.cli.options import add_json, add_search, declared_space, open_store, search_arguments, storage_option
from calibo.cli.parsing import load_function
from calibo.cli.show import show_best, summary
from calibo.cli.terminal import format_number, print_error, print_json, print_line, printable
from calibo.diagnostics.stopping import StopWhenUnlikely
from calibo.errors import InputError, ObjectiveError, hide_passwords
from calibo.optuna.schema import read_settings
from calibo.optuna.storages import load_or_create_study, storage_errors, study_names
from calibo.study import Interrupted, Result, optimize, reached


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("function", metavar="FILE.py:function", help="takes the parameters, or an Optuna trial")
    parser.add_argument("--trials", type=int, metavar="N", help="total number of trials of the study (50)")
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help="stop after this time")
    parser.add_argument("--keep-going", action="store_true", help="continue even if every trial fails")
    parser.add_argument("--study", metavar="NAME", help="default: the name of the function")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="number of parallel evaluations, in threads")
    parser.add_argument(
        "--stop-resolution",
        type=float,
        metavar="R",
        help="stop when an improvement by more than R, the smallest that matters, has become unlikely",
    )
    parser.add_argument("--stop-alpha", type=float, metavar="P", help="probability below which that is unlikely (0.05)")
    add_json(parser)
    add_search(parser, space="without it the function suggests them", optimum="the study stops when it is reached")


def execute(options: argparse.Namespace) -> int:
    function = load_function(options.function)
    name = options.study or options.function.rpartition(":")[2]
    store = open_store(options, create=True)
    space, direction = declared_space(options)
    with storage_errors(store):
        known = load_or_create_study(store, name) if name in study_names(store) else None
    if known is not None and space is None:
        space = read_settings(known).space
    if known is not None and direction is None:
        direction = "minimize" if known.direction.name == "MINIMIZE" else "maximize"  # that of the study
    rules = _stopping_rules(options)
    try:
        with redirect_stdout(sys.stderr) if options.json else nullcontext():  # what the function prints is no JSON
            result = optimize(
                function,
                space,
                options.trials if options.trials is not None or options.timeout is not None else 50,
                direction=direction or "minimize",
                seed=options.seed,
                storage=store,
                study_name=name,
                timeout=options.timeout,
                n_jobs=options.jobs,
                callbacks=rules,
                catch=(Exception, SystemExit) if options.keep_going else (),
                **search_arguments(options),
            )
    except ObjectiveError as error:
        for line in error.frames.splitlines():
            print_error(line, "")
        raise
    except Interrupted as stop:
        where = printable(hide_passwords(options.storage))
        further = f"Stopped. All finished trials are stored in {where}. Rerun the command to resume."
        _report(options, stop.result, "Ctrl-C", [further])
        return 130
    stopped, further = _why_stopped(result, options)
    shown = f"{printable(shlex.quote(name))}{printable(storage_option(options))}"
    last = f"See the results with `calibo show {shown}`; {further}."
    _report(options, result, stopped or None, [stopped, last] if stopped else [last])
    return 0


def _report(options: argparse.Namespace, result: Result, stopped: str | None, lines: list[str]) -> None:
    if options.json:
        print_json({**summary(result), "stopped": stopped})
        return
    show_best(result)
    for line in lines:
        print_line(line)


def _why_stopped(result: Result, options: argparse.Namespace) -> tuple[str, str]:
    """The rule that ended the study early, if one did, and how to continue."""
    if options.known_optimum is not None and reached(result.study):
        optimum = format_number(options.known_optimum)
        return f"Stopped: the best value has reached the known optimum {optimum}.", "continue without --known-optimum"
    if options.stop_resolution is not None and result.stopped:
        return result.stopped, "continue without --stop-resolution"
    return "", "continue with a larger --trials"


def _stopping_rules(options: argparse.Namespace) -> list[StopWhenUnlikely]:
    if options.stop_resolution is None:
        if options.stop_alpha is not None:
            raise InputError("--stop-alpha must come with --stop-resolution, but that is not given.")
        return []
    return [StopWhenUnlikely(options.stop_resolution, 0.05 if options.stop_alpha is None else options.stop_alpha)]
