"""One BLAS thread while the engine computes, in whichever thread that is, and the caller's number before and after."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_inside = 0
_libraries: list[Any] | None = None
_limited: list[tuple[Any, int]] = []  # libraries, and their number of threads before


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread: at these sizes, a second one costs more than it gains.

    The limit is process-wide. If several threads are inside, the first sets it and the last restores it; otherwise one
    thread could take the limit of another for the original value.
    """
    global _inside
    with _lock:
        if not _inside:
            _limit()
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                _restore()


def _limit() -> None:
    global _libraries
    if _libraries is None:  # scans every loaded library: 1 to 5 ms
        _libraries = [library for library in ThreadpoolController().lib_controllers if library.user_api == "blas"]
    for library in _libraries:
        before = library.get_num_threads()
        if before is not None and before > 1:
            _limited.append((library, before))
            _set(library, 1)


def _restore() -> None:
    while _limited:
        _set(*_limited.pop())


def _set(library: Any, count: int) -> None:
    """Set the number of threads of a library, from any thread.

    Since threadpoolctl 3.8 the first thread that sets the limit of an OpenBLAS with a process-wide pool owns it: calls
    from other threads do nothing, without a word. We hold a lock of our own, so we release that ownership.
    """
    owned = hasattr(library, "clear_controlling_thread")
    if owned:
        library.clear_controlling_thread(force=True)
    library.set_num_threads(count)
    if owned:
        library.clear_controlling_thread(force=True)


def _after_fork() -> None:
    """In a child process no thread is inside, whatever the others of the parent were doing."""
    global _lock, _inside
    _lock = threading.Lock()
    if _inside:
        _inside = 0
        _restore()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
