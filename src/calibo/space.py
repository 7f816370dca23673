"""Named parameters and their mapping to and from the unit cube."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from math import ceil, exp, floor, isclose, isfinite, log, log10
from numbers import Integral, Real
from typing import Any, Literal, get_args

import numpy as np

from calibo.arrays import Array
from calibo.cube import Axis, Cube, Warp
from calibo.errors import InputError

Choice = None | bool | int | float | str
Params = dict[str, Choice]

Digits = int | Literal["auto"] | None
"""Digits of each range that a person sets; None for exact values."""

AUTO_DIGITS = (3, 4, 5, 6)  # three or four, and more only where those were tried before

MAX_CELLS = 2**50  # beyond, float64 in [0, 1] cannot distinguish neighbouring cells
LARGEST_WIDTH = 1e300  # beyond, values are not rounded
WIDEN = "Widen the bounds to use it: in a study with `calibo widen`."
MAX_LOG_INT = 2**40  # beyond, exp(log(v)) may not round to v


@dataclass(frozen=True)
class Float:
    """A real number between ``low`` and ``high``, both included."""

    low: float
    high: float

    log: bool = False
    """Search on a log scale."""

    step: float | None = None
    """Only the values low, low + step, ..., high."""

    warp: Warp | None = "auto"
    """The prior for input warping: "auto", "identity", "log", "exp", "sigmoid", None for no warp."""

    def __post_init__(self) -> None:
        check_warp("warp", self.warp)
        for name in ("low", "high"):
            object.__setattr__(self, name, _real(name, getattr(self, name)))
        _check_order(self.low, self.high, self.log)
        if self.step is None:
            return
        object.__setattr__(self, "step", _real("step", self.step))
        if self.log:
            raise InputError("`step` must be None if log=True, but got both. Use a Categorical of the values you want.")
        _check_step(self.low, self.high, self.step)

    @cached_property
    def axis(self) -> Axis:
        if self.step is not None:
            return Axis("ordered", _steps(self.low, self.high, self.step) + 1, warp=self.warp)
        return Axis(warp=self.warp) if self.low < self.high else Axis("ordered", 1)

    def encode(self, value: object) -> float:
        """The position of ``value`` in [0, 1]."""
        number = _real("value", value)
        if self.step is not None:
            index = round((0.5 * number - 0.5 * self.low) / (0.5 * self.step))  # halves, as below
            near = 0 <= index < self.axis.cells and abs(self._stepped(index) - number) <= 1e-9 * self.step
            if not near:
                raise InputError(
                    f"`value` must be {self.low} + a multiple of {self.step} up to {self.high}, but got {value!r}."
                )
            return float(self.axis.position(index))
        if not self.low <= number <= self.high:
            raise InputError(f"`value` must lie in [{self.low}, {self.high}], but got {value!r}. {WIDEN}")
        # halves, so that high - low cannot overflow
        low, high, at = (log(v) if self.log else 0.5 * v for v in (self.low, self.high, number))
        return (at - low) / (high - low) if low < high else 0.5  # neighbouring floats may have the same logarithm

    def decode(self, x: float) -> float:
        """The value at position ``x``."""
        if self.step is not None:
            return self._stepped(int(self.axis.index(x)))
        if x <= 0.0 or x >= 1.0:  # exact ends, without rounding
            return self.low if x <= 0.0 else self.high
        if self.log:
            value = exp((1.0 - x) * log(self.low) + x * log(self.high))
        else:
            value = (1.0 - x) * self.low + x * self.high
        return min(max(value, self.low), self.high)

    def _stepped(self, index: int) -> float:
        # exact decimals, so that three steps of 0.1 are 0.3 and not 0.30000000000000004
        return float(_decimal(self.low) + index * _decimal(self.step))


@dataclass(frozen=True)
class Int:
    """An integer between ``low`` and ``high``, both included."""

    low: int
    high: int

    log: bool = False
    """Search on a log scale."""

    step: int = 1
    """Only the values low, low + step, ..., high."""

    warp: Warp | None = "auto"
    """The prior for input warping: "auto", "identity", "log", "exp", "sigmoid", None for no warp."""

    def __post_init__(self) -> None:
        check_warp("warp", self.warp)
        for name in ("low", "high", "step"):
            object.__setattr__(self, name, _whole(name, getattr(self, name)))
        _check_order(self.low, self.high, self.log)
        if self.log and self.step != 1:
            raise InputError(
                f"`step` must be 1 if log=True, but got {self.step}. Use a Categorical of the values you want."
            )
        _check_step(self.low, self.high, self.step)
        if self.log and self.high > MAX_LOG_INT:
            raise InputError(
                f"`high` must be at most 2**40 if log=True, but got {self.high}. Use a Float and round it."
            )

    @cached_property
    def axis(self) -> Axis:
        cells = (self.high - self.low) // self.step + 1
        return Axis("ordered", cells, self.low if self.log and cells > 1 else 0, self.warp)

    def encode(self, value: object) -> float:
        """The position of ``value`` in [0, 1]."""
        number = _whole("value", value)
        if not self.low <= number <= self.high or (number - self.low) % self.step:
            wanted = f"{self.low}, {self.low + self.step}, ..., {self.high}"
            advice = "" if self.low <= number <= self.high else f" {WIDEN}"
            raise InputError(f"`value` must be one of {wanted}, but got {value!r}.{advice}")
        return float(self.axis.position((number - self.low) // self.step))

    def decode(self, x: float) -> int:
        """The value at position ``x``."""
        return self.low + self.step * int(self.axis.index(x))


@dataclass(frozen=True)
class Categorical:
    """One of several unordered values: None, booleans, numbers or strings."""

    choices: Sequence[Choice]

    def __post_init__(self) -> None:
        if isinstance(self.choices, str) or not isinstance(self.choices, Sequence | np.ndarray):
            raise InputError(
                f"`choices` must be a list or tuple of values, but got {self.choices!r}. Write Categorical(['a', 'b'])."
            )
        choices = tuple(_plain(choice) for choice in self.choices)
        object.__setattr__(self, "choices", choices)
        if not choices:
            raise InputError("`choices` must hold at least one value, but got none.")
        for choice in choices:
            if not isinstance(choice, Choice) or (isinstance(choice, float) and not isfinite(choice)):
                raise InputError(
                    f"`choices` must be None, booleans, finite numbers or strings, but got {choice!r}. "
                    "Give each object a name and look it up in your function."
                )
        if len({_identity(choice) for choice in choices}) < len(choices):
            raise InputError(f"`choices` must be unique, but got {choices!r}. Remove the duplicates.")

    @cached_property
    def axis(self) -> Axis:
        return Axis("categorical", len(self.choices))

    def encode(self, value: object) -> float:
        """The position of ``value`` in [0, 1]."""
        wanted = _identity(_plain(value))
        for index, choice in enumerate(self.choices):
            if _identity(choice) == wanted:
                return float(self.axis.position(index))
        raise InputError(f"`value` must be one of {self.choices!r}, but got {value!r}.")

    def decode(self, x: float) -> Choice:
        """The value at position ``x``."""
        return self.choices[int(self.axis.index(x))]


Parameter = Float | Int | Categorical
KINDS: Mapping[str, type[Parameter]] = {"float": Float, "int": Int, "categorical": Categorical}
"""By their names in stored files."""


def check_digits(digits: object) -> None:
    """Raise unless it is None, "auto" or a number of digits."""
    whole = isinstance(digits, int | np.integer) and not isinstance(digits, bool) and digits >= 1
    if digits is not None and digits != "auto" and not whole:
        raise InputError(f"`digits` must be None, 'auto' or a whole number of at least 1, but got {digits!r}.")


def check_warp(name: str, warp: object) -> None:
    """Raise unless it names a warp prior.

    "auto": any warp; "identity": hardly any; "log": stretches the low end, as taking logarithms does; "exp": the high
    end; "sigmoid": the middle; None: no warp.
    """
    if warp is not None and warp not in get_args(Warp):
        raise InputError(f"`{name}` must be None or one of {list(get_args(Warp))}, but got {warp!r}.")


class Space(Mapping[str, Parameter]):
    """Named parameters, in the order given: a mapping, or pairs of name and parameter.

    (0.0, 1.0) is short for Float(0, 1), (1, 10) for Int(1, 10), and a list for a Categorical of its values. Optuna
    distributions, and uniform, loguniform and randint of scipy.stats, are taken as well.
    """

    def __init__(self, parameters: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        try:
            pairs = [
                (name, parameter)
                for name, parameter in (parameters.items() if isinstance(parameters, Mapping) else parameters)
            ]
        except (TypeError, ValueError):
            pairs = []
        if not pairs:
            raise InputError(
                f"`parameters` must be a dictionary of parameters, but got {parameters!r}. "
                "Write Space({'x': Float(0, 1)})."
            )
        for name, _ in pairs:
            if not isinstance(name, str):
                raise InputError(f"`parameters` must be named by strings, but got {name!r}.")
        self._parameters: dict[str, Parameter] = {name: _parameter(name, given) for name, given in pairs}
        if len(self._parameters) < len(pairs):
            names = [name for name, _ in pairs]
            twice = sorted({name for name in names if names.count(name) > 1})
            raise InputError(
                f"`parameters` must have unique names, but got {twice} more than once. Rename the duplicates."
            )

    def __getitem__(self, name: str) -> Parameter:
        return self._parameters[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def __len__(self) -> int:
        return len(self._parameters)

    def __repr__(self) -> str:
        return f"Space({self._parameters!r})"

    @cached_property
    def cube(self) -> Cube:
        return Cube(tuple(parameter.axis for parameter in self.values()))

    def to_json(self) -> list[dict[str, Any]]:
        """Names, kinds and fields, in order."""
        names = {kind: name for name, kind in KINDS.items()}
        usual = {"warp": "auto"}  # omitted, so that spaces stored before the field existed still compare equal
        return [
            {
                "name": name,
                "kind": names[type(parameter)],
                **{k: v for k, v in vars(parameter).items() if k != "axis" and (k not in usual or v != usual[k])},
            }
            for name, parameter in self.items()
        ]

    @classmethod
    def from_json(cls, stored: list[dict[str, Any]]) -> "Space":
        """Ignores fields of later versions."""
        pairs = []
        for entry in stored:
            kind = KINDS[entry["kind"]]
            known = {field.name for field in fields(kind)}
            pairs.append((entry["name"], kind(**{key: value for key, value in entry.items() if key in known})))
        return cls(pairs)

    def to_cube(self, params: Mapping[str, Any]) -> Array:
        """The point (d,) of ``params``, which must name every parameter and no other."""
        if not isinstance(params, Mapping):
            raise InputError(f"`params` must be a dictionary of {list(self)}, but got {params!r}.")
        missing, unknown = [n for n in self if n not in params], [n for n in params if n not in self]
        if missing or unknown:
            raise InputError(
                f"`params` must name {list(self)}, but got {list(params)}: missing {missing}, unknown {unknown}."
            )
        return np.array([self.encode(name, params[name]) for name in self])

    def from_cube(self, x: Array) -> Params:
        """The parameters at point ``x`` (d,)."""
        return {name: parameter.decode(float(x[j])) for j, (name, parameter) in enumerate(self.items())}

    def rounded(self, params: Mapping[str, Any], digits: Digits) -> list[Params]:
        """``params`` with continuous values rounded to ``digits`` digits of their range, within its bounds.

        For "auto" to three, four, five and six; for None as they are.
        """
        if digits is None:
            return [dict(params)]
        numbers = AUTO_DIGITS if digits == "auto" else (digits,)
        return [{name: _rounded(self[name], value, n) for name, value in params.items()} for n in numbers]

    def plain(self, params: Mapping[str, Any]) -> Params:
        """The same ``params`` in the space's order and as plain Python types; floats are kept exactly."""
        self.to_cube(params)
        return {name: self.plain_value(name, params[name]) for name in self}

    def plain_value(self, name: str, value: Any) -> Choice:
        """One parameter's ``value`` as a plain Python type."""
        x = self.encode(name, value)
        return self[name].decode(x) if self[name].axis.cells else float(value)

    def encode(self, name: str, value: object) -> float:
        """The position of one parameter's ``value``."""
        if name not in self:
            raise InputError(f"`params` must name only {list(self)}, but got {name!r}.")
        try:
            return self[name].encode(value)
        except InputError as error:
            raise InputError(str(error).replace("`value`", f"`{name}`", 1)) from None


