"""The error family: what calibo raises, and the warning it gives when it takes a fallback."""

__all__ = ["CaliboError", "CaliboWarning", "FitError", "InputError", "JournalError", "StorageError"]


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
