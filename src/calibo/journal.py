"""The journal: an append-only JSON Lines file that makes a study durable.

The first line declares the space; each further line is one event. Lines are written atomically and synced to disk
before the call returns.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from math import isfinite
from pathlib import Path
from typing import Any

from calibo.errors import InputError, JournalError, warn

try:
    import fcntl
except ImportError:  # not on Windows, where a journal must have a single writer
    fcntl = None  # type: ignore[assignment]


VERSION = 2  # 1: strategies by name


class Journal:
    """A journal file, referenced by path; events that could not be written are retried with the next."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if not isinstance(path, str | os.PathLike):
            raise InputError(f"`path` must be a path, but got {path!r}.")
        self.path = Path(path).absolute()  # the working directory may change
        self._unwritten: list[bytes] = []

    def create(self, header: Mapping[str, Any], *events: Mapping[str, Any]) -> None:
        """Create a new file with these events; never overwrites an existing one."""
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
        except FileExistsError:
            raise InputError(
                f"`path` must not exist yet, but got {str(self.path)!r}. Load it to resume, or choose another path."
            ) from None
        except OSError as error:
            raise JournalError(f"`path` must be writable, but got {str(self.path)!r}: {error.strerror}.") from error
        try:
            self.append({"calibo": VERSION, **header}, *events)
        except JournalError:
            self.path.unlink()
            raise
        _sync_folder(self.path.parent)

    def append(self, *events: Mapping[str, Any], keep: bool = True) -> None:
        """Write the events and sync them to disk; events that cannot be written are kept for the next call."""
        lines = [json.dumps(event, allow_nan=False).encode() + b"\n" for event in events]
        kept = list(self._unwritten)
        self._unwritten += lines
        try:
            with self._locked() as file:
                size = _truncate_partial_line(file)
                try:
                    _write(file, b"".join(self._unwritten))
                except OSError:
                    os.ftruncate(file, size)  # a partial line would corrupt the next
                    raise
        except OSError as error:
            self._unwritten = self._unwritten if keep else kept
            raise JournalError(
                f"The journal {str(self.path)!r} could not be written: {error.strerror}. Nothing is lost: "
                "the events are kept in memory and written with the next one. Free disk space, then continue."
            ) from error
        self._unwritten.clear()

    def read(self) -> list[dict[str, Any]]:
        """All events, header first; a truncated last line is skipped, and removed by the next append."""
        try:
            with self._locked(os.O_RDONLY) as file, os.fdopen(os.dup(file), "rb") as stream:
                lines = stream.read().splitlines(keepends=True)
        except OSError as error:
            raise JournalError(f"The journal {str(self.path)!r} could not be read: {error.strerror}.") from error
        events = [_event(line) for line in lines]
        if not events or events[0] is None or "calibo" not in events[0]:
            raise InputError(f"`path` must be a calibo journal, but {str(self.path)!r} has no header line.")
        if events[0]["calibo"] not in range(1, VERSION + 1):
            raise InputError(
                f"`path` must be a journal of version {VERSION} at most, but got {events[0]['calibo']!r}. "
                "Use the calibo version that wrote it."
            )
        if not lines[-1].endswith(b"\n"):
            warn(f"The last line of {str(self.path)!r} was cut off and is skipped.")
            del events[-1]
        whole = [event for event in events if event is not None]
        if len(whole) < len(events):
            raise JournalError(
                f"Line {events.index(None) + 1} of the journal {str(self.path)!r} is damaged. "
                "Remove that line to read the others."
            )
        return whole

    @contextmanager
    def _locked(self, flags: int = os.O_RDWR | os.O_APPEND) -> Iterator[int]:
        file = os.open(self.path, flags)
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
            yield file
        finally:
            os.close(file)


def json_number(value: float | None) -> float | str | None:
    """A number as JSON, which has no NaN and no infinity."""
    return value if value is None or isfinite(value) else repr(value)


def _sync_folder(path: Path) -> None:
    """Sync the folder, without which a new file is not durable; not supported on every system."""
    with suppress(OSError):
        folder = os.open(path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _truncate_partial_line(file: int) -> int:
    """The size of the file, after truncating a partial last line left by a killed writer."""
    size = os.fstat(file).st_size
    if size and _bytes(file, size - 1, 1) != b"\n":
        size = _bytes(file, 0, size).rfind(b"\n") + 1
        os.ftruncate(file, size)
    return size


def _bytes(file: int, start: int, count: int) -> bytes:
    os.lseek(file, start, os.SEEK_SET)
    return os.read(file, count)


def _write(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]
    os.fsync(file)


def _event(line: bytes) -> dict[str, Any] | None:
    """The event of a complete line, None for anything else."""
    try:
        event = json.loads(line) if line.endswith(b"\n") else None
    except ValueError:
        return None
    return event if isinstance(event, dict) else None
