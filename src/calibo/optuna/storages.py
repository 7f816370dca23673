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
from optuna.study import Study, StudyDirection
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import SQLAlchemyError

from calibo.errors import InputError, StorageError
from calibo.optuna.internals import TABLES, JournalFile, JournalFileError, file_of, url_of
from calibo.optuna.trials import require_one_objective

Storage = str | os.PathLike[str] | BaseStorage | None

Direction = Literal["minimize", "maximize"]

LOCK_PATIENCE = 20.0  # seconds to wait for a database that another process holds
TRIES = 5  # to open a database that several processes create at the same moment


def open_storage(storage: Storage, *, create: bool = True) -> BaseStorage:
    """The storage: in memory for None, or of a database URL, of an SQLite file, or of a journal file (.log)."""
    if storage is None:
        return InMemoryStorage()
    if isinstance(storage, BaseStorage):
        return storage
    text = os.fspath(storage) if isinstance(storage, str | os.PathLike) else None
    if not isinstance(text, str) or not text:
        raise InputError(f"`storage` must be a URL, a path or an Optuna storage, but got {storage!r}.")
    if "://" in text:
        url = _parsed(text)
    elif text.endswith(".log"):
        return _journal(Path(text).absolute(), create)
    else:
        url = URL.create("sqlite", database=text)  # pasted into a URL, a ? in it would end the name
    shown = url.render_as_string(hide_password=True)
    if url.get_backend_name() == "sqlite" and url.database and url.database != ":memory:":
        _demand_study_file(Path(url.database), create)
    with storage_errors(shown):
        return _database(url, shown)


def load_or_create_study(
    storage: BaseStorage,
    name: str | None,
    *,
    sampler: BaseSampler | None = None,
    direction: Direction | None = None,
) -> Study:
    """The study of that name; with a ``direction`` it is made if there is none, otherwise it must be there."""
    if name is not None and (not isinstance(name, str) or not _encodable(name)):
        raise InputError(f"`study_name` must be a string of Unicode characters, but got {name!r}.")
    if direction not in (None, "minimize", "maximize"):
        raise InputError(f"`direction` must be 'minimize' or 'maximize', but got {direction!r}.")
    with storage_errors(storage):
        if direction is None:
            if name not in (names := study_names(storage)):
                raise InputError(f"`study` must be one of {names}, but got {name!r}.")
            study = optuna.load_study(study_name=name, storage=storage, sampler=sampler)
            require_one_objective(study)
            return study
        try:
            study = optuna.create_study(
                study_name=name, storage=storage, sampler=sampler, direction=direction, load_if_exists=True
            )
        except DuplicatedStudyError:  # another process made it this moment
            study = optuna.load_study(study_name=name, storage=storage, sampler=sampler)
        require_one_objective(study)
        wanted = StudyDirection.MINIMIZE if direction == "minimize" else StudyDirection.MAXIMIZE
        if study.direction != wanted:
            raise InputError(
                f"`direction` must be {study.direction.name.lower()!r}, as the study {name!r} was begun, but got "
                f"{direction!r}. Name another study to begin anew."
            )
        return study


def study_names(storage: BaseStorage) -> list[str]:
    """All studies kept there."""
    return [study.study_name for study in storage.get_all_studies()]


@contextmanager
def storage_errors(storage: str | BaseStorage) -> Iterator[None]:
    """Failures of the storage told in one sentence."""
    try:
        yield
    except Exception as error:
        failure = _failure(error)
        if failure is None:
            raise
        cause = _cause(failure)
        shown = storage if isinstance(storage, str) else storage_address(storage)
        failed = f"The storage {shown!r} could not be used: {cause}."
        raise StorageError(f"{failed} What was stored before is safe. {_advice(cause)}") from error


def storage_address(storage: BaseStorage) -> str:
    """Where a storage is, without its password."""
    if (url := url_of(storage)) is not None:
        return _parsed(url).render_as_string(hide_password=True)
    return file_of(storage) or type(storage).__name__


