"""CalibratedSampler: calibo as an Optuna sampler.

The sampler is stateless: it reads everything from the study at each suggestion, so that parallel workers and resumed
studies agree. A suggestion is a function of the seed and of the finished and running trials.
"""

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any
from zlib import crc32

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from calibo.arrays import Array
from calibo.cube import Warp
from calibo.errors import REPEATED, InputError, SpaceExhausted, warn
from calibo.forecaster import Recalibrate
from calibo.optimum import Optimum
from calibo.optuna.columns import Columns, distributions, to_distributions
from calibo.optuna.internals import FIXED, in_loop, unfiltered_study
from calibo.optuna.reader import (
    RequestedStrategy,
    StudyData,
    is_prepared,
    mark_prepared,
    read_study,
    store_requested_strategy,
    warn_if_refuted,
)
from calibo.optuna.schema import (
    TrialEntry,
    read_trial,
    store_fits,
    store_optimum,
    store_trial,
    store_warps,
)
from calibo.optuna.transfer import TransferSource, read_prior_studies, store_prior_studies
from calibo.optuna.trials import age, current_trials, require_one_objective, this_worker
from calibo.parts import identity
from calibo.space import Categorical, Digits, Float, Space, check_warp
from calibo.strategy import Proposal, Strategy

EXHAUSTED = (
    "No configuration was found that has not been tried, so the run ends. If outcomes are noisy, let the objective "
    "return (value, standard deviation) to measure the best ones again."
)
UNDECIDED = timedelta(minutes=1)  # a trial started this recently may be about to choose its point
MOST_UNDECIDED = 8  # concurrent choices predicted before our own
NEAR = 0.05  # fraction of every column: a choice this close to a concurrent one is made again
TRIES = 10  # on a busy machine other workers may be first several times in a row


