"""`calibo show`: the results of a study."""

import argparse
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState
from rich.table import Table
from rich.text import Text

from calibo.cli.csv import write_csv
from calibo.cli.options import (
    add_json,
    add_storage,
    add_strategy,
    existing_study,
    open_store,
    print_result,
    requested_strategy,
)
from calibo.cli.terminal import (
    cell,
    draw_trace,
    format_number,
    format_params,
    output,
    print_json,
    print_line,
    printable,
)
from calibo.diagnostics.audit import ONE_VIEW, describe_correction
from calibo.errors import CaliboError
from calibo.optuna.internals import storage_of
from calibo.optuna.reader import read_study
from calibo.optuna.schema import ERROR, NOISE, read_corrections, read_settings
from calibo.optuna.storages import storage_errors, study_names
from calibo.optuna.trials import current_trials, is_feasible, is_ignored, sign_of
from calibo.study import Result

BEST, RECOMMENDED = "Best measured  ", "Recommended    "
STATES = {
    TrialState.COMPLETE: "complete",
    TrialState.FAIL: "failed",
    TrialState.PRUNED: "pruned",
    TrialState.RUNNING: "running",
    TrialState.WAITING: "waiting",
}
LEAST = 2  # columns of a table, even if they do not fit
LONGEST = 50  # characters of the reason of a failure


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", nargs="?", metavar="STUDY", help="may be omitted if there is only one")
    parser.add_argument("--rows", type=int, default=10, metavar="N", help="trials in the table, the best first (10)")
    parser.add_argument("--csv", metavar="FILE", help="write all trials to this file instead")
    add_strategy(parser)
    add_storage(parser)
    add_json(parser)


def execute(options: argparse.Namespace) -> int:
    if options.study is None and _list_studies(options):
        return 0
    study = existing_study(options)
    with storage_errors(storage_of(study)):
        result = Result(study, requested_strategy(options))
        if options.csv is not None:
            count = write_csv(study, read_settings(study).space, Path(options.csv))
            told = f"{count} trials of {printable(study.study_name)} written to {printable(options.csv)}"
            print_result(options, told, {"study": study.study_name, "trials": count, "csv": options.csv})
        elif options.json:
            states = _states(study, result.trials)
            trials = [_trial(trial, states[trial.number]) for trial in result.trials]
            print_json({**summary(result), "trials": trials})
        else:
            _show(result, options.rows)
    return 0


def _show(result: Result, rows: int) -> None:
    study, trials = result.study, result.trials
    states = _states(study, trials)
    counts = Counter(states.values())
    told = ", ".join(f"{count} {state}" for state, count in counts.items()) or "no trials yet"
    direction = " and ".join(known.name.lower() for known in study.directions)
    stored = read_settings(study).strategy
    own = "" if stored is None else f", strategy {stored.get('label')}"
    print_line(printable(f"{study.study_name}: {direction}, {told}{own}"))
    _show_corrections(study)
    _show_trace(study, trials)
    _show_table(study, trials, states, rows)
    show_best(result)
    _show_forecasts(result)


def summary(result: Result) -> dict[str, Any]:
    """The best measured value and the recommendation, as JSON."""
    study, stored = result.study, read_settings(result.study).strategy
    found: dict[str, Any] = {
        "study": study.study_name,
        "direction": study.direction.name.lower(),
        "strategy": None if stored is None else stored.get("label"),
        "counts": Counter(_states(study, result.trials).values()),
        "best": None,
        "recommendation": None,
        "corrections": [vars(correction) for correction in read_corrections(study)],
    }
    if any(map(is_feasible, result.trials)):
        found["best"] = {"value": result.best_value, "params": result.best_params}
        with suppress(CaliboError):  # none before the first model
            advice = result.recommendation
            low, high = advice.interval
            found["recommendation"] = {"params": advice.params, "median": advice.median, "low": low, "high": high}
            found["recommendation"]["noise"] = advice.noise
    return found


def _trial(trial: FrozenTrial, state: str) -> dict[str, Any]:
    """As JSON."""
    known = {
        "noise": trial.user_attrs.get(NOISE),
        "constraints": trial.constraints,
        "error": trial.user_attrs.get(ERROR),
    }
    value = trial.values[0] if trial.values else None
    start = {"trial": trial.number, "state": state, "value": value, "params": trial.params}
    return {**start, **{name: each for name, each in known.items() if each not in (None, {})}}


def _states(study: Study, trials: Sequence[FrozenTrial]) -> dict[int, str]:
    """By number, the state of each trial in words."""
    ignored = read_settings(study).ignored
    return {trial.number: "ignored" if is_ignored(trial, ignored) else STATES[trial.state] for trial in trials}


def _show_corrections(study: Study) -> None:
    """Print which trials were dropped or amended."""
    for correction in read_corrections(study):
        to = "dropped" if correction.value is None else f"amended to {format_number(correction.value)}"
        print_line(f"trial {correction.trial}, {printable(correction.was)}, was {to} at {printable(correction.when)}")


