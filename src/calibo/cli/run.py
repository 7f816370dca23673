"""`calibo run`: optimize a function of a Python file."""

import argparse
import shlex

from calibo.adapters.schema import STOPPED, read_settings
from calibo.adapters.storage import guarded, study_in, study_names
from calibo.cli.places import (
    add_optimum,
    add_storage,
    add_strategy,
    add_transfer,
    declared_in,
    function_of,
    optimum_in,
    option,
    space_in,
    stored,
)
from calibo.cli.show import show_best
from calibo.cli.terminal import number, printable, say
from calibo.errors import InputError
from calibo.stopping import StopWhenUnlikely
from calibo.study import Interrupted, optimize, reached

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("function", metavar="FILE.py:function", help="it takes the parameters, or an Optuna trial")
    parser.add_argument(
        "--space", metavar="TOML", help="declares the parameters; without it the function suggests them"
    )
    parser.add_argument("--trials", type=int, metavar="N", help="trials the study shall have in the end (50)")
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help="stop after this time")
    parser.add_argument("--study", metavar="NAME", help="the name of the function if not given")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="evaluations side by side, in threads")
    parser.add_argument("--seed", type=int, metavar="N")
    add_strategy(parser)
    add_transfer(parser)
    add_optimum(parser, "the study ends when it is reached")
    parser.add_argument(
        "--stop-delta", type=float, metavar="D", help="stop when an improvement by more than D has become unlikely"
    )
    parser.add_argument("--stop-alpha", type=float, metavar="P", help="what counts as unlikely (0.05)")
    parser.add_argument("--maximize", action="store_true", help="look for the largest value")
    add_storage(parser)


def execute(options: argparse.Namespace) -> int:
    function = function_of(options.function)
    name = options.study or options.function.rpartition(":")[2]
    store = stored(options, create=True)
    space, direction = None, None
    if options.space is not None:
        declaration = declared_in(options.space)
        space, direction = space_in(declaration, options.space), declaration.get("direction")
    with guarded(store):
        known = study_in(store, name) if name in study_names(store) else None
    if known is not None and space is None:
        space = read_settings(known).space
    if known is not None and direction is None and not options.maximize:
        direction = known.direction.name.lower()  # as it was begun
    if options.maximize:
        if direction == "minimize":
            raise InputError("--maximize must not contradict the direction of the space, but that says 'minimize'.")
        direction = "maximize"
    trials = options.trials if options.trials is not None or options.timeout is not None else 50
    again = "Run the same command to go on."
    rules = _rules(options)
    before = None if known is None else known.user_attrs.get(STOPPED)
    try:
        result = optimize(
            function,
            space,
            trials,
            direction=direction or "minimize",
            seed=options.seed,
            storage=store,
            study_name=name,
            timeout=options.timeout,
            n_jobs=options.jobs,
            strategy=options.strategy,
            recalibrate=options.recalibrate,
            transfer_from=options.transfer_from,
            callbacks=rules,
            **optimum_in(options),
        )
    except Interrupted as stop:
        result = stop.result
        show_best(result)
        say(f"Stopped. Everything finished is stored in {printable(options.storage)}. {again}")
        return 130
    show_best(result)
    stopped, further = result.study.user_attrs.get(STOPPED), "go on with a larger --trials"
    if rules and isinstance(stopped, dict) and stopped != before:
        say(
            f"Stopped: nowhere was the probability of improving by more than {number(options.stop_delta)} found to be "
            f"above {stopped['chance']:.2g}."
        )
        further = "go on without --stop-delta"
    if options.known_optimum is not None and reached(result.study):
        say(f"Stopped: the best is as good as the known optimum {number(options.known_optimum)}.")
        further = "go on without --known-optimum"
    shown = printable(shlex.quote(name))
    say(f"Look at it with `calibo show {shown}{printable(option(options))}`; {further}.")
    return 0


def _rules(options: argparse.Namespace) -> list[StopWhenUnlikely]:
    if options.stop_delta is None:
        if options.stop_alpha is not None:
            raise InputError("--stop-alpha must come with --stop-delta, but that is not given.")
        return []
    return [StopWhenUnlikely(options.stop_delta, 0.05 if options.stop_alpha is None else options.stop_alpha)]