def _rounded(parameter: Parameter, value: Any, digits: int) -> Any:
    if not isinstance(parameter, Float) or parameter.axis.cells:
        return value
    width = abs(value) if parameter.log else parameter.high - parameter.low
    if not 0.0 < width < LARGEST_WIDTH:
        return value
    order = floor(log10(width)) + 1 if parameter.log else ceil(log10(width))
    short = round(value, digits - order)
    return min(max(short, parameter.low), parameter.high)


def _parameter(name: str, given: Any) -> Parameter:
    """A parameter, or what is unambiguously short for one."""
    if isinstance(given, Parameter):
        return given
    try:
        if isinstance(given, tuple) and len(given) == 2 and all(isinstance(v, Real) for v in given):
            whole = all(isinstance(v, Integral) and not isinstance(v, bool) for v in given)
            return Int(*given) if whole else Float(*given)
        if isinstance(given, list):
            return Categorical(given)
        if type(given).__module__ == "optuna.distributions":
            return _from_optuna(given)
        if hasattr(given, "dist") and hasattr(given, "support"):
            low, high = given.support()
            if given.dist.name == "randint":
                return Int(low, high)
            shifted = given.dist.name != "uniform" and not isclose(given.median() ** 2, low * high, rel_tol=1e-9)
            if given.dist.name in ("uniform", "loguniform", "reciprocal") and not shifted:
                return Float(low, high, log=given.dist.name != "uniform")
    except InputError as error:
        raise InputError(f"`{name}`: {error}") from None
    raise InputError(
        f"`{name}` must be a Float, an Int or a Categorical, but got {given!r}. Write Float(0, 1), Int(1, 10) or "
        "Categorical(['a', 'b'])."
    )


