"""What single trials of a study say: which count, which run, which are over."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from math import isfinite
from typing import Any

import numpy as np
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from calibo.adapters.internals import RETRIES
from calibo.adapters.schema import NOISE, is_set_aside, read_trial
from calibo.adapters.worker import alive
from calibo.errors import InputError
from calibo.optimizer import LARGEST

__all__ = [
    "abandoned",
    "age",
    "counted",
    "demand_one_objective",
    "feasible",
    "finishing",
    "noise_of",
    "running",
    "sign_of",
    "worker_of",
]

LOOP_PATIENCE = timedelta(minutes=10)  # with a trial of an optimization loop, however short the others were
HAND_PATIENCE = timedelta(days=1)  # with a trial asked for by hand
SLOWER = 5  # times the longest finished trial: no trial takes so long


def sign_of(study: Study) -> float:
    """By which its values become such as are minimised."""
    return 1.0 if study.direction == StudyDirection.MINIMIZE else -1.0


def demand_one_objective(study: Study) -> None:
    if len(study.directions) != 1:
        raise InputError(
            f"`study` must have one direction, but got {len(study.directions)}. "
            "For several objectives use one of Optuna's own samplers, NSGAIISampler for one."
        )


def counted(trials: Iterable[FrozenTrial]) -> list[FrozenTrial]:
    """The trials that came to an end by themselves."""
    trials = list(trials)
    histories = [trial.system_attrs.get(RETRIES) for trial in trials]
    retried = {n for history in histories if isinstance(history, list) for n in history if isinstance(n, int)}
    return [t for t in trials if t.state.is_finished() and not _says_nothing(t, retried)]


def abandoned(trials: Iterable[FrozenTrial]) -> list[FrozenTrial]:
    """Trials that run no more, because the process that evaluated them has ended."""
    begun = [trial for trial in trials if trial.state == TrialState.RUNNING]
    return [trial for trial in begun if (worker := worker_of(trial)) is not None and alive(worker) is False]


def _says_nothing(trial: FrozenTrial, retried: set[Any]) -> bool:
    failed = trial.state == TrialState.FAIL
    return failed and (is_set_aside(trial) or trial.number in retried)


def worker_of(trial: FrozenTrial) -> str | None:
    """The process that evaluates a trial, if it said so."""
    return read_trial(trial).worker


def finishing(trial: FrozenTrial) -> tuple[datetime, int]:
    end = trial.datetime_complete
    return datetime.min if end is None else _naive(end), trial.number


def feasible(trial: FrozenTrial) -> bool:
    """Whether there is a number to learn from: pruned trials, as failed ones, only say where not to look."""
    values = trial.values or []
    if trial.state != TrialState.COMPLETE or len(values) != 1 or not isfinite(values[0]):
        return False
    return all(constraint <= 0.0 for constraint in trial.constraints.values())


def noise_of(trial: FrozenTrial, say: Callable[[str], None]) -> float:
    """The standard deviation of a trial's value; NaN where it is not known, which is told where it is nonsense."""
    noise = trial.user_attrs.get(NOISE)
    if noise is None:
        return np.nan
    if isinstance(noise, int | float) and 0.0 <= noise <= LARGEST:
        return float(noise)
    say(
        f"The user attribute {NOISE!r} must be a standard deviation of at least 0, but got {noise!r} in "
        f"trial {trial.number}. It is not used."
    )
    return np.nan


def running(trials: Sequence[FrozenTrial]) -> tuple[FrozenTrial, ...]:
    """Those being evaluated. One whose worker has ended is not, nor one that takes much longer than any before."""
    begun = [trial for trial in trials if trial.state == TrialState.RUNNING]
    if not begun:
        return ()
    longest = max((_duration(trial) for trial in trials if trial.state.is_finished()), default=timedelta())
    return tuple(trial for trial in begun if not _stale(trial, longest))


def _duration(trial: FrozenTrial) -> timedelta:
    start, end = trial.datetime_start, trial.datetime_complete
    return timedelta() if start is None or end is None else _naive(end) - _naive(start)


def _naive(moment: datetime) -> datetime:
    """In local time, as Optuna stores it; trials added by hand may say otherwise."""
    return moment if moment.tzinfo is None else moment.astimezone().replace(tzinfo=None)


def age(trial: FrozenTrial) -> timedelta:
    """How long ago a trial was begun."""
    return timedelta() if trial.datetime_start is None else datetime.now() - _naive(trial.datetime_start)


def _stale(trial: FrozenTrial, longest: timedelta) -> bool:
    worker = worker_of(trial)
    if worker is not None and alive(worker) is False:
        return True
    if longest < timedelta(seconds=1) and worker is None:  # results entered by hand took no time: nothing to compare
        return False
    patience = max(HAND_PATIENCE if worker is None else LOOP_PATIENCE, SLOWER * longest)
    return age(trial) > patience
