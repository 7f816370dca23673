"""Clients of the runner: calibo's strategies in this process, peers in their own environments and processes."""

import json
import os
import re
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

import calibo
from calibo import CalibratedSampler, Forecast, Optimizer
from calibo.errors import CaliboError, InputError
from calibo.models import GaussianProcess, SourceTask, Transfer
from calibo.presets import PRESETS, get_strategy
from calibo.side_information import SideInformation
from calibo.space import Categorical, Int, Parameter, Params
from calibo.strategy import Strategy
from calibo_bench.problems.synthetic import Instance
from calibo_bench.variants import VARIANTS, Variant

__all__ = [
    "ENVIRONMENTS",
    "PEERS",
    "PRESET_NAMES",
    "Answer",
    "Client",
    "ClientError",
    "Environment",
    "client_of",
    "distribution_of",
    "peers_folder",
    "source_digest",
]

SCRIPTS = Path(__file__).parent / "peers"
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


class ClientError(CaliboError, RuntimeError):
    """A strategy crashed, timed out, or sent an invalid answer."""


@dataclass(frozen=True)
class Answer:
    """A suggestion, and what it cost."""

    params: dict[str, Any]
    wall: float
    processor: float
    forecast: Forecast | None = None
    """Of the observation, if the strategy makes one."""


class Client(Protocol):
    """One strategy, run after run."""

    def begin(self, instance: Instance, seed: int, *, given: bool = True) -> Mapping[str, str]:
        """Reset, start a run, and return package versions. If initial points are ``given``, they are told before the
        first ask.
        """
        ...

    def ask(self) -> Answer: ...

    def tell(self, params: Params, value: float) -> None: ...

    def recommend(self) -> Params | None:
        """The parameters that a user would take home now; None for those with the best observation."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Environment:
    """Packages that are installed together."""

    requirements: tuple[str, ...]

    bare: tuple[str, ...] = ()
    """Installed afterwards without their dependencies, if these conflict."""


TORCH = "torch==2.13.0"

ENVIRONMENTS: Mapping[str, Environment] = {
    "optuna": Environment(("optuna>=5", "cmaes", "scipy", TORCH)),
    "botorch": Environment(("botorch>=0.18", TORCH)),
    "ax": Environment(("ax-platform>=1", TORCH)),
    "skopt": Environment(("scikit-optimize",)),
    "bayes-opt": Environment(("bayesian-optimization>=2",)),
    # HEBO requires old versions of nearly everything, some of which no longer build
    "hebo": Environment(
        (
            "numpy==1.24.4",
            "scipy==1.10.1",
            "pandas==1.5.3",
            "scikit-learn==1.2.2",
            "gpytorch==1.11",
            "pymoo==0.6.1.1",
            "catboost",
            "disjoint-set",
            "setuptools<81",
            TORCH,
        ),
        bare=("HEBO==0.3.6",),
    ),
    "smac": Environment(("smac>=2.4.1",)),
    "confopt": Environment(("confopt",)),
}

PEERS: Mapping[str, tuple[str | None, str, str]] = {
    # name: environment (None for calibo's own), script, argument
    "random": (None, "sampling.py", "random"),
    "sobol": (None, "sampling.py", "sobol"),
    "optuna-tpe": ("optuna", "optuna_samplers.py", "tpe"),
    "optuna-gp": ("optuna", "optuna_samplers.py", "gp"),
    "optuna-cmaes": ("optuna", "optuna_samplers.py", "cmaes"),
    "botorch": ("botorch", "botorch_peer.py", "plain"),
    "botorch-warp": ("botorch", "botorch_peer.py", "warp"),
    "botorch-saas": ("botorch", "botorch_peer.py", "saas"),
    "ax": ("ax", "ax_peer.py", ""),
    "skopt": ("skopt", "skopt_peer.py", ""),
    "bayes-opt": ("bayes-opt", "bayes_opt_peer.py", ""),
    "hebo": ("hebo", "hebo_peer.py", ""),
    "smac": ("smac", "smac_peer.py", ""),
    "confopt": ("confopt", "confopt_peer.py", ""),
}


FRESH = {"confopt"}  # its threads outlive a run: one process per run


def peers_folder() -> Path:
    """The folder of the peers' environments: CALIBO_PEERS, or a folder in the user's cache."""
    named = os.environ.get("CALIBO_PEERS")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(named) if named else cache / "calibo" / "peers"


def client_of(name: str, timeout: float) -> Client:
    """A strategy of calibo ("calibo" is the default), a variant, a peer, or a script with the peer protocol."""
    if name in VARIANTS:
        return CaliboClient(VARIANTS[name], timeout)
    if (own := _own(name)) is not None:
        return CaliboClient(own, timeout)
    if name.endswith(".py"):
        return PeerProcess(sys.executable, Path(name), "", timeout)
    if name not in PEERS:
        raise InputError(f"A strategy must be one of {[*PRESET_NAMES, *PEERS]}, or a script, but got {name!r}.")
    environment, script, argument = PEERS[name]
    python = sys.executable if environment is None else str(peers_folder() / environment / "bin" / "python")
    if not Path(python).exists():
        raise InputError(
            f"{name!r} must be installed first, but there is no {python!r}. Run `calibo-bench install-peers`."
        )
    return PeerProcess(python, SCRIPTS / script, argument, timeout, fresh=name in FRESH)


PRESET_NAMES: Mapping[str, str] = {
    "calibo" if preset == "default" else f"calibo-{preset}": preset for preset in PRESETS
}
"""Names of calibo's presets in result files."""

