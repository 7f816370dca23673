"""`calibo widen`: let a study search a wider space."""

import argparse

from optuna.trial import TrialState

from calibo.cli.options import add_json, add_storage, existing_study, print_result
from calibo.cli.parsing import parse_assignment, read_space
from calibo.cli.terminal import printable
from calibo.errors import InputError
from calibo.optuna.corrections import widen
from calibo.optuna.internals import storage_of
from calibo.optuna.schema import read_settings
from calibo.optuna.storages import storage_errors


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", metavar="STUDY")
    parser.add_argument("--space", metavar="TOML", required=True, help="declares all parameters, with their new bounds")
    parser.add_argument(
        "--fill",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="value of a new parameter in the trials so far; the study is copied then",
    )
    parser.add_argument("--name", metavar="NAME", help="of the copy; default: that of the study and a number")
    add_storage(parser)
    add_json(parser)


def execute(options: argparse.Namespace) -> int:
    space, direction = read_space(options.space)
    study = existing_study(options)
    with storage_errors(storage_of(study)):
        if direction not in (None, study.direction.name.lower()):
            raise InputError(f"--space must have the direction of the study, but has {direction!r}.")
        before = read_settings(study).space
        made = widen(
            study, space, fill=dict(parse_assignment(space, entry) for entry in options.fill), name=options.name
        )
        name, copied = made.study_name, made.study_name != study.study_name
        changed = [known for known in space if before is None or before.get(known) != space[known]]
        told = f"{name}: {', '.join(changed) or 'nothing'} changed"
        running = [trial.number for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))]
        if copied:
            told += f". It is a copy of {study.study_name} with {len(made.get_trials(deepcopy=False))} trials"
            told += f"; the open trials {running} stay there" if running else ""
            told += f". Go on with `calibo ask {name}` or `run --study {name}`"
        print_result(options, printable(f"{told}."), {"study": name, "changed": changed, "copied": copied})
    return 0
