"""The loop of `optimize`: evaluates trials, one by one or in threads, and stores every result."""

import inspect
import os
import signal
import sysconfig
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import numpy as np
import optuna
from optuna.exceptions import StorageInternalError, TrialPruned, UpdateFinishedTrialError
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState, create_trial
from optuna.trial import Trial as OptunaTrial

from calibo.errors import (
    CaliboError,
    InputError,
    ObjectiveError,
    SpaceExhausted,
    StorageError,
    hide_passwords,
    warn,
)
from calibo.optimizer import number_of
from calibo.optuna.internals import request_stop, storage_of, stored_trial
from calibo.optuna.reader import read_study
from calibo.optuna.sampler import CalibratedSampler
from calibo.optuna.schema import ERROR, NOISE, mark_interrupted, read_settings, store_ignored
from calibo.optuna.storages import storage_errors
from calibo.optuna.trials import current_trials, finished_trials, is_feasible, sign_of
from calibo.progress import progress

Callback = Callable[[Study, FrozenTrial], None]

LIBRARIES = (
    *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
    os.path.dirname(__file__),
)
SAMPLER_FILE = inspect.getfile(CalibratedSampler)

BUGS = (NameError, AttributeError, ImportError, TypeError, SyntaxError)  # rather a bug than a property of the point
RETURNED = "The objective must return a number, or a number and its standard deviation, but it returned {!r}."
MOST_BUGS = 3  # of these in a row, before the run stops
FRAMES = 3  # shown of the traceback
LONGEST = 500  # characters of a reason


