"""Reads a study: its observations in the unit cube, its settings, and its strategy.

The sampler, forecasts, audits, stopping rules, diagnostics and commands all read studies here. A process parses the
attributes of a finished trial once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary, ref

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.study import Study
from optuna.trial import FrozenTrial

from calibo.arrays import Array
from calibo.calibration import Record
from calibo.cube import Cube
from calibo.errors import InputError, warn
from calibo.forecaster import Recalibrate
from calibo.observations import LARGEST, Observations, constraint_matrix
from calibo.optimum import Optimum
from calibo.optuna.columns import Columns, distributions
from calibo.optuna.internals import backend_of, study_id, trial_id, unfiltered_study
from calibo.optuna.prior_studies import source_tasks
from calibo.optuna.schema import (
    Settings,
    TrialEntry,
    fits_in,
    own_strategy,
    read_settings,
    read_trial,
    records_of,
    store_strategy,
)
from calibo.optuna.trials import (
    current_trials,
    finish_order,
    finished_trials,
    is_feasible,
    noise_of,
    require_one_objective,
    running,
    sign_of,
)
from calibo.parts import identity, identity_of
from calibo.presets import get_strategy, label
from calibo.side_information import SideInformation
from calibo.strategy import FittedStrategy, Strategy


@dataclass(frozen=True)
class RequestedStrategy:
    """The strategy requested by the user; by default that of the study."""

    strategy: Strategy | None = None
    recalibrate: Recalibrate | None = None
    initial: int | None = None

    @classmethod
    def from_arguments(
        cls, strategy: str | Strategy | None, recalibrate: Recalibrate | None = None, initial: int | None = None
    ) -> "RequestedStrategy":
        """Raises if the arguments are not valid."""
        requested = cls(None if strategy is None else get_strategy(strategy), recalibrate, initial)
        requested.resolve(None)
        return requested

    def resolve(self, own: Strategy | None) -> Strategy:
        """The strategy for a study whose ``own`` one is this; None if it has none yet."""
        chosen = self.strategy or own or get_strategy(None)
        chosen = chosen if self.recalibrate is None else chosen.with_recalibration(self.recalibrate)
        return chosen if self.initial is None else replace(chosen, initial=self.initial)


@dataclass(frozen=True, eq=False)
class StudyData:
    """The data of a study as observations at points of ``columns``."""

    settings: Settings
    columns: Columns
    sign: float
    """1 if the study minimizes, -1 if it maximizes."""

    trials: tuple[FrozenTrial, ...]
    """Finished trials in order of completion; those with values outside the columns are left out."""

    observations: Observations
    """Minimized; with the prequential scores under the strategy's surrogate."""

    records: tuple[Record | None, ...]
    """The forecast of each trial's value by which it was chosen, recorded before its evaluation."""

    reports: tuple[Record | None, ...]
    """The forecast reported for each trial."""

    running: tuple[FrozenTrial, ...]
    """Being evaluated, by any worker."""

    fits: Mapping[str, Mapping[str, Any]]
    """Cached fits, stored with the trials."""

    requested: Strategy
    """As requested, or that of the study."""

    strategy: Strategy
    """The same with the study's side information."""

    @property
    def is_own(self) -> bool:
        """Whether the requested strategy is the one that the study was created with."""
        own = self.settings.strategy
        return own is not None and _identity(own) == identity(self.requested)

    @property
    def optimum(self) -> Optimum | None:
        """The known optimum, for minimization."""
        known = self.settings.optimum
        return None if known is None else known.with_sign(self.sign)

    def fit(self) -> FittedStrategy:
        """The strategy fitted to these trials."""
        if not self.observations.feasible.any():
            raise InputError("`study` must have a feasible trial, but it has none yet.")
        rng = np.random.default_rng(len(self.trials))
        return self.strategy.fit(self.observations, rng=rng, previous=self.fits)


def read_study(
    study: Study,
    strategy: str | Strategy | RequestedStrategy | None = None,
    *,
    search_space: Mapping[str, BaseDistribution] | None = None,
    having: str | None = None,
) -> StudyData:
    """Read all parameters, or those of a ``search_space``; trials must have the parameter ``having``, if given.

    ``strategy`` defaults to that of the study's sampler, else that of the study, else the default preset.
    """
    settings, everything = _stored(study)
    columns, trials, points = _rows(everything, settings, search_space, having)
    asked, sign = _requested(study, strategy), sign_of(study)
    requested = asked.resolve(None if asked.strategy is not None else own_strategy(settings, everything))
    informed = _with_side_information(study, requested, settings, sign, columns if having is None else None)
    parsed = _update_cache(study, everything)
    pairs = [records_of(trial, parsed.entry(trial)) for trial in trials]
    records, reports = tuple(record for record, _ in pairs), tuple(report for _, report in pairs)
    observations = _observations(study, columns.cube, trials, points, sign)
    scores, report_scores = informed.scores(pairs, observations.y, observations.noise_std)
    observations = replace(observations, scores=scores, report_scores=report_scores)
    fits = parsed.fits_with([trial for trial in everything if not trial.state.is_finished()])
    active = running(everything)
    return StudyData(settings, columns, sign, trials, observations, records, reports, active, fits, requested, informed)


