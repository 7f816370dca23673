"""One way to read a study: what it knows, in the terms of the engine, and the strategy that goes with it.

Everything that looks at a study (the sampler, forecasts, audits, stopping rules, diagnostics, commands) reads it here.
A process parses what is stored with a finished trial once.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from optuna.study import Study
from optuna.trial import FrozenTrial

from calibo.acquisition import demand_several
from calibo.adapters.columns import Columns, distributions
from calibo.adapters.internals import backend_of, study_id, trial_id, whole
from calibo.adapters.schema import (
    Settings,
    TrialEntry,
    fits_in,
    own_strategy,
    read_settings,
    read_trial,
    recorded,
    store_strategy,
)
from calibo.adapters.sources import sources_of
from calibo.adapters.trials import counted, demand_one_objective, feasible, finishing, noise_of, running, sign_of
from calibo.calibration import Record, stream
from calibo.cube import Cube
from calibo.errors import CaliboWarning, InputError
from calibo.knowledge import knowing
from calibo.observations import Observations, excesses
from calibo.optimizer import LARGEST
from calibo.optimum import Optimum
from calibo.parts import identity, identity_of
from calibo.presets import label, named
from calibo.strategy import FittedStrategy, Recalibrate, Strategy
from calibo.types import Array

__all__ = ["StudyData", "Wanted", "begin", "read_outcomes", "read_study", "say_once", "warn_of_wrong"]


@dataclass(frozen=True)
class Wanted:
    """A strategy as it was asked for; where nothing was said, the study's own."""

    strategy: Strategy | None = None
    recalibrate: Recalibrate | None = None
    initial: int | None = None

    @classmethod
    def given(
        cls, strategy: str | Strategy | None, recalibrate: Recalibrate | None = None, initial: int | None = None
    ) -> "Wanted":
        """From the arguments of a user, which are checked."""
        wanted = cls(None if strategy is None else named(strategy), recalibrate, initial)
        wanted.of(None)
        return wanted

    def of(self, own: Strategy | None) -> Strategy:
        """The strategy for a study whose own is this one, or that has none yet."""
        made = self.strategy or named(own)
        made = made if self.recalibrate is None else made.recalibrating(self.recalibrate)
        return made if self.initial is None else replace(made, initial=self.initial)


@dataclass(frozen=True, eq=False)
class StudyData:
    """The trials of a study that tell something about points of ``columns``, and what is made of them."""

    settings: Settings
    columns: Columns
    sign: float
    """1 where the study minimises, -1 where it maximises."""

    trials: tuple[FrozenTrial, ...]
    """Finished, in the order of finishing; those whose values lie outside the columns are left out."""

    observations: Observations
    """With the scores of the outcomes under the forecasts of the strategy's surrogate."""

    records: tuple[Record | None, ...]
    """What was forecast of each trial's value before it was known."""

    running: tuple[FrozenTrial, ...]
    """Being evaluated, by whoever it is."""

    fits: Mapping[str, Mapping[str, Any]]
    """Fits that were stored with the trials."""

    recipe: Strategy
    """As it was asked for, or the study's own."""

    strategy: Strategy
    """The same, which also knows what is stored of earlier studies and of the best value."""

    @property
    def is_own(self) -> bool:
        """Whether the recipe is the strategy that the study was begun with."""
        own = self.settings.strategy
        return own is not None and _identity(own) == identity(self.recipe)

    @property
    def optimum(self) -> Optimum | None:
        """What is known of the best value, to be minimised."""
        known = self.settings.optimum
        return None if known is None else known.turned(self.sign)

    def fit(self) -> FittedStrategy:
        """What the strategy believes after these trials."""
        if not self.observations.feasible.any():
            raise InputError("`study` must have a successful trial to learn from, but it has none yet.")
        rng = np.random.default_rng(len(self.trials))
        return self.strategy.fit(self.observations, rng=rng, previous=self.fits)


