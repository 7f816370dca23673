"""All private APIs of Optuna that calibo uses: the one place to look when Optuna changes.

Each has a test that fails by name if Optuna removes it. Public APIs are used directly.
"""

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.exceptions import StorageInternalError
from optuna.storages import BaseStorage
from optuna.storages.journal import JournalFileBackend
from optuna.study import Study
from optuna.trial import FrozenTrial, Trial

FIXED = "fixed_params"  # system attribute of a trial: values fixed in advance
RETRIES = "retry_history"  # system attribute of a retried trial: the numbers of those before it
CONSTRAINT = "constraints:"  # prefix of the system attributes of `trial.set_constraint`


def tables() -> set[str]:
    """The tables of an Optuna database."""
    from optuna.storages._rdb.models import BaseModel  # imports SQLAlchemy, which takes a third of a second

    return {*BaseModel.metadata.tables, "alembic_version"}


def storage_of(study: Study) -> BaseStorage:
    """The storage of a study."""
    return study._storage


def backend_of(study: Study) -> Any:
    """The storage itself, not the cache in front of a database that each study object has."""
    return getattr(study._storage, "_backend", study._storage)


def unfiltered_study(study: Study) -> Study:
    """The study itself: a pruner may pass a filtered one."""
    return getattr(study, "_study", study)


def study_id(study: Study) -> int:
    """The id of a study in its storage."""
    return study._study_id


def study_attributes(study: Study) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """User and system attributes, not copied."""
    storage, number = study._storage, study._study_id
    return storage.get_study_user_attrs(number), storage.get_study_system_attrs(number)


def set_study_attribute(study: Study, key: str, value: Any, *, user: bool = False) -> None:
    write = study._storage.set_study_user_attr if user else study._storage.set_study_system_attr
    write(study._study_id, key, value)


def trial_id(trial: FrozenTrial | Trial) -> int:
    """The id of a trial in its storage."""
    return trial._trial_id


def stored_trial(study: Study, trial: FrozenTrial | Trial) -> FrozenTrial:
    """The current state of a trial in the storage."""
    return study._storage.get_trial(trial._trial_id)


def set_trial_attribute(study: Study, trial: FrozenTrial | Trial, key: str, value: Any, *, user: bool = False) -> None:
    write = study._storage.set_trial_user_attr if user else study._storage.set_trial_system_attr
    write(trial._trial_id, key, value)


def new_trial(study: Study, template: FrozenTrial) -> Trial:
    """Create a trial from the template, bypassing the queue: another worker might take the fixed values from it."""
    return Trial(study, study._storage.create_new_trial(study._study_id, template_trial=template))


def add_trial(study: Study, template: FrozenTrial) -> int:
    """Add a finished trial; returns its number, which `study.add_trial` does not."""
    template._validate()
    storage = study._storage
    return int(storage.get_trial(storage.create_new_trial(study._study_id, template_trial=template)).number)


def suggest(trial: Trial, name: str, distribution: BaseDistribution) -> Any:
    """Suggest a parameter of any distribution."""
    return trial._suggest(name, distribution)


def in_loop(study: Study) -> bool:
    """Whether this thread is inside `study.optimize`."""
    return bool(getattr(getattr(study, "_thread_local", None), "in_optimize_loop", False))


def request_stop(study: Study) -> None:
    """Like `study.stop`, which would raise in a signal handler."""
    study._stop_flag = True


def contains(distribution: FloatDistribution, value: float) -> bool:
    """Whether a distribution contains a value."""
    return distribution._contains(value)


def url_of(storage: BaseStorage) -> str | None:
    """The URL of a database, also behind a cache."""
    url = getattr(getattr(storage, "_backend", storage), "url", None)
    return url if isinstance(url, str) else None


def file_of(storage: BaseStorage) -> str | None:
    """The file of a journal."""
    path = getattr(getattr(storage, "_backend", storage), "_file_path", None)
    return path if isinstance(path, str) else None


class JournalFileError(StorageInternalError):
    """A journal file could not be written or read."""


class JournalFile(JournalFileBackend):
    """A journal that writes whole lines or nothing, and appends after the last whole line."""

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        text = "".join(json.dumps(log, separators=(",", ":")) + "\n" for log in logs)
        self._lock.acquire()
        try:
            with open(self._file_path, "r+b") as file:
                size = _whole_lines(file)
                file.seek(size)
                file.truncate()
                try:
                    file.write(text.encode())
                    file.flush()
                    os.fsync(file.fileno())
                except OSError:
                    os.ftruncate(file.fileno(), size)
                    raise
        except OSError as error:
            raise JournalFileError(error.strerror) from error
        finally:
            self._lock.release()

    def read_logs(self, log_number_from: int) -> Iterator[dict[str, Any]]:  # type: ignore[override]
        number = log_number_from + 1  # of the line
        try:
            for log in super().read_logs(log_number_from):
                yield log
                number += 1
        except OSError as error:
            raise JournalFileError(error.strerror) from error
        except ValueError as error:
            raise JournalFileError(f"line {number} is corrupted") from error


def _whole_lines(file: Any) -> int:
    """The size of a file without a partial last line, left by a writer that was killed."""
    size = int(file.seek(0, os.SEEK_END))
    block = 1 << 16
    while size:
        start = max(size - block, 0)
        file.seek(start)
        end = file.read(size - start).rfind(b"\n")
        if end >= 0:
            return start + int(end) + 1
        size = start
    return 0