class CalibratedSampler(BaseSampler):
    """Optuna sampler that proposes points by a calibo strategy, for single-objective studies.

    ``strategy`` is a `Strategy` or the name of a preset; by default that of the study, or the default preset.
    ``n_startup_trials`` is the size of the initial space-filling design. ``space`` declares the parameters in advance,
    so that the first trial is part of the design, too.
    ``recalibrate`` corrects forecasts "always", "never", or, if "auto", as far as that improved past forecasts.
    ``warp`` maps parameter names to how a strategy with input warping may warp them, as in `Float`.
    ``transfer_from`` are prior studies, or storages of them; they are used only if they forecast well.
    ``known_optimum`` is the best possible value, in the units and direction of the study: a loss of 0, or an accuracy
    of 1.0 when maximizing. With ``optimum_is_bound`` it need not be attainable. Values within ``optimum_tolerance`` of
    it count as optimal, by default 0.1 % of the distance from the optimum to a good initial value. See `StopAtOptimum`.
    If the standard deviation of a trial's value is known, set it as the user attribute "calibo:noise".
    """

    def __init__(
        self,
        *,
        strategy: str | Strategy | None = None,
        n_startup_trials: int | None = None,
        seed: int | None = None,
        space: Space | Mapping[str, Any] | None = None,
        recalibrate: Recalibrate | None = None,
        warp: Mapping[str, Warp | None] | None = None,
        transfer_from: Sequence[TransferSource] | TransferSource = (),
        known_optimum: float | None = None,
        optimum_is_bound: bool = False,
        optimum_tolerance: float | None = None,
    ) -> None:
        if seed is not None and (not isinstance(seed, int | np.integer) or seed < 0):
            raise InputError(f"`seed` must be None or a whole number of at least 0, but got {seed!r}.")
        self.requested = RequestedStrategy.from_arguments(strategy, recalibrate, n_startup_trials)
        self.seed = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else int(seed)
        self.space = None if space is None else space if isinstance(space, Space) else Space(space)
        self.warps = _warps(self.space, warp)
        self.prior_studies = read_prior_studies(transfer_from)
        self.optimum = Optimum.from_arguments(known_optimum, optimum_is_bound, optimum_tolerance)
        for name, given in (("transfer_from", self.prior_studies), ("known_optimum", self.optimum)):
            if given:
                self.requested.resolve(None).acquisition.require_several_models(name)
        self.digits: Digits = None
        """To how many digits of their range chosen values are rounded."""

        self.stops_when_exhausted = False
        """Whether to raise `SpaceExhausted` instead of repeating a configuration."""

        self._lock = threading.RLock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state, _lock=threading.RLock())

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Store side information before the first trial, even if that one is enqueued."""
        self._prepare_once(study)

    def _prepare_once(self, study: Study) -> None:
        with self._lock:  # other threads wait until everything is stored
            if not is_prepared(self, study):
                self.prepare(study)
                mark_prepared(self, study)

    def prepare(self, study: Study) -> None:
        """Store the strategy and side information of this sampler with a study; raises if it cannot be used there."""
        require_one_objective(study)
        original = unfiltered_study(study)
        if self.prior_studies:
            store_prior_studies(original, self.prior_studies)
        if self.optimum is not None:
            store_optimum(original, self.optimum)
        if self.warps:
            store_warps(original, self.warps)
        store_requested_strategy(original, self.requested)

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Every parameter seen so far, whether or not it is always present."""
        require_one_objective(study)
        declared = {} if self.space is None else to_distributions(self.space)
        known = {name: distribution for name, distribution in declared.items() if not distribution.single()}
        return {**known, **distributions(study.get_trials(deepcopy=False), self.space)}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """A point of the most promising conditional branch."""
        require_one_objective(study)
        with self._lock:  # a second thread sees what the first has chosen
            self._prepare_once(study)  # a sampler that wraps this one may not forward `before_trial`
            if not search_space:
                self._store(study, trial, {})
                return {}
            return self._choose(study, trial, search_space)

    def _choose(self, study: Study, trial: FrozenTrial, search_space: Mapping[str, BaseDistribution]) -> dict[str, Any]:
        """A point, stored so that other workers see it; chosen again if one of them was first."""
        given = {**trial.system_attrs.get(FIXED, {}), **trial.params}
        params: dict[str, Any] = {}
        for attempt in range(1, TRIES + 1):
            data = read_study(study, self.requested, search_space=search_space)
            warn_if_refuted(study, data)
            proposal = self._propose(data, trial, given)
            if proposal.repeated and not given and self.stops_when_exhausted:  # a given point may be repeated
                raise SpaceExhausted(EXHAUSTED)
            store_fits(study, trial, data.fits, proposal.state)
            if attempt < TRIES and _taken(study, trial, data, proposal.x):
                continue
            params = data.columns.decode(proposal.x)
            if self.digits is not None:  # without the rounding errors of the cube
                near = _rounded(data.columns, params, self.digits)
                params = next((each for each in near if _is_at(data.columns, each, proposal.x)), params)
            # given values are evaluated as they are, not rounded to their column
            exact = {name: given.get(name, value) for name, value in params.items()}
            chosen = {n: search_space[n].to_internal_repr(v) for n, v in exact.items()}
            self._store(study, trial, chosen, data, proposal)
            # if two workers chose the same point at the same time, the later trial yields; but it may have looked
            # before we stored ours, so on the first attempt the earlier one yields, too
            if not _taken(study, trial, data, proposal.x, before=np.inf if attempt == 1 else trial.number):
                break
        return params

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """A value for a parameter outside the relative search space, given those already suggested in this trial."""
        require_one_objective(study)
        known = distributions(study.get_trials(deepcopy=False))
        settled = {name: trial.distributions[name] for name in trial.params if name in known and name != param_name}
        search_space = {**settled, param_name: param_distribution}
        with self._lock:
            data = read_study(study, self.requested, search_space=search_space, having=param_name)
            columns = data.columns
            if not data.trials:
                rng = np.random.default_rng([self.seed, trial.number, crc32(param_name.encode())])
                x = columns.cube.snap(rng.random((1, len(columns.cube))))[0]
                return columns.decode(x)[param_name]
            proposal = self._propose(data, trial, trial.params)
            store_fits(study, trial, data.fits, proposal.state)
            value = columns.decode(proposal.x)[param_name]
            chosen = {**read_trial(trial).chosen, param_name: param_distribution.to_internal_repr(value)}
            self._store(study, trial, chosen, data)  # without its forecast, which used only some of the columns
            return value

    def _store(
        self,
        study: Study,
        trial: FrozenTrial,
        chosen: Mapping[str, float],
        data: StudyData | None = None,
        proposal: Proposal | None = None,
    ) -> None:
        """Store with the trial its chosen point, the forecasts, and the process that evaluates it."""
        # with ask and tell, two processes may be involved
        worker = this_worker() if in_loop(unfiltered_study(study)) else None
        other = None if data is None or data.is_own else identity(data.requested)
        record, report = (None, None) if proposal is None else (proposal.record, proposal.report)
        store_trial(study, trial, TrialEntry(chosen, worker, other, record, report))

    def _propose(self, data: StudyData, trial: FrozenTrial, given: Mapping[str, Any]) -> Proposal:
        """The point for ``trial``, away from those that other workers evaluate or are about to choose."""
        state: Mapping[str, Any] | None = data.fits
        pending, undecided = _others(data, trial)

        def rounded(x: Array) -> list[Array]:
            if self.digits is None:
                return [x]
            held = _fixed(data.columns, given)
            near = [data.columns.point(each) for each in _rounded(data.columns, data.columns.decode(x), self.digits)]
            return [np.where(np.isnan(held), point, held) for point in near]

        def propose(fixed: Array | None = None) -> Proposal:
            points = np.array(pending).reshape(-1, len(data.columns.cube))
            observations = replace(data.observations, pending=points)
            return data.strategy.propose(observations, seed=self.seed, previous=state, fixed=fixed, rounded=rounded)

        for _ in range(undecided):
            foreseen = propose()
            pending.append(foreseen.x)
            state = foreseen.state
        proposal = propose(_fixed(data.columns, given))
        if proposal.repeated and (given or not self.stops_when_exhausted):
            warn(REPEATED)
        return proposal