def read_study(
    study: Study,
    strategy: str | Strategy | Wanted | None = None,
    *,
    columns: Columns | None = None,
    having: str | None = None,
) -> StudyData:
    """Everything known of all parameters, or of ``columns``, of which ``having`` must be there.

    ``strategy`` is that of the study's sampler or the study's own if not given, else the default.
    """
    settings, everything = _stored(study)
    columns, trials, points = _rows(everything, settings, columns, having)
    wanted, sign = _wanted(study, strategy), sign_of(study)
    recipe = wanted.of(None if wanted.strategy is not None else own_strategy(settings, everything))
    known = None if settings.optimum is None else settings.optimum.turned(sign)
    informed = _informed(study, recipe, settings, known, columns if having is None else None)
    parsed = _parsed(study, everything)
    records = tuple(recorded(trial, parsed.entry(trial)) for trial in trials)
    observations = _observations(study, columns.cube, trials, points, sign)
    scores = stream(records, observations.y, observations.noise_std, informed.surrogate)
    observations = replace(observations, scores=scores)
    fits = parsed.fits_with([trial for trial in everything if not trial.state.is_finished()])
    being = running(everything)
    return StudyData(settings, columns, sign, trials, observations, records, being, fits, recipe, informed)


def read_outcomes(study: Study) -> tuple[Columns, tuple[FrozenTrial, ...], Observations]:
    """What a study has found, whatever its strategy: its parameters, its finished trials, and their outcomes."""
    settings, everything = _stored(study)
    columns, trials, points = _rows(everything, settings)
    return columns, trials, _observations(study, columns.cube, trials, points, sign_of(study))


def _stored(study: Study) -> tuple[Settings, list[FrozenTrial]]:
    demand_one_objective(study)
    try:
        return read_settings(study), study.get_trials(deepcopy=False)
    except KeyError:
        raise InputError(f"`study` must exist, but {whole(study).study_name!r} has been deleted.") from None


def _rows(
    everything: Sequence[FrozenTrial], settings: Settings, columns: Columns | None = None, having: str | None = None
) -> tuple[Columns, tuple[FrozenTrial, ...], Array]:
    """The columns, the finished trials that say something about them, and their points (n, d)."""
    columns = columns or Columns(distributions(everything), settings.warps)
    # the order of finishing only grows at its end, so that earlier fits stay valid
    finished = sorted(counted(everything), key=finishing)
    rows = [(trial, x) for trial in finished if (x := columns.encode(_of(trial, columns))) is not None]
    rows = [(trial, x) for trial, x in rows if not np.isnan(x).all()]  # a trial without parameters says nothing
    if having is not None:
        column = list(columns.parameters).index(having)
        rows = [(trial, x) for trial, x in rows if not np.isnan(x[column])]
    points = np.array([x for _, x in rows]).reshape(len(rows), len(columns.cube))
    return columns, tuple(trial for trial, _ in rows), points


def begin(study: Study, wanted: Wanted) -> None:
    """Store the strategy with which a study is begun; another one than the study's own is stored, too, and said."""
    settings, trials = _stored(study)
    if settings.strategy is None:
        own = _first(wanted, own_strategy(settings, trials))
        used, name, called = wanted.of(own), identity(own), label(own)
    else:  # which need not be one that can be built here
        used = wanted.of(None if wanted.strategy is not None else own_strategy(settings, trials))
        name, called = _identity(settings.strategy), str(settings.strategy.get("label"))
    if settings.optimum is None:
        used.demand_optimum()
    if settings.strategy is None:
        store_strategy(study, own, own=True)
    if identity(used) != name:
        if identity(used) not in settings.others:
            store_strategy(study, used, own=False)
        say_once(
            study,
            f"The study {study.study_name!r} was begun with the strategy {called!r}, and goes on with {label(used)!r}, "
            "as asked for. Without `strategy` it goes on with its own.",
        )


def _identity(stored: Mapping[str, Any]) -> str:
    """Of a stored strategy; empty where it is none."""
    try:
        return identity_of(stored["spec"])
    except InputError:
        return ""


def _first(wanted: Wanted, known: Strategy | None) -> Strategy:
    """The study's own strategy from now on; the first version knew it but for its design."""
    made = wanted.of(known)
    same = known is None or replace(made, initial=known.initial, design=known.design) == known
    return made if same or known is None else known


def _wanted(study: Study, strategy: str | Strategy | Wanted | None) -> Wanted:
    if isinstance(strategy, Wanted):
        return strategy
    attached = getattr(study.sampler, "wanted", None)  # that of our own sampler
    if strategy is None and isinstance(attached, Wanted):
        return attached
    return Wanted.given(strategy)


