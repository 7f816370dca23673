"""Exceptions raised by calibo, and its warning category."""

import re
import sys
import warnings
from math import inf, isfinite
from numbers import Real

REPEATED = (
    "No configuration was found that has not been tried; a previous one is suggested again. Stop, or widen the space."
)


def hide_passwords(text: str) -> str:
    """The text with *** for the passwords of URLs."""
    text = re.sub(r"((['\"])[\w+.-]+://[^:/'\"\n]*:)(?:(?!\2)[^\n])+@", r"\1***@", text)  # in quotes it may have blanks
    text = re.sub(r"(://[^:/\s'\"]*:|/[^:/\s'\"]+:)\S+@", r"\1***@", text)
    return re.sub(r"((?:password|passwd|pwd)(?:=|%3D))(?:(?!%3B)[^&;,\s'\"])+", r"\1***", text, flags=re.IGNORECASE)


class _WithoutPasswords(Exception):  # noqa: N818
    """A message may quote a storage URL, or another message with its full stop, and may end up in a log."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*(_tidy(each) if isinstance(each, str) else each for each in arguments))


def _tidy(text: str) -> str:
    return re.sub(r"(?<!\.)\.\.(?=\s|$)", ".", hide_passwords(text))


class CaliboError(_WithoutPasswords):
    """Base class of all exceptions raised by calibo."""


class InputError(CaliboError, ValueError):
    """An argument is invalid; the message tells how to fix it."""


class FitError(CaliboError, RuntimeError):
    """A model could not be fitted to the data."""


class ObjectiveError(CaliboError, RuntimeError):
    """The objective fails at every trial, most likely because of a bug; ``frames`` is where, in its file."""

    def __init__(self, message: str, frames: str = "") -> None:
        super().__init__(message)
        self.frames = hide_passwords(frames)


class SpaceExhausted(CaliboError):  # noqa: N818
    """Every configuration has been tried."""


class JournalError(CaliboError, OSError):
    """The journal file could not be written or read."""


class StorageError(CaliboError, RuntimeError):
    """The storage of a study could not be written or read."""


class CaliboWarning(_WithoutPasswords, UserWarning):
    """A fallback was used; the result is usable, and the message explains it."""


INTERNAL = ("calibo", "optuna", "concurrent", "threading")  # packages in which no user looks for the cause


def warn(text: str) -> None:
    """A `CaliboWarning` at the line outside calibo that led to it; in a thread of ours there is none."""
    frame = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in INTERNAL:
        frame = frame.f_back  # type: ignore[assignment]
    where = ("calibo", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)
    scope = {"__name__": "calibo"} if frame is None else frame.f_globals
    registry = scope.setdefault("__warningregistry__", {})
    warnings.warn_explicit(CaliboWarning(text), CaliboWarning, *where, scope.get("__name__"), registry)


def require_number(
    name: str, value: object, what: str, *, least: float = -inf, above: float = -inf, below: float = inf
) -> None:
    """Raise unless ``value`` is a finite number within the limits; ``what`` describes them."""
    if not (isinstance(value, Real) and not isinstance(value, bool) and _finite(value)):
        raise InputError(f"`{name}` must be {what}, but got {value!r}.")
    if not (least <= float(value) < below and float(value) > above):
        raise InputError(f"`{name}` must be {what}, but got {value!r}.")


def _finite(value: Real) -> bool:
    try:
        return isfinite(value)
    except OverflowError:  # an integer too large for a float
        return False
