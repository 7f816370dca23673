"""Storages: how to open them, and error messages when that fails."""

import os
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import optuna
from optuna.exceptions import DuplicatedStudyError, StorageInternalError
from optuna.samplers import BaseSampler
from optuna.storages import BaseStorage, InMemoryStorage, JournalStorage, RDBStorage
from optuna.study import Study, StudyDirection

from calibo.errors import InputError, StorageError, hide_passwords
from calibo.optuna.internals import JournalFile, JournalFileError, file_of, tables, url_of
from calibo.optuna.trials import require_one_objective

if TYPE_CHECKING:  # importing SQLAlchemy takes a third of a second, which studies in memory do without
    from sqlalchemy.engine import URL

Storage = str | os.PathLike[str] | BaseStorage | None

Direction = Literal["minimize", "maximize"]

LOCK_PATIENCE = 20.0  # seconds to wait for a database that another process has locked
TRIES = 5  # to open a database that several processes create at the same time


def open_storage(storage: Storage, *, create: bool = True) -> BaseStorage:
    """The storage at a database URL, an SQLite file or a journal file (.log); in memory for None."""
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
        url = _parsed("sqlite://").set(database=text)  # in a URL string, a ? would end the name
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
    """The study of that name; with a ``direction`` it is created if there is none, otherwise it must exist."""
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
        except DuplicatedStudyError:  # another process has just created it
            study = optuna.load_study(study_name=name, storage=storage, sampler=sampler)
        require_one_objective(study)
        wanted = StudyDirection.MINIMIZE if direction == "minimize" else StudyDirection.MAXIMIZE
        if study.direction != wanted:
            raise InputError(
                f"`direction` must be {study.direction.name.lower()!r}, that of the study {name!r}, but got "
                f"{direction!r}. Choose another name to create a new study."
            )
        return study


def study_names(storage: BaseStorage) -> list[str]:
    """The names of all studies in a storage."""
    return [study.study_name for study in storage.get_all_studies()]


@contextmanager
def storage_errors(storage: str | BaseStorage) -> Iterator[None]:
    """Raise failures of the storage as StorageError, with a short message."""
    try:
        yield
    except Exception as error:
        failure = _failure(error)
        if failure is None:
            raise
        cause = _cause(failure)
        shown = storage if isinstance(storage, str) else storage_address(storage)
        failed = f"The storage {shown!r} could not be used: {cause}."
        path = None if isinstance(storage, str) else _path_of(storage)
        raise StorageError(f"{failed} {_advice(cause, path)}") from error


def storage_address(storage: BaseStorage) -> str:
    """The address of a storage, without its password."""
    if (url := url_of(storage)) is not None:
        return hide_passwords(url)
    return file_of(storage) or type(storage).__name__


def _failure(error: BaseException | None) -> BaseException | None:
    """The failure of the storage behind an error, which Optuna may have wrapped in another one."""
    while error is not None:
        if isinstance(error, (*_sql_errors(), StorageInternalError, sqlite3.Error)):
            return error
        error = error.__cause__ or error.__context__
    return None


def _sql_errors() -> tuple[type[Exception], ...]:
    """The errors of SQLAlchemy; none if no database was opened in this process."""
    loaded = sys.modules.get("sqlalchemy.exc")
    return () if loaded is None else (loaded.SQLAlchemyError,)


def _parsed(url: str) -> "URL":
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        return make_url(url)
    except (ArgumentError, ValueError):  # ValueError: a port that is not a number
        raise InputError(
            f"`storage` must be a database URL or a path, but got {url!r}. Write 'sqlite:///study.db', for example."
        ) from None


def _encodable(name: str) -> bool:
    try:
        return bool(name.encode() or True)
    except UnicodeEncodeError:
        return False


def _database(url: "URL", shown: str) -> BaseStorage:
    from sqlalchemy.exc import SQLAlchemyError

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
        except (RuntimeError, ImportError, ValueError) as error:  # tables of another version, or no driver
            raise StorageError(f"The storage {shown!r} could not be opened: {error}") from error
    raise AssertionError("unreachable")


def _journal(path: Path, create: bool) -> BaseStorage:
    if path.is_dir():
        raise InputError(f"`storage` must be a file, but {str(path)!r} is a directory.")
    if path.exists():
        with storage_errors(str(path)), open(path, "rb") as file:
            first = file.readline(1 << 16)
        if first and b'"op_code"' not in first:
            raise InputError(f"`storage` must be an Optuna journal, but {str(path)!r} is not. Choose another file.")
    elif not create:
        raise InputError(f"`storage` must exist, but there is no file {str(path)!r}.")
    elif not path.parent.is_dir():
        raise InputError(f"`storage` must be in an existing directory, but got {str(path)!r}. Create it first.")
    try:
        with storage_errors(str(path)):
            return JournalStorage(JournalFile(str(path)))
    except OSError as error:
        raise StorageError(f"The storage {str(path)!r} could not be opened: {error.strerror}.") from error


def _demand_study_file(file: Path, create: bool) -> None:
    """Raise if a file is not an Optuna database: it must not get our tables."""
    if file.is_dir():
        raise InputError(f"`storage` must be a file, but {str(file)!r} is a directory.")
    if not file.exists():
        if not create:
            raise InputError(f"`storage` must exist, but there is no file {str(file)!r}.")
        if not file.absolute().parent.is_dir():
            raise InputError(f"`storage` must be in an existing directory, but got {str(file)!r}. Create it first.")
        return
    try:
        address = f"{file.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(address, uri=True, timeout=LOCK_PATIENCE)) as connection:
            found = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            columns = {column[1] for column in connection.execute("PRAGMA table_info(studies)")}
    except sqlite3.OperationalError:  # locked or not readable: reported when it is opened
        return
    except sqlite3.DatabaseError as error:
        raise InputError(f"`storage` must be an SQLite database, but {str(file)!r} cannot be read: {error}.") from None
    # while another process creates the tables, only some exist
    foreign = bool(found - tables()) or ("studies" in found and "study_name" not in columns)
    if foreign or (not create and "studies" not in found):
        held = f"has the tables {sorted(found)}" if found else "is empty"
        raise InputError(f"`storage` must be an Optuna database, but {str(file)!r} {held}. Choose another file.")


def _cause(error: BaseException) -> str:
    """The message of the database or the operating system."""
    while error.__cause__ is not None and not isinstance(error, (*_sql_errors(), OSError, JournalFileError)):
        error = error.__cause__
    original = getattr(error, "orig", None) or error
    strerror = getattr(original, "strerror", None)
    return str(strerror or original).strip().rstrip(".")


def _path_of(storage: BaseStorage) -> Path | None:
    """The file of a storage, if it has one."""
    url = url_of(storage)
    if url is None:
        file = file_of(storage)
        return None if file is None else Path(file)
    parsed = _parsed(url)
    return Path(parsed.database) if parsed.get_backend_name() == "sqlite" and parsed.database else None


def _advice(cause: str, path: Path | None) -> str:
    if "no such table" in cause or (path is not None and not path.exists()):
        return "Its file was moved, replaced or deleted while it was used. Put it back and try again."
    if "malformed" in cause or "corrupted" in cause or "not a database" in cause:
        return "Its file is damaged. Restore it from a copy."
    return f"Everything stored before is safe. {_remedy(cause)}"


def _remedy(cause: str) -> str:
    if "locked" in cause:
        return "Wait for the other program that has locked it, or stop that, and try again."
    if "full" in cause or "space" in cause:
        return "Free some disk space and try again."
    if "readonly" in cause or "ermission" in cause:
        return "Make the file and its directory writable, or choose another one."
    return "Fix that and try again."
