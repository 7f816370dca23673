"""Passwords in storage URLs are printed nowhere."""

import os
import signal
import sqlite3
from contextlib import closing

import pytest

import calibo
from calibo import CaliboWarning, InputError, JournalError, StorageError
from calibo.cli import main, options
from calibo.errors import hide_passwords

SECRET = "s3cr:t/@zzz"
URL = f"postgresql://me:{SECRET}@db.example:5432/studies"


@pytest.fixture
def local(tmp_path, monkeypatch):
    """Any URL is opened as a file, so that commands succeed."""
    monkeypatch.chdir(tmp_path)
    real = options.open_storage
    monkeypatch.setattr(options, "open_storage", lambda url, *, create: real("s.db", create=create))
    (tmp_path / "p.toml").write_text('[parameters.x]\ntype = "float"\nlow = 0.0\nhigh = 1.0\n')
    (tmp_path / "f.py").write_text("def f(x):\n    return x\n")
    (tmp_path / "stop.py").write_text("import os, signal\ndef f(x):\n    os.kill(os.getpid(), signal.SIGINT)\n")


@pytest.mark.parametrize(
    "words",
    [
        ["run", "f.py:f", "--space", "p.toml", "--trials", "2"],
        ["run", "stop.py:f", "--space", "p.toml", "--trials", "2"],
        ["ask", "s", "--space", "p.toml"],
        ["show"],
        ["show", "nothing"],
        ["audit", "f"],
    ],
)
def test_no_command_prints_one(local, words, capsys):
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    main([*words, "--storage", URL])
    out, err = capsys.readouterr()
    assert "zzz" not in out + err
    with closing(sqlite3.connect("s.db")) if os.path.exists("s.db") else closing(sqlite3.connect(":memory:")) as file:
        assert "zzz" not in "".join(file.iterdump())


@pytest.mark.parametrize("words", [["show"], ["ask", "s", "--space", "p.toml"], ["run", "f.py:f", "--debug"]])
@pytest.mark.parametrize("url", [URL, f"nothing://me:{SECRET}@host/db", f"postgresql://me:{SECRET}@host:port/db"])
def test_no_failure_prints_one(tmp_path, monkeypatch, words, url, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.toml").write_text('[parameters.x]\ntype = "float"\nlow = 0.0\nhigh = 1.0\n')
    (tmp_path / "f.py").write_text("def f(x):\n    return x\n")
    assert main([*words, "--storage", url]) == 2
    out, err = capsys.readouterr()
    assert "calibo:" in err
    assert "zzz" not in out + err


@pytest.mark.parametrize("kind", [InputError, StorageError, JournalError, CaliboWarning])
def test_no_message_of_ours_has_one(kind):
    assert (
        str(kind(f"The storage {URL!r} is gone."))
        == "The storage 'postgresql://me:***@db.example:5432/studies' is gone."
    )


def test_python_errors_have_none():
    for url in (URL, f"nothing://me:{SECRET}@host/db"):
        with pytest.raises(calibo.CaliboError) as raised:
            calibo.minimize(lambda x: x, {"x": calibo.Float(0, 1)}, 1, storage=url, study_name="s")
        assert "zzz" not in str(raised.value)


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://admin@srv:zzz@host/db",  # a user name as in Azure
        "'postgresql://me:my zzz@host/db'",
        '--storage "mysql+pymysql://me:a\'zzz b@host/db" again',
        "postgresql://:zzz@host/db and postgresql://me:zzz@host/db",
        "postgresql//me:zzz@host/db",  # a slip
        "mssql+pyodbc:///?odbc_connect=DRIVER%3Dx%3BPWD%3Dzzz%3Bhost/db",
        "connect(host/db, user=me password=zzz)",
    ],
)
def test_unusual_urls_are_hidden_too(text):
    assert "zzz" not in hide_passwords(text)
    assert "host/db" in hide_passwords(text)


def test_the_frames_of_a_bug_have_none():
    def connect(x):
        raise ConnectionError(f"no server at {URL}")

    with pytest.warns(CaliboWarning, match="Trial"), pytest.raises(calibo.ObjectiveError) as raised:
        calibo.minimize(connect, {"x": calibo.Float(0, 1)}, 9, progress=False)
    assert "no server at" in raised.value.frames
    assert "zzz" not in raised.value.frames + str(raised.value)


def test_other_text_stays():
    for text in ("at 12:30 a@b.c", "sqlite:///study.db", "see x://y"):
        assert hide_passwords(text) == text
