"""The peer protocol: JSON lines, one process per peer, in the peer's own environment.

The files in this folder run without calibo: they are started as scripts by the interpreter of the peer's environment.
Library output goes to stderr; stdout is reserved for the protocol.
"""

import json
import os
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Protocol

__all__ = ["Peer", "position", "serve", "value_at"]


class Peer(Protocol):
    """One run of an optimizer that minimises."""

    def ask(self) -> dict[str, Any]:
        """The parameters to evaluate next."""
        ...

    def tell(self, params: dict[str, Any], value: float) -> None:
        """Record a value, at parameters that were asked for or not."""
        ...


def serve(make: Any, packages: tuple[str, ...]) -> None:
    """Answer until stdin ends; ``make(space, seed)`` starts a run."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    peer: Any = None
    for line in sys.stdin:
        message = json.loads(line)
        wall, processor = time.perf_counter(), time.process_time()
        answer: dict[str, Any] = {}
        try:
            if "begin" in message:
                peer = make(message["begin"]["space"], message["begin"]["seed"])
                answer["versions"] = {package: _version(package) for package in packages}
            elif "tell" in message:
                peer.tell(message["tell"]["params"], message["tell"]["value"])
            else:
                answer["params"] = peer.ask()
        except Exception as error:  # reported to the caller, which continues with another run
            answer = {"error": f"{type(error).__name__}: {error}"[:500]}
        answer["wall"], answer["processor"] = time.perf_counter() - wall, time.process_time() - processor
        print(json.dumps(answer), file=answers)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def position(entry: dict[str, Any], value: Any) -> float:
    """The position of a value in [0, 1], for peers that support real numbers only."""
    from math import log

    if entry["kind"] == "categorical":
        raise ValueError("this peer does not support categorical parameters")
    low, high, at = entry["low"], entry["high"], value
    if entry.get("log"):
        low, high, at = log(low), log(high), log(at)
    return (at - low) / (high - low)


def value_at(entry: dict[str, Any], u: float) -> Any:
    """The value at a position; integers are rounded."""
    from math import exp, log

    u, low, high = min(max(float(u), 0.0), 1.0), entry["low"], entry["high"]
    value = exp(log(low) + u * (log(high) - log(low))) if entry.get("log") else low + u * (high - low)
    value = min(max(value, low), high)
    return round(value) if entry["kind"] == "int" else value
