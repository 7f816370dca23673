"""Values of parameters as a person writes them."""

import json
from math import isfinite

from calibo.errors import InputError
from calibo.space import Categorical, Choice, Int, Space

__all__ = ["parsed", "read_noise", "read_number", "read_value", "text_of"]


def parsed(space: Space, entry: str) -> tuple[str, Choice]:
    """The parameter and its value in NAME=VALUE."""
    for name in sorted(space, key=len, reverse=True):  # a name may hold an equals sign
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
    """How a choice is written: as it reads, or as JSON where another one reads the same."""
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
        raise InputError(f"`{name}` must be a finite number, but got {text!r}.")
    return number


def read_noise(name: str, text: str) -> float:
    """A standard deviation."""
    noise = read_number(name, text)
    if noise < 0:
        raise InputError(f"`{name}` must be at least 0, but got {text!r}.")
    return noise
