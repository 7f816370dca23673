"""Storages that are not as they should be, and processes that end in the middle."""

import multiprocessing
import os
import random
import resource
import signal
import sqlite3
import tempfile
import time
import traceback
from contextlib import closing
from pathlib import Path

import numpy as np
import optuna
import pytest

from calibo import CalibratedSampler, Float, InputError, StorageError, optimize
from calibo.optuna import storages as storage_module
from calibo.optuna.storages import load_or_create_study, open_storage, storage_address, study_names
from calibo.optuna.trials import abandoned_trials, is_alive, this_worker
from calibo.study import fail_interrupted

SPACE = {"x": Float(0, 1), "y": Float(0, 1)}
fork = multiprocessing.get_context("fork")  # a fresh interpreter would spend its life on imports


@pytest.fixture(autouse=True)
def quiet():
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def waves(x, y):
    return float(np.sin(13 * x) * np.sin(27 * x) + np.cos(11 * y + x))


def slow_waves(x, y):
    time.sleep(0.01)
    return waves(x, y)


def work(path, trials):
    try:
        optimize(slow_waves, SPACE, trials, seed=0, storage=path, study_name="s", progress=False)
    except BaseException:
        Path(f"{path}.{os.getpid()}.error").write_text(traceback.format_exc())
        raise


def errors(path):
    return [file.read_text() for file in Path(path).parent.glob("*.error")]


def finished(path):
    study = optuna.load_study(study_name="s", storage=open_storage(path, create=False))
    return {t.number: (t.value, t.params) for t in study.trials if t.state.name == "COMPLETE"}


@pytest.mark.slow
def test_fifty_kills_lose_no_finished_trial(tmp_path):
    path = f"{tmp_path}/s.db"
    work(path, 2)
    start = time.perf_counter()
    child = fork.Process(target=work, args=(path, 7))
    child.start()
    child.join()
    longest = max(0.5, time.perf_counter() - start)  # in which a worker of this machine evaluates five trials
    known, rng = finished(path), random.Random(0)
    for kill in range(400):  # on a busy machine workers finish little between the kills
        if kill >= 50 and len(known) > 20:
            break
        child = fork.Process(target=work, args=(path, 10_000))
        child.start()
        time.sleep(rng.uniform(0.05, longest))
        os.kill(child.pid, signal.SIGKILL)
        child.join()
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        now = finished(path)
        assert {number: now.get(number) for number in known} == known
        known = now
    assert len(known) > 20
    work(path, len(known) + 3)
    study = optuna.load_study(study_name="s", storage=open_storage(path))
    assert not abandoned_trials(study.trials), "what the killed left open is closed when the study is resumed"
    assert len(finished(path)) == len(known) + 3
    assert len({tuple(params.values()) for _, params in finished(path).values()}) == len(known) + 3


@pytest.mark.parametrize("name", ["s.db", "s.log"])
def test_four_processes_share_a_study(tmp_path, name):
    path = f"{tmp_path}/{name}"
    workers = [fork.Process(target=work, args=(path, 100)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert errors(path) == []
    assert [worker.exitcode for worker in workers] == [0] * 4
    done = finished(path)
    assert 100 <= len(done) <= 103
    order = np.array(list(done))
    points = np.array([list(params.values()) for _, params in done.values()])
    gaps = np.abs(points[:, None] - points).max(axis=2) + np.eye(len(points))
    assert gaps.min() > 1e-9
    at_once = gaps[np.abs(np.subtract.outer(order, order)) == 1]
    assert (at_once > 1e-4).mean() > 0.8, "neighbors in time may come close only where the search has converged"


def test_a_full_disk_is_told_and_what_was_measured_is_in_the_message(tmp_path):
    path, measured = f"{tmp_path}/s.db", []
    work(path, 5)

    def fills_the_disk(x, y):
        if len(measured) == 3:
            _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize(path), hard))
        measured.append(waves(x, y))
        return measured[-1]

    def child(pipe):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        try:
            for _ in range(200):  # pages that are free are filled first
                optimize(fills_the_disk, SPACE, 10_000, storage=path, study_name="s", progress=False)
        except StorageError as error:
            pipe.send((str(error), measured))

    ours, theirs = fork.Pipe()
    process = fork.Process(target=child, args=(theirs,))
    process.start()
    assert ours.poll(120)
    message, values = ours.recv()
    process.join()
    assert "could not be used" in message
    assert "Everything stored before is safe" in message
    stored = {value for value, _ in finished(path).values()}
    missing = [value for value in values if value not in stored]
    assert all(repr(value) in message for value in missing), "a value measured is stored or told"
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    work(path, len(stored) + 2)  # with room again, the study goes on


