"""`calibo tell`: report the value measured at a point."""

import argparse
from pathlib import Path
from typing import Any

from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from calibo.cli.csv import finished, read_csv
from calibo.cli.options import accept_negative_numbers, add_json, add_storage, existing_study, print_result
from calibo.cli.parsing import parse_assignment, read_noise, read_number
from calibo.cli.terminal import format_number, format_params, print_error, printable
from calibo.errors import CaliboError, InputError
from calibo.optuna.internals import add_trial, set_trial_attribute, storage_of
from calibo.optuna.schema import NOISE, read_settings
from calibo.optuna.storages import storage_errors
from calibo.optuna.trials import is_alive, worker_of
from calibo.space import Space
from calibo.study import fail_interrupted, reached


def add_arguments(parser: argparse.ArgumentParser) -> None:
    accept_negative_numbers(parser)
    parser.add_argument("study", metavar="STUDY")
    parser.add_argument("value", nargs="?", metavar="VALUE", help="the measured value")
    parser.add_argument("--trial", type=int, metavar="N", help="trial number; may be omitted if only one is open")
    parser.add_argument("--noise", metavar="STD", help="standard deviation of the value, if known")
    parser.add_argument("--failed", action="store_true", help="report that the evaluation failed")
    parser.add_argument("--cancel", action="store_true", help="drop the trial without a value")
    parser.add_argument(
        "--at",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="actual value of a parameter, if not as asked; may be repeated",
    )
    parser.add_argument("--csv", metavar="FILE", help="add trials from columns for the parameters, value and noise")
    add_storage(parser)
    add_json(parser)


def execute(options: argparse.Namespace) -> int:
    given = [options.value is not None, options.failed, options.cancel, options.csv is not None]
    if sum(given) != 1:
        raise InputError("Exactly one of VALUE, --failed, --cancel and --csv must be given. See `calibo tell --help`.")
    if options.csv is not None and (options.at or options.noise is not None or options.trial is not None):
        raise InputError("--csv must not be combined with --trial, --noise or --at. Put them in columns of the file.")
    if options.cancel and options.at:
        raise InputError("--cancel must not be combined with --at. Name the trial with --trial.")
    value = None if options.value is None else read_number("VALUE", options.value)
    noise = None if options.noise is None else read_noise("--noise", options.noise)
    study = existing_study(options)
    with storage_errors(storage_of(study)):
        if options.csv is None:
            _tell(study, options, value, noise)
        else:
            trials = read_csv(_space(study), Path(options.csv))
            study.add_trials(trials)
            told = f"{len(trials)} trials added to {printable(study.study_name)}"
            _print(study, options, told, {"added": len(trials)}, check=True)
    return 0


def _tell(study: Study, options: argparse.Namespace, value: float | None, noise: float | None) -> None:
    at = dict(parse_assignment(_space(study), entry) for entry in options.at)
    whole = bool(at) and options.trial is None and set(at) == set(_space(study))
    trial = None if whole else _open_trial(study, options.trial)
    canceled = trial.number if trial is not None and (at or options.cancel) else None
    known: dict[str, Any] = {} if canceled is None else {"canceled": canceled}
    if trial is not None and options.cancel:
        fail_interrupted(study, trial.number)
        _print(study, options, f"trial {trial.number} canceled", known)
        return
    lines = []
    if at:
        where = {**({} if trial is None else trial.params), **at}
        number, new = add_trial(study, finished(_space(study), where, value, noise)), "new "
        if trial is not None:
            fail_interrupted(study, trial.number)
            asked = f"trial {trial.number}, asked at {format_params(trial.params)},"
            lines.append(f"{asked} is canceled: a new one replaces it")
    elif trial is not None:
        number, where, new = trial.number, trial.params, ""
        if noise is not None:
            set_trial_attribute(study, trial, NOISE, noise, user=True)
        study.tell(trial.number, value, TrialState.FAIL if value is None else TrialState.COMPLETE)
    outcome = "failed" if value is None else format_number(value)
    lines.append(f"{new}trial {number}: {outcome} at {format_params(where)}")
    _print(
        study, options, "\n".join(lines), {**known, "trial": number, "value": value, "params": where}, value is not None
    )


def _print(study: Study, options: argparse.Namespace, told: str, found: dict[str, Any], check: bool = False) -> None:
    """Print what was told, and whether the known optimum is reached now."""
    known = read_settings(study).optimum if check else None
    try:
        done = known is not None and reached(study)
    except CaliboError as error:  # the value is stored already
        print_error(f"Could not check whether the known optimum is reached: {error}", "yellow")
        done = False
    if known is not None and done:
        told += f"\nThe best value has reached the known optimum {format_number(known.value)}."
    print_result(options, told, {"study": study.study_name, **found, **({} if known is None else {"reached": done})})


def _open_trial(study: Study, wanted: int | None) -> FrozenTrial:
    """A running trial that no program is evaluating."""
    running = {t.number: t for t in study.get_trials(deepcopy=False) if t.state == TrialState.RUNNING}
    busy = {
        n for n, trial in running.items() if (worker := worker_of(trial)) is not None and is_alive(worker) is not False
    }
    waiting = [n for n in running if n not in busy]
    if wanted is None:
        name = study.study_name
        if not waiting:
            raise InputError(f"No trial of {name!r} is open. Ask for one, or report a point with --at.")
        if len(waiting) != 1:
            raise InputError(
                f"--trial must be given unless exactly one is open, but the open trials are {waiting} in {name!r}. "
                "Use --at for every parameter to report a point that was not asked for."
            )
        wanted = waiting[0]
    if wanted in busy:
        raise InputError(f"--trial must be one from `calibo ask`, but {wanted} is being evaluated by a program.")
    if wanted not in running:
        raise InputError(f"--trial must be one of the open trials {waiting}, but got {wanted}.")
    return running[wanted]


def _space(study: Study) -> Space:
    space = read_settings(study).space
    if space is None:
        name = study.study_name
        raise InputError(f"The study {name!r} has no declared space. Report its trials with --trial.")
    return space
