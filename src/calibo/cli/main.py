"""The command `calibo`: runs the requested command and reports errors in one line."""

import argparse
import re
import sys
import traceback
import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any

from calibo import __version__
from calibo.errors import CaliboError, CaliboWarning, InputError, hide_passwords

COMMANDS = {
    "run": "optimize a function in a Python file",
    "show": "show the results of a study: best trial, history, table",
    "audit": "check how well the forecasts of a study were calibrated",
    "ask": "suggest the next point to evaluate yourself",
    "tell": "report the value measured at a point",
    "drop": "ignore finished trials",
    "amend": "correct the value of a finished trial",
    "widen": "let a study search a wider space",
    "plot": "plot learned input warps, or the similarity of prior studies",
}

SAME = ("strategy", "recalibrate", "seed", "storage", "timeout", "space", "fill", "name", "transfer_from")
KNOWN = ("known_optimum", "optimum_is_bound", "optimum_tolerance")
ARGUMENTS = {
    **{name: name for name in (*SAME, *KNOWN)},
    "n_trials": "trials",
    "n_jobs": "jobs",
    "study_name": "study",
    "catch": "keep_going",
    "resolution": "stop_resolution",
    "alpha": "stop_alpha",
}
"""Options by the names of the arguments in Python."""

EXAMPLES = """
examples:
  calibo run train.py:objective --trials 50
  calibo ask paint --space paint.toml
Studies are stored in calibo.db. `calibo COMMAND --help` explains a command.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is 2 on expected errors, and 130 after Ctrl-C."""
    try:
        return _main(list(sys.argv[1:] if arguments is None else arguments))
    except KeyboardInterrupt:  # also while modules are imported, which takes most of the first second
        sys.stderr.write("Stopped.\n")
        return 130


def _main(words: Sequence[str]) -> int:
    from calibo.cli.terminal import print_error, replace_unprintable

    replace_unprintable()
    with warnings.catch_warnings():
        warnings.simplefilter("always", CaliboWarning)
        warnings.showwarning = partial(_show_warning, {})
        try:
            code = _run(words)
            sys.stdout.flush()
        except OSError as error:
            print_error(f"calibo: The output could not be written: {error.strerror}.", "red")
            return 2
        return code


def _run(words: Sequence[str]) -> int:
    from calibo.cli.terminal import print_error

    flags: Mapping[str, str] = {}
    try:
        options = _parser(words).parse_args(words)
        if options.command is None:
            _parser([]).print_help()
            return 0
        flags = options.flags
        warnings.showwarning = partial(_show_warning, flags)
        _silence_optuna()
        return int(options.execute(options) or 0)
    except CaliboError as error:
        if "--debug" in words:
            sys.stderr.write(hide_passwords(traceback.format_exc()))
        print_error(f"calibo: {_in_words_of(flags, str(error))}", "red")
        return 2


class _Parser(argparse.ArgumentParser):
    """Reports usage errors in one line, like all others."""

    def error(self, message: str) -> Any:
        raise InputError(f"{message}. See `{self.prog} --help`.")


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """The parser; only the module of the requested command is imported."""
    parser = _Parser(
        prog="calibo",
        description="Bayesian optimization with calibrated uncertainty.",
        epilog=EXAMPLES,
        formatter_class=partial(argparse.RawDescriptionHelpFormatter, max_help_position=18),
    )
    parser.add_argument("--debug", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--version", action="version", version=f"calibo {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, summary in COMMANDS.items():
        command = commands.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        if name in words:
            module = import_module(f"calibo.cli.{name}")
            module.add_arguments(command)
            flags = {action.dest: action.option_strings[0] for action in command._actions if action.option_strings}
            command.set_defaults(execute=module.execute, flags=flags)
        command.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return parser


def _silence_optuna() -> None:
    """Optuna would print study names unescaped; calibo reports what matters."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)


def _in_words_of(flags: Mapping[str, str], message: str) -> str:
    """The message with options of the command in place of arguments in Python."""

    def flag(found: re.Match[str]) -> str:
        return flags.get(ARGUMENTS.get(found[1], ""), found[0])

    return re.sub(r"`([a-z_]+)=?`", flag, message)


def _show_warning(
    flags: Mapping[str, str], message: Warning | str, category: type[Warning], *_: Any, **__: Any
) -> None:
    """Print a warning in one line."""
    from calibo.cli.terminal import print_error

    print_error(f"{category.__name__}: {_in_words_of(flags, str(message))}", "yellow")