def read_outcomes(study: Study) -> tuple[Columns, tuple[FrozenTrial, ...], Observations]:
    """The parameters, finished trials and observations of a study, independent of its strategy."""
    settings, everything = _stored(study)
    columns, trials, points = _rows(everything, settings)
    return columns, trials, _observations(study, columns.cube, trials, points, sign_of(study))


def _stored(study: Study) -> tuple[Settings, list[FrozenTrial]]:
    require_one_objective(study)
    try:
        return read_settings(study), current_trials(study)
    except KeyError:
        raise InputError(f"`study` must exist, but {unfiltered_study(study).study_name!r} has been deleted.") from None


def _rows(
    everything: Sequence[FrozenTrial],
    settings: Settings,
    search_space: Mapping[str, BaseDistribution] | None = None,
    having: str | None = None,
) -> tuple[Columns, tuple[FrozenTrial, ...], Array]:
    """The columns, the finished trials with values in them, and their points (n, d)."""
    known = distributions(everything, settings.space) if search_space is None else search_space
    columns = Columns(known, settings.warps)
    # new trials come last in order of completion, so that earlier fits stay valid
    finished = sorted(finished_trials(everything, settings.ignored), key=finish_order)
    rows = [(trial, x) for trial in finished if (x := columns.encode(_of(trial, columns))) is not None]
    rows = [(trial, x) for trial, x in rows if not np.isnan(x).all()]  # trials without parameters are useless
    if having is not None:
        column = list(columns.parameters).index(having)
        rows = [(trial, x) for trial, x in rows if not np.isnan(x[column])]
    points = np.array([x for _, x in rows]).reshape(len(rows), len(columns.cube))
    return columns, tuple(trial for trial, _ in rows), points


def store_requested_strategy(study: Study, requested: RequestedStrategy) -> None:
    """Store the strategy that a study is created with; a later one is stored, too, with a warning."""
    settings, trials = _stored(study)
    if settings.strategy is None:
        own = _initial_strategy(requested, own_strategy(settings, trials))
        used = requested.resolve(own)
    else:  # which may not be buildable here
        used = requested.resolve(None if requested.strategy is not None else own_strategy(settings, trials))
    if settings.optimum is None:
        used.require_optimum()
    if settings.strategy is None:
        store_strategy(study, own, own=True)
    if identity(used) == (identity(own) if settings.strategy is None else _identity(settings.strategy)):
        return
    if identity(used) not in settings.others:
        store_strategy(study, used, own=False)
    before, now = label(own) if settings.strategy is None else settings.strategy.get("label"), repr(label(used))
    now = f"what is called {now} in this version" if before == label(used) else now
    warn_once(
        study,
        f"The study {study.study_name!r} was created with the strategy {before!r}, and continues with {now}, "
        "as requested. Omit `strategy` to continue with its own.",
    )


def _identity(stored: Mapping[str, Any]) -> str:
    """The identity of a stored strategy; empty if it is not valid."""
    try:
        return identity_of(stored["spec"])
    except InputError:
        return ""


def _initial_strategy(requested: RequestedStrategy, known: Strategy | None) -> Strategy:
    """The study's own strategy from now on; the first version stored it without its design."""
    made = requested.resolve(known)
    same = known is None or replace(made, initial=known.initial, design=known.design) == known
    return made if same or known is None else known


def _requested(study: Study, strategy: str | Strategy | RequestedStrategy | None) -> RequestedStrategy:
    if isinstance(strategy, RequestedStrategy):
        return strategy
    attached = getattr(study.sampler, "requested", None)  # by CalibratedSampler
    if strategy is None and isinstance(attached, RequestedStrategy):
        return attached
    return RequestedStrategy.from_arguments(strategy)


