"""optimize, minimize, maximize: optimize a function with an Optuna study."""

import inspect
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages import BaseStorage
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState
from optuna.trial import Trial as OptunaTrial

from calibo.errors import InputError, warn
from calibo.forecaster import Recalibrate
from calibo.forecasts import Forecast
from calibo.html import plotly, table
from calibo.loop import Callback, TrialLoop, silence_optuna
from calibo.optimizer import Optimizer
from calibo.optimum import Optimum
from calibo.optuna.columns import distributions, to_distributions
from calibo.optuna.internals import suggest
from calibo.optuna.reader import RequestedStrategy, read_study, store_requested_strategy, warn_if_refuted
from calibo.optuna.sampler import CalibratedSampler
from calibo.optuna.schema import mark_interrupted, read_settings, read_stopped, store_optimum, store_seed, store_space
from calibo.optuna.storages import Direction, Storage, load_or_create_study, open_storage, storage_errors, study_names
from calibo.optuna.transfer import TransferSource
from calibo.optuna.trials import abandoned_trials, current_trials, is_feasible, is_ignored
from calibo.space import Space
from calibo.strategy import Recommendation, Strategy

DICTIONARIES = (
    "params",
    "parameters",
    "p",
    "config",
    "cfg",
    "conf",
    "hparams",
    "hyperparameters",
    "settings",
    "kwargs",
)
"""Names of an argument that say that it is a dictionary."""

FEW = 10  # trials, each of which has a tick of its own


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """The result of a study so far."""

    study: Study
    """The Optuna study, with all trials."""

    strategy: Strategy | RequestedStrategy | None = None
    """For forecasts and the recommendation; by default that of the study."""

    def __repr__(self) -> str:
        found = f"best_value={self.best_value:.6g}" if any(map(is_feasible, self.trials)) else "no feasible trial"
        return f"Result(study={self.study.study_name!r}, {self._count()}, {found})"

    def _count(self) -> str:
        """The number of trials, without those that were interrupted or spoiled by a bug."""
        known = read_settings(self.study).ignored
        ignored = sum(is_ignored(trial, known) for trial in self.trials)
        counted = len(self.trials) - ignored
        return f"{counted} trial{'s' * (counted != 1)}{f' and {ignored} ignored' if ignored else ''}"

    def _repr_html_(self) -> str:
        """For notebooks."""
        rows: list[tuple[str, Any]] = [("study", self.study.study_name), ("trials", self._count())]
        if any(map(is_feasible, self.trials)):
            rows += [("best value", self.best_value), *self.best_params.items()]
        return table(rows)

    @property
    def trials(self) -> list[FrozenTrial]:
        """All trials, as corrected by `drop` and `amend`."""
        return current_trials(self.study)

    def to_dataframe(self) -> Any:
        """A pandas DataFrame with one row per trial: number, state, value and parameters."""
        try:
            import pandas as pd
        except ImportError:
            raise InputError("`to_dataframe` needs pandas. Run `pip install calibo[pandas]`.") from None
        rows = [
            {"trial": t.number, "state": t.state.name.lower(), "value": t.values[0] if t.values else None, **t.params}
            for t in self.trials
        ]
        return pd.DataFrame(rows)

    def plot(self) -> Any:
        """A Plotly figure of the optimization history: every value, and the best so far."""
        go, done = plotly(), [trial for trial in self.trials if is_feasible(trial)]
        numbers, values = [trial.number for trial in done], np.array([trial.values[0] for trial in done])
        better = np.minimum if self.study.direction == StudyDirection.MINIMIZE else np.maximum
        best = better.accumulate(values) if len(values) else values
        line = go.Scatter(x=numbers, y=best.tolist(), mode="lines", line={"shape": "hv"}, name="best so far")
        figure = go.Figure([go.Scatter(x=numbers, y=values.tolist(), mode="markers", name="value"), line])
        ticks = {"dtick": 1} if len(self.trials) <= FEW else {}  # none between two trials
        axes = {"xaxis": {"title": "trial", **ticks}, "yaxis": {"title": "value"}}
        return figure.update_layout(title=self.study.study_name, template="plotly_white", **axes)

    @property
    def stopped(self) -> str | None:
        """Why `StopWhenUnlikely` stopped the study, and what it expects to be left; None if it did not, or if the study
        went on.
        """
        found = read_stopped(self.study)
        if found is None:
            return None
        return (
            f"Stopped after trial {found.trial}: the probability that a promising point improves by more than "
            f"{found.resolution:.4g} is {found.chance:.2g}. The best of them is expected to gain {found.left:.2g}."
        )

    @property
    def best_params(self) -> dict[str, Any]:
        return dict(self._best.params)

    @property
    def best_value(self) -> float:
        """The best measured value; optimistic if values are noisy, see ``recommendation``."""
        return float(self._best.values[0])

    @cached_property
    def recommendation(self) -> Recommendation:
        """The evaluated point with the best posterior median, and its 90 % interval."""
        data = read_study(self.study, self.strategy)
        rows = zip(data.trials, data.observations.feasible, strict=True)
        params = [dict(trial.params) for trial, ok in rows if ok]
        return data.fit().recommend(params, data.sign)

    @property
    def _best(self) -> FrozenTrial:
        trials = [trial for trial in current_trials(self.study) if is_feasible(trial)]
        if not trials:
            raise InputError("`study` must have a feasible trial, but it has none yet.")
        better = min if self.study.direction == StudyDirection.MINIMIZE else max
        return better(trials, key=lambda trial: trial.values[0])


