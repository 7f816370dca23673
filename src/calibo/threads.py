"""Limits BLAS threads while calibo computes."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_inside = 0
_controller: Any = None
_limit: Any = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread: at these sizes a second one costs more than it gains.

    The limit is process-wide. With several threads inside, the first sets it and the last restores it: otherwise one
    could save another's limit as the original state.
    """
    global _inside, _controller, _limit
    with _lock:
        if not _inside:
            _controller = _controller or ThreadpoolController()  # scans every loaded library: 1-5 ms
            _limit = _controller.limit(limits=1, user_api="blas")
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                _limit.restore_original_limits()
