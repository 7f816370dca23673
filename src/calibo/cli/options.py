"""Options shared by several commands, and the storage, study and space they name."""

import argparse
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from optuna.storages import BaseStorage
from optuna.study import Study

from calibo.cli.parsing import read_space
from calibo.cli.terminal import print_json, print_line
from calibo.errors import InputError, hide_passwords
from calibo.forecaster import Recalibrate
from calibo.optuna.reader import RequestedStrategy
from calibo.optuna.storages import (
    Direction,
    load_or_create_study,
    open_storage,
    storage_address,
    storage_errors,
    study_names,
)
from calibo.presets import PRESETS
from calibo.space import Space

DEFAULT = "calibo.db"


def add_storage(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--storage",
        metavar="URL",
        default=DEFAULT,
        help=f"database URL, SQLite file or journal file (.log); default: {DEFAULT} in this directory",
    )


def add_strategy(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--strategy",
        metavar="NAME",
        help=f"{', '.join(PRESETS)}; replace parts as in plain+online; default: that of the study",
    )
    parser.add_argument(
        "--recalibrate",
        choices=get_args(Recalibrate),
        help="correct forecasts as far as that improved past ones (auto), always, or never",
    )


def add_search(parser: argparse.ArgumentParser, *, space: str, optimum: str) -> None:
    """Options shared by `run` and `ask`; ``space`` and ``optimum`` complete their help."""
    parser.add_argument("--space", metavar="TOML", help=f"declares the parameters; {space}")
    parser.add_argument("--maximize", action="store_true", help="maximize the value (default: minimize)")
    parser.add_argument("--seed", type=int, metavar="N")
    add_strategy(parser)
    parser.add_argument(
        "--transfer-from",
        action="append",
        default=[],
        metavar="URL",
        help="storage of prior studies to learn from; may be repeated; they are stored with the study",
    )
    accept_negative_numbers(parser)
    parser.add_argument("--known-optimum", type=float, metavar="V", help=f"the best possible value; {optimum}")
    parser.add_argument("--optimum-is-bound", action="store_true", help="it need not be attainable")
    parser.add_argument(
        "--optimum-tolerance",
        type=float,
        metavar="T",
        help="distance that counts as reached (default: 0.1 %% of the distance to a good initial value)",
    )
    add_storage(parser)


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")


def print_result(options: argparse.Namespace, told: str, found: Mapping[str, Any]) -> None:
    """Print what a command did, as text or as JSON."""
    if options.json:
        print_json(found)
    else:
        print_line(told)


def search_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """The arguments of a sampler that `run` and `ask` share."""
    names = ("strategy", "recalibrate", "transfer_from", "known_optimum", "optimum_is_bound", "optimum_tolerance")
    return {name: getattr(options, name) for name in names}


def declared_space(options: argparse.Namespace) -> tuple[Space | None, Direction | None]:
    """The given space and direction, if any."""
    space, direction = (None, None) if options.space is None else read_space(options.space)
    if not options.maximize:
        return space, direction
    if direction == "minimize":
        raise InputError("--maximize must not contradict the direction of the space, which is 'minimize'.")
    return space, "maximize"


def accept_negative_numbers(parser: argparse.ArgumentParser) -> None:
    """Otherwise -1e-3 and -inf are parsed as options."""
    parser._negative_number_matcher = re.compile(r"^-(\d|\.\d|inf|nan)")


def requested_strategy(options: argparse.Namespace) -> RequestedStrategy:
    """The requested strategy; by default that of the study."""
    return RequestedStrategy.from_arguments(options.strategy, options.recalibrate)


def open_store(options: argparse.Namespace, *, create: bool) -> BaseStorage:
    """The given storage, or the default one."""
    if not create and options.storage == DEFAULT and not Path(DEFAULT).exists():
        raise InputError(f"There is no {DEFAULT} in this directory. Pass a file with --storage, or create a study.")
    store = open_storage(options.storage, create=create)
    if storage_address(store) in ("sqlite://", "sqlite:///:memory:"):
        raise InputError(f"--storage must be persistent, but got {options.storage!r}, which is in memory.")
    return store


def storage_option(options: argparse.Namespace) -> str:
    """The --storage option for the next command."""
    return "" if options.storage == DEFAULT else f" --storage {shlex.quote(hide_passwords(options.storage))}"


def existing_study(options: argparse.Namespace) -> Study:
    """The given study, or the only one there is."""
    store = open_store(options, create=False)
    with storage_errors(store):
        names = study_names(store)
    name = options.study
    if name is None:
        if len(names) > 1:
            raise InputError(f"STUDY must be given unless there is exactly one, but there are {names}.")
        name = names[0] if names else ""
    if name not in names:
        if not names:
            raise InputError(f"There are no studies in {options.storage!r} yet. Create one with `calibo run` or `ask`.")
        raise InputError(f"STUDY must be one of {names}, but got {name!r}.")
    return load_or_create_study(store, name)
