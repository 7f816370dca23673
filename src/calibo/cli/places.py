"""Where a command finds its study, its space and its function."""

import argparse
import importlib.util
import re
import shlex
import sys
import tomllib
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

from optuna.samplers import BaseSampler
from optuna.storages import BaseStorage
from optuna.study import Study

from calibo.adapters.reader import Wanted
from calibo.adapters.storage import address, guarded, opened, study_in, study_names
from calibo.errors import InputError
from calibo.presets import PRESETS
from calibo.space import Categorical, Float, Int, Parameter, Space
from calibo.strategy import Recalibrate

__all__ = [
    "DEFAULT",
    "add_optimum",
    "add_storage",
    "add_strategy",
    "add_transfer",
    "declared_in",
    "function_of",
    "optimum_in",
    "option",
    "space_in",
    "stored",
    "strategy_in",
    "study_of",
    "take_negative_numbers",
]

DEFAULT = "calibo.db"

KINDS: dict[str, type[Parameter]] = {"float": Float, "int": Int, "categorical": Categorical}


def add_storage(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--storage",
        metavar="URL",
        default=DEFAULT,
        help=f"database URL, SQLite file or journal file (.log); {DEFAULT} in this folder if not given",
    )


def add_strategy(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--strategy",
        metavar="NAME",
        help=f"{', '.join(PRESETS)}; with other parts as in plain+online; the study's own if not given",
    )
    parser.add_argument(
        "--recalibrate",
        choices=get_args(Recalibrate),
        help="correct forecasts: as far as it has helped (auto), always, never",
    )


def strategy_in(options: argparse.Namespace) -> Wanted:
    """The strategy asked for; the study's own where none is."""
    return Wanted.given(options.strategy, options.recalibrate)


def add_transfer(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--transfer-from",
        action="append",
        default=[],
        metavar="URL",
        help="storage of earlier studies to learn from; may be given several times, and is remembered by the study",
    )


def take_negative_numbers(parser: argparse.ArgumentParser) -> None:
    """Otherwise -1e-3 and -inf are taken for options."""
    parser._negative_number_matcher = re.compile(r"^-(\d|\.\d|inf|nan)")


def add_optimum(parser: argparse.ArgumentParser, then: str) -> None:
    """``then`` says what happens when it is reached."""
    take_negative_numbers(parser)
    parser.add_argument("--known-optimum", type=float, metavar="V", help=f"the best value there is; {then}")
    parser.add_argument("--optimum-is-bound", action="store_true", help="it may be that no point reaches it")
    parser.add_argument(
        "--optimum-tolerance",
        type=float,
        metavar="T",
        help="so near is as good (a thousandth of how far good first values are)",
    )


def optimum_in(options: argparse.Namespace) -> dict[str, Any]:
    """The arguments for what is known of the best value."""
    return {name: getattr(options, name) for name in ("known_optimum", "optimum_is_bound", "optimum_tolerance")}


def stored(options: argparse.Namespace, *, create: bool) -> BaseStorage:
    """The storage named, or the default one."""
    if not create and options.storage == DEFAULT and not Path(DEFAULT).exists():
        raise InputError(f"There is no {DEFAULT} in this folder. Name the file with --storage, or begin a study first.")
    store = opened(options.storage, create=create)
    if address(store) in ("sqlite://", "sqlite:///:memory:"):
        raise InputError(f"--storage must be a place that lasts, but got {options.storage!r}, which is in memory.")
    return store


def option(options: argparse.Namespace) -> str:
    """How to name the storage in the next command."""
    return "" if options.storage == DEFAULT else f" --storage {shlex.quote(options.storage)}"


def study_of(options: argparse.Namespace, sampler: BaseSampler | None = None) -> Study:
    """A study that exists: the one named, or the only one there is."""
    store = stored(options, create=False)
    with guarded(store):
        names = study_names(store)
    name = options.study
    if name is None:
        if len(names) != 1:
            raise InputError(f"STUDY must be named where there is not just one, but there are {names}.")
        name = names[0]
    if name not in names:
        raise InputError(f"STUDY must be one of {names}, but got {name!r}.")
    return study_in(store, name, sampler=sampler)


def declared_in(path: str) -> dict[str, Any]:
    """A TOML file that declares a space."""
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise InputError(f"--space must be a file, but got {path!r}: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"--space must be a TOML file, but {path!r} is not: {error}.") from None


def space_in(declaration: dict[str, Any], path: str) -> Space:
    """The parameters declared in its table [parameters]."""
    tables = declaration.get("parameters")
    if not isinstance(tables, dict) or not tables:
        raise InputError(
            f"{path!r} must declare parameters, but has no table [parameters.NAME]. "
            'Write [parameters.rate], then type = "float", low = 1e-5, high = 0.1, log = true.'
        )
    return Space({name: _parameter(name, table) for name, table in tables.items()})


def _parameter(name: str, table: Any) -> Parameter:
    if not isinstance(table, dict):
        raise InputError(f"`{name}` must be a table, but got {table!r}. Write [parameters.{name}].")
    fields = dict(table)
    kind = fields.pop("type", "categorical" if "choices" in fields else None)
    if kind not in KINDS:
        raise InputError(f"`{name}` must have a type out of {list(KINDS)}, but got {kind!r}.")
    if fields.get("warp") is False:  # TOML has no null
        fields["warp"] = None
    try:
        return KINDS[kind](**fields)
    except TypeError:
        wanted = "choices" if kind == "categorical" else "low, high, and log, step or warp if wanted"
        raise InputError(f"`{name}` must have {wanted}, but got {sorted(fields)}.") from None
    except InputError as error:
        raise InputError(f"In [parameters.{name}]: {error}") from None


def function_of(target: str) -> Callable[..., Any]:
    """The function named by FILE.py:function."""
    path, colon, name = target.rpartition(":")
    if not colon or not path.endswith(".py"):
        raise InputError(f"The function must be named as FILE.py:function, but got {target!r}.")
    if not Path(path).is_file():
        raise InputError(f"The function must be in a file, but there is no {path!r}.")
    function = getattr(_module(Path(path)), name, None)
    if not callable(function):
        raise InputError(f"{path!r} must have a function {name!r}, but it has none.")
    return function  # type: ignore[no-any-return]


def _module(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise InputError(f"The function must be in a Python file, but got {str(path)!r}.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # so that its functions can be pickled
    sys.path.insert(0, str(path.absolute().parent))  # its own imports, as if it were run
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        told = traceback.format_exception_only(error)[-1].strip()
        raise InputError(f"{str(path)!r} could not be loaded: {told}. Run it with python to see where.") from error
    return module
