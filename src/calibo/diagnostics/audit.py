"""Audit: checks the forecasts of a study against the outcomes."""

from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np
from optuna.study import Study
from scipy.special import ndtr

from calibo.arrays import Array
from calibo.calibration import FittedModel, Record
from calibo.diagnostics.plots import pit_histogram, reliability_diagram
from calibo.errors import InputError
from calibo.forecasts import Forecast
from calibo.html import paragraphs, table
from calibo.observations import Observations
from calibo.optimizer import Optimizer
from calibo.optuna.reader import RequestedStrategy, read_study
from calibo.presets import get_strategy
from calibo.scoring import INTERVALS, Scores, quantile_crps, summary
from calibo.strategy import Strategy
from calibo.study import Result
from calibo.threads import one_blas_thread

GRID = 200  # quantiles to estimate the CRPS from
SAME = 1e-6  # sigmas within which an outcome equals its forecast
CHANCE = 1.96  # standard errors by which a share may differ from its nominal value


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

    @cached_property
    def raw(self) -> Scores:
        """Scores of the surrogate's forecasts."""
        return _scores(self.outcomes, "raw")

    @cached_property
    def calibrated(self) -> Scores:
        """Scores of the recalibrated forecasts, by which points were chosen."""
        return _scores(self.outcomes, "calibrated")

    @property
    def pits(self) -> dict[str, Array]:
        """(n,) PITs of the raw and the calibrated forecasts: near 0 if better than forecast, near 1 if worse."""
        return {part: ndtr(_normal_scores(self.outcomes, part)) for part in ("raw", "calibrated")}

    def reliability_diagram(self) -> Any:
        """A Plotly figure: how often outcomes fell below each forecast quantile."""
        return reliability_diagram(self.pits)

    def pit_histogram(self) -> Any:
        """A Plotly figure: histogram of the PIT values."""
        return pit_histogram(self.pits)

    def sentences(self) -> list[str]:
        """The results in words."""
        if not self.outcomes:
            return ["No forecasts to check yet: they start after the initial design, once values differ."]
        worse, n = _worse(_normal_scores(self.outcomes, "raw")), len(self.outcomes)
        recorded = [checked for checked in self.outcomes if not checked.replayed]
        told = [f"Outcomes were worse than forecast in {_percent(worse)} of the trials: {_optimism(worse, n)}."]
        held = self.raw.coverage[0.9]
        told.append(f"The 90 % intervals covered {_percent(held)} of the outcomes: {_width(held, n)}.")
        told += _choices(self.outcomes) + _aims(self.outcomes)
        last = (recorded or self.outcomes)[-1]
        told.append(describe_correction(last.record, made=not last.replayed))
        corrected = _worse(_normal_scores(self.outcomes, "calibrated"))
        held = self.calibrated.coverage[0.9]
        when = "As recalibrated at the time" if recorded else "Recalibrated at every step"
        told.append(
            f"{when}, {_percent(corrected)} were worse than forecast ({_optimism(corrected, n)}), "
            f"and the 90 % intervals covered {_percent(held)} ({_width(held, n)})."
        )
        return told

    def table(self) -> list[tuple[str, ...]]:
        """Rows: name, raw, calibrated, and the ideal value."""
        raw, calibrated = self.raw, self.calibrated
        inside = [[_percent(scores.coverage[p]) for p in INTERVALS] for scores in (raw, calibrated)]
        wanted = [_percent(p) for p in INTERVALS]
        covered = [(f"coverage of the {p} interval", *both, p) for p, *both in zip(wanted, *inside, strict=True)]
        return [
            ("calibration error", f"{raw.calibration_error:.3f}", f"{calibrated.calibration_error:.3f}", "0"),
            ("calibration score", f"{raw.calibration_score:.3f}", f"{calibrated.calibration_score:.3f}", "0"),
            *covered,
            ("bias (above 0: worse than forecast)", f"{raw.bias:+.3f}", f"{calibrated.bias:+.3f}", "0"),
            ("CRPS, in units of the value", f"{raw.crps:.4g}", f"{calibrated.crps:.4g}", "small"),
            ("log score", f"{raw.log_score:.4g}", f"{calibrated.log_score:.4g}", "large"),
            ("sharpness (mean sigma)", f"{raw.sharpness:.4g}", f"{calibrated.sharpness:.4g}", "small"),
        ]

    @property
    def title(self) -> str:
        """The name of the study, and the number of outcomes checked."""
        replayed = sum(checked.replayed for checked in self.outcomes)
        how = f", {replayed} of them made afterwards" if replayed else ""
        return f"{self.name}: {len(self.outcomes)} outcomes checked against out-of-sample forecasts{how}"

    def __repr__(self) -> str:
        covered = f", 90 % intervals covered {_percent(self.calibrated.coverage[0.9])}" if self.outcomes else ""
        return f"Audit({self.name!r}, {len(self.outcomes)} outcomes{covered})"

    def _repr_html_(self) -> str:
        """For notebooks."""
        rows = [("", "raw", "calibrated", "ideal"), *self.table()] if self.outcomes else []
        return f"{paragraphs([self.title])}{table(rows) if rows else ''}{paragraphs(self.sentences())}"

    def __str__(self) -> str:
        rows = [("", "raw", "calibrated", "ideal"), *self.table()] if self.outcomes else []
        widths = [max(len(row[i]) for row in rows) for i in range(4)] if rows else []
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
        observations, records = source.history()
        used = source.strategy if strategy is None else source.with_optimum(get_strategy(strategy))
        return Audit("optimizer", _check(used, observations, records, list(range(len(records)))))
    if not isinstance(source, Study):
        raise InputError(f"`source` must be an Optuna study, a Result or an Optimizer, but got {source!r}.")
    return _audit_study(source, strategy)


def _audit_study(study: Study, strategy: str | Strategy | RequestedStrategy | None) -> Audit:
    data = read_study(study, strategy)
    numbers = [trial.number for trial in data.trials]
    return Audit(study.study_name, _check(data.strategy, data.observations, list(data.records), numbers))


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
    if record.strength is not None:
        told += f", applying {_percent(record.strength)} of the correction estimated from the outcomes"
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
    strategy: Strategy, observations: Observations, records: list[Record | None], numbers: list[int]
) -> tuple[AuditedOutcome, ...]:
    rows = np.flatnonzero(observations.feasible).tolist()
    valid, known = observations.impute().valid(), [records[i] for i in rows]
    first, fits, found = valid.first_scorable(), None, []
    scores = np.full(len(valid), np.nan)
    rng = np.random.default_rng(0)
    with one_blas_thread():
        for j, record in enumerate(known):
            if record is None and j >= first:
                fitted = strategy.surrogate.fit(valid.head(j), rng=rng, previous=fits)
                fits = fitted.state
                before = replace(valid.head(j), scores=scores[:j])
                _, map = strategy.fit_recalibration(FittedModel(strategy.surrogate, fitted, before, rng))
                forecast = fitted.posterior(valid.x[[j]], noise=valid.noise_std[[j]])[0].calibrated(map)
                record = Record.from_forecast(forecast, strategy.surrogate, models=fitted.models)
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
    if abs(worse - 0.5) <= CHANCE * 0.5 / sqrt(n):
        return "consistent with 50 %"
    return "the model was too optimistic" if worse > 0.5 else "the model was too pessimistic"


def _width(held: float, n: int) -> str:
    if abs(held - 0.9) <= CHANCE * sqrt(0.09 / n):
        return "consistent with 90 %"
    return "too narrow" if held < 0.9 else "too wide"


def _percent(share: float) -> str:
    return f"{100.0 * share:.0f} %"
