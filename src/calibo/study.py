"""optimize, minimize, maximize: a function, a space and a budget, with an Optuna study underneath."""

import inspect
import json
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from math import isfinite
from typing import Any

import numpy as np
import optuna
from optuna.exceptions import StorageInternalError, TrialPruned
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState
from optuna.trial import Trial as OptunaTrial
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from calibo.adapters.attributes import joined, pieces
from calibo.adapters.history import NOISE, History, abandoned, counted, declaration, distributions, set_aside
from calibo.adapters.optuna import CalibratedSampler
from calibo.adapters.storage import Direction, Storage, guarded, opened, study_in
from calibo.errors import CaliboError, CaliboWarning, InputError, StorageError
from calibo.journal import declared, space_of
from calibo.optimizer import PointForecast, Recommendation, number_of
from calibo.space import Parameter, Space
from calibo.strategy import FittedStrategy, Strategy, named

__all__ = ["Callback", "Interrupted", "Result", "forecast", "maximize", "minimize", "optimize"]

Callback = Callable[[Study, FrozenTrial], None]

SPACE, SEED, ERROR = "calibo:space", "calibo:seed", "calibo:error"  # attributes of the study, and of a failed trial


@dataclass(frozen=True, eq=False)
class Result:
    """What a study has found so far."""

    study: Study
    """Optuna's study: its trials, and all that Optuna makes of them."""

    strategy: Strategy = field(default_factory=Strategy)

    @property
    def best_params(self) -> dict[str, Any]:
        return dict(self._best.params)

    @property
    def best_value(self) -> float:
        """The best value measured; under noise too good to be true, see ``recommendation``."""
        return float(self._best.values[0])

    @cached_property
    def recommendation(self) -> Recommendation:
        """The evaluated point believed to be the best, and how sure that is."""
        history, belief = _believed(self.study, self.strategy)
        rows = zip(history.trials, history.observations.feasible, strict=True)
        params = [dict(trial.params) for trial, feasible in rows if feasible]
        return Recommendation.of(belief, params, history.sign)

    @property
    def _best(self) -> FrozenTrial:
        history = History.of(self.study)
        if not history.observations.feasible.any():
            raise InputError("`study` must have a successful trial to choose from, but it has none yet.")
        return history.trials[int(np.nanargmin(history.observations.y))]


class Interrupted(KeyboardInterrupt):
    """Ctrl-C: everything finished is stored, and is in ``result``."""

    def __init__(self, result: Result) -> None:
        super().__init__("stopped; what was finished is in `result`")
        self.result = result


def optimize(
    f: Callable[..., Any],
    space: Space | Mapping[str, Parameter] | None,
    n_trials: int | None,
    *,
    direction: Direction = "minimize",
    seed: int | None = None,
    storage: Storage = None,
    study_name: str | None = None,
    timeout: float | None = None,
    n_jobs: int = 1,
    callbacks: Sequence[Callback] = (),
    progress: bool = True,
    strategy: str | Strategy | None = None,
) -> Result:
    """Find the parameters of ``space`` with the best ``f``.

    ``f`` takes a dictionary, or the parameters by name, and gives the value, or the value and its standard
    deviation. With ``space=None`` it takes an Optuna trial and declares its parameters itself. If it raises, or
    gives NaN, that trial failed and the run goes on.

    ``n_trials`` is what the study shall have in the end: with a ``storage``, the same call again goes on where the
    last one stopped, and one with more trials continues. ``timeout`` in seconds ends the run earlier. The study is
    named after ``f`` unless ``study_name`` is given. ``n_jobs`` evaluations run side by side in threads.
    """
    _check_budget(n_trials, timeout, n_jobs)
    space = space if space is None or isinstance(space, Space) else Space(space)
    call = _from_trial(f, space)
    recipe = named(strategy)
    store = opened(storage)
    name = study_name or _name(f)
    with _quiet_optuna():
        study = study_in(store, name if storage is not None else study_name, direction=direction)
    with guarded(store):
        if space is not None:
            settle_space(study, space)
        study.sampler = CalibratedSampler(strategy=recipe, seed=settled_seed(study, seed), space=space)
        for trial in abandoned(study.get_trials(deepcopy=False)):
            close(study, trial.number)
    _Run(study, call, n_trials, timeout, n_jobs, tuple(callbacks), progress).go(Result(study, recipe))
    return Result(study, recipe)


