"""Trials as CSV: one line each, with a column per parameter, and value, noise, state and constraints."""

import csv
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import optuna
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from calibo.cli.parsing import read_noise, read_number, read_value, text_of
from calibo.errors import InputError, warn
from calibo.optuna.columns import to_distributions
from calibo.optuna.internals import CONSTRAINT
from calibo.optuna.schema import NOISE, read_settings
from calibo.optuna.trials import current_trials, is_ignored
from calibo.space import Categorical, Params, Space

OWN = ("trial", "state", "value", "noise")  # columns that are not parameters
LIMIT = "constraint "  # prefix of the column of a constraint
STATES = {"complete", "pruned", "fail", "running", "waiting", "canceled", ""}


def write_csv(study: Study, space: Space | None, path: Path) -> int:
    """Write all trials of a study to a new file; returns their number."""
    if path.exists() and path.suffix.lower() != ".csv":
        raise InputError(f"--csv must be a new file or end in .csv, but got {str(path)!r}, which exists.")
    trials = current_trials(study)
    names = list(dict.fromkeys(name for trial in trials for name in trial.params))
    _demand_other_names(names)
    limits = list(dict.fromkeys(name for trial in trials for name in trial.constraints))
    lines = [[*OWN, *names, *(f"{LIMIT}{name}" for name in limits)]]
    ignored = read_settings(study).ignored
    lines += [_cells(trial, is_ignored(trial, ignored), space, names, limits) for trial in trials]
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(beside, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(lines)
        os.replace(beside, path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise InputError(f"--csv must be a writable file, but got {str(path)!r}: {error.strerror}.") from None
    return len(trials)


def _cells(
    trial: FrozenTrial, ignored: bool, space: Space | None, names: Sequence[str], limits: Sequence[str]
) -> list[str]:
    state = "canceled" if ignored else trial.state.name.lower()
    value = repr(trial.values[0]) if trial.values else ""
    noise = trial.user_attrs.get(NOISE, "")
    params = [_text(space, name, trial.params[name]) if name in trial.params else "" for name in names]
    return [str(trial.number), state, value, str(noise), *params, *[str(trial.constraints.get(n, "")) for n in limits]]


def _text(space: Space | None, name: str, value: Any) -> str:
    parameter = None if space is None else space.get(name)
    return text_of(parameter, value) if isinstance(parameter, Categorical) else str(value)


def read_csv(space: Space, path: Path) -> list[FrozenTrial]:
    """The finished trials of a file; raises if any line is not valid."""
    _demand_other_names(space)
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            first = file.readline()
            file.seek(0)
            delimiter = next((mark for mark in "\t;" if mark in first and "," not in first), ",")
            semicolons = delimiter != ","
            reader = csv.reader(file, delimiter=delimiter)
            lines = [(reader.line_num, cells) for cells in reader if any(cell.strip() for cell in cells)]
    except OSError as error:
        raise InputError(f"--csv must be a file, but got {str(path)!r}: {error.strerror}.") from None
    except (csv.Error, UnicodeDecodeError) as error:
        raise InputError(f"--csv must be a CSV file, but {str(path)!r} is not: {error}.") from None
    if not lines:
        raise InputError(f"--csv must have a header line with column names, but {str(path)!r} is empty.")
    header = [cell.strip() if cell.strip() in (*OWN, *space) else cell for cell in lines[0][1]]
    others = [name for name in header if name not in space and name not in OWN and not name.startswith(LIMIT)]
    if len(set(header)) < len(header) or not {*space, "value"} <= set(header):
        raise InputError(
            f"The columns must be {[*space, 'value']}, and optionally noise and state, each once, but got {header}"
            f"{f'. Missing: {missing}' if (missing := [n for n in (*space, 'value') if n not in header]) else ''}."
        )
    if others:
        warn(f"The columns {others} are not known and ignored.")
    if semicolons:
        names = [*header, *[""] * max(len(cells) for _, cells in lines)]
        lines = [(line, [_point(space, *pair) for pair in zip(names, cells, strict=False)]) for line, cells in lines]
    trials = [_row(space, header, cells, line) for line, cells in lines[1:]]
    if None in trials:
        warn(f"{trials.count(None)} lines without a value are skipped.")
    return [trial for trial in trials if trial is not None]


def _point(space: Space, name: str, cell: str) -> str:
    """A number with a decimal point for a decimal comma, as spreadsheets write it between semicolons."""
    number = not isinstance(space.get(name), Categorical) and re.fullmatch(r"\s*[-+]?\d*,\d+([eE][-+]?\d+)?\s*", cell)
    return cell.replace(",", ".") if number else cell


def _row(space: Space, header: list[str], cells: list[str], line: int) -> FrozenTrial | None:
    """One line; None if it has no value yet, or was canceled."""
    if len(cells) != len(header):
        raise InputError(f"Line {line} must have {len(header)} cells, as in the header, but got {len(cells)}.")
    row = dict(zip(header, cells, strict=True))
    try:
        state, text = row.get("state", "").strip().lower(), row["value"].strip()
        if state not in STATES:
            raise InputError(f"`state` must be one of {sorted(STATES - {''})}, but got {state!r}.")
        if state == "canceled" or (state in ("running", "waiting", "") and not text):
            return None
        if state == "complete" and not text:
            raise InputError("`value` must be given if the state is 'complete', but is empty.")
        value = read_number("value", text) if text and state != "fail" else None
        noise = read_noise("noise", row["noise"]) if row.get("noise", "").strip() else None
        limits = {n.removeprefix(LIMIT): float(c) for n, c in row.items() if n.startswith(LIMIT) and c.strip()}
        params = {name: read_value(space, name, row[name]) for name in space}
        return finished(space, params, value, noise, limits, pruned=state == "pruned")
    except (InputError, ValueError) as error:
        raise InputError(f"Line {line}: {error}") from None


def finished(
    space: Space,
    params: Params,
    value: float | None,
    noise: float | None,
    limits: Mapping[str, float] | None = None,
    *,
    pruned: bool = False,
) -> FrozenTrial:
    """A finished trial; failed if there is no value."""
    done = TrialState.PRUNED if pruned else TrialState.COMPLETE
    return optuna.create_trial(
        state=TrialState.FAIL if value is None and not pruned else done,
        value=value,
        params=space.plain(params),
        distributions=to_distributions(space),
        user_attrs={} if noise is None else {NOISE: noise},
        system_attrs={f"{CONSTRAINT}{name}": limit for name, limit in (limits or {}).items()},
    )


def _demand_other_names(names: Any) -> None:
    taken = [name for name in names if name in OWN or name.startswith(LIMIT)]
    if taken:
        raise InputError(f"Parameters must not be named like the columns {list(OWN)} for CSV, but got {taken}.")
