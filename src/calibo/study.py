"""optimize, minimize, maximize: a function, a space and a budget, with an Optuna study underneath."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from optuna.exceptions import UpdateFinishedTrialError
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState
from optuna.trial import Trial as OptunaTrial

from calibo.adapters.columns import declaration, distributions
from calibo.adapters.internals import suggest
from calibo.adapters.optuna import CalibratedSampler
from calibo.adapters.reader import Wanted, begin, read_study, warn_of_wrong
from calibo.adapters.schema import (
    read_settings,
    set_aside,
    store_optimum,
    store_seed,
    store_space,
)
from calibo.adapters.storage import Direction, Storage, guarded, opened, study_in, study_names
from calibo.adapters.transfer import Earlier
from calibo.adapters.trials import abandoned, feasible
from calibo.answers import PointForecast, Recommendation
from calibo.errors import InputError
from calibo.optimum import Optimum
from calibo.runs import Callback, Run, quiet_optuna
from calibo.space import Parameter, Space
from calibo.strategy import Recalibrate, Strategy

__all__ = ["Callback", "Interrupted", "Result", "forecast", "maximize", "minimize", "optimize", "reached"]


@dataclass(frozen=True, eq=False)
class Result:
    """What a study has found so far."""

    study: Study
    """Optuna's study: its trials, and all that Optuna makes of them."""

    strategy: Strategy | Wanted | None = None
    """By which it is judged; the study's own if not given."""

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
        data = read_study(self.study, self.strategy)
        rows = zip(data.trials, data.observations.feasible, strict=True)
        params = [dict(trial.params) for trial, ok in rows if ok]
        return Recommendation.of(data.fit(), params, data.sign)

    @property
    def _best(self) -> FrozenTrial:
        trials = [trial for trial in self.study.get_trials(deepcopy=False) if feasible(trial)]
        if not trials:
            raise InputError("`study` must have a successful trial to choose from, but it has none yet.")
        better = min if self.study.direction == StudyDirection.MINIMIZE else max
        return better(trials, key=lambda trial: trial.values[0])


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
    recalibrate: Recalibrate | None = None,
    transfer_from: Sequence[Earlier] | Earlier = (),
    known_optimum: float | None = None,
    optimum_is_bound: bool = False,
    optimum_tolerance: float | None = None,
) -> Result:
    """Find the parameters of ``space`` with the best ``f``.

    ``f`` takes a dictionary, or the parameters by name, and gives the value, or the value and its standard
    deviation. With ``space=None`` it takes an Optuna trial and declares its parameters itself. If it raises, or
    gives NaN, that trial failed and the run goes on.

    ``n_trials`` is what the study shall have in the end: with a ``storage``, the same call again goes on where the
    last one stopped, and one with more trials continues. ``timeout`` in seconds ends the run earlier. The study is
    named after ``f`` unless ``study_name`` is given. ``n_jobs`` evaluations run side by side in threads.
    ``recalibrate`` corrects forecasts "always", "never", or as far as that has helped, "auto". ``transfer_from`` are
    earlier studies, or storages of some, from which is learned as far as they forecast well.

    ``known_optimum`` is the best value there is, in the units of ``f``: a loss of 0, an accuracy of 1.0 where that is
    maximised. With ``optimum_is_bound`` no value surpasses it, but it may be that none reaches it. The run ends when
    the best is within ``optimum_tolerance`` of it, by default a thousandth of how far good first values are away.
    """
    _check_budget(n_trials, timeout, n_jobs)
    space = space if space is None or isinstance(space, Space) else Space(space)
    prepare = _prepared(f, space)
    wanted = Wanted.given(strategy, recalibrate)
    optimum = Optimum.given(known_optimum, optimum_is_bound, optimum_tolerance)
    study_name = _name(f) if storage is not None and study_name is None else study_name
    store = opened(storage)
    known = {"transfer_from": transfer_from, **({} if optimum is None else optimum.arguments)}
    sampler = CalibratedSampler(strategy=strategy, recalibrate=recalibrate, seed=seed, space=space, **known)
    with guarded(store), quiet_optuna():
        if optimum is None and study_name not in study_names(store):
            wanted.of(None).demand_optimum()
        study = study_in(store, study_name, direction=direction)
        result = Result(study, wanted)
        if space is not None:
            settle_space(study, space)
        sampler.seed = settled_seed(study, seed)
        study.sampler = sampler
        _close_abandoned(study)
        if optimum is not None:
            store_optimum(study, optimum)
        begin(study, wanted)
        if optimum is not None and reached(study, wanted):
            return result
    rules = tuple(callbacks) if optimum is None else (*callbacks, _until_reached(wanted))
    return _after(Run(study, prepare, n_trials, timeout, n_jobs, rules, progress), result)


