"""Whom the bench runs: calibo's presets in this process, peers in environments and processes of their own."""

import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

import calibo
from calibo.errors import CaliboError, InputError
from calibo.journal import declared
from calibo.optimizer import Optimizer
from calibo.space import Params, Space
from calibo.strategy import PRESETS

__all__ = ["ENVIRONMENTS", "PEERS", "Answer", "Client", "ClientError", "Environment", "client_of", "peers_folder"]

SCRIPTS = Path(__file__).parent / "peers"
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


class ClientError(CaliboError, RuntimeError):
    """A strategy crashed, took too long, or answered what cannot be understood."""


@dataclass(frozen=True)
class Answer:
    """A suggestion, and what it cost."""

    params: dict[str, Any]
    wall: float
    processor: float
    forecast: tuple[float, float] | None = None
    """Mean and standard deviation of the observation, where the strategy makes such a forecast."""


class Client(Protocol):
    """One strategy, run after run."""

    def begin(self, space: Space, seed: int) -> Mapping[str, str]:
        """Forget everything and begin a run; the versions of what is run."""
        ...

    def ask(self) -> Answer: ...

    def tell(self, params: Params, value: float) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Environment:
    """Packages that are installed together."""

    requirements: tuple[str, ...]


TORCH = "torch==2.13.0"

ENVIRONMENTS: Mapping[str, Environment] = {
    "optuna": Environment(("optuna>=5", "scipy", TORCH)),
    "botorch": Environment(("botorch>=0.18", TORCH)),
    "ax": Environment(("ax-platform>=1", TORCH)),
    "skopt": Environment(("scikit-optimize",)),
    "bayes-opt": Environment(("bayesian-optimization>=2",)),
    # HEBO asks for old versions of nearly everything
    "hebo": Environment(
        ("HEBO", "numpy==1.24.4", "scipy==1.10.1", "gpytorch==1.11", "pymoo==0.6.0", "setuptools<81", TORCH)
    ),
    "smac": Environment(("smac>=2",)),
    "confopt": Environment(("confopt",)),
}

PEERS: Mapping[str, tuple[str | None, str, str]] = {
    # name: environment (None for that of calibo), script, argument
    "random": (None, "sampling.py", "random"),
    "sobol": (None, "sampling.py", "sobol"),
    "optuna-tpe": ("optuna", "optuna_samplers.py", "tpe"),
    "optuna-gp": ("optuna", "optuna_samplers.py", "gp"),
    "botorch": ("botorch", "botorch_peer.py", "plain"),
    "botorch-warp": ("botorch", "botorch_peer.py", "warp"),
    "ax": ("ax", "ax_peer.py", ""),
    "skopt": ("skopt", "skopt_peer.py", ""),
    "bayes-opt": ("bayes-opt", "bayes_opt_peer.py", ""),
    "hebo": ("hebo", "hebo_peer.py", ""),
    "smac": ("smac", "smac_peer.py", ""),
    "confopt": ("confopt", "confopt_peer.py", ""),
}


def peers_folder() -> Path:
    """Where the environments of peers are: CALIBO_PEERS, or a folder in the user's cache."""
    named = os.environ.get("CALIBO_PEERS")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(named) if named else cache / "calibo" / "peers"


def client_of(name: str, timeout: float) -> Client:
    """A preset of calibo ("calibo" is the default), a peer, or a script that speaks as a peer does."""
    if name == "calibo" or name.removeprefix("calibo-") in PRESETS:
        return Own(name.removeprefix("calibo-") if name != "calibo" else "default")
    if name.endswith(".py"):
        return Process(sys.executable, Path(name), "", timeout)
    if name not in PEERS:
        known = ["calibo", *(f"calibo-{preset}" for preset in PRESETS if preset != "default"), *PEERS]
        raise InputError(f"A strategy must be one of {known}, or a script, but got {name!r}.")
    environment, script, argument = PEERS[name]
    python = sys.executable if environment is None else str(peers_folder() / environment / "bin" / "python")
    if not Path(python).exists():
        raise InputError(
            f"{name!r} must be installed first, but there is no {python!r}. Run `calibo bench install-peers`."
        )
    return Process(python, SCRIPTS / script, argument, timeout)


