"""Options that commands share, and the storage, study and space they name."""

import argparse
import re
import shlex
from pathlib import Path
from typing import Any, get_args

from optuna.storages import BaseStorage
from optuna.study import Study

from calibo.cli.parsing import read_space
from calibo.errors import InputError
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
from calibo.strategy import Recalibrate

DEFAULT = "calibo.db"


def add_storage(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--storage",
        metavar="URL",
        default=DEFAULT,
        help=f"database URL, SQLite file or journal file (.log); default: {DEFAULT} in this folder",
    )


def add_strategy(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--strategy",
        metavar="NAME",
        help=f"{', '.join(PRESETS)}; with other parts as in plain+online; default: the study's own",
    )
    parser.add_argument(
        "--recalibrate",
        choices=get_args(Recalibrate),
        help="correct forecasts: as far as it has helped (auto), always, never",
    )


def add_search(parser: argparse.ArgumentParser, *, space: str, optimum: str) -> None:
    """What `run` and `ask` share; ``space`` and ``optimum`` say what is particular to each."""
    parser.add_argument("--space", metavar="TOML", help=f"declares the parameters; {space}")
    parser.add_argument("--maximize", action="store_true", help="look for the largest value")
    parser.add_argument("--seed", type=int, metavar="N")
    add_strategy(parser)
    parser.add_argument(
        "--transfer-from",
        action="append",
        default=[],
        metavar="URL",
        help="storage of prior studies to learn from; may be repeated, and is stored with the study",
    )
    accept_negative_numbers(parser)
    parser.add_argument("--known-optimum", type=float, metavar="V", help=f"the best possible value; {optimum}")
    parser.add_argument("--optimum-is-bound", action="store_true", help="it need not be attainable")
    parser.add_argument(
        "--optimum-tolerance",
        type=float,
        metavar="T",
        help="values this near are as good (default: a thousandth of how far good first values are)",
    )
    add_storage(parser)


def search_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """The arguments of a sampler that `run` and `ask` share."""
    names = ("strategy", "recalibrate", "transfer_from", "known_optimum", "optimum_is_bound", "optimum_tolerance")
    return {name: getattr(options, name) for name in names}


def declared_space(options: argparse.Namespace) -> tuple[Space | None, Direction | None]:
    """The space and the direction that were given, if any."""
    space, direction = (None, None) if options.space is None else read_space(options.space)
    if not options.maximize:
        return space, direction
    if direction == "minimize":
        raise InputError("--maximize must not contradict the direction of the space, but that says 'minimize'.")
    return space, "maximize"


def accept_negative_numbers(parser: argparse.ArgumentParser) -> None:
    """Otherwise -1e-3 and -inf are taken for options."""
    parser._negative_number_matcher = re.compile(r"^-(\d|\.\d|inf|nan)")


def requested_strategy(options: argparse.Namespace) -> RequestedStrategy:
    """The strategy asked for; the study's own where none is."""
    return RequestedStrategy.from_arguments(options.strategy, options.recalibrate)


def open_store(options: argparse.Namespace, *, create: bool) -> BaseStorage:
    """The storage named, or the default one."""
    if not create and options.storage == DEFAULT and not Path(DEFAULT).exists():
        raise InputError(f"There is no {DEFAULT} in this folder. Name the file with --storage, or begin a study first.")
    store = open_storage(options.storage, create=create)
    if storage_address(store) in ("sqlite://", "sqlite:///:memory:"):
        raise InputError(f"--storage must be persistent, but got {options.storage!r}, which is in memory.")
    return store


def storage_option(options: argparse.Namespace) -> str:
    """How to name the storage in the next command."""
    return "" if options.storage == DEFAULT else f" --storage {shlex.quote(options.storage)}"


def existing_study(options: argparse.Namespace) -> Study:
    """The study named, or the only one there is."""
    store = open_store(options, create=False)
    with storage_errors(store):
        names = study_names(store)
    name = options.study
    if name is None:
        if len(names) != 1:
            raise InputError(f"STUDY must be named unless there is exactly one, but there are {names}.")
        name = names[0]
    if name not in names:
        raise InputError(f"STUDY must be one of {names}, but got {name!r}.")
    return load_or_create_study(store, name)
