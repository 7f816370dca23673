"""`calibo ask`: suggest the next point to evaluate yourself."""

import argparse
import shlex
from typing import Any

import numpy as np
from optuna.study import Study
from optuna.trial import Trial as OptunaTrial
from optuna.trial import TrialState, create_trial

from calibo.cli.options import add_search, declared_space, open_store, search_arguments, storage_option
from calibo.cli.parsing import parse_assignment
from calibo.cli.terminal import format_number, format_params, print_json, print_line, printable
from calibo.errors import InputError
from calibo.optuna.columns import to_distributions
from calibo.optuna.internals import FIXED, new_trial, storage_of, stored_trial, suggest
from calibo.optuna.sampler import CalibratedSampler
from calibo.optuna.schema import read_settings, read_trial, records_of
from calibo.optuna.storages import load_or_create_study, storage_errors, study_names
from calibo.optuna.trials import sign_of
from calibo.space import Digits, Params, Space
from calibo.study import check_or_store_space, seed_for


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", metavar="STUDY", help="created by the first ask")
    parser.add_argument("-n", type=int, default=1, metavar="N", help="number of points in the batch (1)")
    parser.add_argument("--fix", action="append", default=[], metavar="NAME=VALUE", help="fix a parameter to a value")
    parser.add_argument(
        "--digits",
        default="auto",
        metavar="N",
        help="round to N digits of each range; default: 3, or 4 if the model would notice; 0 for exact values",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object per line")
    add_search(parser, space="required the first time", optimum="`calibo tell` reports when it is reached")


def execute(options: argparse.Namespace) -> int:
    if options.n < 1:
        raise InputError(f"-n must be at least 1, but got {options.n}.")
    digits = _digits(options.digits)
    arguments = search_arguments(options)
    # this sampler only checks the arguments, before a study is created
    study, space, fixed = _load_or_create(options, CalibratedSampler(seed=options.seed, **arguments))
    with storage_errors(storage_of(study)):
        study.sampler = sampler = CalibratedSampler(seed=seed_for(study, options.seed), space=space, **arguments)
        sampler.digits = digits
        sampler.prepare(study)  # checks the study before a trial is created
        for _ in range(options.n):
            _print(study, _ask(study, space, fixed), options)
    return 0


def _digits(text: str) -> Digits:
    if text == "auto":
        return "auto"
    if not text.isdecimal():
        raise InputError(f"--digits must be a whole number of at least 0, but got {text!r}.")
    return int(text) or None


def _load_or_create(options: argparse.Namespace, sampler: CalibratedSampler) -> tuple[Study, Space, Params]:
    """The study, created if there is none yet and the options are valid, its space, and the fixed parameters."""
    space, direction = declared_space(options)
    store = open_store(options, create=space is not None)
    with storage_errors(store):
        exists = options.study in study_names(store)
    if not exists and space is None:
        raise InputError(f"--space must be given to create the study {options.study!r}, which does not exist yet.")
    if not exists and space is not None:
        to_distributions(space)
        if sampler.optimum is None:
            sampler.requested.resolve(None).require_optimum()
        fixed = dict(parse_assignment(space, entry) for entry in options.fix)
        study = load_or_create_study(store, options.study, direction=direction or "minimize")
        check_or_store_space(study, space)
        return study, space, fixed
    study = load_or_create_study(store, options.study, direction=direction)
    with storage_errors(store):
        if space is not None:
            check_or_store_space(study, space)
        stored = read_settings(study).space
    if stored is None:
        raise InputError(f"--space must be given: the study {options.study!r} was created without one.")
    return study, stored, dict(parse_assignment(stored, entry) for entry in options.fix)


def _ask(study: Study, space: Space, fixed: Params) -> OptunaTrial:
    """A new trial, or an enqueued one if nothing is fixed."""
    if not fixed:
        return study.ask(to_distributions(space))
    trial = new_trial(study, create_trial(state=TrialState.RUNNING, system_attrs={FIXED: fixed}))
    for name, distribution in to_distributions(space).items():
        suggest(trial, name, distribution)
    return trial


def _print(study: Study, trial: OptunaTrial, options: argparse.Namespace) -> None:
    expected = _forecast(study, trial)
    if options.json:
        print_json({"trial": trial.number, "params": trial.params, "forecast": expected})
        return
    name = printable(shlex.quote(study.study_name))
    print_line(f"trial {trial.number}: {format_params(trial.params, exact=True)}")
    if expected is not None:
        low, median, high = (format_number(expected[part]) for part in ("low", "median", "high"))
        told = "forecast" if expected["reported"] else "forecast by which it was chosen"
        print_line(f"  {told}: {median}, 90 % interval [{low}, {high}]")
        if "noise" in expected:
            print_line(f"  repeating it would vary by ±{expected['noise']:.2g}")
    print_line(
        f"  then: calibo tell {name} VALUE --trial {trial.number}{printable(storage_option(options))}", style="dim"
    )


def _forecast(study: Study, trial: OptunaTrial) -> dict[str, Any] | None:
    """In the user's units; None for the first trials."""
    asked = stored_trial(study, trial)
    record, report = records_of(asked, read_trial(asked))
    shown = report or record
    if shown is None:
        return None
    quantiles = sign_of(study) * shown.calibrated.quantile(np.array([0.05, 0.5, 0.95]))
    low, median, high = sorted(quantiles.tolist())
    noise = {} if shown.noise is None else {"noise": shown.noise}
    return {"median": median, "low": low, "high": high, **noise, "reported": report is not None}
