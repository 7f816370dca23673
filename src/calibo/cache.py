"""What this process has computed, so that it is not computed again; nothing depends on its being there."""

from typing import Any

__all__ = ["Cache"]


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
