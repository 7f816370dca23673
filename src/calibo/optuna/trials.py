"""Trials of a study: which count, which are running, and in which process."""

import os
import socket
from collections.abc import Callable, Container, Iterable, Sequence
from copy import copy
from datetime import datetime, timedelta
from functools import cache
from math import isfinite
from pathlib import Path

import numpy as np
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from calibo.errors import InputError
from calibo.observations import LARGEST
from calibo.optuna.internals import RETRIES, unfiltered_study
from calibo.optuna.schema import NOISE, is_interrupted, read_corrections, read_trial

LOOP_TIMEOUT = timedelta(minutes=10)  # shortest timeout of a trial in an optimization loop
ASK_TIMEOUT = timedelta(days=1)  # shortest timeout of a trial from `ask`
SLOWER = 5  # times the longest finished trial: timeout of a trial


def sign_of(study: Study) -> float:
    """1 if the study minimizes, -1 if it maximizes."""
    return 1.0 if study.direction == StudyDirection.MINIMIZE else -1.0


def require_one_objective(study: Study) -> None:
    if len(study.directions) != 1:
        raise InputError(
            f"`study` must have one direction, but got {len(study.directions)}. "
            "Use another Optuna sampler for several objectives, such as NSGAIISampler."
        )


def current_trials(study: Study) -> list[FrozenTrial]:
    """All trials of a study as corrected by `drop` and `amend`: without dropped ones, and with amended values."""
    trials = study.get_trials(deepcopy=False)
    latest = {correction.trial: correction.value for correction in read_corrections(unfiltered_study(study))}
    if not latest:
        return trials
    kept = [trial for trial in trials if latest.get(trial.number, 0.0) is not None or not trial.state.is_finished()]
    return [_amended(trial, latest.get(trial.number)) for trial in kept]


def _amended(trial: FrozenTrial, value: float | None) -> FrozenTrial:
    if value is None or not trial.state.is_finished():
        return trial
    other = copy(trial)
    other.state, other.values = TrialState.COMPLETE, [float(value)]
    return other


def finished_trials(trials: Iterable[FrozenTrial], ignored: Container[int] = ()) -> list[FrozenTrial]:
    """Finished trials, except interrupted, retried and ``ignored`` ones."""
    trials = list(trials)
    histories = [trial.system_attrs.get(RETRIES) for trial in trials]
    retried = {n for history in histories if isinstance(history, list) for n in history if isinstance(n, int)}
    done = [trial for trial in trials if trial.state.is_finished() and not is_ignored(trial, ignored)]
    return [trial for trial in done if trial.state != TrialState.FAIL or trial.number not in retried]


def is_ignored(trial: FrozenTrial, ignored: Container[int]) -> bool:
    """Whether a trial failed because it was interrupted, or because of a bug: it says nothing about its point."""
    return trial.state == TrialState.FAIL and (is_interrupted(trial) or trial.number in ignored)


def abandoned_trials(trials: Iterable[FrozenTrial]) -> list[FrozenTrial]:
    """Trials marked as running whose process has ended."""
    begun = [trial for trial in trials if trial.state == TrialState.RUNNING]
    return [trial for trial in begun if (worker := worker_of(trial)) is not None and is_alive(worker) is False]


def worker_of(trial: FrozenTrial) -> str | None:
    """The process that evaluates a trial, if it is stored."""
    return read_trial(trial).worker


def finish_order(trial: FrozenTrial) -> tuple[datetime, int]:
    end = trial.datetime_complete
    return datetime.min if end is None else _naive(end), trial.number


def is_feasible(trial: FrozenTrial) -> bool:
    """Whether a trial is complete, finite and feasible; pruned and failed trials only mark points to avoid."""
    values = trial.values or []
    if trial.state != TrialState.COMPLETE or len(values) != 1 or not isfinite(values[0]):
        return False
    return all(constraint <= 0.0 for constraint in trial.constraints.values())


def noise_of(trial: FrozenTrial, warn: Callable[[str], None]) -> float:
    """The standard deviation of a trial's value; NaN if it is not known; warns if it is not valid."""
    noise = trial.user_attrs.get(NOISE)
    if noise is None:
        return np.nan
    if isinstance(noise, int | float) and 0.0 <= noise <= LARGEST:
        return float(noise)
    warn(
        f"The user attribute {NOISE!r} must be a standard deviation of at least 0, but got {noise!r} in "
        f"trial {trial.number}. It is ignored."
    )
    return np.nan


def running(trials: Sequence[FrozenTrial]) -> tuple[FrozenTrial, ...]:
    """Trials being evaluated, except those whose worker has ended or that take much longer than any before."""
    begun = [trial for trial in trials if trial.state == TrialState.RUNNING]
    if not begun:
        return ()
    longest = max((_duration(trial) for trial in trials if trial.state.is_finished()), default=timedelta())
    return tuple(trial for trial in begun if not _stale(trial, longest))


def _duration(trial: FrozenTrial) -> timedelta:
    start, end = trial.datetime_start, trial.datetime_complete
    return timedelta() if start is None or end is None else _naive(end) - _naive(start)


def _naive(moment: datetime) -> datetime:
    """Naive local time, as Optuna stores it; trials added manually may have a time zone."""
    return moment if moment.tzinfo is None else moment.astimezone().replace(tzinfo=None)


def age(trial: FrozenTrial) -> timedelta:
    """How long ago a trial was started."""
    return timedelta() if trial.datetime_start is None else datetime.now() - _naive(trial.datetime_start)


def _stale(trial: FrozenTrial, longest: timedelta) -> bool:
    worker = worker_of(trial)
    if worker is not None and is_alive(worker) is False:
        return True
    if longest < timedelta(seconds=1) and worker is None:  # trials added manually have no duration to compare with
        return False
    patience = max(ASK_TIMEOUT if worker is None else LOOP_TIMEOUT, SLOWER * longest)
    return age(trial) > patience


def this_worker() -> str:
    """A name of this process by which another one can check whether it has ended."""
    return f"{_host()}|{os.getpid()}|{_started(os.getpid())}"


def is_alive(worker: str) -> bool | None:
    """Whether the process of that name is running; None if unknown, as on another machine."""
    host, _, process = worker.rpartition("|")[0].rpartition("|")
    if host != _host() or not process.isdecimal():
        return None
    return _started(int(process)) == worker.rpartition("|")[2]


@cache
def _host() -> str:
    """The machine and its PID namespace, which differs between containers."""
    try:
        numbering = os.readlink("/proc/self/ns/pid")
    except OSError:
        numbering = ""
    return f"{socket.gethostname()} {numbering}"


def _started(process: int) -> str:
    """When a process started, which tells it from a later one with the same PID; empty if there is none."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        if Path("/proc/self/stat").exists():
            return ""
        return _responds(process)
    rest = fields.rpartition(")")[2].split()  # the name before may contain blanks
    return "" if rest[0] in "ZX" else rest[19]


def _responds(process: int) -> str:
    """The best check without /proc."""
    if os.name != "posix":  # on Windows the call below would end the process
        return "runs"
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    return "runs"
