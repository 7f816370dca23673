"""`calibo tell`: the value measured at a point."""

import argparse
import csv
from collections.abc import Mapping
from math import isfinite
from typing import Any

import optuna
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from calibo.adapters.history import NOISE, declaration
from calibo.adapters.storage import guarded
from calibo.cli.places import add_storage, study_of
from calibo.cli.terminal import number, printable, say, written
from calibo.cli.values import parsed, read_number, read_value
from calibo.errors import InputError
from calibo.space import Params, Space
from calibo.study import close, stored_space

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", metavar="STUDY")
    parser.add_argument("value", nargs="?", metavar="VALUE", help="the value measured")
    parser.add_argument("--trial", type=int, metavar="N", help="which trial; not needed where only one is open")
    parser.add_argument("--noise", metavar="STD", help="standard deviation of the value, if known")
    parser.add_argument("--failed", action="store_true", help="there is no value: the evaluation failed")
    parser.add_argument("--cancel", action="store_true", help="it was not evaluated: forget that it was asked")
    parser.add_argument("--at", action="append", default=[], metavar="NAME=VALUE", help="where it was really measured")
    parser.add_argument("--csv", metavar="FILE", help="results in columns named as the parameters, and value, noise")
    add_storage(parser)


def execute(options: argparse.Namespace) -> int:
    given = [options.value is not None, options.failed, options.cancel, options.csv is not None]
    if sum(given) != 1:
        raise InputError("One of VALUE, --failed, --cancel and --csv must be given. See `calibo tell --help`.")
    value = None if options.value is None else read_number("VALUE", options.value)
    noise = None if options.noise is None else read_number("--noise", options.noise)
    if noise is not None and noise < 0:
        raise InputError(f"--noise must be at least 0, but got {noise}.")
    study = study_of(options)
    with guarded(study._storage):
        if options.csv is not None:
            _import(study, options.csv)
        else:
            _tell(study, options, value, noise)
    return 0


def _tell(study: Study, options: argparse.Namespace, value: float | None, noise: float | None) -> None:
    at = dict(parsed(_space(study), entry) for entry in options.at)
    trial = None if at and options.trial is None else _open_trial(study, options.trial)
    if options.cancel:
        if trial is None:
            raise InputError("--cancel must name a trial with --trial, and takes no --at.")
        close(study, trial.number)
        say(f"trial {trial.number} is forgotten")
        return
    if at:
        params = {**({} if trial is None else trial.params), **at}
        study.add_trial(_finished(_space(study), params, value, noise))
        if trial is not None:
            close(study, trial.number)
        told, where = len(study.get_trials(deepcopy=False)) - 1, params
    else:
        assert trial is not None
        if noise is not None:
            study._storage.set_trial_user_attr(trial._trial_id, NOISE, noise)
        study.tell(trial.number, value, TrialState.FAIL if value is None else TrialState.COMPLETE)
        told, where = trial.number, trial.params
    outcome = "failed" if value is None else number(value)
    say(f"trial {told}: {outcome} at {written(where)}")


def _open_trial(study: Study, wanted: int | None) -> FrozenTrial:
    running = {t.number: t for t in study.get_trials(deepcopy=False) if t.state == TrialState.RUNNING}
    if wanted is None:
        if len(running) != 1:
            name = printable(study.study_name)
            raise InputError(
                f"--trial must be given where not just one is open, but open are {list(running)} in {name!r}."
            )
        return next(iter(running.values()))
    if wanted not in running:
        raise InputError(f"--trial must be one that is open, {list(running)}, but got {wanted}.")
    return running[wanted]


def _import(study: Study, path: str) -> None:
    """All rows, or none where one cannot be understood."""
    space = _space(study)
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            trials = [_row(space, row, line) for line, row in enumerate(reader, start=2)]
    except OSError as error:
        raise InputError(f"--csv must be a file, but got {path!r}: {error.strerror}.") from None
    except (csv.Error, UnicodeDecodeError) as error:
        raise InputError(f"--csv must be a CSV file, but {path!r} is not: {error}.") from None
    known = [trial for trial in trials if trial is not None]
    study.add_trials(known)
    say(f"{len(known)} trials added to {printable(study.study_name)}")


def _row(space: Space, row: Mapping[str | None, Any], line: int) -> FrozenTrial | None:
    """One line of the file; None for one that has no outcome yet."""
    if None in row or None in row.values():
        raise InputError(f"Line {line} must have as many cells as the first line.")
    extra = {"trial", "state", "value", "noise"} - set(space)
    unknown = [name for name in row if name not in space and name not in extra]
    if unknown or set(space) - set(row):
        raise InputError(f"The columns must be {[*space, 'value']}, and noise or state, but got {list(row)}.")
    try:
        state = row.get("state", "") if "state" in extra else ""
        if state in ("running", "waiting"):
            return None
        text = row.get("value", "").strip() if "value" in extra else ""
        value = read_number("value", text) if text and state != "fail" else None
        noise = read_number("noise", row["noise"]) if "noise" in extra and row.get("noise", "").strip() else None
        params = {name: read_value(space, name, row[name]) for name in space}
        return _finished(space, params, value, noise)
    except InputError as error:
        raise InputError(f"Line {line}: {error}") from None


def _finished(space: Space, params: Params, value: float | None, noise: float | None) -> FrozenTrial:
    plain = space.plain(params)
    failed = value is None or not isfinite(value)
    return optuna.create_trial(
        state=TrialState.FAIL if failed else TrialState.COMPLETE,
        value=None if failed else value,
        params=plain,
        distributions=declaration(space),
        user_attrs={} if noise is None else {NOISE: noise},
    )


def _space(study: Study) -> Space:
    space = stored_space(study)
    if space is None:
        raise InputError(
            f"The study {study.study_name!r} was begun without a declared space: tell its trials by number."
        )
    return space
