"""Parsing of user input: parameter values, spaces in TOML, and functions in Python files."""

import importlib.util
import json
import re
import sys
import tomllib
import traceback
from collections.abc import Callable
from math import isfinite
from pathlib import Path
from typing import Any

from calibo.errors import InputError
from calibo.optuna.storages import Direction
from calibo.space import KINDS, Categorical, Choice, Int, Parameter, Space


def parse_assignment(space: Space, entry: str) -> tuple[str, Choice]:
    """The parameter and its value in NAME=VALUE."""
    for name in sorted(space, key=len, reverse=True):  # a name may contain an equals sign
        if entry.startswith(f"{name}="):
            return name, read_value(space, name, entry[len(name) + 1 :])
    raise InputError(f"A parameter must be given as NAME=VALUE with one of {list(space)}, but got {entry!r}.")


def read_value(space: Space, name: str, text: str) -> Choice:
    """One parameter's value."""
    parameter = space[name]
    if isinstance(parameter, Categorical):
        for choice in parameter.choices:
            if text_of(parameter, choice) == text:
                return choice
        raise InputError(f"`{name}` must be one of {_texts(parameter)}, but got {text!r}.")
    value = read_number(name, text)
    return space.plain_value(name, int(value) if isinstance(parameter, Int) and value.is_integer() else value)


def text_of(parameter: Categorical, choice: Choice) -> str:
    """A choice as text, or as JSON if another one has the same text."""
    alike = [other for other in parameter.choices if str(other) == str(choice)]
    return str(choice) if len(alike) == 1 else json.dumps(choice)


def _texts(parameter: Categorical) -> list[str]:
    return [text_of(parameter, choice) for choice in parameter.choices]


def read_number(name: str, text: str) -> float:
    """A finite number."""
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not isfinite(number):
        comma = " Write a decimal point." if re.fullmatch(r"[-+]?\d+,\d+", text) else ""
        raise InputError(f"`{name}` must be a finite number, but got {text!r}.{comma}")
    return number


def read_noise(name: str, text: str) -> float:
    """A standard deviation."""
    noise = read_number(name, text)
    if noise < 0:
        raise InputError(f"`{name}` must be at least 0, but got {text!r}.")
    return noise


def read_space(path: str) -> tuple[Space, Direction | None]:
    """The parameters declared in the table [parameters] of a TOML file, and the direction, if given."""
    try:
        with open(path, "rb") as file:
            declared = tomllib.load(file)
    except OSError as error:
        raise InputError(f"--space must be a file, but got {path!r}: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"--space must be a TOML file, but {path!r} is not: {error}.") from None
    tables = declared.get("parameters")
    if not isinstance(tables, dict) or not tables:
        raise InputError(
            f"{path!r} must declare parameters, but has no table [parameters.NAME]. "
            'Write [parameters.rate], then type = "float", low = 1e-5, high = 0.1, log = true.'
        )
    return Space({name: _parameter(name, table) for name, table in tables.items()}), declared.get("direction")


def _parameter(name: str, table: Any) -> Parameter:
    if not isinstance(table, dict):
        raise InputError(f"`{name}` must be a table, but got {table!r}. Write [parameters.{name}].")
    fields = dict(table)
    kind = fields.pop("type", "categorical" if "choices" in fields else None)
    if kind not in KINDS:
        raise InputError(f"`{name}` must have a type from {list(KINDS)}, but got {kind!r}.")
    if fields.get("warp") is False:  # TOML has no null
        fields["warp"] = None
    try:
        return KINDS[kind](**fields)
    except TypeError:
        wanted = "choices" if kind == "categorical" else "low, high, and optionally log, step or warp"
        raise InputError(f"`{name}` must have {wanted}, but got {sorted(fields)}.") from None
    except InputError as error:
        raise InputError(f"In [parameters.{name}]: {error}") from None


def load_function(target: str) -> Callable[..., Any]:
    """The function named by FILE.py:function."""
    path, colon, name = target.rpartition(":")
    if not colon or not path.endswith(".py"):
        raise InputError(f"The function must be named as FILE.py:function, but got {target!r}.")
    if not Path(path).is_file():
        raise InputError(f"The function must be in an existing file, but there is no {path!r}.")
    function = getattr(_module(Path(path)), name, None)
    if not callable(function):
        raise InputError(f"{path!r} must define a function {name!r}, but does not.")
    return function  # type: ignore[no-any-return]


def _last_place(error: BaseException) -> tuple[str, int | None]:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return frame.filename, frame.lineno


def _module(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise InputError(f"The function must be in a Python file, but got {str(path)!r}.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # so that its functions can be pickled
    sys.path.insert(0, str(path.absolute().parent))  # for its own imports, as if it were run
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        told = traceback.format_exception_only(error)[-1].strip()
        place = (error.filename, error.lineno) if isinstance(error, SyntaxError) else _last_place(error)
        raise InputError(f"{str(path)!r} could not be loaded: {told} ({place[0]}, line {place[1]}).") from error
    return module
