"""Where studies are kept: opening them, and what to say when that does not work."""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Literal

import optuna
from optuna.exceptions import DuplicatedStudyError, StorageInternalError
from optuna.samplers import BaseSampler
from optuna.storages import BaseStorage, InMemoryStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from optuna.study import Study, StudyDirection
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError

from calibo.errors import InputError, StorageError

__all__ = ["Direction", "Storage", "guarded", "opened", "sqlite_file", "study_in", "study_names"]

Storage = str | os.PathLike[str] | BaseStorage | None
Direction = Literal["minimize", "maximize"]

LOCK_PATIENCE = 20.0  # seconds to wait for a database that another process holds
TRIES = 5  # to open a database that several processes create at the same moment


def opened(storage: Storage, *, create: bool = True) -> BaseStorage:
    """The storage: in memory for None, or of a database URL, of an SQLite file, or of a journal file (.log)."""
    if storage is None:
        return InMemoryStorage()
    if isinstance(storage, BaseStorage):
        return storage
    text = os.fspath(storage) if isinstance(storage, str | os.PathLike) else None
    if not isinstance(text, str) or not text:
        raise InputError(f"`storage` must be a URL, a path or an Optuna storage, but got {storage!r}.")
    if "://" not in text:
        if text.endswith(".log"):
            return _journal(Path(text), create)
        text = f"sqlite:///{text}"
    file = sqlite_file(text)
    if file is not None:
        _demand_study_file(file, create)
    with guarded(text):
        return _database(text)


def study_in(
    storage: BaseStorage,
    name: str | None,
    *,
    sampler: BaseSampler | None = None,
    direction: Direction | None = None,
) -> Study:
    """The study of that name; with a ``direction`` it is made if there is none, otherwise it must be there."""
    if name is not None and not isinstance(name, str):
        raise InputError(f"`study_name` must be a string, but got {name!r}.")
    if direction not in (None, "minimize", "maximize"):
        raise InputError(f"`direction` must be 'minimize' or 'maximize', but got {direction!r}.")
    with guarded(storage):
        if direction is None:
            if name not in (names := study_names(storage)):
                raise InputError(f"`study` must be one of {names}, but got {name!r}.")
            return optuna.load_study(study_name=name, storage=storage, sampler=sampler)
        try:
            study = optuna.create_study(
                study_name=name, storage=storage, sampler=sampler, direction=direction, load_if_exists=True
            )
        except DuplicatedStudyError:  # another process made it this moment
            study = optuna.load_study(study_name=name, storage=storage, sampler=sampler)
        wanted = StudyDirection.MINIMIZE if direction == "minimize" else StudyDirection.MAXIMIZE
        if study.directions != [wanted]:
            stored = " and ".join(known.name.lower() for known in study.directions)
            raise InputError(
                f"`direction` must be {stored!r}, as the study {name!r} was begun, but got {direction!r}. "
                "Name another study to begin anew."
            )
        return study


def study_names(storage: BaseStorage) -> list[str]:
    """All studies kept there."""
    return [study.study_name for study in storage.get_all_studies()]


def sqlite_file(url: str) -> Path | None:
    """The file of an SQLite URL; None for any other."""
    try:
        parsed = make_url(url)
    except SQLAlchemyError:
        raise InputError(
            f"`storage` must be a database URL or a path, but got {url!r}. Write 'sqlite:///study.db', for one."
        ) from None
    if parsed.get_backend_name() != "sqlite" or not parsed.database or parsed.database == ":memory:":
        return None
    return Path(parsed.database)


@contextmanager
def guarded(storage: str | BaseStorage) -> Iterator[None]:
    """Failures of the storage told in one sentence."""
    try:
        yield
    except Exception as error:
        failure = _failure(error, storage)
        if failure is None:
            raise
        cause = _cause(failure)
        failed = f"The storage {_shown(storage)!r} could not be used: {cause}."
        raise StorageError(f"{failed} What was stored before is safe. {_advice(cause)}") from error


def _failure(error: BaseException | None, storage: str | BaseStorage) -> BaseException | None:
    """The failure of the storage behind an error, which Optuna may have covered by another one."""
    failures: tuple[type[Exception], ...] = (StorageInternalError, SQLAlchemyError, sqlite3.Error)
    if isinstance(storage, str | JournalStorage):  # elsewhere an OSError comes from something else
        failures += (OSError,)
    while error is not None and not isinstance(error, failures):
        error = error.__cause__ or error.__context__
    return error


def _database(url: str) -> BaseStorage:
    lite = sqlite_file(url) is not None
    options = {"connect_args": {"timeout": LOCK_PATIENCE}} if lite else None
    for attempt in range(TRIES):
        try:
            return RDBStorage(url, engine_kwargs=options)
        except (SQLAlchemyError, StorageInternalError) as error:
            creating = "already exists" in _cause(error) or "UNIQUE" in _cause(error)
            if not creating or attempt == TRIES - 1:
                raise
            time.sleep(0.2 * (attempt + 1))
        except (RuntimeError, ImportError, ValueError) as error:  # another version's tables, or no driver for it
            raise StorageError(f"The storage {_shown(url)!r} could not be opened: {error}") from error
    raise AssertionError("unreachable")


def _journal(path: Path, create: bool) -> BaseStorage:
    if not create and not path.exists():
        raise InputError(f"`storage` must exist, but there is no file {str(path)!r}.")
    with guarded(str(path)):
        return JournalStorage(JournalFileBackend(str(path)))


def _demand_study_file(file: Path, create: bool) -> None:
    """A file that holds something else must not get tables of ours."""
    if not file.exists():
        if not create:
            raise InputError(f"`storage` must exist, but there is no file {str(file)!r}.")
        if not file.absolute().parent.is_dir():
            raise InputError(
                f"`storage` must be in a folder that exists, but got {str(file)!r}. Make the folder first."
            )
        return
    if file.is_dir():
        raise InputError(f"`storage` must be a file, but {str(file)!r} is a folder.")
    try:
        with closing(
            sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=LOCK_PATIENCE)
        ) as connection:
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):  # locked, or not readable: said when it is opened
            return
        raise InputError(
            f"`storage` must be an SQLite database, but {str(file)!r} is something else: {error}."
        ) from None
    if tables and not {"studies", "trials"} <= tables:
        raise InputError(
            f"`storage` must be a database of studies, but {str(file)!r} holds the tables {sorted(tables)}. "
            "Name another file."
        )


def _cause(error: BaseException) -> str:
    """What the database or the system said."""
    while error.__cause__ is not None and not isinstance(error, SQLAlchemyError | OSError):
        error = error.__cause__
    original = getattr(error, "orig", None) or error
    strerror = getattr(original, "strerror", None)
    return str(strerror or original).strip().rstrip(".")


def _advice(cause: str) -> str:
    if "locked" in cause:
        return "Another program holds it: wait for that one, or end it, and run this again."
    if "full" in cause or "space" in cause:
        return "Make room on the disk and run this again."
    if "readonly" in cause or "ermission" in cause:
        return "Make the file and its folder writable, or name another one."
    return "Mend that and run this again."


def _shown(storage: str | BaseStorage) -> str:
    """The address without its password."""
    url = storage if isinstance(storage, str) else getattr(storage, "url", None)
    if not isinstance(url, str):
        return type(storage).__name__
    try:
        return make_url(url).render_as_string(hide_password=True) if "://" in url else url
    except SQLAlchemyError:
        return url
