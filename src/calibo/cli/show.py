"""`calibo show`: the results of a study."""

import argparse
from pathlib import Path

import numpy as np
import optuna
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState
from rich.table import Table
from rich.text import Text

from calibo.cli.csv import write_csv
from calibo.cli.options import add_storage, add_strategy, existing_study, open_store, requested_strategy
from calibo.cli.terminal import cell, draw_trace, format_number, format_params, output, print_line, printable
from calibo.diagnostics.audit import describe_correction
from calibo.errors import CaliboError
from calibo.optuna.internals import storage_of
from calibo.optuna.reader import read_study
from calibo.optuna.schema import ERROR, read_corrections, read_settings
from calibo.optuna.storages import storage_errors, study_names
from calibo.optuna.trials import current_trials, is_feasible, sign_of
from calibo.study import Result


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", nargs="?", metavar="STUDY", help="may be omitted if there is only one")
    parser.add_argument("--rows", type=int, default=10, metavar="N", help="trials in the table, the best first (10)")
    parser.add_argument("--csv", metavar="FILE", help="write all trials to this file instead")
    add_strategy(parser)
    add_storage(parser)


def execute(options: argparse.Namespace) -> int:
    if options.study is None and _list_studies(options):
        return 0
    study = existing_study(options)
    with storage_errors(storage_of(study)):
        trials = current_trials(study)
        if options.csv is not None:
            count = write_csv(study, read_settings(study).space, Path(options.csv))
            print_line(f"{count} trials of {printable(study.study_name)} written to {printable(options.csv)}")
            return 0
        counts = {state: sum(trial.state == state for trial in trials) for state in TrialState}
        told = ", ".join(f"{count} {state.name.lower()}" for state, count in counts.items() if count) or "no trials yet"
        direction = " and ".join(known.name.lower() for known in study.directions)
        stored = read_settings(study).strategy
        own = "" if stored is None else f", strategy {stored.get('label')}"
        print_line(printable(f"{study.study_name}: {direction}, {told}{own}"))
        _show_corrections(study)
        _show_trace(study, trials)
        _show_table(study, trials, options.rows)
        result = Result(study, requested_strategy(options))
        show_best(result)
        _show_forecasts(result)
    return 0


def _show_corrections(study: Study) -> None:
    """Print which trials were dropped or amended."""
    for correction in read_corrections(study):
        to = "dropped" if correction.value is None else f"amended to {format_number(correction.value)}"
        print_line(f"trial {correction.trial}, {printable(correction.was)}, was {to} at {printable(correction.when)}")


def show_best(result: Result) -> None:
    """Print the best measured value, and the recommendation."""
    if not any(is_feasible(trial) for trial in current_trials(result.study)):
        print_line("No feasible trial yet.")
        return
    print_line(f"Best measured  {format_number(result.best_value)} at {format_params(result.best_params)}")
    _show_optimum(result)
    try:
        advice = result.recommendation
    except CaliboError as error:
        print_line(f"Recommended    none: {printable(str(error))}")
        return
    low, high = advice.interval
    print_line(f"Recommended    {format_params(advice.params)}")
    summary = f"value {format_number(advice.median)}, 90 % interval [{format_number(low)}, {format_number(high)}]"
    print_line(f"               {summary}")


def _show_optimum(result: Result) -> None:
    """Print the known optimum, and the distance to it."""
    data = read_study(result.study, result.strategy)
    known = data.optimum
    if known is not None:
        value, away = data.sign * known.value, data.sign * result.best_value - known.value
        slack = known.tolerance_for(data.observations.valid().y)
        word = "(a bound)" if known.bound else "(attainable)"
        better = "away" if away >= 0.0 else "better, within the tolerance"
        where = f"the best measured value is {format_number(abs(away))} {better}"
        where = where if away >= -slack else "it is wrong, or the values are noisy"
        print_line(f"Known optimum  {format_number(value)} {word}; {where}")


def _show_forecasts(result: Result) -> None:
    """Print the last correction of a forecast, if any was recorded."""
    records = [record for record in read_study(result.study, result.strategy).records if record is not None]
    if records:
        print_line(f"Forecasts      {len(records)} recorded. {describe_correction(records[-1])}")
        print_line("               `calibo audit` checks them against the outcomes.")


def _list_studies(options: argparse.Namespace) -> bool:
    """Print the studies of a storage, unless there is exactly one."""
    store = open_store(options, create=False)
    with storage_errors(store):
        names = study_names(store)
        if len(names) == 1:
            return False
        table = Table("study", "direction", "trials", "best")
        for name in names:
            study = optuna.load_study(study_name=name, storage=store)
            values = [t.values[0] for t in current_trials(study) if t.values and is_feasible(t)]
            better = min if study.directions == [StudyDirection.MINIMIZE] else max
            best = better(values, default=None)
            direction = " and ".join(known.name.lower() for known in study.directions)
            trials = len(current_trials(study))
            table.add_row(cell(name), direction, str(trials), "" if best is None else format_number(best))
    output.print(table if names else Text("There are no studies yet."))
    return True


def _show_trace(study: Study, trials: list[FrozenTrial]) -> None:
    values = [trial.values[0] if trial.state == TrialState.COMPLETE and trial.values else np.nan for trial in trials]
    feasible = [
        v if all(c <= 0 for c in t.constraints.values()) else np.nan for v, t in zip(values, trials, strict=True)
    ]
    better = np.fmin if study.direction == StudyDirection.MINIMIZE else np.fmax
    for line in draw_trace(values, better.accumulate(feasible).tolist() if feasible else []):
        print_line(line)


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
        return cell(f"{format_number(trial.values[0])}{' (infeasible)' if infeasible else ''}")
    reason = trial.user_attrs.get(ERROR)
    return cell(f"{trial.state.name.lower()}{f': {reason}' if reason else ''}", style="dim")
