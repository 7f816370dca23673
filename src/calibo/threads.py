"""BLAS threads, limited while the engine computes and only then."""

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
    """At these sizes a second BLAS thread costs more than it does.

    The limit holds for the whole process. Of several threads in here the first sets it and the last takes it back:
    if each did for itself, one could take for the normal state what another had set.
    """
    global _inside, _controller, _limit
    with _lock:
        if not _inside:
            _controller = _controller or ThreadpoolController()  # looks through every loaded library: 1-5 ms
            _limit = _controller.limit(limits=1, user_api="blas")
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                _limit.restore_original_limits()
