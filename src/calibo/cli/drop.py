"""`calibo drop`: ignore finished trials."""

import argparse

from calibo.cli.options import add_storage, existing_study
from calibo.cli.terminal import print_line, printable
from calibo.optuna.internals import storage_of
from calibo.optuna.storages import storage_errors
from calibo.optuna.trials import drop

UNSEEN = "Optuna cannot change finished trials: its best_value and its dashboard still show them as they were."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", metavar="STUDY")
    parser.add_argument("trials", nargs="+", type=int, metavar="TRIAL", help="number of a finished trial")
    add_storage(parser)


def execute(options: argparse.Namespace) -> int:
    study = existing_study(options)
    with storage_errors(storage_of(study)):
        drop(study, *options.trials)
    print_line(f"{printable(study.study_name)}: dropped {', '.join(map(str, options.trials))}. {UNSEEN}")
    return 0