SIDE = re.compile(r"(transfer|joint)|(known|bound)(?:-(low|high)(\d+))?")
"""The last part of a name, if the strategy gets side information: a source task ("transfer": one more candidate model;
"joint": only the process over both tasks), or the minimum or a bound, too low or too high by per cent of the range."""


def _own(name: str) -> Variant | None:
    """A preset with other parts, as in calibo-plain+online+known; None if the name starts with no preset."""
    first, *parts = name.split("+")
    if first not in PRESET_NAMES:
        return None
    side = SIDE.fullmatch(parts[-1]) if parts else None
    strategy = get_strategy("+".join([PRESET_NAMES[first], *(parts[:-1] if side else parts)]))
    if side is None:
        return Variant(lambda _: strategy)
    task, word, direction, share = side.groups()
    off = int(share or 0) / 100.0 * (-1.0 if direction == "low" else 1.0)
    return Variant(lambda _: strategy, task=task, optimum=word, off=off)


class CaliboClient:
    """A strategy of calibo, in this process."""

    def __init__(self, variant: Variant, timeout: float) -> None:
        self.variant, self.timeout = variant, timeout
        self.front: _AskAndTell | _OptunaStudy | None = None
        self.learning = (0.0, 0.0)
        """Wall and CPU time of a recommendation since the last suggestion: the model it fits serves that, too."""

    def begin(self, instance: Instance, seed: int, *, given: bool = True) -> Mapping[str, str]:
        strategy, self.learning = self.variant.strategy(len(instance.space)), (0.0, 0.0)
        if given:
            strategy = replace(strategy, initial=0)  # no initial design to complete
        known: dict[str, Any] = {}
        if self.variant.optimum is not None:
            value = instance.least(self.variant.off)
            if value is None:
                raise ClientError("the minimum value of this problem is unknown")
            known = {"known_optimum": value, "optimum_is_bound": self.variant.optimum == "bound"}
        if self.variant.task is not None:
            strategy = self._informed(strategy, instance.source_tasks())
        if instance.conditions:
            if known or self.variant.task is not None or self.variant.batch > 1:
                raise ClientError("a problem with conditional parameters takes no batches and no side information")
            self.front = _OptunaStudy(instance, CalibratedSampler(strategy=strategy, seed=seed))
        else:
            self.front = _AskAndTell(Optimizer(instance.space, strategy=strategy, seed=seed, **known), self.variant)
        return {"calibo": calibo.__version__, "calibo source": source_digest(), "numpy": np.__version__}

    def _informed(self, strategy: Strategy, sources: tuple[SourceTask, ...]) -> Strategy:
        if not sources:
            raise ClientError("there is nothing to transfer from: the problem has no source task")
        if self.variant.task == "transfer":
            return strategy.with_side_information(SideInformation(sources))
        if not isinstance(strategy.surrogate, GaussianProcess):
            raise ClientError(f"'joint' needs one Gaussian process, but got a {type(strategy.surrogate).__name__}")
        return replace(strategy, surrogate=Transfer(sources, strategy.surrogate))

    def ask(self) -> Answer:
        assert self.front is not None
        with _limited(self.timeout):
            wall, processor = time.perf_counter(), time.process_time()
            params = self.front.ask()
            cost = time.perf_counter() - wall + self.learning[0], time.process_time() - processor + self.learning[1]
            self.learning = (0.0, 0.0)
            return Answer(params, *cost, self.front.forecast(params))

    def tell(self, params: Params, value: float) -> None:
        assert self.front is not None
        self.front.tell(params, value)

    def recommend(self) -> Params | None:
        assert self.front is not None
        with _limited(self.timeout):
            wall, processor = time.perf_counter(), time.process_time()
            params = self.front.recommend()
            self.learning = time.perf_counter() - wall, time.process_time() - processor
            return params

    def close(self) -> None:
        pass


