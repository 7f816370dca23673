"""Parts: what strategies are made of, as data.

A part is a frozen dataclass registered under a short name, whatever its class is called. Its spec is that name and all
its fields, as JSON. The spec is what a study stores; its digest, the identity, names models, fits and chains. So the
same part has the same identity in every process, and renaming a class changes nothing that is stored.

    {"part": "lcb", "kappa": 2.0, "delta": 0.1}
"""

import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import Field, fields, is_dataclass
from hashlib import blake2b
from math import isfinite
from typing import Any, NamedTuple, TypeVar

import numpy as np

from calibo.errors import CaliboWarning, InputError

T = TypeVar("T")
PART = "part"  # the key of the name in a spec


class Cache:
    """Values by keys that name all they depend on, specs and data; emptied when it is full."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._values: dict[Any, Any] = {}

    def get(self, key: Any) -> Any:
        """The value, or None."""
        return self._values.get(key)

    def put(self, key: Any, value: Any) -> None:
        if len(self._values) >= self.most:
            self._values.clear()
        self._values[key] = value

    def clear(self) -> None:
        self._values.clear()


_CLASSES: dict[str, type] = {}
BUILT = Cache(256)  # parts by their specs: a part never changes


class _Part(NamedTuple):
    """How a class is stored."""

    owner: type | None = None
    name: str = ""
    stored_as: Mapping[str, str] = {}
    retired: Mapping[str, Any] = {}


def register(
    name: str, *, stored_as: Mapping[str, str] | None = None, retired: Mapping[str, Any] | None = None
) -> Callable[[type[T]], type[T]]:
    """Give a frozen dataclass the name under which it is stored; register it wherever it is read.

    ``stored_as`` are fields that have another name in a spec. ``retired`` are fields that are gone and the value that
    all parts have there, so that their identity stays. Fields with ``compare=False`` or ``init=False`` are no part of
    the identity. A class whose data are too large for a spec has a method ``identity_fields`` instead; it cannot be
    built from its spec.
    """
    if not isinstance(name, str) or not name:
        raise InputError(f"`name` must be a string that is not empty, but got {name!r}.")

    def registering(cls: type[T]) -> type[T]:
        if not is_dataclass(cls) or not cls.__dataclass_params__.frozen:  # type: ignore[attr-defined]
            raise InputError(f"{cls.__name__} must be a frozen dataclass to be registered, but is not.")
        known = _CLASSES.get(name)
        if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            raise InputError(f"`name` must be free, but {name!r} is {known.__qualname__}. Take another name.")
        _CLASSES[name] = cls
        BUILT.clear()  # it may be a later version of the class, as in a notebook
        # with the class: a subclass has no name yet
        cls._part = _Part(cls, name, dict(stored_as or {}), dict(retired or {}))  # type: ignore[attr-defined]
        return cls

    return registering


def registered() -> dict[str, type]:
    """All classes by their names."""
    return dict(_CLASSES)


def spec(value: Any) -> Any:
    """The part, or a value that is a field of one, as JSON; raises InputError where a part is not registered."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.generic):
        return spec(value.item())
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else {"float": repr(value)}
    if isinstance(value, tuple | list):
        return [spec(entry) for entry in value]
    part = getattr(type(value), "_part", _Part())
    if part.owner is not type(value):
        raise InputError(_not_registered(value))
    if hasattr(value, "identity_fields"):
        return {PART: part.name, **value.identity_fields()}
    names = [field.name for field in _counting(value)]
    known = {part.stored_as.get(name, name): spec(getattr(value, name)) for name in names}
    return {PART: part.name, **known, **part.retired}


def _counting(value: Any) -> list[Field[Any]]:
    return [field for field in fields(value) if field.compare and field.init]


def _not_registered(value: Any) -> str:
    if isinstance(value, type):
        return f"A part must be a value, but got the class {value.__name__}. Write {value.__name__}()."
    if callable(value) and hasattr(value, "__name__"):
        return (
            f"A part must be a value with a registered name, but got the function {value.__name__!r}, which is another "
            "one in every process. Write a kernel as `register_kernel('its name')(function)`, and any other part as a "
            "frozen dataclass with `@calibo.register('its name')`."
        )
    kind = type(value)
    return (
        f"A part must have a registered name, but got a {kind.__module__}.{kind.__qualname__}. "
        f"Write `@calibo.register('a name')` above its class."
    )