def _with_side_information(
    study: Study, strategy: Strategy, settings: Settings, sign: float, columns: Columns | None
) -> Strategy:
    """The strategy with the stored known optimum and, for all ``columns``, the stored prior studies."""
    optimum = None if settings.optimum is None else settings.optimum.with_sign(sign)
    if optimum is None and (columns is None or not settings.sources):
        return strategy
    sources = () if columns is None else source_tasks(settings.sources, columns, partial(warn_once, study))
    info = SideInformation(sources, optimum)
    try:
        strategy.acquisition.require_several_models("transfer_from" if sources else "known_optimum")
    except InputError as error:
        what = " and ".join(name for name, given in (("prior studies", sources), ("a known optimum", optimum)) if given)
        if what:
            warn_once(study, f"The study {study.study_name!r} has {what}, which cannot be used: {error}")
        return strategy
    return strategy.with_side_information(info) if sources or optimum else strategy


def warn_if_refuted(study: Study, data: StudyData, optimum: Optimum | None = None) -> None:
    """Warn if an outcome is better than the known optimum: that of the study, or ``optimum``, for minimization."""
    known, valid = optimum or data.optimum, data.observations.valid()
    found = None if known is None else known.counterexample(valid.y, valid.noise_std)
    if known is not None and found is not None:
        text = f"In {unfiltered_study(study).study_name!r}: {known.refutation(found, valid.y, data.sign)}"
        warn_once(study, text, f"{known.value!r} {found!r}")


# Cache of this process
@dataclass(eq=False)
class _StudyCache:
    """Cached attributes of the finished trials of a study, which never change.

    A storage may reuse the ids of deleted trials, but the new ones have other start times.
    """

    entries: dict[Any, TrialEntry] = field(default_factory=dict)
    fits: dict[str, dict[str, Any]] = field(default_factory=dict)
    warned: set[str] = field(default_factory=set)
    sampler: "ref[Any] | None" = None
    """The last sampler that has stored its strategy and side information."""

    def entry(self, trial: FrozenTrial) -> TrialEntry:
        known = self.entries.get(_key(trial))
        return read_trial(trial) if known is None else known

    def fits_with(self, unfinished: Sequence[FrozenTrial]) -> dict[str, dict[str, Any]]:
        """The fits and those of unfinished trials; a copy, because another thread may parse meanwhile."""
        found = {part: dict(fits) for part, fits in list(self.fits.items())}
        for trial in unfinished:
            for part, fits in fits_in(trial).items():
                found.setdefault(part, {}).update(fits)
        return found


_CACHES: "WeakKeyDictionary[Any, dict[int, _StudyCache]]" = WeakKeyDictionary()


def _of_process(study: Study) -> _StudyCache:
    original = unfiltered_study(study)
    return _CACHES.setdefault(backend_of(original), {}).setdefault(study_id(original), _StudyCache())


def _update_cache(study: Study, trials: Sequence[FrozenTrial]) -> _StudyCache:
    known = _of_process(study)
    for trial in trials:
        if trial.state.is_finished() and _key(trial) not in known.entries:
            for part, fits in fits_in(trial).items():
                known.fits.setdefault(part, {}).update(fits)
            known.entries[_key(trial)] = read_trial(trial)
    return known


def _key(trial: FrozenTrial) -> Any:
    return trial_id(trial), trial.datetime_start, trial.datetime_complete


def is_prepared(sampler: Any, study: Study) -> bool:
    """Whether a sampler was the last one, in this process, to store its side information with a study.

    A storage may reuse the id of a deleted study, but a new study has no strategy yet.
    """
    last = _of_process(study).sampler
    return last is not None and last() is sampler and read_settings(unfiltered_study(study)).strategy is not None


def mark_prepared(sampler: Any, study: Study) -> None:
    _of_process(study).sampler = ref(sampler)


def warn_once(study: Study, text: str, key: str | None = None) -> None:
    """Warn once per study and ``key``, by default the text: studies are read again for every trial."""
    warned = _of_process(study).warned
    if (key or text) not in warned:
        warned.add(key or text)
        warn(text)


def _of(trial: FrozenTrial, columns: Columns) -> dict[str, Any]:
    return {name: value for name, value in trial.params.items() if name in columns.distributions}


def _observations(study: Study, cube: Cube, trials: Sequence[FrozenTrial], x: Array, sign: float) -> Observations:
    known = np.array([is_feasible(trial) for trial in trials], dtype=bool)
    values = [sign * t.values[0] if ok else np.nan for t, ok in zip(trials, known, strict=True)]
    noise = np.array([noise_of(trial, partial(warn_once, study)) for trial in trials], dtype=float)
    y = np.clip(np.array(values, dtype=float), -LARGEST, LARGEST)
    limits = constraint_matrix([trial.constraints for trial in trials])
    return Observations(cube, x, y, noise, known, np.empty((0, len(cube))), limits)
