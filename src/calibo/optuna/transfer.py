"""Transfer: reads prior studies, and stores them with the study that learns from them.

All workers and resumed runs then use the same data, even if the prior studies change or are deleted.
"""

import json
import os
from collections.abc import Sequence

import numpy as np
import optuna
from optuna.study import Study
from optuna.trial import FrozenTrial

from calibo.errors import InputError, warn
from calibo.models.transfer import FEWEST
from calibo.observations import spread
from calibo.optuna.prior_studies import PriorStudy
from calibo.optuna.reader import read_outcomes, warn_once
from calibo.optuna.schema import read_settings, store_source
from calibo.optuna.storages import open_storage, storage_errors, study_names

TransferSource = Study | str | os.PathLike[str]

MOST_OUTCOMES = 200  # of all prior studies together: a Gaussian process of more is too slow
MOST_BYTES = 60_000  # of one prior study: a text column of MySQL holds 65,535
MOST_STUDIES = 8  # every pair of studies has its own correlation


def read_prior_studies(transfer_from: Sequence[TransferSource] | TransferSource) -> tuple[PriorStudy, ...]:
    """The given studies, and all studies in the given storages, in their current state."""
    if not isinstance(transfer_from, Study | str | os.PathLike | Sequence):
        raise InputError(f"`transfer_from` must be a list of studies or storages, but got {transfer_from!r}.")
    given = [transfer_from] if isinstance(transfer_from, Study | str | os.PathLike) else list(transfer_from)
    found: list[PriorStudy] = []
    for item in given:
        if isinstance(item, Study):
            found.append(_prior_study(item))
            continue
        if not isinstance(item, str | os.PathLike):
            raise InputError(f"`transfer_from` must contain studies or storages, but got {item!r}.")
        try:
            store = open_storage(item, create=False)
        except InputError as error:
            raise InputError(str(error).replace("`storage`", "`transfer_from`", 1)) from None
        with storage_errors(store):
            names = study_names(store)
            found += [_prior_study(optuna.load_study(study_name=name, storage=store)) for name in names]
        if not names:
            raise InputError(f"`transfer_from` must contain studies, but there are none in {os.fspath(item)!r}.")
    return tuple(found)


def _prior_study(study: Study) -> PriorStudy:
    _, trials, known = read_outcomes(study)
    rows = [i for i in np.flatnonzero(known.feasible).tolist() if _is_plain(trials[i])]
    if len(rows) < known.feasible.sum():
        warn(f"Trials of {study.study_name!r} with categories that are not numbers, strings or None are ignored.")
    return PriorStudy(
        study.study_name,
        _begun(study),
        tuple(trials[i].params for i in rows),
        tuple(known.y[rows].tolist()),
        tuple(None if np.isnan(sigma) else sigma for sigma in known.noise_std[rows].tolist()),
    )


def _is_plain(trial: FrozenTrial) -> bool:
    """Whether its parameters survive a round trip through a storage."""
    return all(value is None or isinstance(value, bool | int | float | str) for value in trial.params.values())


def _begun(study: Study) -> str | None:
    first = next(iter(study.get_trials(deepcopy=False)), None)
    return None if first is None or first.datetime_start is None else first.datetime_start.isoformat()


def store_prior_studies(study: Study, studies: Sequence[PriorStudy]) -> None:
    """Store prior studies with a study, except those that it already has."""
    stored = [
        entry for value in read_settings(study).sources.values() if (entry := PriorStudy.from_json(value)) is not None
    ]
    known = {(other.name, other.begun) for other in stored}
    others = [other for other in studies if (other.name, other.begun) not in known and not _is_same(other, study)]
    others = [other for other in others if _is_informative(other, study)]
    capacity = MOST_OUTCOMES - sum(len(other.values) for other in stored)
    taken = others[: max(min(MOST_STUDIES - len(stored), capacity // FEWEST), 0)]
    if len(taken) < len(others):
        ignored = [other.name for other in others[len(taken) :]]
        most = f"{MOST_STUDIES} prior studies and {MOST_OUTCOMES} outcomes"
        warn_once(study, f"The prior studies {ignored} are ignored: a study learns from at most {most}.")
    for number, other in enumerate(taken, start=len(stored)):
        kept = _subsample_to_size(other.subsample(capacity // len(taken)))
        if len(kept.values) < len(other.values):
            warn_once(study, f"Of the {len(other.values)} outcomes of {other.name!r}, {len(kept.values)} are used.")
        store_source(study, kept.key, kept.to_json(), number)


def _subsample_to_size(found: PriorStudy) -> PriorStudy:
    """Reduce the outcomes to what every database can hold."""
    while (size := len(json.dumps(found.to_json()))) > MOST_BYTES:
        found = found.subsample(max(int(len(found.values) * MOST_BYTES / size) - 1, FEWEST))
    return found


def _is_same(other: PriorStudy, study: Study) -> bool:
    """Whether it is this study; either may have been read before its first trial."""
    begun = _begun(study)
    return other.name == study.study_name and (begun == other.begun or None in (begun, other.begun))


def _is_informative(other: PriorStudy, study: Study) -> bool:
    if len(other.values) >= FEWEST and spread(np.array(other.values)) > 0.0:
        return True
    warn_once(
        study,
        f"The prior study {other.name!r} is ignored: it has {len(other.values)} outcomes, too few or all equal.",
    )
    return False