@dataclass(eq=False)
class TrialLoop:
    """Evaluates trials of a study until the budget is spent, and stores each of them."""

    study: Study
    prepare: Callable[[OptunaTrial], Callable[[], Any]]
    """Suggests the parameters of a trial and returns the call that evaluates them."""

    n_trials: int | None
    timeout: float | None
    n_jobs: int
    callbacks: tuple[Callback, ...]
    progress: bool
    catch: tuple[type[BaseException], ...] = ()
    """Exceptions that never stop the run."""

    failures: list[tuple[int, BaseException]] = field(default_factory=list)
    """Numbers and exceptions of the trials that failed since the last success."""

    bug: BaseException | None = None
    """The exception that stopped the run."""

    measured: dict[int, tuple[OptunaTrial, float, float | None]] = field(default_factory=dict)
    """Values measured, but not stored yet."""

    evaluating: bool = False
    """Whether the main thread is evaluating the objective."""

    exhausted: str = ""
    """Why the run ended early, if every configuration had been tried."""

    stopping: bool = False
    """Whether Ctrl-C was pressed."""

    def run(self) -> None:
        """Run until the budget is spent; Ctrl-C raises KeyboardInterrupt once everything is stored."""
        while True:
            try:
                with storage_errors(storage_of(self.study)), silence_optuna(), self._interruptible():
                    self._optimize()
            except BaseException as error:
                lost = self._rescue()
                if self.stopping or isinstance(error, KeyboardInterrupt):
                    if lost:
                        warn(lost)
                    raise KeyboardInterrupt from None
                if lost or isinstance(error, StorageError):
                    raise StorageError(f"{error} {lost}".strip()) from error
                if self.bug is None:
                    if not _is_finished_trial_error(error):
                        raise
                    told = "Another process finished a trial during its evaluation; its value is stored as a new trial."
                    warn(told)
                    continue
            if self.stopping:
                raise KeyboardInterrupt
            if self.exhausted:
                warn(self.exhausted)
            if self.bug is None and self._nothing_worked():
                self.bug = self.failures[-1][1]
            if self.bug is not None:  # even if Optuna raised nothing: it may drop what other threads raise
                raise self._objective_error(self.bug) from self.bug
            return

    def _optimize(self) -> None:
        done = _count(self.study)
        remaining = None if self.n_trials is None else self.n_trials - done
        if remaining is not None and remaining <= 0:
            return
        with _bar(done, self.n_trials, shown=self.progress) as advance:
            callbacks = [self._mark_stored, self._stop_when_enough, advance, *self.callbacks]
            self.study.optimize(
                self._evaluate, remaining, self.timeout, self.n_jobs, catch=(_Failed,), callbacks=callbacks
            )

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Ctrl-C interrupts an evaluation immediately; at any other time it waits until everything is stored."""
        usual = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is not threading.main_thread() or usual is not signal.default_int_handler:
            yield
            return

        def stop(number: int, frame: Any) -> None:
            if self.evaluating or self.stopping:  # a second Ctrl-C stops immediately
                signal.default_int_handler(number, frame)
            self.stopping = True
            request_stop(self.study)

        signal.signal(signal.SIGINT, stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, usual)

    def _evaluate(self, trial: OptunaTrial) -> float:
        try:
            value, noise = self._outcome(trial)
        except TrialPruned:
            self._forget_failures()
            raise
        except (KeyboardInterrupt, StorageInternalError):
            with suppress(StorageInternalError):
                mark_interrupted(self.study, trial)
            raise
        except SpaceExhausted as error:
            mark_interrupted(self.study, trial)
            self.exhausted = str(error)
            request_stop(self.study)
            raise _Failed(str(error)) from None
        self.measured[trial.number] = (trial, value, noise)
        self._forget_failures()
        if noise is not None:
            trial.set_user_attr(NOISE, noise)
        return value

    def _forget_failures(self) -> None:
        """They are not in a row; if another thread has found the bug, they are the trials to ignore."""
        if self.bug is None:
            self.failures.clear()

    def _outcome(self, trial: OptunaTrial) -> tuple[float, float | None]:
        """Evaluate the objective: only its own code is interrupted, and only its errors fail the trial."""
        call = self.prepare(trial)
        in_main = threading.current_thread() is threading.main_thread()
        try:
            self.evaluating = in_main
            if self.stopping:
                raise KeyboardInterrupt
            outcome = call()
        except (TrialPruned, StorageInternalError, SpaceExhausted):
            raise
        except (Exception, SystemExit) as error:
            if isinstance(error, CaliboError) and _of_sampler(error):
                raise
            raise self._failed(trial, error, counts=not isinstance(error, self.catch)) from error
        finally:
            self.evaluating = False
        try:
            return _number_and_noise(outcome)
        except _NotFinite as error:  # may be a property of the point
            raise self._failed(trial, error, counts=False) from error
        except _NoNumber as error:
            raise self._failed(trial, error, counts=not isinstance(error, self.catch)) from error

    def _failed(self, trial: OptunaTrial, error: BaseException, *, counts: bool) -> "_Failed | _Bug":
        """Warn that a trial failed, and store the reason with it; if it ``counts``, it may be one too many."""
        told = hide_passwords(_described(error))[:LONGEST]
        trial.set_user_attr(ERROR, told)
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = "" if isinstance(error, InputError) else f" ({place.filename}, line {place.lineno})"
        if counts:
            self.failures.append((trial.number, error))
            if self._is_bug():
                self.bug = error
                request_stop(self.study)  # for the other threads
                return _Bug(told)
        else:
            self._forget_failures()
        warn(f"Trial {trial.number} failed: {told}{where}. The run continues.")
        return _Failed(told)

    def _is_bug(self) -> bool:
        """Whether the last failures are programming errors, or every trial of the initial design failed."""
        last = [error for _, error in self.failures[-MOST_BUGS:]]
        if len(last) == MOST_BUGS and all(self._is_programming_error(error) for error in last):
            return True
        data = read_study(self.study)
        if any(trial.state != TrialState.FAIL for trial in data.trials):
            return False
        return len(self.failures) >= max(data.strategy.initial_size(data.observations.cube), MOST_BUGS)

    def _nothing_worked(self) -> bool:
        """Whether every trial of the study failed with an exception, in a run shorter than the initial design."""
        return bool(self.failures) and len(self.failures) == _count(self.study)

    def _is_programming_error(self, error: BaseException) -> bool:
        """Whether it is one of BUGS, raised in a file of the user."""
        if isinstance(error, _NoNumber):
            return True
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.name != "__getattr__"]
        return isinstance(error, BUGS) and bool(frames) and _is_of_user(frames[-1].filename)

    def _objective_error(self, bug: BaseException) -> ObjectiveError:
        """Ignore the trials that failed, so that the same call starts again, and say where the bug is."""
        with storage_errors(storage_of(self.study)):
            store_ignored(self.study, [number for number, _ in self.failures])
        frames, told = traceback.extract_tb(bug.__traceback__), _described(bug)
        own = [frame for frame in frames if _is_of_user(frame.filename)]
        if not own and not isinstance(bug, _NoNumber):
            own = list(frames)
        count = f"{len(self.failures)} trials in a row" if len(self.failures) > 1 else "its only trial"
        return ObjectiveError(
            f"The objective failed in {count}, which will be ignored. Fix it and rerun, or continue in spite of "
            f"failures with `catch=`. The last failure: {told}",
            "".join(traceback.format_list(own[-FRAMES:])) + told if own else "",
        )

    def _mark_stored(self, study: Study, trial: FrozenTrial) -> None:
        self.measured.pop(trial.number, None)

    def _stop_when_enough(self, study: Study, trial: FrozenTrial) -> None:
        """Counts trials of other processes, too, if they work on the same study."""
        if self.n_trials is not None and _count(study) >= self.n_trials:
            study.stop()

    def _rescue(self) -> str:
        """Store values that are not stored yet; return a message about those that cannot be."""
        lost = []
        measured, self.measured = self.measured, {}
        for number, (trial, value, noise) in measured.items():
            try:
                self._store(trial, value, noise)
            except Exception:  # on any error, report the value to the user
                shown = f"{value!r}" if noise is None else f"{value!r} with noise {noise!r}"
                lost.append(f"Trial {number} returned {shown} at {trial.params!r}, which is not stored. Note it down.")
        return " ".join(lost)

    def _store(self, trial: OptunaTrial, value: float, noise: float | None) -> None:
        stored = stored_trial(self.study, trial)
        if stored.state == TrialState.COMPLETE and stored.value == value:
            return
        if stored.state == TrialState.RUNNING:
            self.study.tell(trial.number, value)
            return
        # another process finished the trial during its evaluation: add the value as a new trial
        known = {} if noise is None else {NOISE: noise}
        distributions = {name: stored.distributions[name] for name in stored.params}
        again = create_trial(params=stored.params, distributions=distributions, value=value, user_attrs=known)
        self.study.add_trial(again)


def _is_finished_trial_error(error: BaseException | None) -> bool:
    """Whether Optuna rejected a value because its trial had finished; it may wrap that in other errors."""
    while error is not None:
        if isinstance(error, UpdateFinishedTrialError) or str(error).startswith("Cannot tell a "):
            return True
        error = error.__cause__ or error.__context__
    return False


class _Failed(Exception):  # noqa: N818
    """Marks a trial as failed; caught by the study."""


class _NotFinite(InputError):  # noqa: N818
    """The objective returned NaN or an infinite value."""


class _NoNumber(InputError):  # noqa: N818
    """The objective returned something else than a number."""


class _Bug(Exception):  # noqa: N818
    """Marks a trial as failed and stops the run; not caught by the study."""


def _count(study: Study) -> int:
    """The number of trials that count towards the budget."""
    return len(finished_trials(current_trials(study), read_settings(study).ignored))


def _described(error: BaseException) -> str:
    """The kind of the exception, and its message."""
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, SyntaxError):  # otherwise several lines
        return f"{type(error).__name__}: {error}"
    return "".join(traceback.format_exception_only(error)).strip()


def _is_of_user(file: str) -> bool:
    """Whether a file is neither of Python nor of an installed package nor of calibo."""
    return not file.startswith(("<frozen ", *LIBRARIES))


def _of_sampler(error: BaseException) -> bool:
    """Whether an error comes from the sampler, which a define-by-run objective calls."""
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    return SAMPLER_FILE in files


def _number_and_noise(outcome: Any) -> tuple[float, float | None]:
    value, noise = outcome if isinstance(outcome, tuple) and len(outcome) == 2 else (outcome, None)
    try:
        number, spread = number_of("value", value), 0.0 if noise is None else number_of("noise", noise)
    except InputError:
        raise _NoNumber(RETURNED.format(outcome)) from None
    if not isfinite(number):
        raise _NotFinite(f"`value` must be finite, but got {number!r}.")
    if noise is None:
        return number, None
    if 0.0 <= spread < np.inf:
        return number, spread
    warn(f"`noise` must be a standard deviation of at least 0, but got {spread!r}. It is ignored.")
    return number, None


@contextmanager
def silence_optuna() -> Iterator[None]:
    """calibo reports failures and progress itself."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


@contextmanager
def _bar(done: int, total: int | None, *, shown: bool) -> Iterator[Callback]:
    """A progress bar, and the callback that moves it."""
    with progress("trials", total, done, shown=shown) as move:
        best = ""

        def advance(study: Study, trial: FrozenTrial) -> None:
            nonlocal best
            value = trial.values[0] if trial.state == TrialState.COMPLETE and trial.values else None
            last = trial.state.name.lower() if value is None else f"{value:.6g}"
            best = best if value is None else f" best {_best_value(study):.6g}"
            move(_count(study), f"{last}{best}")

        yield advance


def _best_value(study: Study) -> float:
    """As corrected by `drop` and `amend`; NaN if nothing is feasible yet."""
    better = min if sign_of(study) > 0.0 else max
    return better((trial.values[0] for trial in current_trials(study) if is_feasible(trial)), default=np.nan)
