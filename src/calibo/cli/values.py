"""Values of parameters as a person writes them."""

from calibo.errors import InputError
from calibo.space import Categorical, Choice, Int, Space

__all__ = ["parsed", "read_number", "read_value"]


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
        matching = [
            choice for choice in parameter.choices if str(choice) == text or ("" if choice is None else None) == text
        ]
        if not matching:
            raise InputError(f"`{name}` must be one of {parameter.choices!r}, but got {text!r}.")
        return matching[0]
    value = read_number(name, text)
    return space.plain_value(name, int(value) if isinstance(parameter, Int) and value.is_integer() else value)


def read_number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"`{name}` must be a number, but got {text!r}.") from None
