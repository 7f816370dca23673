"""What is known beforehand, stored with a study: so every worker, and whoever reads it, believes the same."""

from collections.abc import Mapping
from dataclasses import asdict

from optuna.study import Study

from calibo.adapters.history import Columns, History, sign_of
from calibo.adapters.transfer import sources_of
from calibo.errors import InputError, warn_once
from calibo.knowledge import knowing
from calibo.optimum import Optimum
from calibo.strategy import Strategy

__all__ = ["OPTIMUM", "informed", "optimum_of", "remember_optimum", "warn_of_wrong"]

OPTIMUM = "calibo:optimum"
"""User attribute of a study: its known optimum, in its direction."""


def remember_optimum(study: Study, optimum: Optimum) -> None:
    """Store what is known of the best value, in the direction of the study; the last word counts."""
    known = asdict(optimum)
    if study._storage.get_study_user_attrs(study._study_id).get(OPTIMUM) != known:
        study._storage.set_study_user_attr(study._study_id, OPTIMUM, known)


def optimum_of(study: Study) -> Optimum | None:
    """What is stored of the best value, to be minimised; what cannot be read was never said."""
    stored = study._storage.get_study_user_attrs(study._study_id).get(OPTIMUM)
    if not isinstance(stored, Mapping) or set(stored) != {"value", "bound", "tolerance"}:
        return None
    try:
        known = Optimum(**stored)
    except InputError:
        return None
    return known.turned(sign_of(study))


def informed(strategy: Strategy, study: Study, columns: Columns | None) -> Strategy:
    """The strategy, which also knows what is stored of the best value and, for all ``columns``, of earlier studies."""
    if hasattr(strategy.acquisition, "check"):  # it reads one model
        return strategy
    sources, optimum = () if columns is None else sources_of(study, columns), optimum_of(study)
    return knowing(strategy, sources, optimum) if sources or optimum is not None else strategy


def warn_of_wrong(study: Study, history: History, optimum: Optimum | None) -> None:
    """Where an outcome is better than the known optimum, which is minimised."""
    known = history.observations.valid()
    witness = None if optimum is None else optimum.witness(known.y, known.noise_std)
    if optimum is not None and witness is not None:
        told = optimum.complaint(witness, known.y, history.sign)
        begun = history.trials[0].datetime_start  # of two studies of one name, too
        warn_once(f"In {study.study_name!r}: {told}", f"{study.study_name} {begun} {optimum.value!r} {witness!r}")
