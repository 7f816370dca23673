"""The peer protocol: JSON lines, one process per peer, in the peer's own environment.

The files in this folder run without calibo: they are started as scripts by the interpreter of the peer's environment.
Library output goes to stderr; stdout is reserved for the protocol.
"""

import json
import os
import sys
import time
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Protocol

__all__ = ["Peer", "Task", "position", "serve", "value_at"]


class Peer(Protocol):
    """One run of an optimizer that minimises."""

    def ask(self) -> dict[str, Any]:
        """The parameters to evaluate next."""
        ...

    def tell(self, params: dict[str, Any], value: float) -> None:
        """Record a value, at parameters that were asked for or not."""
        ...

    # A peer may have a method `recommend()` that returns the parameters to take home; by default, those with the best
    # observation. It may have a method `forecast(params)` that returns the mean of its posterior, and the standard
    # deviations of an observation and of the function.


@dataclass(frozen=True)
class Task:
    """What a peer is told at the start of a run."""

    space: dict[str, dict[str, Any]]
    """By name: kind, and bounds or choices."""

    seed: int
    exact: bool
    """Whether values are free of noise."""

    conditions: dict[str, tuple[str, list[Any]]]
    """Of each conditional parameter, its parent and the values of the parent for which it is active."""

    def is_active(self, name: str, params: dict[str, Any]) -> bool:
        """Whether a parameter is active, given those before it."""
        if name not in self.conditions:
            return True
        parent, values = self.conditions[name]
        return parent in params and self.is_active(parent, params) and params[parent] in values

    def active(self, params: dict[str, Any]) -> dict[str, Any]:
        """Without the inactive parameters."""
        return {name: params[name] for name in self.space if self.is_active(name, params)}


def serve(make: Any, packages: tuple[str, ...]) -> None:
    """Answer until stdin ends; ``make(task)`` starts a run."""
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
                begin = message["begin"]
                space = {entry["name"]: entry for entry in begin["space"]}
                peer = make(Task(space, begin["seed"], begin["exact"], begin["conditions"]))
                answer["versions"] = {package: _version(package) for package in packages}
            elif "tell" in message:
                peer.tell(message["tell"]["params"], message["tell"]["value"])
            elif "forecast" in message:
                answer["normal"] = peer.forecast(message["forecast"]["params"])
            elif "recommend" in message:
                answer["params"] = peer.recommend() if hasattr(peer, "recommend") else None
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