def minimize(f: Callable[..., Any], space: Space | Mapping[str, Parameter], n_trials: int, **options: Any) -> Result:
    """``optimize`` with direction="minimize"."""
    return optimize(f, space, n_trials, direction="minimize", **options)


def maximize(f: Callable[..., Any], space: Space | Mapping[str, Parameter], n_trials: int, **options: Any) -> Result:
    """``optimize`` with direction="maximize"."""
    return optimize(f, space, n_trials, direction="maximize", **options)


def forecast(
    study: Study, params: Mapping[str, Any], *, noise: bool = False, strategy: str | Strategy | None = None
) -> PointForecast:
    """What the model believes of the value at any point of a study; with ``noise``, of one more measurement there.

    The study may come from any sampler. ``strategy`` is that of the study's sampler, or the default.
    """
    if strategy is None and isinstance(study.sampler, CalibratedSampler):
        strategy = study.sampler.strategy
    history, belief = _believed(study, named(strategy))
    x = history.columns.point(params)
    lacking = [name for name, j in zip(history.columns.space, np.isnan(x), strict=True) if j and name not in params]
    always = [name for name in lacking if all(name in trial.params for trial in history.trials)]
    if always:
        raise InputError(f"`params` must name {always}, which every trial of the study has, but got {list(params)}.")
    return PointForecast(dict(params), belief.forecast(x[None], noise=noise), belief.map, history.sign)


def close(study: Study, number: int) -> None:
    """End a trial that runs no more, without blaming its point."""
    with suppress(ValueError):  # another process was faster
        trial = study.get_trials(deepcopy=False)[number]
        set_aside(study, trial._trial_id)
        study.tell(number, state=TrialState.FAIL)


def stored_space(study: Study) -> Space | None:
    """The space a study was begun with; None where it declares its parameters in the function."""
    entries = joined(study.user_attrs, SPACE)
    return None if entries is None else space_of(entries)