class _AskAndTell:
    """A run of an `Optimizer`."""

    def __init__(self, optimizer: Optimizer, variant: Variant) -> None:
        self.optimizer, self.batch = optimizer, variant.batch
        self.waiting: list[Params] = []

    def ask(self) -> Params:
        if not self.waiting:
            self.waiting = [self.optimizer.ask()] if self.batch == 1 else self.optimizer.ask(self.batch)
        return self.waiting.pop(0)

    def forecast(self, params: Params) -> Forecast | None:
        """None before there is a model, and for batches, whose points were chosen before the last outcomes."""
        known = sum(trial.feasible for trial in self.optimizer.trials)
        first = self.optimizer.strategy.initial_size(self.optimizer.space.cube)
        if self.batch > 1 or known < max(first, 1):
            return None
        return self.optimizer.forecast(params, noise=True)

    def tell(self, params: Params, value: float) -> None:
        self.optimizer.tell(params, value)

    def recommend(self) -> Params:
        return dict(self.optimizer.recommend().params)


class _OptunaStudy:
    """A run of a sampler in a study that suggests the active parameters one after another."""

    def __init__(self, instance: Instance, sampler: CalibratedSampler) -> None:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.instance = instance
        self.study = optuna.create_study(sampler=sampler)
        self.asked: optuna.Trial | None = None

    def ask(self) -> Params:
        trial = self.asked = self.study.ask()
        params: Params = {}
        for name, parameter in self.instance.space.items():
            if self.instance.is_active(name, params):
                params[name] = _suggested(trial, name, parameter)
        return params

    def forecast(self, _: Params) -> None:
        """None: the study stores its forecasts itself."""

    def tell(self, params: Params, value: float) -> None:
        active = self.instance.active(params)
        if self.asked is not None and self.asked.params == active:
            self.study.tell(self.asked, value)
        else:
            distributions = {name: distribution_of(self.instance.space[name]) for name in active}
            self.study.add_trial(optuna.create_trial(params=active, distributions=distributions, value=value))
        self.asked = None

    def recommend(self) -> Params:
        return dict(calibo.Result(self.study).recommendation.params)


def distribution_of(parameter: Parameter) -> BaseDistribution:
    if isinstance(parameter, Categorical):
        return CategoricalDistribution(parameter.choices)
    if isinstance(parameter, Int):
        return IntDistribution(parameter.low, parameter.high, log=parameter.log, step=parameter.step)
    return FloatDistribution(parameter.low, parameter.high, log=parameter.log, step=parameter.step)


def _suggested(trial: optuna.Trial, name: str, parameter: Parameter) -> Any:
    if isinstance(parameter, Categorical):
        return trial.suggest_categorical(name, parameter.choices)
    if isinstance(parameter, Int):
        return trial.suggest_int(name, parameter.low, parameter.high, log=parameter.log, step=parameter.step)
    return trial.suggest_float(name, parameter.low, parameter.high, log=parameter.log, step=parameter.step)


