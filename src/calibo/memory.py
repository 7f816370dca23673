"""What this process has computed, so that it is not computed again; nothing depends on its being there."""

from collections.abc import Hashable
from typing import Any

__all__ = ["Memory"]


class Memory:
    """Values by the recipe that made them and a name; emptied when it is full.

    By the recipe itself, not by what is printed of it: two functions may look the same.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._known: dict[tuple[Hashable, str], Any] = {}

    def get(self, recipe: Any, name: str) -> Any:
        """The value, or None."""
        try:
            return self._known.get((recipe, name))
        except TypeError:  # a recipe of others that cannot be hashed is not remembered
            return None

    def put(self, recipe: Any, name: str, value: Any) -> None:
        if len(self._known) >= self.most:
            self._known.clear()
        try:
            self._known[recipe, name] = value
        except TypeError:
            return

    def clear(self) -> None:
        self._known.clear()