class Own:
    """A preset of calibo, in this process."""

    def __init__(self, preset: str) -> None:
        self.preset = preset
        self.optimizer: Optimizer | None = None

    def begin(self, space: Space, seed: int) -> Mapping[str, str]:
        self.optimizer = Optimizer(space, strategy=self.preset, seed=seed)
        return {"calibo": calibo.__version__, "numpy": np.__version__}

    def ask(self) -> Answer:
        assert self.optimizer is not None
        wall, processor = time.perf_counter(), time.process_time()
        params = self.optimizer.ask()
        cost = time.perf_counter() - wall, time.process_time() - processor
        raw = self.optimizer.forecast(params, noise=True).raw
        return Answer(params, *cost, (float(raw.weights @ raw.loc[:, 0]), _deviation(raw)))

    def tell(self, params: Params, value: float) -> None:
        assert self.optimizer is not None
        self.optimizer.tell(params, value)

    def close(self) -> None:
        pass


def _cost(answer: Mapping[str, Any]) -> tuple[float, float]:
    return float(answer.get("wall", 0.0)), float(answer.get("processor", 0.0))


def _deviation(raw: Any) -> float:
    mean = float(raw.weights @ raw.loc[:, 0])
    return float(np.sqrt(raw.weights @ (raw.scale[:, 0] ** 2 + (raw.loc[:, 0] - mean) ** 2)))


class Process:
    """A script in an environment of its own, spoken to in JSON lines."""

    def __init__(self, python: str, script: Path, argument: str, timeout: float) -> None:
        self.command = [python, str(script), *([argument] if argument else [])]
        self.timeout = timeout
        self.process: subprocess.Popen[str] | None = None
        self.learning = (0.0, 0.0)
        """Wall and processor time of what was told since the last suggestion: some fit their model there."""

    def begin(self, space: Space, seed: int) -> Mapping[str, str]:
        self.learning = (0.0, 0.0)
        answer = self._spoken({"begin": {"space": declared(space), "seed": seed}})
        versions = answer.get("versions")
        return versions if isinstance(versions, dict) else {}

    def ask(self) -> Answer:
        answer = self._spoken({"ask": None})
        if not isinstance(answer.get("params"), dict):
            raise ClientError(f"an answer must have parameters, but got {answer!r}")
        (told_wall, told_processor), (wall, processor) = self.learning, _cost(answer)
        self.learning = (0.0, 0.0)
        return Answer(answer["params"], told_wall + wall, told_processor + processor)

    def tell(self, params: Params, value: float) -> None:
        wall, processor = _cost(self._spoken({"tell": {"params": params, "value": value}}))
        self.learning = self.learning[0] + wall, self.learning[1] + processor

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            for stream in (self.process.stdin, self.process.stdout):
                if stream is not None:
                    stream.close()
            self.process = None

    def _spoken(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Say something and read the answer; a process that fails is ended, the next run starts another."""
        try:
            process = self.process = self.process or self._started()
            assert process.stdin is not None
            process.stdin.write(json.dumps(message) + "\n")
            process.stdin.flush()
            answer = json.loads(self._line(process))
        except (OSError, ValueError) as error:
            self.close()
            raise ClientError(f"the process of the strategy has ended or answers nonsense: {error}") from None
        except ClientError:
            self.close()
            raise
        if "error" in answer:
            raise ClientError(str(answer["error"]))
        return dict(answer)

    def _line(self, process: "subprocess.Popen[str]") -> str:
        assert process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            if not selector.select(self.timeout):
                raise ClientError(f"no answer within {self.timeout:g} seconds")
        return process.stdout.readline()

    def _started(self) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **dict.fromkeys(THREADS, "1"), "PYTHONPATH": str(SCRIPTS)},
        )
