"""`calibo show`: what a study has found."""

import argparse
from pathlib import Path

import numpy as np
import optuna
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState
from rich.table import Table
from rich.text import Text

from calibo.adapters.internals import storage_of
from calibo.adapters.reader import read_study
from calibo.adapters.schema import ERROR, read_settings
from calibo.adapters.storage import guarded, study_names
from calibo.adapters.trials import feasible, sign_of
from calibo.audits import correction
from calibo.cli.places import add_storage, add_strategy, stored, strategy_in, study_of
from calibo.cli.table import write_trials
from calibo.cli.terminal import cell, drawn, number, output, printable, say, written
from calibo.errors import CaliboError
from calibo.study import Result

__all__ = ["add_arguments", "execute", "show_best"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", nargs="?", metavar="STUDY", help="may be left out where there is only one")
    parser.add_argument("--rows", type=int, default=10, metavar="N", help="trials in the table, the best first (10)")
    parser.add_argument("--csv", metavar="FILE", help="write all trials there instead")
    add_strategy(parser)
    add_storage(parser)


def execute(options: argparse.Namespace) -> int:
    if options.study is None and _list_studies(options):
        return 0
    study = study_of(options)
    with guarded(storage_of(study)):
        trials = study.get_trials(deepcopy=False)
        if options.csv is not None:
            count = write_trials(study, read_settings(study).space, Path(options.csv))
            say(f"{count} trials of {printable(study.study_name)} written to {printable(options.csv)}")
            return 0
        counts = {state: sum(trial.state == state for trial in trials) for state in TrialState}
        told = ", ".join(f"{count} {state.name.lower()}" for state, count in counts.items() if count) or "no trials yet"
        direction = " and ".join(known.name.lower() for known in study.directions)
        stored = read_settings(study).strategy
        own = "" if stored is None else f", strategy {stored.get('label')}"
        say(printable(f"{study.study_name}: {direction}, {told}{own}"))
        _show_trace(study, trials)
        _show_table(study, trials, options.rows)
        result = Result(study, strategy_in(options))
        show_best(result)
        _show_forecasts(result)
    return 0


def show_best(result: Result) -> None:
    """The best measured and the best believed."""
    if not any(feasible(trial) for trial in result.study.get_trials(deepcopy=False)):
        say("Nothing has succeeded yet.")
        return
    say(f"Best measured  {number(result.best_value)} at {written(result.best_params)}")
    _show_optimum(result)
    try:
        advice = result.recommendation
    except CaliboError as error:
        say(f"Recommended    nothing: {printable(str(error))}")
        return
    low, high = advice.interval
    say(f"Recommended    {written(advice.params)}")
    believed = f"value {number(advice.median)}, with probability 0.9 in [{number(low)}, {number(high)}]"
    say(f"               {believed}")


def _show_optimum(result: Result) -> None:
    """What is known of the best value, and how far it is."""
    data = read_study(result.study, result.strategy)
    known = data.optimum
    if known is not None:
        value, away = data.sign * known.value, data.sign * result.best_value - known.value
        slack = known.slack(data.observations.valid().y)
        word = "cannot be surpassed" if known.bound else "is known to be the best"
        where = f"the best measured is {number(abs(away))} {'away' if away >= 0.0 else 'better, within the tolerance'}"
        where = where if away >= -slack else "it is wrong, or there is noise"
        say(f"Known optimum  {number(value)} {word}; {where}")


def _show_forecasts(result: Result) -> None:
    """What was last done to forecasts, if any were made."""
    records = [record for record in read_study(result.study, result.strategy).records if record is not None]
    if records:
        say(f"Forecasts      {len(records)} recorded. {correction(records[-1])}")
        say("               `calibo audit` checks them against what happened.")


def _list_studies(options: argparse.Namespace) -> bool:
    """The studies of a storage, where there is more than one to choose from."""
    store = stored(options, create=False)
    with guarded(store):
        names = study_names(store)
        if len(names) == 1:
            return False
        table = Table("study", "direction", "trials", "best")
        for name in names:
            study = optuna.load_study(study_name=name, storage=store)
            values = [t.values[0] for t in study.get_trials(deepcopy=False) if t.values and feasible(t)]
            better = min if study.directions == [StudyDirection.MINIMIZE] else max
            best = better(values, default=None)
            direction = " and ".join(known.name.lower() for known in study.directions)
            trials = len(study.get_trials(deepcopy=False))
            table.add_row(cell(name), direction, str(trials), "" if best is None else number(best))
    output.print(table if names else Text("There are no studies yet."))
    return True


def _show_trace(study: Study, trials: list[FrozenTrial]) -> None:
    values = [trial.values[0] if trial.state == TrialState.COMPLETE and trial.values else np.nan for trial in trials]
    feasible = [
        v if all(c <= 0 for c in t.constraints.values()) else np.nan for v, t in zip(values, trials, strict=True)
    ]
    better = np.fmin if study.direction == StudyDirection.MINIMIZE else np.fmax
    for line in drawn(values, better.accumulate(feasible).tolist() if feasible else []):
        say(line)


def _show_table(study: Study, trials: list[FrozenTrial], rows: int) -> None:
    sign = sign_of(study)
    finished = [trial for trial in trials if trial.state == TrialState.COMPLETE and trial.values]
    others = [trial for trial in trials if trial.state != TrialState.COMPLETE]
    chosen = sorted(finished, key=lambda trial: sign * trial.values[0])[: max(rows, 0)]
    chosen += others[-max(rows - len(chosen), 0) :] if rows > len(chosen) else []
    if not chosen:
        return
    names = list(dict.fromkeys(name for trial in chosen for name in trial.params))
    table = Table("trial", "value")
    for name in names:
        table.add_column(cell(name))
    for trial in chosen:
        params = [cell(trial.params[name]) if name in trial.params else Text("-") for name in names]
        table.add_row(str(trial.number), _outcome(trial), *params)
    output.print(table)


def _outcome(trial: FrozenTrial) -> Text:
    if trial.state == TrialState.COMPLETE and trial.values:
        infeasible = any(constraint > 0 for constraint in trial.constraints.values())
        return cell(f"{number(trial.values[0])}{' (infeasible)' if infeasible else ''}")
    reason = trial.user_attrs.get(ERROR)
    return cell(f"{trial.state.name.lower()}{f': {reason}' if reason else ''}", style="dim")
