"""Audit: checks the forecasts of a study against the outcomes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np
from optuna.study import Study
from scipy.special import ndtr

from calibo.arrays import Array
from calibo.calibration import FittedModel, Record, experience_of
from calibo.diagnostics.plots import pit_histogram, reliability_diagram
from calibo.errors import InputError
from calibo.forecaster import Forecaster
from calibo.forecasts import Forecast
from calibo.html import paragraphs, table
from calibo.observations import Observations, spread
from calibo.optimizer import Optimizer
from calibo.optuna.reader import RequestedStrategy, read_study
from calibo.presets import get_strategy
from calibo.scoring import INTERVALS, Scores, quantile_crps, summary
from calibo.strategy import REPORTED, Strategy
from calibo.study import Result
from calibo.threads import one_blas_thread

GRID = 200  # quantiles to estimate the CRPS from
SAME = 1e-6  # sigmas within which an outcome equals its forecast
CHANCE = 1.96  # standard errors by which a share may differ from its nominal value
ONE_VIEW = "This strategy reports the forecasts that it decides with."
VAGUE = 0.3  # width of the interval of a share, from which there are too few outcomes to tell


@dataclass(frozen=True, eq=False)
class AuditedOutcome:
    """An outcome and its forecast."""

    trial: int
    """The number of the trial."""

    value: float
    """The outcome; smaller is better."""

    record: Record
    replayed: bool
    """True if no forecast was recorded, so that one was made afterwards from the earlier trials."""


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """How well the forecasts of a study were calibrated; print it for a report."""

    name: str
    outcomes: tuple[AuditedOutcome, ...]
    """Outcomes and the forecasts by which their points were chosen."""

    reports: tuple[AuditedOutcome, ...] | None = None
    """Outcomes and the forecasts that were reported; None if the strategy reports what it decides with."""

    @cached_property
    def reported(self) -> Scores | None:
        """Scores of the reported forecasts, as they were shown."""
        return _scores(self.reports, "calibrated") if self.reports else None

    @cached_property
    def raw(self) -> Scores:
        """Scores of the surrogate's forecasts."""
        return _scores(self.outcomes, "raw")

    @cached_property
    def calibrated(self) -> Scores:
        """Scores of the recalibrated forecasts."""
        return _scores(self.outcomes, "calibrated")

    @property
    def pits(self) -> dict[str, Array]:
        """(n,) PITs of each kind of forecast: near 0 if better than forecast, near 1 if worse."""
        decided = {part: ndtr(_normal_scores(self.outcomes, part)) for part in ("raw", "calibrated")}
        return {**decided, "reported": ndtr(_normal_scores(self.reports, "calibrated"))} if self.reports else decided

    def reliability_diagram(self) -> Any:
        """A Plotly figure: how often outcomes fell below each forecast quantile."""
        return reliability_diagram(self.pits)

    def pit_histogram(self) -> Any:
        """A Plotly figure: histogram of the PIT values."""
        return pit_histogram(self.pits)

    def sentences(self) -> list[str]:
        """The results in words."""
        if not self.outcomes and not self.reports:
            return ["No forecasts to check yet: they start with the third value, once values differ."]
        return self._about_reports() + self._about_decisions()

    def _about_reports(self) -> list[str]:
        if self.reports is None:
            return [ONE_VIEW]
        if self.reported is None:
            return []
        held, n = self.reported.coverage[0.9], len(self.reports)
        worse = _worse(_normal_scores(self.reports, "calibrated"))
        return [
            f"Reported: the 90 % intervals covered {_share(held, n)} of {n} outcomes: {_width(held, n)}. "
            f"{_share(worse, n)} were worse than the forecast median: {_optimism(worse, n)}."
        ]

    def _about_decisions(self) -> list[str]:
        if not self.outcomes:
            return []
        worse, n = _worse(_normal_scores(self.outcomes, "raw")), len(self.outcomes)
        recorded = [checked for checked in self.outcomes if not checked.replayed]
        start = "Decided: outcomes" if self.reports else "Outcomes"
        told = [f"{start} were worse than forecast in {_share(worse, n)} of {n} trials: {_optimism(worse, n)}."]
        held = self.raw.coverage[0.9]
        told.append(f"The 90 % intervals covered {_share(held, n)} of the outcomes: {_width(held, n)}.")
        told += _choices(self.outcomes) + _aims(self.outcomes)
        last = (recorded or self.outcomes)[-1]
        told.append(describe_correction(last.record, made=not last.replayed))
        corrected = _worse(_normal_scores(self.outcomes, "calibrated"))
        held = self.calibrated.coverage[0.9]
        when = "As recalibrated at the time" if recorded else "Recalibrated at every step"
        told.append(
            f"{when}, {_share(corrected, n)} were worse than forecast ({_optimism(corrected, n)}), "
            f"and the 90 % intervals covered {_share(held, n)} ({_width(held, n)})."
        )
        return told

    @property
    def head(self) -> tuple[str, ...]:
        """The names of the columns of the table."""
        return ("", *(kind for kind, _ in self.columns), "ideal")

    @property
    def columns(self) -> list[tuple[str, Scores]]:
        """The scores of each kind of forecast."""
        decided = [("raw", self.raw), ("calibrated", self.calibrated)] if self.outcomes else []
        return [*([] if self.reported is None else [("reported", self.reported)]), *decided]

    def table(self) -> list[tuple[str, ...]]:
        """Rows: name, the value of each kind of forecast (see ``head``), and the ideal value."""
        if not self.columns:
            return []

        def row(name: str, ideal: str, value: Callable[[Scores], str]) -> tuple[str, ...]:
            return (name, *(value(scores) for _, scores in self.columns), ideal)

        def covered(p: float) -> tuple[str, ...]:
            return row(f"coverage of the {_percent(p)} interval", _percent(p), lambda each: _percent(each.coverage[p]))

        return [
            row("calibration error", "0", lambda each: f"{each.calibration_error:.3f}"),
            row("calibration score", "0", lambda each: f"{each.calibration_score:.3f}"),
            *map(covered, INTERVALS),
            row("bias (above 0: worse than forecast)", "0", lambda each: f"{each.bias:+.3f}"),
            row("CRPS, in units of the value", "small", lambda each: f"{each.crps:.4g}"),
            row("log score", "large", lambda each: f"{each.log_score:.4g}"),
            row("sharpness (mean sigma)", "small", lambda each: f"{each.sharpness:.4g}"),
        ]

    @property
    def _most(self) -> tuple[AuditedOutcome, ...]:
        return max(self.outcomes, self.reports or (), key=len)

    @property
    def count(self) -> int:
        """The number of outcomes checked."""
        return len(self._most)

    @property
    def title(self) -> str:
        """The name of the study, and the number of outcomes checked."""
        replayed = sum(checked.replayed for checked in self._most)
        how = f", {replayed} of them made afterwards" if replayed else ""
        return f"{self.name}: {self.count} outcomes checked against out-of-sample forecasts{how}"

    def __repr__(self) -> str:
        shown = self.reported or (self.calibrated if self.outcomes else None)
        covered = "" if shown is None else f", 90 % intervals covered {_percent(shown.coverage[0.9])}"
        return f"Audit({self.name!r}, {self.count} outcomes{covered})"

    def _repr_html_(self) -> str:
        """For notebooks."""
        rows = [self.head, *self.table()]
        return f"{paragraphs([self.title])}{table(rows) if self.columns else ''}{paragraphs(self.sentences())}"

    def __str__(self) -> str:
        rows = [self.head, *self.table()] if self.columns else []
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([self.title, "", *lines, *([""] if lines else []), *self.sentences()])


