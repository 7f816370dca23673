"""The error family: what calibo raises, and the warning it gives when it takes a fallback."""

from math import inf, isfinite
from numbers import Real

REPEATED = (
    "No configuration was found that has not been tried; one of them is proposed again. Stop here, or widen the space."
)


class CaliboError(Exception):
    """The root of every error that calibo raises on purpose."""


class InputError(CaliboError, ValueError):
    """What was handed in cannot be used; the message says what to do."""


class FitError(CaliboError, RuntimeError):
    """A model could not be fitted to the data, whatever was tried."""


class JournalError(CaliboError, OSError):
    """The journal file could not be written or read."""


class StorageError(CaliboError, RuntimeError):
    """The storage of a study could not be written or read."""


class CaliboWarning(UserWarning):
    """A fallback was taken; the result is usable, the message says what happened."""


def require_number(
    name: str, value: object, what: str, *, least: float = -inf, above: float = -inf, below: float = inf
) -> None:
    """Raise unless ``value`` is a finite number in these limits; ``what`` says them in words."""
    if not (isinstance(value, Real) and not isinstance(value, bool) and _finite(value)):
        raise InputError(f"`{name}` must be {what}, but got {value!r}.")
    if not (least <= float(value) < below and float(value) > above):
        raise InputError(f"`{name}` must be {what}, but got {value!r}.")


def _finite(value: Real) -> bool:
    try:
        return isfinite(value)
    except OverflowError:  # a whole number beyond all floats
        return False