def test_a_locked_storage_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(storage_module, "LOCK_PATIENCE", 0.2)
    path = f"{tmp_path}/s.db"
    work(path, 3)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StorageError, match=r"locked.*Wait for the other program"):
            work(path, 5)
        other.execute("ROLLBACK")
    work(path, 5)
    assert len(finished(path)) == 5


def test_a_lock_taken_during_the_run_costs_no_measured_value(tmp_path, monkeypatch):
    monkeypatch.setattr(storage_module, "LOCK_PATIENCE", 0.2)
    path = f"{tmp_path}/s.db"
    locks = []

    def locking(x, y):
        if not locks:
            locks.append(sqlite3.connect(path, isolation_level=None))
            locks[0].execute("BEGIN EXCLUSIVE")
        return 7.25

    with pytest.raises(StorageError, match=r"returned 7.25 at \{.*not stored"):
        optimize(locking, SPACE, 5, storage=path, study_name="s", progress=False)
    locks[0].close()


def test_a_read_only_file_is_told():
    def child(pipe):
        if os.geteuid() == 0:  # who may write everything
            os.setuid(65534)
        try:
            optimize(waves, SPACE, 9, storage=path, study_name="s", progress=False)
        except StorageError as error:
            pipe.send(str(error))

    with tempfile.TemporaryDirectory() as folder:  # pytest's own are closed to other users
        path = f"{folder}/s.db"
        work(path, 3)
        os.chmod(path, 0o444)
        os.chmod(folder, 0o555)
        ours, theirs = fork.Pipe()
        process = fork.Process(target=child, args=(theirs,))
        process.start()
        assert ours.poll(60)
        message = ours.recv()
        process.join()
        os.chmod(folder, 0o755)
    assert "readonly" in message
    assert "writable" in message


def test_a_file_that_is_something_else_is_left_alone(tmp_path):
    text = tmp_path / "notes.db"
    text.write_text("my notes, not a database, and long enough to look at" * 50)
    with pytest.raises(InputError, match="not a database"):
        open_storage(text)
    assert text.read_text().startswith("my notes")
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE customers (name TEXT)")
        connection.commit()
    before = other.read_bytes()
    with pytest.raises(InputError, match="'customers'"):
        open_storage(other)
    assert other.read_bytes() == before


@pytest.mark.parametrize(
    ("storage", "words"),
    [
        ("", "`storage` must be"),
        (7, "`storage` must be"),
        ("no://such/place", "could not be opened|could not be used"),
        ("sqlite:///no/such/folder/s.db", "existing directory"),
        ("/", "is a directory"),
    ],
)
def test_bad_addresses_are_named(storage, words):
    with pytest.raises((InputError, StorageError), match=words):
        open_storage(storage)


@pytest.mark.parametrize("address", ["me:secret@nowhere/db", "nowhere/db?user=me&password=secret&ssl=1"])
def test_passwords_are_not_shown(address):
    with pytest.raises(StorageError, match=r"nowhere/db") as caught:
        open_storage(f"mysql+nothing://{address}")
    assert "secret" not in str(caught.value)
    assert "***" in str(caught.value)


def test_a_storage_that_must_exist_is_not_made(tmp_path):
    for name in ("s.db", "s.log"):
        with pytest.raises(InputError, match="no file"):
            open_storage(tmp_path / name, create=False)
    assert list(tmp_path.iterdir()) == []


def test_a_study_keeps_its_direction(tmp_path):
    store = open_storage(tmp_path / "s.db")
    load_or_create_study(store, "s", direction="maximize")
    with pytest.raises(InputError, match="must be 'maximize'"):
        load_or_create_study(store, "s", direction="minimize")
    with pytest.raises(InputError, match="one of \\['s'\\]"):
        load_or_create_study(store, "t")
    assert study_names(store) == ["s"]


def test_a_process_knows_itself_and_the_dead():
    assert is_alive(this_worker()) is True
    host, process, _ = this_worker().rsplit("|", 2)
    assert is_alive(f"{host}|{process}|1") is False, "the number is the same, the process is not"
    assert is_alive("another machine|1|1") is None
    assert is_alive("nonsense") is None
    ours, theirs = fork.Pipe()
    child = fork.Process(target=lambda: (theirs.send(this_worker()), time.sleep(60)))
    child.start()
    name = ours.recv()
    assert is_alive(name) is True
    os.kill(child.pid, signal.SIGKILL)
    time.sleep(0.1)
    assert is_alive(name) is False, "a zombie works no more"
    child.join()
    assert is_alive(name) is False