def _failure(error: BaseException | None) -> BaseException | None:
    """The failure of the storage behind an error, which Optuna may have covered by another one."""
    while error is not None:
        if isinstance(error, StorageInternalError | SQLAlchemyError | sqlite3.Error):
            return error
        error = error.__cause__ or error.__context__
    return None


def _parsed(url: str) -> URL:
    try:
        return make_url(url)
    except SQLAlchemyError:
        raise InputError(
            f"`storage` must be a database URL or a path, but got {url!r}. Write 'sqlite:///study.db', for one."
        ) from None


def _encodable(name: str) -> bool:
    try:
        return bool(name.encode() or True)
    except UnicodeEncodeError:
        return False


def _database(url: URL, shown: str) -> BaseStorage:
    lite = url.get_backend_name() == "sqlite"
    options = {"connect_args": {"timeout": LOCK_PATIENCE}} if lite else None
    for attempt in range(TRIES):
        try:
            return RDBStorage(url.render_as_string(hide_password=False), engine_kwargs=options)
        except (SQLAlchemyError, StorageInternalError) as error:
            creating = "already exists" in _cause(error) or "UNIQUE" in _cause(error)
            if not creating or attempt == TRIES - 1:
                raise
            time.sleep(0.2 * (attempt + 1))
        except (RuntimeError, ImportError, ValueError) as error:  # another version's tables, or no driver for it
            raise StorageError(f"The storage {shown!r} could not be opened: {error}") from error
    raise AssertionError("unreachable")


def _journal(path: Path, create: bool) -> BaseStorage:
    if path.is_dir():
        raise InputError(f"`storage` must be a file, but {str(path)!r} is a folder.")
    if path.exists():
        with storage_errors(str(path)), open(path, "rb") as file:
            first = file.readline(1 << 16)
        if first and b'"op_code"' not in first:
            raise InputError(
                f"`storage` must be a journal of studies, but {str(path)!r} is something else. Name another."
            )
    elif not create:
        raise InputError(f"`storage` must exist, but there is no file {str(path)!r}.")
    elif not path.parent.is_dir():
        raise InputError(f"`storage` must be in a folder that exists, but got {str(path)!r}. Make the folder first.")
    try:
        with storage_errors(str(path)):
            return JournalStorage(JournalFile(str(path)))
    except OSError as error:
        raise StorageError(f"The storage {str(path)!r} could not be opened: {error.strerror}.") from error


def _demand_study_file(file: Path, create: bool) -> None:
    """A file that holds something else must not get tables of ours."""
    if file.is_dir():
        raise InputError(f"`storage` must be a file, but {str(file)!r} is a folder.")
    if not file.exists():
        if not create:
            raise InputError(f"`storage` must exist, but there is no file {str(file)!r}.")
        if not file.absolute().parent.is_dir():
            raise InputError(
                f"`storage` must be in a folder that exists, but got {str(file)!r}. Make the folder first."
            )
        return
    try:
        address = f"{file.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(address, uri=True, timeout=LOCK_PATIENCE)) as connection:
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            columns = {column[1] for column in connection.execute("PRAGMA table_info(studies)")}
    except sqlite3.OperationalError:  # locked, or not readable: said when it is opened
        return
    except sqlite3.DatabaseError as error:
        raise InputError(f"`storage` must be an SQLite database, but {str(file)!r} cannot be read: {error}.") from None
    # while another process makes the tables, there are some of them
    foreign = bool(tables - TABLES) or ("studies" in tables and "study_name" not in columns)
    if foreign or (not create and "studies" not in tables):
        held = f"holds the tables {sorted(tables)}" if tables else "is empty"
        raise InputError(f"`storage` must be a database of studies, but {str(file)!r} {held}. Name another file.")


def _cause(error: BaseException) -> str:
    """What the database or the system said."""
    while error.__cause__ is not None and not isinstance(error, SQLAlchemyError | OSError | JournalFileError):
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
