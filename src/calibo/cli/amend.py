"""`calibo amend`: correct the value of a finished trial."""

import argparse

from calibo.cli.drop import UNSEEN
from calibo.cli.options import accept_negative_numbers, add_json, add_storage, existing_study, print_result
from calibo.cli.parsing import read_number
from calibo.cli.terminal import format_number, printable
from calibo.optuna.corrections import amend
from calibo.optuna.internals import storage_of
from calibo.optuna.storages import storage_errors


def add_arguments(parser: argparse.ArgumentParser) -> None:
    accept_negative_numbers(parser)
    parser.add_argument("study", metavar="STUDY")
    parser.add_argument("trial", type=int, metavar="TRIAL", help="number of a finished trial")
    parser.add_argument("value", metavar="VALUE", help="the right value")
    add_storage(parser)
    add_json(parser)


def execute(options: argparse.Namespace) -> int:
    value = read_number("VALUE", options.value)
    study = existing_study(options)
    with storage_errors(storage_of(study)):
        amend(study, options.trial, value)
    told = f"{printable(study.study_name)}: trial {options.trial} is now {format_number(value)}. {UNSEEN}"
    print_result(options, told, {"study": study.study_name, "trial": options.trial, "value": value})
    return 0