@dataclass(eq=False)
class _Run:
    """One call of ``optimize``."""

    study: Study
    call: Callable[[OptunaTrial], Any]
    n_trials: int | None
    timeout: float | None
    n_jobs: int
    callbacks: tuple[Callback, ...]
    progress: bool
    measured: dict[int, tuple[dict[str, Any], float]] = field(default_factory=dict)
    """What was measured and is not stored yet."""

    def go(self, result: Result) -> None:
        store = self.study._storage
        try:
            with guarded(store), _quiet_optuna():
                done = len(counted(self.study.get_trials(deepcopy=False)))
                remaining = None if self.n_trials is None else self.n_trials - done
                if remaining is not None and remaining <= 0:
                    return
                with _bar(done, self.n_trials, shown=self.progress) as advance:
                    callbacks = [self._stored, self._enough, advance, *self.callbacks]
                    self.study.optimize(
                        self._evaluated, remaining, self.timeout, self.n_jobs, catch=(_Failed,), callbacks=callbacks
                    )
        except KeyboardInterrupt:
            raise Interrupted(result) from None
        except StorageError as error:
            raise self._rescued(error) from error

    def _evaluated(self, trial: OptunaTrial) -> float:
        try:
            value, noise = self._outcome(trial)
        except KeyboardInterrupt:
            set_aside(self.study, trial._trial_id)
            raise
        self.measured[trial.number] = (dict(trial.params), value)
        if noise is not None:
            trial.set_user_attr(NOISE, noise)
        return value

    def _outcome(self, trial: OptunaTrial) -> tuple[float, float | None]:
        try:
            outcome = self.call(trial)
        except (TrialPruned, StorageInternalError, CaliboError):  # not the fault of the function
            raise
        except Exception as error:
            raise self._failed(trial, error) from error
        try:
            return _number_and_noise(outcome)
        except InputError as error:
            raise self._failed(trial, error) from error

    def _failed(self, trial: OptunaTrial, error: Exception) -> "_Failed":
        """Report why a trial failed, and keep the reason with it."""
        told = "".join(traceback.format_exception_only(error)).strip()
        trial.set_user_attr(ERROR, told[:500])
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = "" if isinstance(error, InputError) else f" ({place.filename}, line {place.lineno})"
        warnings.warn(f"Trial {trial.number} failed: {told}{where}. The run goes on.", CaliboWarning, stacklevel=2)
        return _Failed(told)

    def _stored(self, study: Study, trial: FrozenTrial) -> None:
        self.measured.pop(trial.number, None)

    def _enough(self, study: Study, trial: FrozenTrial) -> None:
        """Other processes may work on the same study: its trials count, whoever evaluated them."""
        if self.n_trials is not None and len(counted(study.get_trials(deepcopy=False))) >= self.n_trials:
            study.stop()

    def _rescued(self, error: StorageError) -> StorageError:
        """The error, with what could not be stored in its text, after one more try to store it."""
        lost = []
        for number, (params, value) in self.measured.items():
            try:
                self.study.tell(number, value)
            except Exception:  # whatever it is, the value must reach the user
                lost.append(f"Trial {number} gave {value!r} at {params!r} and is not stored: note it down.")
        return StorageError(" ".join([str(error), *lost]))


class _Failed(Exception):  # noqa: N818
    """Marks a trial as failed; caught by the study."""


def _from_trial(f: Callable[..., Any], space: Space | None) -> Callable[[OptunaTrial], Any]:
    """``f`` as a function of an Optuna trial."""
    if not callable(f):
        raise InputError(f"`f` must be a function, but got {f!r}.")
    if space is None:
        return f
    suggest, by_name = partial(_suggested, declaration(space)), _takes_names(f, space)

    def call(trial: OptunaTrial) -> Any:
        params = suggest(trial)
        return f(**params) if by_name else f(params)

    return call


def _suggested(parameters: Mapping[str, Any], trial: OptunaTrial) -> dict[str, Any]:
    return {name: trial._suggest(name, distribution) for name, distribution in parameters.items()}


def _takes_names(f: Callable[..., Any], space: Space) -> bool:
    """Whether ``f`` takes the parameters by name; otherwise it takes one dictionary."""
    try:
        signature = inspect.signature(f)
    except (TypeError, ValueError):  # some built-in functions have none
        return False
    for arguments, verdict in (((), dict.fromkeys(space)), (({},), {})):
        with suppress(TypeError):
            signature.bind(*arguments, **verdict)
            return not arguments
    raise InputError(
        f"`f` must take one dictionary, or the parameters {list(space)} by name, but its signature is {signature}."
    )


def _number_and_noise(outcome: Any) -> tuple[float, float | None]:
    value, noise = outcome if isinstance(outcome, tuple) and len(outcome) == 2 else (outcome, None)
    number = number_of("value", value)
    if not isfinite(number):
        raise InputError(f"`value` must be finite, but got {number!r}.")
    if noise is None:
        return number, None
    spread = number_of("noise", noise)
    if 0.0 <= spread < np.inf:
        return number, spread
    warnings.warn(
        f"`noise` must be a standard deviation of at least 0, but got {spread!r}. It is not used.",
        CaliboWarning,
        stacklevel=2,
    )
    return number, None


def _name(f: Callable[..., Any]) -> str:
    name = getattr(f, "__name__", "")
    return name if name.isidentifier() else "study"


