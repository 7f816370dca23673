"""JSON kept with a study or a trial, in pieces that every storage can hold."""

import json
from collections.abc import Mapping
from typing import Any

__all__ = ["joined", "pieces"]

PIECE = 1000  # characters: storages hold 2,045, and quotes within are doubled


def pieces(key: str, value: Any) -> dict[str, str]:
    """The attributes that hold ``value``."""
    text = json.dumps(value)
    return {f"{key}:{i // PIECE}": text[i : i + PIECE] for i in range(0, len(text), PIECE)}


def joined(attributes: Mapping[str, Any], key: str) -> Any:
    """The value held; None where there is nothing, or nothing that can be read."""
    parts: list[str] = []
    while (part := attributes.get(f"{key}:{len(parts)}")) is not None:
        parts.append(str(part))
    try:
        return json.JSONDecoder().raw_decode("".join(parts))[0]  # behind it may be the rest of a longer one
    except (ValueError, RecursionError):
        return None