def test_processes_that_begin_a_study_at_the_same_moment_get_the_same_one(tmp_path):
    def begin(barrier):
        barrier.wait()
        load_or_create_study(open_storage(tmp_path / "s.db"), "s", direction="minimize", sampler=CalibratedSampler())

    barrier = fork.Barrier(4)
    workers = [fork.Process(target=begin, args=(barrier,)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0] * 4
    assert study_names(open_storage(tmp_path / "s.db")) == ["s"]


def test_a_journal_cut_in_the_middle_of_a_line_goes_on_behind_the_last_whole_one(tmp_path):
    path = tmp_path / "s.log"
    work(path, 3)
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    work(path, 5)
    assert len(finished(path)) == 5
    assert all(line.startswith(b"{") and line.endswith(b"}") for line in path.read_bytes().splitlines())


def test_a_journal_on_a_full_disk_loses_nothing(tmp_path):
    path = tmp_path / "s.log"
    work(path, 3)

    def child(pipe):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 4000, hard))
        try:
            optimize(waves, SPACE, 10_000, storage=path, study_name="s", progress=False)
        except StorageError as error:
            pipe.send(str(error))

    ours, theirs = fork.Pipe()
    process = fork.Process(target=child, args=(theirs,))
    process.start()
    assert ours.poll(60)
    assert "could not be used" in ours.recv()
    process.join()
    before = finished(path)
    work(path, len(before) + 2)
    assert len(finished(path)) == len(before) + 2


def test_a_journal_that_is_something_else_is_left_alone(tmp_path):
    path = tmp_path / "app.log"
    path.write_text("my application started\n")
    with pytest.raises(InputError, match="must be an Optuna journal"):
        open_storage(path)
    assert path.read_text() == "my application started\n"


def test_a_damaged_journal_is_told(tmp_path):
    path = tmp_path / "s.log"
    work(path, 3)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], b"{broken}\n", *lines[3:]]))
    with pytest.raises(StorageError, match="corrupted"):
        work(path, 5)


def test_databases_of_others_get_no_tables(tmp_path):
    path = tmp_path / "clinic.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE studies (patient TEXT)")
        connection.execute("CREATE TABLE trials (drug TEXT)")
        connection.commit()
    before = path.read_bytes()
    for create in (True, False):
        with pytest.raises(InputError, match="'studies', 'trials'"):
            open_storage(path, create=create)
    assert path.read_bytes() == before
    empty = tmp_path / "empty.db"
    empty.touch()
    with pytest.raises(InputError, match="is empty"):
        open_storage(empty, create=False)


def test_a_path_is_a_path_whatever_its_characters(tmp_path):
    path = tmp_path / "what?#%41 is.db"
    work(path, 2)
    assert path.exists()
    assert len(finished(path)) == 2


def test_the_working_folder_may_change(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "below").mkdir()

    def moves(x, y):
        os.chdir(tmp_path / "below")
        return x

    optimize(moves, SPACE, 3, storage="s.log", study_name="s", progress=False)
    assert len(finished(tmp_path / "s.log")) == 3


def test_errors_name_the_file(tmp_path):
    store = open_storage(tmp_path / "s.log")
    assert storage_address(store) == str(tmp_path / "s.log")
    study = load_or_create_study(open_storage(tmp_path / "s.db"), "s", direction="minimize")
    assert str(tmp_path / "s.db") in storage_address(study._storage)


def test_closing_a_trial_that_somebody_else_closed_is_fine():
    study = optuna.create_study()
    study.tell(study.ask(), 1.0)
    fail_interrupted(study, 0)
    assert study.trials[0].value == 1.0


@pytest.mark.parametrize("name", ["s.db", "s.log"])
def test_a_file_that_is_gone_is_not_called_safe(tmp_path, name):
    path, calls = tmp_path / name, []

    def f(x):
        calls.append(x)
        if len(calls) == 3:
            path.unlink()
        return x

    with pytest.raises(StorageError) as raised:
        optimize(f, {"x": Float(0, 1)}, 6, storage=path, progress=False)
    assert "Its file was moved, replaced or deleted" in str(raised.value)
    assert "is safe" not in str(raised.value)
    assert f"returned {calls[-1]!r}" in str(raised.value), "the measured value is not lost"


def test_a_damaged_line_of_a_journal_is_named(tmp_path):
    path = tmp_path / "s.log"
    arguments = {"storage": path, "study_name": "s", "progress": False}
    optimize(lambda x: x, {"x": Float(0, 1)}, 3, **arguments)
    lines = path.read_text().splitlines(keepends=True)
    lines[6] = "{damaged\n"
    path.write_text("".join(lines))
    with pytest.raises(StorageError, match=r"line 7 is corrupted\. Its file is damaged"):
        optimize(lambda x: x, {"x": Float(0, 1)}, 4, **arguments)
