"""Who evaluates a trial, and whether that process is still there."""

import os
import socket
from functools import cache
from pathlib import Path

__all__ = ["alive", "here"]


def here() -> str:
    """Names this process so that another one, later and elsewhere, can tell whether it has ended."""
    return f"{_host()}|{os.getpid()}|{_started(os.getpid())}"


def alive(worker: str) -> bool | None:
    """Whether the process of that name runs; None where that cannot be known, as on another machine."""
    host, _, process = worker.rpartition("|")[0].rpartition("|")
    if host != _host() or not process.isdecimal():
        return None
    return _started(int(process)) == worker.rpartition("|")[2]


@cache
def _host() -> str:
    """The machine; where process numbers are counted apart, as in containers, the container."""
    try:
        numbering = os.readlink("/proc/self/ns/pid")
    except OSError:
        numbering = ""
    return f"{socket.gethostname()} {numbering}"


def _started(process: int) -> str:
    """When a process began, which tells it from a later one of the same number; empty where there is none."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        if Path("/proc/self/stat").exists():
            return ""
        return _answers(process)
    rest = fields.rpartition(")")[2].split()  # the name before may hold blanks
    return "" if rest[0] in "ZX" else rest[19]


def _answers(process: int) -> str:
    """The best that can be known without /proc."""
    if os.name != "posix":  # there the call below would end the process
        return "runs"
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    return "runs"