def audit(source: Study | Result | Optimizer, *, strategy: str | Strategy | None = None) -> Audit:
    """Check the forecasts of a study with any sampler, a `Result` or an `Optimizer` against the outcomes.

    If a trial has no stored forecast, as with other samplers, one is made from the trials that finished before it.
    That uses ``strategy``, by default that of the study's sampler or of the optimizer.
    """
    if isinstance(source, Result):
        return _audit_study(source.study, source.strategy if strategy is None else strategy)
    if isinstance(source, Optimizer):
        observations, records, reports = source.history()
        used = source.strategy if strategy is None else source.with_optimum(get_strategy(strategy))
        return _audit("optimizer", used, observations, records, reports, list(range(len(records))))
    if not isinstance(source, Study):
        raise InputError(f"`source` must be an Optuna study, a Result or an Optimizer, but got {source!r}.")
    return _audit_study(source, strategy)


def _audit_study(study: Study, strategy: str | Strategy | RequestedStrategy | None) -> Audit:
    data = read_study(study, strategy)
    numbers = [trial.number for trial in data.trials]
    return _audit(study.study_name, data.strategy, data.observations, data.records, data.reports, numbers)


def _audit(
    name: str,
    strategy: Strategy,
    observations: Observations,
    records: Sequence[Record | None],
    reports: Sequence[Record | None],
    numbers: list[int],
) -> Audit:
    decided = _check(strategy.decider, observations, records, numbers, observations.impute().valid().first_scorable())
    if strategy.report is None:
        return Audit(name, decided)
    return Audit(name, decided, _check(strategy.report, observations, reports, numbers, REPORTED))