def _check_budget(n_trials: int | None, timeout: float | None, n_jobs: int) -> None:
    whole = isinstance(n_trials, int | np.integer) and not isinstance(n_trials, bool)
    if (n_trials is None and timeout is None) or (n_trials is not None and (not whole or n_trials < 1)):
        raise InputError(
            f"`n_trials` must be a whole number of at least 1, or None with a timeout, but got {n_trials!r}."
        )
    if timeout is not None and (not isinstance(timeout, int | float) or not timeout > 0):
        raise InputError(f"`timeout` must be a positive number of seconds, but got {timeout!r}.")
    if not isinstance(n_jobs, int) or isinstance(n_jobs, bool) or (n_jobs < 1 and n_jobs != -1):
        raise InputError(f"`n_jobs` must be a whole number of at least 1, or -1 for all cores, but got {n_jobs!r}.")


def settle_space(study: Study, space: Space) -> None:
    """A study has one space: the first that it was given."""
    stored = joined(study.user_attrs, SPACE)
    wanted = json.loads(json.dumps(declared(space)))
    if stored is None:
        known, ours = distributions(study.get_trials(deepcopy=False)), declaration(space)
        varying = {name: distribution for name, distribution in ours.items() if not distribution.single()}
        if known and known != varying:
            raise InputError(_another_space(study, {**known}, varying))
        for key, piece in pieces(SPACE, wanted).items():
            study.set_user_attr(key, piece)
    elif stored != wanted:
        raise InputError(_another_space(study, {e["name"]: e for e in stored}, {e["name"]: e for e in wanted}))


def _another_space(study: Study, stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    differing = [name for name in {**stored, **wanted} if stored.get(name) != wanted.get(name)]
    where = differing or "the order of its names"
    return (
        f"`space` must be that of the study {study.study_name!r}, but differs in {where}. "
        "Give the same space to go on with it, or another `study_name` to begin anew."
    )


def settled_seed(study: Study, seed: int | None) -> int:
    """The seed given, or that of the study, or a new one: a resumed run goes on as it would have."""
    stored = study.user_attrs.get(SEED)
    chosen = seed if seed is not None else stored if isinstance(stored, int) else CalibratedSampler().seed
    chosen = CalibratedSampler(seed=chosen).seed
    if chosen != stored:
        study.set_user_attr(SEED, chosen)
    return chosen


def _believed(study: Study, strategy: Strategy) -> tuple[History, FittedStrategy]:
    history = History.of(study)
    if not history.observations.feasible.any():
        raise InputError("`study` must have a successful trial to learn from, but it has none yet.")
    rng = np.random.default_rng(len(history.trials))
    return history, strategy.fit(history.observations, rng=rng, previous=history.state)


@contextmanager
def _quiet_optuna() -> Iterator[None]:
    """Failures and progress are told by us."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


@contextmanager
def _bar(done: int, total: int | None, *, shown: bool) -> Iterator[Callback]:
    """A progress bar on stderr, and the callback that moves it."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[last]}", markup=False),
        TextColumn("{task.fields[best]}", markup=False),
    )
    with Progress(*columns, console=Console(stderr=True), disable=not shown) as bar:
        task = bar.add_task("trials", total=total, completed=done, last="", best="")

        def advance(study: Study, trial: FrozenTrial) -> None:
            value = trial.values[0] if trial.state == TrialState.COMPLETE and trial.values else None
            last = trial.state.name.lower() if value is None else f"{value:.6g}"
            best = f"best {_best_value(study):.6g}" if value is not None else bar.tasks[0].fields["best"]
            bar.update(task, completed=len(counted(study.get_trials(deepcopy=False))), last=last, best=best)

        yield advance


def _best_value(study: Study) -> float:
    try:
        return float(study.best_value)
    except ValueError:  # nothing is feasible yet
        return np.nan