def _after(run: Run, result: Result) -> Result:
    try:
        run.go()
    except KeyboardInterrupt:
        raise Interrupted(result) from None
    return result


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

    The study may come from any sampler. ``strategy`` is that of the study if not given, or the default.
    """
    data = read_study(study, strategy)
    belief = data.fit()
    if not isinstance(params, Mapping):
        raise InputError(f"`params` must be a dictionary of {list(data.columns.parameters)}, but got {params!r}.")
    x = data.columns.point(_varying(study, params))
    lacking = [name for name in data.columns.parameters if name not in params]
    always = [name for name in lacking if all(name in trial.params for trial in data.trials)]
    if always:
        raise InputError(f"`params` must name {always}, which every trial of the study has, but got {list(params)}.")
    return PointForecast(dict(params), belief.forecast(x[None], noise=noise), belief.map, data.sign)


def _varying(study: Study, params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters without those that have one value only, which must be it."""
    rest = dict(params)
    for trial in study.get_trials(deepcopy=False):
        for name, distribution in trial.distributions.items():
            if distribution.single() and name in rest and rest[name] == trial.params[name]:
                del rest[name]
    return rest


def _close_abandoned(study: Study) -> None:
    for trial in abandoned(study.get_trials(deepcopy=False)):
        close(study, trial.number)


def close(study: Study, number: int) -> None:
    """End a trial that runs no more, without blaming its point."""
    with suppress(ValueError, UpdateFinishedTrialError):  # another process was faster
        trial = study.get_trials(deepcopy=False)[number]
        set_aside(study, trial)
        study.tell(number, state=TrialState.FAIL)


def _prepared(f: Callable[..., Any], space: Space | None) -> Callable[[OptunaTrial], Callable[[], Any]]:
    """A function of an Optuna trial that suggests its parameters and gives the call of ``f`` with them."""
    if not callable(f):
        raise InputError(f"`f` must be a function, but got {f!r}.")
    if space is None:
        if not _takes(f, {}):
            raise InputError(
                f"`f` must take an Optuna trial where there is no `space`, but its signature is {_signed(f)}."
            )
        return lambda trial: partial(f, trial)
    parameters = declaration(space)
    by_name = _takes(f, **dict.fromkeys(space))
    if not by_name and not _takes(f, {}):
        raise InputError(
            f"`f` must take one dictionary, or the parameters {list(space)} by name, but its signature is {_signed(f)}."
        )

    def prepare(trial: OptunaTrial) -> Callable[[], Any]:
        params = _suggested(parameters, trial)
        return partial(f, **params) if by_name else partial(f, params)

    return prepare


def _takes(f: Callable[..., Any], *arguments: Any, **names: Any) -> bool:
    """Whether ``f`` can be called so."""
    try:
        signature = inspect.signature(f)
    except (TypeError, ValueError):  # some built-in functions have none
        return not names
    try:
        signature.bind(*arguments, **names)
    except TypeError:
        return False
    return True


def _signed(f: Callable[..., Any]) -> str:
    return str(inspect.signature(f))


def _suggested(parameters: Mapping[str, Any], trial: OptunaTrial) -> dict[str, Any]:
    return {name: suggest(trial, name, distribution) for name, distribution in parameters.items()}


def _name(f: Callable[..., Any]) -> str:
    name = getattr(f, "__name__", "")
    if not name.isidentifier():
        raise InputError(f"`study_name` must be given with a storage where `f` has no name of its own, but got {f!r}.")
    return str(name)


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
    stored = read_settings(study).space
    if stored is not None:
        if list(stored.items()) != list(space.items()):
            raise InputError(_another_space(study, stored, space))
        return
    known, ours = distributions(study.get_trials(deepcopy=False)), declaration(space)
    varying = {name: distribution for name, distribution in ours.items() if not distribution.single()}
    if known and known != varying:
        raise InputError(_another_space(study, known, varying))
    store_space(study, space)


def _another_space(study: Study, stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    differing = [name for name in {**stored, **wanted} if stored.get(name) != wanted.get(name)]
    where = differing or "the order of its names"
    return (
        f"`space` must be that of the study {study.study_name!r}, but differs in {where}. "
        "Give the same space to go on with it, or another `study_name` to begin anew."
    )


def settled_seed(study: Study, seed: int | None) -> int:
    """The seed given, or that of the study, or a new one: a resumed run goes on as it would have."""
    stored = read_settings(study).seed
    chosen = seed if seed is not None else stored if stored is not None else CalibratedSampler().seed
    chosen = CalibratedSampler(seed=chosen).seed
    if chosen != stored:
        store_seed(study, chosen)
    return chosen


def reached(study: Study, strategy: Strategy | Wanted | None = None, optimum: Optimum | None = None) -> bool:
    """Whether the best is within the tolerance of the known optimum; under noise, the best that is believed.

    That is the one given, to be minimised, or that of the study.
    """
    data = read_study(study, strategy)
    known = optimum or data.optimum
    if known is None:
        return False
    if not data.columns.parameters:  # all have one value only
        y = np.array([data.sign * trial.values[0] for trial in study.get_trials(deepcopy=False) if feasible(trial)])
        return known.near(y) and not known.surpassed(y)
    warn_of_wrong(study, data, known)
    return known.near(data.observations.valid().y) and data.fit().reaches(known)


def _until_reached(strategy: Wanted) -> Callback:
    def stop(study: Study, _: FrozenTrial) -> None:
        if reached(study, strategy):
            study.stop()

    return stop