class Interrupted(KeyboardInterrupt):
    """Ctrl-C was pressed: all finished trials are in ``result``.

    Catch it with ``except calibo.Interrupted as stop``. In a notebook or at a prompt, the exception that ended the last
    statement is ``sys.last_value``.
    """

    def __init__(self, result: Result) -> None:
        super().__init__("All finished trials are kept: `import sys; result = sys.last_value.result` in a notebook.")
        self.result = result

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: where the objective was interrupted says nothing."""
        return [f"Interrupted: {self}"]


def optimize(
    f: Callable[..., Any],
    space: Space | Mapping[str, Any] | None,
    n_trials: int | None,
    *,
    direction: Direction = "minimize",
    seed: int | None = None,
    storage: Storage = None,
    study_name: str | None = None,
    timeout: float | None = None,
    n_jobs: int = 1,
    callbacks: Sequence[Callback] = (),
    catch: Sequence[type[BaseException]] | type[BaseException] = (),
    progress: bool = True,
    strategy: str | Strategy | None = None,
    recalibrate: Recalibrate | None = None,
    transfer_from: Sequence[TransferSource] | TransferSource = (),
    known_optimum: float | None = None,
    optimum_is_bound: bool = False,
    optimum_tolerance: float | None = None,
) -> Result:
    """Optimize ``f`` over the parameters of ``space``.

    ``f`` takes a dictionary, or the parameters by name. It returns the value, or the value and its standard deviation.
    With ``space=None`` it takes an Optuna trial and suggests its own parameters. If it raises or returns NaN, the trial
    fails and the run continues. It stops with `ObjectiveError` after three programming errors in a row, such as a
    NameError, or if every trial of the initial design, or of a shorter run, raises. Exceptions in ``catch`` never stop
    it.

    ``n_trials`` is the total of the study: with a ``storage``, rerun the call to resume, or raise it to continue.
    ``timeout`` is in seconds. The study is named after ``f`` unless ``study_name`` is given. ``n_jobs`` is the number
    of threads. ``recalibrate`` corrects forecasts "always", "never", or, if "auto", as far as that improved past
    forecasts. ``transfer_from`` are prior studies, or storages of them; they are used only if they forecast well.

    ``known_optimum`` is the best possible value, in the units of ``f``: a loss of 0, or an accuracy of 1.0 when
    maximizing. With ``optimum_is_bound`` it need not be attainable. The run stops when the best value is within
    ``optimum_tolerance`` of it, by default 0.1 % of the distance from the optimum to a good initial value.
    """
    _check_budget(n_trials, timeout, n_jobs)
    if not isinstance(callbacks, Sequence) or not all(map(callable, callbacks)):
        raise InputError(f"`callbacks` must be a list of functions of a study and a trial, but got {callbacks!r}.")
    caught = _exceptions(catch)
    space = space if space is None or isinstance(space, Space) else Space(space)
    prepare = _objective_call(f, space)
    requested = RequestedStrategy.from_arguments(strategy, recalibrate)
    optimum = Optimum.from_arguments(known_optimum, optimum_is_bound, optimum_tolerance)
    study_name = _name(f, required=storage is not None) if study_name is None else study_name
    store = open_storage(storage)
    info = {"transfer_from": transfer_from, **({} if optimum is None else optimum.arguments)}
    sampler = CalibratedSampler(strategy=strategy, recalibrate=recalibrate, seed=seed, space=space, **info)
    sampler.stops_when_exhausted = space is not None  # otherwise parameters may be added
    with storage_errors(store), silence_optuna():
        study = _open_study(store, study_name, direction, sampler, seed)
        result = Result(study, requested)
        if optimum is not None and reached(study, requested):
            return result
    rules = tuple(callbacks) if optimum is None else (*callbacks, _stop_when_reached(requested))
    try:
        TrialLoop(study, prepare, n_trials, timeout, n_jobs, rules, progress, caught).run()
    except KeyboardInterrupt:
        raise Interrupted(result) from None
    return result


def _open_study(
    store: BaseStorage, name: str | None, direction: Direction, sampler: CalibratedSampler, seed: int | None
) -> Study:
    """The study, created if there is none, with everything stored that the sampler was given."""
    if sampler.optimum is None and name not in study_names(store):
        sampler.requested.resolve(None).require_optimum()
    study = load_or_create_study(store, name, direction=direction)
    if sampler.space is not None:
        check_or_store_space(study, sampler.space)
    sampler.seed = seed_for(study, seed)
    study.sampler = sampler
    for trial in abandoned_trials(study.get_trials(deepcopy=False)):
        fail_interrupted(study, trial.number)
    if sampler.optimum is not None:
        store_optimum(study, sampler.optimum)
    store_requested_strategy(study, sampler.requested)
    return study


def minimize(f: Callable[..., Any], space: Space | Mapping[str, Any], n_trials: int, **options: Any) -> Result:
    """``optimize`` with direction="minimize"."""
    return optimize(f, space, n_trials, direction="minimize", **options)


def maximize(f: Callable[..., Any], space: Space | Mapping[str, Any], n_trials: int, **options: Any) -> Result:
    """``optimize`` with direction="maximize"."""
    return optimize(f, space, n_trials, direction="maximize", **options)


def forecast(
    study: Study | Result | Optimizer,
    params: Mapping[str, Any],
    *,
    noise: bool = False,
    strategy: str | Strategy | None = None,
) -> Forecast:
    """The calibrated forecast of the value at any point; with ``noise``, of a new measurement.

    ``study`` is an Optuna study of any sampler, a `Result`, or an `Optimizer`, which uses its own strategy.
    ``strategy`` defaults to that of the study, or the default preset.
    """
    if isinstance(study, Optimizer):
        if strategy is not None:
            raise InputError(f"`strategy` must not be given for an Optimizer, which has its own, but got {strategy!r}.")
        return study.forecast(params, noise=noise)
    if isinstance(study, Result):
        return _forecast(study.study, params, noise, study.strategy if strategy is None else strategy)
    if not isinstance(study, Study):
        raise InputError(f"`study` must be an Optuna study, a Result or an Optimizer, but got {study!r}.")
    return _forecast(study, params, noise, strategy)


def _forecast(
    study: Study, params: Mapping[str, Any], noise: bool, strategy: str | Strategy | RequestedStrategy | None
) -> Forecast:
    data = read_study(study, strategy)
    fitted = data.fit()
    if not isinstance(params, Mapping):
        raise InputError(f"`params` must be a dictionary of {list(data.columns.parameters)}, but got {params!r}.")
    x = data.columns.point(_varying(study, params, data.columns.parameters))
    lacking = [name for name in data.columns.parameters if name not in params]
    always = [name for name in lacking if all(name in trial.params for trial in data.trials)]
    if always:
        raise InputError(f"`params` must contain {always}, as every trial of the study does, but got {list(params)}.")
    found = fitted.forecast(x[None], noise=noise)[0]
    return found if data.sign > 0.0 else found.negate()


def _varying(study: Study, params: Mapping[str, Any], varying: Container[str]) -> dict[str, Any]:
    """The parameters without constant ones that have the right value."""
    rest = dict(params)
    for trial in study.get_trials(deepcopy=False):
        for name, distribution in trial.distributions.items():
            if name not in varying and distribution.single() and name in rest and rest[name] == trial.params[name]:
                del rest[name]
    return rest


def fail_interrupted(study: Study, number: int) -> None:
    """Fail a trial that is no longer running; the model ignores this failure."""
    with suppress(ValueError, UpdateFinishedTrialError):  # another process was first
        trial = study.get_trials(deepcopy=False)[number]
        mark_interrupted(study, trial)
        study.tell(number, state=TrialState.FAIL)


def _objective_call(f: Callable[..., Any], space: Space | None) -> Callable[[OptunaTrial], Callable[[], Any]]:
    """A function of an Optuna trial that suggests its parameters and returns the call of ``f`` with them."""
    if not callable(f):
        raise InputError(f"`f` must be a function, but got {f!r}.")
    if space is None:
        if not _takes(f, {}):
            raise InputError(f"`f` must take an Optuna trial if `space` is None, but its signature is {_signature(f)}.")
        return lambda trial: partial(f, trial)
    parameters = to_distributions(space)
    by_name = _takes(f, **dict.fromkeys(space))
    if not by_name and not _takes(f, {}):
        raise InputError(
            f"`f` must take one dictionary, or the parameters {list(space)} by name, but it is {_signature(f)}."
        )

    if not by_name and (argument := _unclear_argument(f, space)) is not None:
        warn(
            f"`f` gets a dictionary of {list(space)} as `{argument}`, because no parameter has this name. Name its "
            f"arguments like the parameters to get their values, or call it `params` if a dictionary is right."
        )

    def prepare(trial: OptunaTrial) -> Callable[[], Any]:
        params = _suggest_params(parameters, trial)
        return partial(f, **params) if by_name else partial(f, params)

    return prepare


def _unclear_argument(f: Callable[..., Any], space: Space) -> str | None:
    """The name of the only argument of ``f``, unless name, annotation or code say that it is a dictionary."""
    try:
        arguments = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):  # some built-in functions have none
        return None
    needed = [each for each in arguments if each.default is each.empty]
    code = getattr(inspect.unwrap(f), "__code__", None)
    mentioned = code is not None and not set(space).isdisjoint(code.co_consts)
    if len(needed) != 1 or mentioned or str(needed[0]) != needed[0].name:  # such as "*args" or "params: dict"
        return None
    return None if needed[0].name in DICTIONARIES else needed[0].name


def _takes(f: Callable[..., Any], *arguments: Any, **names: Any) -> bool:
    """Whether ``f`` accepts these arguments."""
    try:
        signature = inspect.signature(f)
    except (TypeError, ValueError):  # some built-in functions have none
        return not names
    try:
        signature.bind(*arguments, **names)
    except TypeError:
        return False
    return True


def _signature(f: Callable[..., Any]) -> str:
    return str(inspect.signature(f))


def _suggest_params(parameters: Mapping[str, Any], trial: OptunaTrial) -> dict[str, Any]:
    return {name: suggest(trial, name, distribution) for name, distribution in parameters.items()}


def _name(f: Callable[..., Any], *, required: bool) -> str | None:
    """The study is named after the function; in memory it may do without a name."""
    name = getattr(f, "__name__", "")
    if not name.isidentifier():
        if not required:
            return None
        raise InputError(f"`study_name` must be given with a storage if `f` has no name, but got {f!r}.")
    return str(name)


def _exceptions(catch: object) -> tuple[type[BaseException], ...]:
    kinds = tuple(catch) if isinstance(catch, Sequence) else (catch,)
    if not all(isinstance(kind, type) and issubclass(kind, BaseException) for kind in kinds):
        raise InputError(f"`catch` must be exception classes, but got {catch!r}. Write catch=(ValueError,).")
    return kinds


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


def check_or_store_space(study: Study, space: Space) -> None:
    """Store the space of a study; raise if it already has another one."""
    stored = read_settings(study).space
    if stored is not None:
        if list(stored.items()) != list(space.items()):
            raise InputError(_another_space(study, stored, space))
        return
    known, ours = distributions(study.get_trials(deepcopy=False)), to_distributions(space)
    varying = {name: distribution for name, distribution in ours.items() if not distribution.single()}
    if known and known != varying:
        raise InputError(_another_space(study, known, varying))
    store_space(study, space)


def _another_space(study: Study, stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    differing = [name for name in {**stored, **wanted} if stored.get(name) != wanted.get(name)]
    where = differing or "the order of its parameters"
    return (
        f"`space` must be that of the study {study.study_name!r}, but differs in {where}. "
        "Pass the same space to resume it, widen its space with `calibo.widen`, or pass another `study_name`."
    )


def seed_for(study: Study, seed: int | None) -> int:
    """The given seed, that of the study, or a new one: a resumed run continues as if uninterrupted."""
    stored = read_settings(study).seed
    chosen = seed if seed is not None else stored if stored is not None else CalibratedSampler().seed
    chosen = CalibratedSampler(seed=chosen).seed
    if chosen != stored:
        store_seed(study, chosen)
    return chosen


def reached(study: Study, strategy: Strategy | RequestedStrategy | None = None, optimum: Optimum | None = None) -> bool:
    """Whether the best value (under noise, posterior median) is within the tolerance of the known optimum.

    ``optimum`` is for minimization; by default it is that of the study.
    """
    data = read_study(study, strategy)
    known = optimum or data.optimum
    if known is None:
        return False
    if not data.columns.parameters:  # all are constant
        y = np.array([data.sign * trial.values[0] for trial in current_trials(study) if is_feasible(trial)])
        return known.is_reached_by(y) and not known.is_refuted_by(y)
    warn_if_refuted(study, data, known)
    return known.is_reached_by(data.observations.valid().y) and data.fit().reaches(known)


def _stop_when_reached(strategy: RequestedStrategy) -> Callback:
    def stop(study: Study, _: FrozenTrial) -> None:
        if reached(study, strategy):
            study.stop()

    return stop