def describe_correction(record: Record, *, made: bool = True) -> str:
    """How calibo corrected a forecast, or would have if it was not ``made`` at the time, as a sentence."""
    done = "calibo " if made else "calibo would have "
    shift, factor = _moved(record)
    parts = []
    if abs(shift) >= 0.005:
        parts.append(
            f"shifted its last forecast by {abs(shift):.2f} sigma towards {'worse' if shift > 0 else 'better'} values"
        )
    if abs(factor - 1.0) >= 0.005:
        parts.append(f"made {'it' if parts else 'its last forecast'} {factor:.2f} times as wide")
    told = done + (" and ".join(parts) or "left its last forecast unchanged")
    known = ["what runs on other functions have shown"] if experience_of(record.model).outcomes else []
    if record.strength is not None:
        known.append(f"{_percent(record.strength)} of the correction estimated from the outcomes")
    told += f", applying {' and '.join(known)}" if known else ""
    return f"{told}."


def _choices(outcomes: tuple[AuditedOutcome, ...]) -> list[str]:
    """Which model has the highest weight, and since when."""
    chosen = [checked for checked in outcomes if checked.record.models]
    if not chosen:
        return []
    leaders = [(checked.trial, max(checked.record.models, key=checked.record.models.__getitem__)) for checked in chosen]
    last = leaders[-1][1]
    since = next(trial for i, (trial, _) in enumerate(leaders) if all(name == last for _, name in leaders[i:]))
    share = _percent(chosen[-1].record.models[last])
    others = sorted({name for _, name in leaders} - {last})
    before = f" (at times before that, the model of {' and of '.join(others)})" if others else ""
    return [f"The model of {last} has had the highest weight since trial {since}{before}; its weight is now {share}."]


def _aims(outcomes: tuple[AuditedOutcome, ...]) -> list[str]:
    """How often a known optimum was targeted, and why not."""
    aims = [checked.record.aim for checked in outcomes if checked.record.aim is not None]
    if not aims:
        return []
    told = f"The known optimum was targeted in {aims.count('regret')} of {len(aims)} trials"
    reasons = [
        f"in {aims.count(aim)} {why}"
        for aim, why in (
            ("another model", "a model without it forecast better"),
            ("out of reach", "it seemed out of reach of the best candidate"),
            ("wrong", "a value had surpassed it"),
        )
        if aim in aims
    ]
    others = f"; {' and '.join(reasons)}, so expected improvement was used instead" if reasons else ""
    return [f"{told}{others}."]


def _moved(record: Record) -> tuple[float, float]:
    """The shift of the median in sigmas, and the factor by which the width changed."""
    if record.raw.is_normal and record.calibrated.is_normal:
        loc, scale, median, width = map(float, (*record.raw.mean_and_std, *record.calibrated.mean_and_std))
        return (median - loc) / scale, width / scale
    low, middle, high = (
        float(record.raw.normal_score(float(y))) for y in record.calibrated.at_normal_score(np.array([-1.0, 0.0, 1.0]))
    )
    return middle, 0.5 * (high - low)