def identity(value: Any) -> str:
    """Tells a part, or a tuple of parts, from every other one: a digest of its spec, the same in every process."""
    if isinstance(value, tuple):
        return _digest([identity(entry) for entry in value])
    known: str | None = vars(value).get("_identity") if hasattr(value, "__dict__") else None
    if known is None:
        known = _digest(spec(value))
        if hasattr(value, "__dict__") and not _changeable(value):
            object.__setattr__(value, "_identity", known)  # once: such a part never changes
    return known


def _changeable(value: Any) -> bool:
    """Whether a list stands in it, which may be changed."""
    if isinstance(value, tuple):
        return any(_changeable(entry) for entry in value)
    if is_dataclass(value) and not hasattr(value, "identity_fields"):
        return any(_changeable(getattr(value, field.name)) for field in fields(value) if field.compare)
    return isinstance(value, list)


def identity_of(stored: Any) -> str:
    """The identity of the part with this spec, whether or not it can be built here."""
    try:
        return identity(build(stored))  # which may have fields that the spec does not know
    except InputError:
        return _digest(stored)


def _digest(stored: Any) -> str:
    try:
        text = json.dumps(_canonical(stored), sort_keys=True, separators=(",", ":"))
    except RecursionError:
        raise InputError("A spec must not be so deep, but has parts within parts without end.") from None
    return blake2b(text.encode(), digest_size=8).hexdigest()


def _canonical(stored: Any) -> Any:
    """With floats for all numbers: 2 and 2.0 are the same setting."""
    if isinstance(stored, dict):
        return {key: _canonical(value) for key, value in stored.items()}
    if isinstance(stored, list):
        return [_canonical(value) for value in stored]
    whole = (
        isinstance(stored, int) and not isinstance(stored, bool) and abs(stored) <= 2**53
    )  # beyond, floats lose digits
    return float(stored) if whole else stored


def build(stored: Any) -> Any:
    """The part of a spec; only registered ones are built, and an unknown one is named."""
    try:
        key = json.dumps(stored)
        if (known := BUILT.get(key)) is None:
            known = _built(stored)
            BUILT.put(key, known)
    except RecursionError:
        raise InputError("A spec must not be so deep, but has parts within parts without end.") from None
    return known


def _built(stored: Any) -> Any:
    if isinstance(stored, list):
        return tuple(_built(entry) for entry in stored)
    if not isinstance(stored, Mapping):
        return stored
    if set(stored) == {"float"}:
        return _float(stored["float"])
    name = stored.get(PART)
    cls = _CLASSES.get(name) if isinstance(name, str) else None
    if cls is None:
        raise InputError(
            f"The part {name!r} is not registered here. Import the module that registers it, or give another "
            "`strategy`."
        )
    if hasattr(cls, "identity_fields"):
        raise InputError(f"The part {name!r} holds data and cannot be built from its spec.")
    part: _Part = cls._part  # type: ignore[attr-defined]
    known = {part.stored_as.get(field.name, field.name): field.name for field in fields(cls) if field.init}
    unknown = sorted(str(key) for key in stored if key not in (*known, *part.retired, PART))
    if unknown:
        warnings.warn(
            f"The part {name!r} was stored with {unknown}, which this version of calibo does not know and leaves out.",
            CaliboWarning,
            stacklevel=2,
        )
    for key, value in part.retired.items():
        if stored.get(key, value) != value:
            raise InputError(f"The part {name!r} must have {key} = {value!r} in this version, but has {stored[key]!r}.")
    given = {known[key]: _built(value) for key, value in stored.items() if key in known}
    try:
        return cls(**given)
    except InputError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise InputError(f"The part {name!r} cannot be built from what is stored: {error}.") from None


def _float(text: Any) -> float:
    try:
        return float(text)
    except (TypeError, ValueError):
        raise InputError(f"A number must be 'inf', '-inf' or 'nan' in a spec, but got {text!r}.") from None