def _informed(
    study: Study, strategy: Strategy, settings: Settings, optimum: Optimum | None, columns: Columns | None
) -> Strategy:
    """The strategy, which also knows what is stored of the best value and, for all ``columns``, of earlier studies."""
    sources = () if columns is None else sources_of(settings.sources, columns, lambda text: say_once(study, text))
    if not sources and optimum is None:
        return strategy
    try:
        demand_several(strategy.acquisition, "transfer_from" if sources else "known_optimum")
    except InputError as error:
        what = " and ".join(
            name for name, there in (("earlier studies", sources), ("a known optimum", optimum)) if there
        )
        say_once(study, f"What the study {study.study_name!r} knows of {what} is not used: {error}")
        return strategy
    return knowing(strategy, sources, optimum)


def warn_of_wrong(study: Study, data: StudyData, optimum: Optimum | None = None) -> None:
    """Say where an outcome is better than the known optimum: that of the study, or another one, minimised."""
    known, valid = optimum or data.optimum, data.observations.valid()
    witness = None if known is None else known.witness(valid.y, valid.noise_std)
    if known is not None and witness is not None:
        told = f"In {whole(study).study_name!r}: {known.complaint(witness, valid.y, data.sign)}"
        say_once(study, told, f"{known.value!r} {witness!r}")


# What this process has parsed


@dataclass(eq=False)
class _Parsed:
    """What is stored with the finished trials of a study: these never change.

    A storage may give the numbers of what was deleted to something new, but that began later.
    """

    entries: dict[Any, TrialEntry] = field(default_factory=dict)
    fits: dict[str, dict[str, Any]] = field(default_factory=dict)
    said: set[str] = field(default_factory=set)
    """What a person was told."""

    def entry(self, trial: FrozenTrial) -> TrialEntry:
        known = self.entries.get(_key(trial))
        return read_trial(trial) if known is None else known

    def fits_with(self, unfinished: Sequence[FrozenTrial]) -> dict[str, dict[str, Any]]:
        """A copy, with those of trials that are not finished: another thread may parse meanwhile."""
        found = {part: dict(fits) for part, fits in list(self.fits.items())}
        for trial in unfinished:
            for part, fits in fits_in(trial).items():
                found.setdefault(part, {}).update(fits)
        return found


_PARSED: "WeakKeyDictionary[Any, dict[int, _Parsed]]" = WeakKeyDictionary()


def _of_process(study: Study) -> _Parsed:
    original = whole(study)
    return _PARSED.setdefault(backend_of(original), {}).setdefault(study_id(original), _Parsed())


def _parsed(study: Study, trials: Sequence[FrozenTrial]) -> _Parsed:
    known = _of_process(study)
    for trial in trials:
        if trial.state.is_finished() and _key(trial) not in known.entries:
            for part, fits in fits_in(trial).items():
                known.fits.setdefault(part, {}).update(fits)
            known.entries[_key(trial)] = read_trial(trial)
    return known


def _key(trial: FrozenTrial) -> Any:
    return trial_id(trial), trial.datetime_start, trial.datetime_complete


def say_once(study: Study, text: str, key: str | None = None) -> None:
    """A warning that is given once for a study: whoever reads it for every trial finds the same again and again.

    What says the same in other words has the same ``key``.
    """
    said = _of_process(study).said
    if (key or text) not in said:
        said.add(key or text)
        warnings.warn(text, CaliboWarning, stacklevel=3)


def _of(trial: FrozenTrial, columns: Columns) -> dict[str, Any]:
    return {name: value for name, value in trial.params.items() if name in columns.distributions}


def _observations(study: Study, cube: Cube, trials: Sequence[FrozenTrial], x: Array, sign: float) -> Observations:
    known = np.array([feasible(trial) for trial in trials], dtype=bool)
    values = [sign * t.values[0] if ok else np.nan for t, ok in zip(trials, known, strict=True)]
    noise = np.array([noise_of(trial, lambda text: say_once(study, text)) for trial in trials], dtype=float)
    y = np.clip(np.array(values, dtype=float), -LARGEST, LARGEST)
    limits = excesses([trial.constraints for trial in trials])
    return Observations(cube, x, y, noise, known, np.empty((0, len(cube))), limits)