@cache
def source_digest() -> str:
    """A digest of calibo's source code and tables, which change more often than its version."""
    folder = Path(calibo.__file__).parent
    files = sorted([*folder.rglob("*.py"), *folder.rglob("*.json")])
    return sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:10]


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raise after this many seconds; only in the main thread, where signals work."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(*_: Any) -> None:
        raise ClientError(f"no answer within {seconds:g} seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def _cost(answer: Mapping[str, Any]) -> tuple[float, float]:
    return float(answer.get("wall", 0.0)), float(answer.get("processor", 0.0))


class PeerProcess:
    """A script in its own environment that communicates in JSON lines."""

    def __init__(self, python: str, script: Path, argument: str, timeout: float, *, fresh: bool = False) -> None:
        self.command = [python, str(script), *([argument] if argument else [])]
        self.timeout, self.fresh = timeout, fresh
        self.process: subprocess.Popen[bytes] | None = None
        self.complaints: IO[bytes] | None = None
        self.learning = (0.0, 0.0)
        """Wall and CPU time of `tell` since the last suggestion: some peers fit their model there."""

    def begin(self, instance: Instance, seed: int, *, given: bool = True) -> Mapping[str, str]:
        if not given:
            raise ClientError("a peer uses the initial points as its design and needs at least one")
        if self.fresh:
            self.close()
        self.learning = (0.0, 0.0)
        told = {"space": instance.space.to_json(), "conditions": instance.conditions, "exact": not instance.is_noisy}
        versions = self._exchange({"begin": {**told, "seed": seed}}).get("versions")
        return versions if isinstance(versions, dict) else {}

    def ask(self) -> Answer:
        answer = self._exchange({"ask": None})
        if not isinstance(answer.get("params"), dict):
            raise ClientError(f"an answer must have parameters, but got {answer!r}")
        (told_wall, told_processor), (wall, processor) = self.learning, _cost(answer)
        self.learning = (0.0, 0.0)
        return Answer(answer["params"], told_wall + wall, told_processor + processor)

    def tell(self, params: Params, value: float) -> None:
        wall, processor = _cost(self._exchange({"tell": {"params": params, "value": value}}))
        self.learning = self.learning[0] + wall, self.learning[1] + processor

    def recommend(self) -> Params | None:
        answer = self._exchange({"recommend": None})
        wall, processor = _cost(answer)
        self.learning = self.learning[0] + wall, self.learning[1] + processor
        params = answer.get("params")
        return params if isinstance(params, dict) else None

    def forecast(self, params: Params) -> tuple[float, float, float]:
        """The mean of its posterior, and the standard deviations of an observation and of the function."""
        mean, observed, function = self._exchange({"forecast": {"params": params}})["normal"]
        return float(mean), float(observed), float(function)

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            for stream in (self.process.stdin, self.process.stdout, self.complaints):
                if stream is not None:
                    with suppress(OSError):
                        stream.close()
            self.process = None

    def _exchange(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Send a message and read the answer; a failed process is closed, and the next run starts another."""
        try:
            process = self.process = self.process or self._started()
            assert process.stdin is not None
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
            answer = json.loads(self._line(process))
        except (OSError, ValueError) as error:
            said = self._last_words()
            self.close()
            raise ClientError(f"the strategy's process has ended or sent an invalid answer: {said or error}") from None
        except ClientError:
            self.close()
            raise
        if not isinstance(answer, dict):
            self.close()
            raise ClientError(f"an answer must be an object, but got {answer!r}")
        if "error" in answer:
            raise ClientError(str(answer["error"]))
        return answer

    def _line(self, process: "subprocess.Popen[bytes]") -> bytes:
        """One line, or part of it if the process has ended; raises on timeout."""
        assert process.stdout is not None
        deadline, line = time.monotonic() + self.timeout, b""
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while not line.endswith(b"\n"):
                if not selector.select(max(deadline - time.monotonic(), 0.0)):
                    raise ClientError(f"no answer within {self.timeout:g} seconds")
                more = os.read(process.stdout.fileno(), 1 << 16)
                if not more:
                    break
                line += more
        return line

    def _last_words(self) -> str:
        """The last line the process wrote on stderr."""
        if self.complaints is None or self.complaints.closed:
            return ""
        self.complaints.seek(0)
        lines = self.complaints.read().decode(errors="replace").strip().splitlines()
        return lines[-1][:300] if lines else ""

    def _started(self) -> "subprocess.Popen[bytes]":
        self.complaints = tempfile.TemporaryFile()  # noqa: SIM115  closed with the process
        return subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.complaints,
            env={**os.environ, **dict.fromkeys(THREADS, "1"), "PYTHONPATH": str(SCRIPTS)},
        )