def _check(
    forecaster: Forecaster,
    observations: Observations,
    records: Sequence[Record | None],
    numbers: list[int],
    first: int,
) -> tuple[AuditedOutcome, ...]:
    """Outcomes and their recorded forecasts; from index ``first`` on, missing ones are made afterwards."""
    rows = np.flatnonzero(observations.feasible).tolist()
    valid, known = observations.impute().valid(), [records[i] for i in rows]
    fits, found = None, []
    scores = np.full(len(valid), np.nan)
    rng = np.random.default_rng(0)
    with one_blas_thread():
        for j, record in enumerate(known):
            if record is None and j >= first and spread(valid.y[:j]) > 0.0:
                fitted = forecaster.surrogate.fit(valid.head(j), rng=rng, previous=fits)
                fits = fitted.state
                before = replace(valid.head(j), scores=scores[:j])
                _, map = forecaster.fit_recalibration(FittedModel(forecaster.surrogate, fitted, before, rng))
                forecast = fitted.posterior(valid.x[[j]], noise=valid.noise_std[[j]])[0].calibrated(map)
                record = Record.from_forecast(forecast, forecaster.surrogate, models=fitted.models)
            if record is not None:
                record = record.with_noise(float(valid.noise_std[j]))
                scores[j] = record.raw.normal_score(float(valid.y[j]))
                found.append(AuditedOutcome(numbers[rows[j]], float(valid.y[j]), record, known[j] is None))
    return tuple(found)


def _worse(scores: Array) -> float:
    """The share of outcomes that were worse than their forecast median; ties count half."""
    same = np.abs(scores) < SAME
    return float(np.where(same, 0.5, scores > 0.0).mean())


def _scores(outcomes: tuple[AuditedOutcome, ...], part: str) -> Scores:
    def each(worth: Any) -> Array:
        return np.array([worth(getattr(checked.record, part), checked.value) for checked in outcomes])

    levels = (np.arange(GRID) + 0.5) / GRID

    def crps(forecast: Forecast, y: float) -> float:
        return quantile_crps(forecast.quantile(levels), y)

    def width(forecast: Forecast, _: float) -> float:
        return 0.5 * float(np.ptp(forecast.at_normal_score(np.array([-1.0, 1.0]))))

    density = each(lambda forecast, y: forecast.log_density(y))
    return summary(_normal_scores(outcomes, part), each(crps), density, each(width))


def _normal_scores(outcomes: tuple[AuditedOutcome, ...], part: str) -> Array:
    return np.array([getattr(checked.record, part).normal_score(checked.value) for checked in outcomes])


def _optimism(worse: float, n: int) -> str:
    if abs(worse - 0.5) > CHANCE * 0.5 / sqrt(n):
        return "the model was too optimistic" if worse > 0.5 else "the model was too pessimistic"
    return "consistent with 50 %" + _too_few(worse, n)


def _width(held: float, n: int) -> str:
    if abs(held - 0.9) > CHANCE * sqrt(0.09 / n):
        return "too narrow" if held < 0.9 else "too wide"
    return "consistent with 90 %" + _too_few(held, n)


def _too_few(share: float, n: int) -> str:
    low, high = _interval(share, n)
    return ", but too few to tell" if high - low > VAGUE else ""


def _interval(share: float, n: int) -> tuple[float, float]:
    """95 % interval of a share of ``n`` outcomes [WIL27]."""
    z2 = CHANCE**2 / n
    middle, half = share + 0.5 * z2, sqrt(z2 * (share * (1.0 - share) + 0.25 * z2))
    return (middle - half) / (1.0 + z2), (middle + half) / (1.0 + z2)


def _share(share: float, n: int) -> str:
    low, high = _interval(share, n)
    return f"{_percent(share)} ({100.0 * low:.0f} to {100.0 * high:.0f} %)"


def _percent(share: float) -> str:
    return f"{100.0 * share:.0f} %"