def _from_optuna(distribution: Any) -> Parameter:
    """A distribution of Optuna, which this layer does not import."""
    if hasattr(distribution, "choices"):
        return Categorical(distribution.choices)
    kind = Int if isinstance(distribution.low, Integral) and type(distribution).__name__.startswith("Int") else Float
    return kind(distribution.low, distribution.high, distribution.log, distribution.step)


def _real(name: str, value: object) -> float:
    if isinstance(value, Real) and not isinstance(value, bool | np.bool_):
        with suppress(OverflowError):  # an integer too large for a float
            if isfinite(value):
                return float(value)
    raise InputError(f"`{name}` must be a finite number, but got {value!r}.")


def _whole(name: str, value: object) -> int:
    if isinstance(value, Integral) and not isinstance(value, bool | np.bool_):
        return int(value)
    if isinstance(value, float | np.floating) and isfinite(value) and value == int(value):
        return int(value)
    raise InputError(f"`{name}` must be a whole number, but got {value!r}.")


def _check_order(low: float, high: float, log: bool) -> None:
    if low > high:
        raise InputError(f"`low` must not exceed `high`, but got low={low} and high={high}. Swap them.")
    if log and low <= 0:
        raise InputError(f"`low` must be positive if log=True, but got {low}. Raise it or drop log.")


def _check_step(low: float, high: float, step: float) -> None:
    if step <= 0:
        raise InputError(f"`step` must be positive, but got {step}.")
    if (_decimal(high) - _decimal(low)) % _decimal(step):
        top = type(low)(_decimal(low) + _steps(low, high, step) * _decimal(step))
        raise InputError(
            f"`step` must divide high - low, but got low={low}, high={high}, step={step}. Set high={top!r}, say."
        )
    if _steps(low, high, step) >= MAX_CELLS:
        raise InputError(
            f"`step` must leave at most 2**50 values, but got low={low}, high={high}, step={step}. Use a Float."
        )


def _steps(low: float, high: float, step: float) -> int:
    return int((_decimal(high) - _decimal(low)) // _decimal(step))


def _decimal(value: float | None) -> Fraction:
    """The exact value of the number's decimal representation."""
    return Fraction(repr(value))


def _plain(value: Any) -> Any:
    """A NumPy scalar or a str, int or float enum member as a plain Python value."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, float):
        return float(value)
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _identity(value: object) -> tuple[type, object]:
    """Distinguishes 1, True and 1.0, which compare equal in Python."""
    return type(value), value
