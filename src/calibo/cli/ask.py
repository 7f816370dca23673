"""`calibo ask`: the next point to evaluate by hand."""

import argparse
import json

from optuna.study import Study

from calibo.adapters.history import declaration
from calibo.adapters.optuna import CalibratedSampler
from calibo.adapters.storage import Direction, guarded, study_in, study_names
from calibo.cli.places import add_storage, declared_in, space_in, stored
from calibo.cli.terminal import printable, say, written
from calibo.cli.values import parsed
from calibo.errors import InputError
from calibo.space import Space
from calibo.strategy import PRESETS
from calibo.study import settle_space, settled_seed, stored_space

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", metavar="STUDY", help="begun by the first ask")
    parser.add_argument("--space", metavar="TOML", help="declares the parameters; needed the first time")
    parser.add_argument("-n", type=int, default=1, metavar="N", help="how many points, which keep apart (1)")
    parser.add_argument("--fix", action="append", default=[], metavar="NAME=VALUE", help="a parameter given today")
    parser.add_argument("--maximize", action="store_true", help="look for the largest value; said the first time")
    parser.add_argument("--seed", type=int, metavar="N")
    parser.add_argument("--strategy", choices=sorted(PRESETS), metavar="NAME", help=", ".join(PRESETS))
    parser.add_argument("--json", action="store_true", help="one JSON object a line, for programs")
    add_storage(parser)


def execute(options: argparse.Namespace) -> int:
    if options.n < 1:
        raise InputError(f"-n must be at least 1, but got {options.n}.")
    study, space = _begun(options)
    fixed = dict(parsed(space, entry) for entry in options.fix)
    with guarded(study._storage):
        seed = settled_seed(study, options.seed)
        study.sampler = CalibratedSampler(strategy=options.strategy, seed=seed, space=space)
        for _ in range(options.n):
            if fixed:
                study.enqueue_trial(fixed)
            trial = study.ask(declaration(space))
            _print(study, trial.number, trial.params, options.json)
    return 0


def _begun(options: argparse.Namespace) -> tuple[Study, Space]:
    """The study, begun if there is none yet, and its space."""
    declared = None if options.space is None else declared_in(options.space)
    space = None if declared is None else space_in(declared, options.space)
    store = stored(options, create=space is not None)
    with guarded(store):
        exists = options.study in study_names(store)
    if not exists and space is None:
        raise InputError(f"--space must be given to begin the study {options.study!r}, which does not exist yet.")
    said: Direction | None = "maximize" if options.maximize else (declared or {}).get("direction")
    direction = said or (None if exists else "minimize")
    study = study_in(store, options.study, direction=direction)
    with guarded(store):
        if space is not None:
            settle_space(study, space)
        known = stored_space(study)
    if known is None:
        raise InputError(f"--space must be given: the study {options.study!r} was begun without one.")
    return study, known


def _print(study: Study, number: int, params: dict[str, object], as_json: bool) -> None:
    if as_json:
        say(json.dumps({"trial": number, "params": params}))
    else:
        say(f"trial {number}: {written(params, exact=True)}")
        say(f"  then: calibo tell {printable(study.study_name)} VALUE --trial {number}", style="dim")