def _warps(space: Space | None, warp: Mapping[str, Warp | None] | None) -> dict[str, Warp | None]:
    """Warps by parameter name, if specified."""
    if warp is not None and not isinstance(warp, Mapping):
        raise InputError(f"`warp` must be a dictionary of parameter names, but got {warp!r}.")
    numeric = {name: parameter for name, parameter in (space or {}).items() if not isinstance(parameter, Categorical)}
    declared = {name: parameter.warp for name, parameter in numeric.items()}
    for name, value in (warp or {}).items():
        check_warp(f"warp[{name!r}]", value)
        if space is not None and name not in declared:
            raise InputError(f"`warp` must only name numeric parameters, {list(declared)}, but got {name!r}.")
    return {**{name: value for name, value in declared.items() if value != "auto"}, **(warp or {})}


def _rounded(columns: Columns, params: Mapping[str, Any], digits: Digits) -> list[dict[str, Any]]:
    """With continuous values rounded to ``digits`` digits of their range."""
    known = {name: value for name, value in params.items() if isinstance(columns.parameters[name], Float)}
    return [{**params, **near} for near in Space(columns.parameters).rounded(known, digits)]


def _is_at(columns: Columns, params: Mapping[str, Any], x: Array) -> bool:
    """Whether ``params`` are those of a point, up to the rounding errors of the cube."""
    return bool(np.allclose(columns.point(params), x, rtol=0.0, atol=1e-9, equal_nan=True))


def _others(data: StudyData, trial: FrozenTrial) -> tuple[list[Array], int]:
    """Pending points of other trials, and the number of earlier trials that are about to choose theirs.

    Two workers that ask at the same time would choose the same point. Each can predict the choices of earlier trials,
    so the later one stays away from them.
    """
    pending, undecided = [], 0
    for other in data.running:
        if other.number == trial.number:
            continue
        x = data.columns.encode(_chosen(data.columns, other))
        if x is None:
            continue
        if not np.isnan(x).all():
            pending.append(x)
        elif other.number < trial.number and age(other) < UNDECIDED and not other.params:
            undecided += 1
    return pending, min(undecided, MOST_UNDECIDED)


def _taken(study: Study, trial: FrozenTrial, data: StudyData, x: Array, before: float = np.inf) -> bool:
    """Whether a trial numbered below ``before`` has meanwhile chosen, or changed to, a point near ``x``."""
    known = {other.number: chosen for other in data.running if (chosen := _chosen(data.columns, other))}
    finished = {trial.number, *(other.number for other in data.trials)}
    for other in current_trials(study):
        chosen_or_done = other.state in (TrialState.RUNNING, TrialState.COMPLETE)
        if not chosen_or_done or other.number in finished or other.number >= before:
            continue
        chosen = _chosen(data.columns, other)
        theirs = None if known.get(other.number) == chosen else data.columns.encode(chosen)
        if theirs is not None and not np.isnan(theirs).all() and np.nanmax(np.abs(theirs - x), initial=0.0) < NEAR:
            return True
    return False


def _chosen(columns: Columns, trial: FrozenTrial) -> dict[str, Any]:
    """Parameters suggested so far, and those chosen but not suggested yet."""
    stored = read_trial(trial).chosen
    chosen = {}
    for name, distribution in columns.distributions.items():
        if name in trial.params:
            chosen[name] = trial.params[name]
        elif name in stored:
            with suppress(LookupError, OverflowError, TypeError, ValueError):  # written by another program
                chosen[name] = distribution.to_external_repr(stored[name])
    return chosen


def _fixed(columns: Columns, given: Mapping[str, Any]) -> Array:
    """(d,) the columns already fixed, NaN elsewhere; values out of bounds are ignored."""
    held = np.full(len(columns.cube), np.nan)
    for j, name in enumerate(columns.parameters):
        x = columns.encode({name: given[name]}) if name in given else None
        if x is not None:
            held[j] = x[j]
    return held
