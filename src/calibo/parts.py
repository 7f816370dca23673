"""Parts: the components of a strategy, serializable as JSON.

A part is a frozen dataclass registered under a short name, independent of its class name. Its spec is that name and all
its fields, as JSON. A study stores the spec; its digest, the identity, identifies models, fits and chains. So a part
has the same identity in every process, and renaming a class does not affect stored studies.

    {"part": "lcb", "kappa": 2.0, "delta": 0.1}
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import Field, fields, is_dataclass
from hashlib import blake2b
from math import isfinite
from typing import Any, NamedTuple, TypeVar

import numpy as np

from calibo.errors import InputError, warn

T = TypeVar("T")
PART = "part"  # the key of the name in a spec


class Cache:
    """Values by keys that identify all they depend on, specs and data; cleared when full."""

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
BUILT = Cache(256)  # parts by spec; parts are immutable


class _Part(NamedTuple):
    """How a class is serialized."""

    owner: type | None = None
    name: str = ""
    stored_as: Mapping[str, str] = {}
    retired: Mapping[str, Any] = {}
    absent: Mapping[str, Any] = {}


def register(
    name: str,
    *,
    stored_as: Mapping[str, str] | None = None,
    retired: Mapping[str, Any] | None = None,
    absent: Mapping[str, Any] | None = None,
) -> Callable[[type[T]], type[T]]:
    """Register a frozen dataclass under the name by which it is stored; every process that loads it must register it.

    ``stored_as`` maps fields to other names in the spec. ``retired`` maps removed fields to their only remaining value,
    which keeps identities unchanged. ``absent`` maps fields to the value that they have in a spec from before they
    existed, if it is not the default. Fields with ``compare=False`` or ``init=False`` are not part of the identity. A
    class whose data are too large for a spec defines ``identity_fields`` instead; it cannot be built from its spec.
    """
    if not isinstance(name, str) or not name:
        raise InputError(f"`name` must be a string that is not empty, but got {name!r}.")

    def registering(cls: type[T]) -> type[T]:
        if not is_dataclass(cls) or not cls.__dataclass_params__.frozen:  # type: ignore[attr-defined]
            raise InputError(f"{cls.__name__} must be a frozen dataclass to be registered, but is not.")
        known = _CLASSES.get(name)
        if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            raise InputError(f"`name` must be unused, but {name!r} is {known.__qualname__}. Choose another name.")
        _CLASSES[name] = cls
        BUILT.clear()  # the class may have been redefined, as in a notebook
        # with its owner: a subclass is not registered yet
        part = _Part(cls, name, dict(stored_as or {}), dict(retired or {}), dict(absent or {}))
        cls._part = part  # type: ignore[attr-defined]
        return cls

    return registering


def registered() -> dict[str, type]:
    """All registered classes by name."""
    return dict(_CLASSES)


def spec(value: Any) -> Any:
    """A part, or the value of a field, as JSON; raises InputError if a part is not registered."""
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
        return f"A part must be an instance, but got the class {value.__name__}. Write {value.__name__}()."
    if callable(value) and hasattr(value, "__name__"):
        return (
            f"A part must have a registered name, but got the function {value.__name__!r}, which other processes "
            "cannot identify. Write a kernel as `register_kernel('its name')(function)`, and any other part as a "
            "frozen dataclass with `@calibo.register('its name')`."
        )
    kind = type(value)
    return (
        f"A part must have a registered name, but got a {kind.__module__}.{kind.__qualname__}. "
        f"Decorate its class with `@calibo.register('a name')`."
    )


def identity(value: Any) -> str:
    """A digest of the spec of a part, or of a tuple of parts; the same in every process."""
    if isinstance(value, tuple):
        return _digest([identity(entry) for entry in value])
    known: str | None = vars(value).get("_identity") if hasattr(value, "__dict__") else None
    if known is None:
        known = _digest(spec(value))
        if hasattr(value, "__dict__") and not _changeable(value):
            object.__setattr__(value, "_identity", known)  # cached: the part is immutable
    return known


def _changeable(value: Any) -> bool:
    """Whether it contains a list, which is mutable."""
    if isinstance(value, tuple):
        return any(_changeable(entry) for entry in value)
    if is_dataclass(value) and not hasattr(value, "identity_fields"):
        return any(_changeable(getattr(value, field.name)) for field in fields(value) if field.compare)
    return isinstance(value, list)


def identity_of(stored: Any) -> str:
    """The identity of the part with this spec, even if it cannot be built."""
    try:
        return identity(build(stored))  # it may have fields that the spec lacks
    except InputError:
        return _digest(stored)


def _digest(stored: Any) -> str:
    try:
        text = json.dumps(_canonical(stored), sort_keys=True, separators=(",", ":"))
    except RecursionError:
        raise InputError("A spec must not be so deep, but has parts within parts without end.") from None
    return blake2b(text.encode(), digest_size=8).hexdigest()


def _canonical(stored: Any) -> Any:
    """With all numbers as floats: 2 and 2.0 are equivalent."""
    if isinstance(stored, dict):
        return {key: _canonical(value) for key, value in stored.items()}
    if isinstance(stored, list):
        return [_canonical(value) for value in stored]
    # beyond 2^53, floats lose digits
    whole = isinstance(stored, int) and not isinstance(stored, bool) and abs(stored) <= 2**53
    return float(stored) if whole else stored


def build(stored: Any) -> Any:
    """Build the part from its spec; raises InputError for unregistered ones."""
    try:
        key = _text(stored)
        if key is None or (known := BUILT.get(key)) is None:
            known = _built(stored)
            if key is not None:
                BUILT.put(key, known)
    except RecursionError:
        raise InputError("A spec must not be so deep, but has parts within parts without end.") from None
    return known


def _text(stored: Any) -> str | None:
    """A spec as JSON; None if it is not plain JSON."""
    try:
        return json.dumps(stored)
    except (TypeError, ValueError):
        return None


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
            f"The part {name!r} is not registered here. Import the module that registers it, or pass another "
            "`strategy`."
        )
    if hasattr(cls, "identity_fields"):
        raise InputError(f"The part {name!r} holds data and cannot be built from its spec.")
    part: _Part = cls._part  # type: ignore[attr-defined]
    known = {part.stored_as.get(field.name, field.name): field.name for field in fields(cls) if field.init}
    unknown = sorted(str(key) for key in stored if key not in (*known, *part.retired, PART))
    if unknown:
        warn(f"The part {name!r} was stored with {unknown}, which this version of calibo does not support and ignores.")
    for key, value in part.retired.items():
        if stored.get(key, value) != value:
            raise InputError(f"The part {name!r} must have {key} = {value!r} in this version, but has {stored[key]!r}.")
    given = {**part.absent, **{known[key]: _built(value) for key, value in stored.items() if key in known}}
    try:
        return cls(**given)
    except InputError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise InputError(f"The part {name!r} cannot be built from its spec: {error}.") from None


def _float(text: Any) -> float:
    try:
        return float(text)
    except (TypeError, ValueError):
        raise InputError(f"A number must be 'inf', '-inf' or 'nan' in a spec, but got {text!r}.") from None