def show_best(result: Result) -> None:
    """Print the best measured value, and the recommendation."""
    if not any(map(is_feasible, result.trials)):
        print_line("No feasible trial yet.")
        return
    best, advice = result.best_params, None
    fits = len(format_params(best)) + len(BEST) < output.width - 15
    print_line(f"{BEST}{format_number(result.best_value)}{f' at {format_params(best)}' if fits else ''}")
    _show_optimum(result)
    try:
        advice = result.recommendation
    except CaliboError as error:
        print_line(f"{RECOMMENDED}none: {printable(str(error))}")
    else:
        low, high = advice.interval
        told = f"value {format_number(advice.median)}, 90 % interval [{format_number(low)}, {format_number(high)}]"
        print_line(f"{RECOMMENDED}{format_params(advice.params)}" if fits else f"{RECOMMENDED}{told}")
        if fits:
            print_line(f"{'':{len(RECOMMENDED)}}{told}")
        print_line(f"{'':{len(RECOMMENDED)}}repeating it would vary by ±{advice.noise:.2g}")
    if not fits:
        columns = {"best measured": best, **({} if advice is None else {"recommended": advice.params})}
        output.print(_table_of(columns))


def _table_of(columns: Mapping[str, Mapping[str, Any]]) -> Table:
    """A row for each parameter, and a column for each named point."""
    table = Table("", *columns)
    for name in dict.fromkeys(name for params in columns.values() for name in params):
        table.add_row(cell(name), *(cell(params[name]) if name in params else "-" for params in columns.values()))
    return table


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
    data = read_study(result.study, result.strategy)
    shown = data.records if data.strategy.report is None else data.reports
    records = [record for record in shown if record is not None]
    if records:
        told = f"{len(records)} recorded. {describe_correction(records[-1])} `calibo audit` checks them."
        told += f" {ONE_VIEW}" if data.strategy.report is None else ""
        start, rest = f"{'Forecasts':<{len(BEST)}}", " " * len(BEST)
        lines = textwrap.wrap(told, max(output.width, 60), initial_indent=start, subsequent_indent=rest)
        print_line("\n".join(lines))


def _list_studies(options: argparse.Namespace) -> bool:
    """Print the studies of a storage, unless there is exactly one."""
    store = open_store(options, create=False)
    with storage_errors(store):
        names = study_names(store)
        if len(names) == 1:
            return False
        rows = []
        for name in names:
            study = optuna.load_study(study_name=name, storage=store)
            trials = current_trials(study)
            values = [trial.values[0] for trial in trials if is_feasible(trial)]
            better = min if study.directions == [StudyDirection.MINIMIZE] else max
            direction = " and ".join(known.name.lower() for known in study.directions)
            rows.append((name, direction, len(trials), better(values, default=None)))
    if options.json:
        print_json([dict(zip(("study", "direction", "trials", "best"), row, strict=True)) for row in rows])
        return True
    table = Table("study", "direction", "trials", "best")
    for name, direction, count, best in rows:
        table.add_row(cell(name), direction, str(count), "" if best is None else format_number(best))
    output.print(table if names else Text("There are no studies yet."))
    return True


def _show_trace(study: Study, trials: list[FrozenTrial]) -> None:
    values = [trial.values[0] if trial.state == TrialState.COMPLETE and trial.values else np.nan for trial in trials]
    feasible = [
        v if all(c <= 0 for c in t.constraints.values()) else np.nan for v, t in zip(values, trials, strict=True)
    ]
    better = np.fmin if study.direction == StudyDirection.MINIMIZE else np.fmax
    best = better.accumulate(feasible).tolist() if feasible else []
    for line in draw_trace(values, best, [trial.number for trial in trials]):
        print_line(line)


def _show_table(study: Study, trials: list[FrozenTrial], states: Mapping[int, str], rows: int) -> None:
    sign = sign_of(study)
    finished = [trial for trial in trials if trial.state == TrialState.COMPLETE and trial.values]
    others = [trial for trial in trials if trial.state != TrialState.COMPLETE]
    chosen = sorted(finished, key=lambda trial: sign * trial.values[0])[: max(rows, 0)]
    chosen += others[-max(rows - len(chosen), 0) :] if rows > len(chosen) else []
    if not chosen:
        return
    outcomes = [_outcome(trial, states[trial.number]) for trial in chosen]
    names = list(dict.fromkeys(name for trial in chosen for name in trial.params))
    cells = [
        [Text(str(trial.number)), outcome, *(cell(trial.params[n]) if n in trial.params else Text("-") for n in names)]
        for trial, outcome in zip(chosen, outcomes, strict=True)
    ]
    head = [Text("trial"), Text("value"), *map(cell, names)]
    if _width([head, *cells]) <= output.width:
        output.print(_drawn([head, *cells]))
        return
    turned = [list(row) for row in zip(head, *cells, strict=True)]  # a column for each trial, as many as fit
    while len(turned[0]) > LEAST and _width(turned) > output.width:
        turned = [row[:-1] for row in turned]
    output.print(_drawn(turned))
    if len(turned[0]) <= len(chosen):
        print_line(f"{len(turned[0]) - 1} of {len(chosen)} trials fit here; --csv or --json has all.", style="dim")


def _drawn(rows: list[list[Text]]) -> Table:
    """The first row is the head."""
    table = Table()
    for text in rows[0]:
        table.add_column(text)
    for row in rows[1:]:
        table.add_row(*row)
    return table


def _width(rows: list[list[Text]]) -> int:
    """Of a table with these cells."""
    return sum(max(int(text.cell_len) for text in column) + 3 for column in zip(*rows, strict=True)) + 1


def _outcome(trial: FrozenTrial, state: str) -> Text:
    if trial.state == TrialState.COMPLETE and trial.values:
        infeasible = any(constraint > 0 for constraint in trial.constraints.values())
        return cell(f"{format_number(trial.values[0])}{' (infeasible)' if infeasible else ''}")
    reason = str(trial.user_attrs.get(ERROR, ""))
    shown = f"{state}{f': {reason}' if reason else ''}"
    return cell(shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}...", style="dim")
