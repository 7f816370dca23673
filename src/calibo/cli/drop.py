"""`calibo drop`: ignore finished trials."""

import argparse

from calibo.cli.options import add_json, add_storage, existing_study, print_result
from calibo.cli.terminal import printable
from calibo.optuna.corrections import drop
from calibo.optuna.internals import storage_of
from calibo.optuna.storages import storage_errors

UNSEEN = "Optuna cannot change finished trials: its best_value and its dashboard still show them as they were."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", metavar="STUDY")
    parser.add_argument("trials", nargs="+", type=int, metavar="TRIAL", help="number of a finished trial")
    add_storage(parser)
    add_json(parser)


def execute(options: argparse.Namespace) -> int:
    study = existing_study(options)
    with storage_errors(storage_of(study)):
        drop(study, *options.trials)
    told = f"{printable(study.study_name)}: dropped {', '.join(map(str, options.trials))}. {UNSEEN}"
    print_result(options, told, {"study": study.study_name, "dropped": options.trials})
    return 0
