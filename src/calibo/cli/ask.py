"""`calibo ask`: the next point to evaluate by hand."""

import argparse
import json
import shlex

import numpy as np
from optuna.study import Study
from optuna.trial import Trial as OptunaTrial
from optuna.trial import TrialState, create_trial

from calibo.adapters.columns import declaration
from calibo.adapters.internals import FIXED, new_trial, storage_of, stored_trial, suggest
from calibo.adapters.optuna import CalibratedSampler
from calibo.adapters.schema import read_settings, read_trial, recorded
from calibo.adapters.storage import Direction, guarded, study_in, study_names
from calibo.adapters.trials import sign_of
from calibo.cli.places import (
    add_optimum,
    add_storage,
    add_strategy,
    add_transfer,
    declared_in,
    optimum_in,
    option,
    space_in,
    stored,
)
from calibo.cli.terminal import number, printable, say, written
from calibo.cli.values import parsed
from calibo.errors import InputError
from calibo.space import Params, Space
from calibo.study import settle_space, settled_seed

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", metavar="STUDY", help="begun by the first ask")
    parser.add_argument("--space", metavar="TOML", help="declares the parameters; needed the first time")
    parser.add_argument("-n", type=int, default=1, metavar="N", help="how many points, which keep apart (1)")
    parser.add_argument("--fix", action="append", default=[], metavar="NAME=VALUE", help="a parameter given today")
    parser.add_argument("--maximize", action="store_true", help="look for the largest value; said the first time")
    parser.add_argument("--seed", type=int, metavar="N")
    add_strategy(parser)
    add_transfer(parser)
    add_optimum(parser, "`calibo tell` says when it is reached")
    parser.add_argument("--json", action="store_true", help="one JSON object a line, for programs")
    add_storage(parser)


def execute(options: argparse.Namespace) -> int:
    if options.n < 1:
        raise InputError(f"-n must be at least 1, but got {options.n}.")
    wanted = {"strategy": options.strategy, "recalibrate": options.recalibrate}
    known = {**wanted, "transfer_from": options.transfer_from, **optimum_in(options)}
    # at first only to say what is wrong, before a study is begun
    study, space, fixed = _begun(options, CalibratedSampler(seed=options.seed, **known))
    with guarded(storage_of(study)):
        study.sampler = sampler = CalibratedSampler(seed=settled_seed(study, options.seed), space=space, **known)
        sampler.prepare(study)  # what is wrong is said before a trial is begun
        for _ in range(options.n):
            trial = _asked(study, space, fixed)
            _print(study, trial, options)
    return 0


def _begun(options: argparse.Namespace, sampler: CalibratedSampler) -> tuple[Study, Space, Params]:
    """The study, begun if there is none yet and nothing is wrong, its space, and what is fixed."""
    declared = None if options.space is None else declared_in(options.space)
    space = None if declared is None else space_in(declared, options.space)
    said: Direction | None = None if declared is None else declared.get("direction")
    if options.maximize:
        if said == "minimize":
            raise InputError("--maximize must not contradict the direction of the space, but that says 'minimize'.")
        said = "maximize"
    store = stored(options, create=space is not None)
    with guarded(store):
        exists = options.study in study_names(store)
    if not exists and space is None:
        raise InputError(f"--space must be given to begin the study {options.study!r}, which does not exist yet.")
    if not exists and space is not None:
        declaration(space)
        if sampler.optimum is None:
            sampler.wanted.of(None).demand_optimum()
        fixed = dict(parsed(space, entry) for entry in options.fix)
        study = study_in(store, options.study, direction=said or "minimize")
        settle_space(study, space)
        return study, space, fixed
    study = study_in(store, options.study, direction=said)
    with guarded(store):
        if space is not None:
            settle_space(study, space)
        known = read_settings(study).space
    if known is None:
        raise InputError(f"--space must be given: the study {options.study!r} was begun without one.")
    return study, known, dict(parsed(known, entry) for entry in options.fix)


def _asked(study: Study, space: Space, fixed: Params) -> OptunaTrial:
    """A new trial, or one that was enqueued where nothing is fixed."""
    if not fixed:
        return study.ask(declaration(space))
    trial = new_trial(study, create_trial(state=TrialState.RUNNING, system_attrs={FIXED: fixed}))
    for name, distribution in declaration(space).items():
        suggest(trial, name, distribution)
    return trial


def _print(study: Study, trial: OptunaTrial, options: argparse.Namespace) -> None:
    expected = _expected(study, trial)
    if options.json:
        say(json.dumps({"trial": trial.number, "params": trial.params, "forecast": expected}))
        return
    name = printable(shlex.quote(study.study_name))
    say(f"trial {trial.number}: {written(trial.params, exact=True)}")
    if expected is not None:
        low, median, high = (number(expected[part]) for part in ("low", "median", "high"))
        say(f"  expected: {median}, with probability 0.9 in [{low}, {high}]")
    say(f"  then: calibo tell {name} VALUE --trial {trial.number}{printable(option(options))}", style="dim")


def _expected(study: Study, trial: OptunaTrial) -> dict[str, float] | None:
    """What is forecast of the value, in the units of the user; None while the design is evaluated."""
    asked = stored_trial(study, trial)
    record = recorded(asked, read_trial(asked))
    if record is None:
        return None
    sign = sign_of(study)
    low, median, high = sorted(
        float(sign * value) for value in record.recalibrated.quantile(np.array([0.05, 0.5, 0.95]))
    )
    return {"median": median, "low": low, "high": high}
