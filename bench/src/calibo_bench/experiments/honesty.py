"""Honesty: do intervals hold from the first forecast on? A run asks, tells and recommends, as a person does."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Protocol

import numpy as np
from scipy.special import ndtri

from calibo import Forecast, Optimizer, Recommendation
from calibo.arrays import Array
from calibo.forecasts import CalibrationMap
from calibo.scoring import quantile_crps
from calibo.space import Params
from calibo_bench.clients import PeerProcess, client_of, source_digest
from calibo_bench.experiments.experiment import Experiment
from calibo_bench.markdown import interval, percent, table
from calibo_bench.problems.forecasting import HONESTY as PROBLEMS
from calibo_bench.problems.forecasting import HONESTY_HELD_OUT as HELD_OUT
from calibo_bench.problems.forecasting import LONG, NOISES, kind_of, unit
from calibo_bench.problems.suites import problems_of
from calibo_bench.problems.synthetic import Instance, Problem
from calibo_bench.runner import Key, Row, blank_row
from calibo_bench.statistics import Interval, ratio_of_means, share
from calibo_bench.targets import Archive, Report

__all__ = ["HONESTY", "Asking", "Told"]

BUDGET, LONGER, QUICK = 40, 80, 8
STAGES = ((3, 5), (6, 10), (11, 20), (21, 40), (41, 80))  # outcomes known
RECOMMENDED = (5, 10, 20, 40, 80)
REPEATS = 200  # evaluations whose mean is the truth of a cross-validated model
SLACK = 1e-9  # in units of the problem: rounding at outcomes without noise
LEVELS = (np.arange(100) + 0.5) / 100  # of the CRPS
EDGE = float(ndtri(0.95))  # the score at the ends of a 90 % interval
MOST = 30.0  # a score or a width of a run counts at most so much, in units of the problem

VIEWS = ("reported", "decided")
PRESETS = ("papers-online",)
PACKAGES = ("botorch", "botorch-saas")
OTHERS = (*PRESETS, *PACKAGES)
CATEGORIES = ("cv-trees-wine", "cv-splines-visits", "table-fcnet-naval", "table-fcnet-slice")
UNABLE = {(problem, "botorch-saas") for problem in CATEGORIES}  # it is for numbers only
FEW = 5  # seeds of other forecasts of the same outcomes
TIMEOUT = 120.0  # seconds for one answer of a peer


Found = dict[str, list[list[float]]]
"""Entries of next outcomes and of recommendations: see `Judge.entry`."""


@cache
def _unit(problem: str, seed: int) -> float:
    return unit(_instance(problem, seed))


@cache
def _instance(problem: str, seed: int) -> Instance:
    (found,) = problems_of(problem)
    return found.at(seed)


_KNOWN: dict[tuple[str, str], float] = {}


def _truth(problem: str, seed: int, params: Mapping[str, Any]) -> float:
    """The value free of noise; of a cross-validated model, the mean of many random evaluations."""
    instance = _instance(problem, seed)
    if instance.drawn is None:
        return instance.true_value(params)
    key = problem, repr(sorted(params.items()))
    if key not in _KNOWN:
        draws = [instance.drawn(params, np.random.default_rng([7, k])) for k in range(REPEATS)]
        _KNOWN[key] = float(np.mean(draws))
    return _KNOWN[key]


@dataclass(frozen=True, eq=False)
class Judge:
    """How forecasts of one problem are scored."""

    unit: float

    def entry(self, n: int, forecast: Forecast, value: float, raw: Forecast | None = None) -> list[float]:
        """n, scores of the value under the forecast and the ``raw`` one, and width, interval score, CRPS."""
        low, high = (float(end) for end in forecast.interval(0.9))
        missed = max(low - value, value - high, 0.0)
        middle = float(forecast.quantile(0.5))
        near = abs(value - middle) <= SLACK * self.unit
        scored = (forecast, forecast if raw is None else raw)
        after, before = (0.0, 0.0) if near else (each.normal_score(value) for each in scored)
        sizes = high - low, high - low + 20.0 * missed, quantile_crps(forecast.quantile(LEVELS), value)
        rounded = [float(f"{size / self.unit:.4g}") for size in sizes]
        return [n, *(float(np.round(np.clip(z, -99.0, 99.0), 4)) for z in (after, before)), *rounded]


@dataclass(frozen=True)
class Asking:
    """A run of calibo, judged by both views: a report does not change a decision."""

    problem: str
    seed: int
    budget: int

    @property
    def key(self) -> Key:
        return self.problem, "default", self.seed, self.budget, "honesty"

    def measured(self) -> Row:
        instance, judge = _instance(self.problem, self.seed), Judge(_unit(self.problem, self.seed))
        optimizer = Optimizer(instance.space, seed=self.seed)
        found: dict[str, Found] = {view: {"outcomes": [], "recommended": []} for view in VIEWS}
        for n, (params, outcome) in enumerate(_outcomes(optimizer, instance, self.seed, self.budget)):
            optimizer.tell(params, outcome)
            trial = optimizer.trials[-1]
            for view, record in zip(VIEWS, (trial.report, trial.record), strict=True):
                if record is not None:
                    noise = (record.noise or 0.0) / _half_width(record.raw)
                    entry = judge.entry(n, record.calibrated, outcome, record.raw)
                    found[view]["outcomes"].append([*entry, round(noise, 3)])
            if n + 1 in RECOMMENDED:
                for view, (params, advice, raw) in _recommendations(optimizer).items():
                    truth = _truth(self.problem, self.seed, params)
                    entry = judge.entry(n + 1, advised(advice), truth, raw)
                    noise = advice.noise / np.hypot(advice.noise, _half_width(raw))
                    found[view]["recommended"].append([*entry, round(float(noise), 3)])
        return _row(self.key, instance, found, {"calibo source": source_digest()})


def _recommendations(optimizer: Optimizer) -> dict[str, tuple[Params, Recommendation, Forecast]]:
    """By view: the recommended parameters, their recommendation, and the forecast there before its correction."""
    observations, params = optimizer.history()[0], [trial.params for trial in optimizer.trials if trial.feasible]
    found = {}
    for view, strategy in zip(VIEWS, (optimizer.strategy, replace(optimizer.strategy, report=None)), strict=True):
        fitted = strategy.fit(observations, rng=np.random.default_rng([optimizer.seed, len(observations)]))
        advice = fitted.recommend(params, 1.0)
        found[view] = advice.params, advice, fitted.forecast(optimizer.space.to_cube(advice.params)[None])[0].raw
    return found


class Teller(Protocol):
    """What is told the outcomes of calibo's runs."""

    versions: Mapping[str, str]

    def tell(self, params: Params, value: float) -> None: ...

    def next_outcome(self, params: Params) -> Forecast:
        """Of an observation at a point that calibo asks for."""
        ...

    def recommended(self) -> tuple[Params, Forecast]:
        """The point that it recommends, and the forecast of the function there."""
        ...

    def close(self) -> None: ...


class _Preset:
    """Another strategy of calibo."""

    def __init__(self, name: str, instance: Instance, seed: int) -> None:
        self.optimizer = Optimizer(instance.space, seed=seed, strategy=name)
        self.versions: Mapping[str, str] = {}

    def tell(self, params: Params, value: float) -> None:
        self.optimizer.tell(params, value)

    def next_outcome(self, params: Params) -> Forecast:
        return self.optimizer.forecast(params, noise=True)

    def recommended(self) -> tuple[Params, Forecast]:
        advice = self.optimizer.recommend()
        return advice.params, advised(advice)

    def close(self) -> None:
        pass


class _Package:
    """The posterior of another package."""

    def __init__(self, name: str, instance: Instance, seed: int) -> None:
        client = client_of(name, TIMEOUT)
        assert isinstance(client, PeerProcess)
        self.client, self.instance = client, instance
        self.versions = client.begin(instance, seed)

    def tell(self, params: Params, value: float) -> None:
        self.client.tell(params, value)

    def next_outcome(self, params: Params) -> Forecast:
        mean, observed, _ = self.client.forecast(params)
        return _normal(mean, observed)

    def recommended(self) -> tuple[Params, Forecast]:
        params = self.instance.complete(self.client.recommend() or {})
        mean, _, std = self.client.forecast(params)
        return params, _normal(mean, std)

    def close(self) -> None:
        self.client.close()


@dataclass(frozen=True)
class Told:
    """The forecasts of another strategy or package, told the outcomes of calibo's runs."""

    problem: str
    view: str
    seed: int
    budget: int

    @property
    def key(self) -> Key:
        return self.problem, self.view, self.seed, self.budget, "honesty"

    def measured(self) -> Row:
        instance, judge = _instance(self.problem, self.seed), Judge(_unit(self.problem, self.seed))
        optimizer = Optimizer(instance.space, seed=self.seed, strategy="default+unreported")
        other: Teller = (_Preset if self.view in PRESETS else _Package)(self.view, instance, self.seed)
        found: Found = {"outcomes": [], "recommended": []}
        for n, (params, outcome) in enumerate(_outcomes(optimizer, instance, self.seed, self.budget)):
            if n in RECOMMENDED:
                found["outcomes"].append(judge.entry(n, other.next_outcome(params), outcome))
            optimizer.tell(params, outcome)
            other.tell(params, outcome)
            if n + 1 in RECOMMENDED:
                taken, forecast = other.recommended()
                found["recommended"].append(judge.entry(n + 1, forecast, _truth(self.problem, self.seed, taken)))
        other.close()
        return _row(self.key, instance, {self.view: found}, {**other.versions, "calibo source": source_digest()})


def _outcomes(optimizer: Optimizer, instance: Instance, seed: int, budget: int) -> Iterator[tuple[Any, float]]:
    """What is asked for, and its outcome; one more than the budget, for a forecast from all of it."""
    for n in range(budget + 1):
        params = optimizer.ask()
        yield params, instance.evaluate(params, np.random.default_rng([seed, n, 7]))[1]


def _normal(mean: float, std: float) -> Forecast:
    return Forecast.normal(np.array([mean]), np.array([max(std, 1e-300)]))[0]


def advised(advice: Recommendation) -> Forecast:
    """The forecast of a recommendation: its ends and median are known, and it is taken as Normal on either side."""
    low, high = advice.interval
    below, above = (max(abs(end - advice.median) / EDGE, 1e-300) for end in (low, high))
    return _normal(advice.median, 1.0).calibrated(CalibrationMap(np.zeros(1), np.zeros(1), 1.0 / below, 1.0 / above))


def _half_width(forecast: Forecast) -> float:
    low, high = forecast.at_normal_score(np.array([-1.0, 1.0]))
    return max(0.5 * float(high - low), 1e-300)


def _row(key: Key, instance: Instance, found: Mapping[str, Found], versions: Mapping[str, str]) -> Row:
    return {**blank_row(key), "d": len(instance.space), "honesty": found, "versions": dict(versions)}


def _cells(problems: Sequence[Problem], others: Sequence[str], seeds: int, quick: bool) -> list[Asking | Told]:
    names = [problem.name for problem in problems][: 4 if quick else None]
    own = [Asking(name, seed, _budget(name, quick)) for seed in range(seeds) for name in names]
    few, longest = min(seeds, FEW), QUICK if quick else BUDGET
    told = [Told(name, other, seed, longest) for seed in range(few) for name in names for other in others]
    return [*own, *(cell for cell in told if (cell.problem.partition("+")[0], cell.view) not in UNABLE)]


def _budget(name: str, quick: bool) -> int:
    long = name.partition("+")[0] in LONG
    return QUICK if quick else LONGER if long else BUDGET


# the page

ABOUT = f"""
Each problem is run without noise and with two of these kinds: Gaussian noise of 5, 20 and 50 % of the standard
deviation of the values over the space; noise that grows along the first axis from 0 to 40 % ("uneven"); Student t noise
with three degrees of freedom and a standard deviation of 20 % ("tails"). Models judged by cross-validation have the
noise of their splits ("real"). {BUDGET} outcomes, {LONGER} on a quarter of the problems. Both views of calibo have the
same outcomes, because a report does not change a decision. Forecasts of the deciding view start after the initial
design.
""".strip().replace("\n", " ")
READING = """
Covered: share of values in the 90 % interval; in brackets a 95 % interval that resamples problems and their runs. Of
next outcomes, under the forecast made when the point was asked for. Of recommendations, the true value of the
recommended point. Widths of 90 % intervals (median), CRPS and interval score (means over runs) are in units of the
standard deviation of the values; a run counts at most 30.
""".strip().replace("\n", " ")

ALL_NOISES = (*NOISES, "real")
Entries = list[list[float]]


@dataclass(frozen=True)
class Runs:
    """Rows of one view."""

    view: str
    rows: Sequence[Row]

    @classmethod
    def of(cls, view: str, rows: Sequence[Row]) -> "Runs":
        return cls(view, [row for row in rows if view in row["honesty"]])

    def only(self, kinds: Sequence[str]) -> "Runs":
        return replace(self, rows=[row for row in self.rows if kind_of(row["problem"]) in kinds])

    def by_problem(self, part: str, first: int, last: int) -> dict[str, dict[tuple[str, int], Array]]:
        """Entries (m, 6 or 7) by problem, its noise left out, and run."""
        found: dict[str, dict[tuple[str, int], Array]] = {}
        for row in self.rows:
            entries = [entry for entry in row["honesty"][self.view][part] if first <= entry[0] <= last]
            if entries:
                problem = row["problem"].partition("+")[0]
                found.setdefault(problem, {})[row["problem"], row["seed"]] = np.array(entries)
        return found


def _held(entries: Array, level: float = 0.9) -> float:
    return float((np.abs(entries[:, 1]) <= ndtri(0.5 + 0.5 * level)).mean())


def _coverage(groups: Mapping[str, Mapping[Any, Array]], level: float = 0.9) -> Interval:
    return share([np.array([_held(run, level) for run in runs.values()]) for runs in groups.values()])


def _mean(groups: Mapping[str, Mapping[Any, Array]], of: Any) -> float:
    return float(np.mean([np.mean([of(run) for run in runs.values()]) for runs in groups.values()]))


def _tail(groups: Mapping[str, Mapping[Any, Array]], way: int) -> float:
    """The share of values beyond one end of the 90 % interval: the lower for -1, the upper for 1."""
    return _mean(groups, lambda run: float((way * run[:, 1] > EDGE).mean()))


def _capped(run: Array, column: int) -> float:
    return min(float(run[:, column].mean()), MOST)


def _percent(found: Interval) -> str:
    middle, low, high = found
    return percent(middle) + (f" ({percent(low)} to {percent(high)})" if np.isfinite(low) else "")


def _line(groups: Mapping[str, Mapping[Any, Array]]) -> list[str]:
    if not groups:
        return ["0", *[""] * 6]
    below, above = (_tail(groups, way) for way in (-1, 1))
    others = " / ".join(percent(_mean(groups, partial(_held, level=level))) for level in (0.5, 0.8))
    width = np.median([value for runs in groups.values() for run in runs.values() for value in run[:, 3]])
    sizes = [f"{width:.2g}", *(f"{_mean(groups, partial(_capped, column=column)):.3g}" for column in (5, 4))]
    runs = sum(len(group) for group in groups.values())
    return [str(runs), _percent(_coverage(groups)), f"{percent(below)} / {percent(above)}", others, *sizes]


HEAD = ["runs", "covered", "below / above", "50 % / 80 %", "width", "CRPS", "interval score"]


def _tables(views: Mapping[str, Runs], part: str, stages: Sequence[tuple[int, int]]) -> str:
    lines = []
    for label, kinds in {"no noise": ("none",), **{k: (k,) for k in ALL_NOISES}, "any noise": ALL_NOISES}.items():
        for first, last in stages:
            for view in VIEWS:
                groups = views[view].only(kinds).by_problem(part, first, last)
                if groups:
                    lines.append([label, _stage(first, last), view, *_line(groups)])
    return table(["noise", "outcomes", "view", *HEAD], lines)


def _stage(first: int, last: int) -> str:
    return str(first) if first == last else f"{first} to {last}"


LABELS = {"outcomes": "next outcomes", "recommended": "recommendations"}


def _of_problems(view: Runs, part: str) -> dict[str, Interval]:
    """Coverage by problem, the stages and kinds of noise together."""
    found = {}
    for problem, runs in view.by_problem(part, 3, LONGER).items():
        by_seed: dict[int, list[float]] = {}
        for (_, seed), run in runs.items():
            by_seed.setdefault(seed, []).append(_held(run))
        found[problem] = share([np.array([np.mean(values) for values in by_seed.values()])])
    return found


def _problems(view: Runs) -> str:
    lines = [
        [label, problem, _percent(held), "" if _within(held[2], 0.8, 1.0) else "below 80 %"]
        for part, label in LABELS.items()
        for problem, held in _of_problems(view, part).items()
    ]
    return table(["", "problem", "covered", ""], lines)


def _aims(view: Runs) -> str:
    """What was aimed for, and where it was missed."""
    cells = {
        f"{kind}, {_stage(*stage)}": view.only([kind]).by_problem("outcomes", *stage)
        for kind in ("none", *ALL_NOISES)
        for stage in STAGES
    }
    cells = {name: groups for name, groups in cells.items() if groups}
    outside = {name: _coverage(groups)[0] for name, groups in cells.items()}
    tails = {name: max(_tail(groups, -1), _tail(groups, 1)) for name, groups in cells.items()}
    lines = [
        ["next outcomes: 85 to 95 % at every stage and kind of noise", *_missed(outside, 0.85, 0.95)],
        ["next outcomes: at most 8 % in each tail", *_missed(tails, 0.0, 0.08)],
    ]
    for label, kinds, most in (("with", ALL_NOISES, 0.95), ("without", ("none",), 1.0)):
        groups = view.only(kinds).by_problem("recommended", 3, LONGER)
        if groups:
            pooled = _coverage(groups)
            missed = "" if _within(pooled[0], 0.85, most) else "missed"
            aim = f"85 to {percent(most)}" if most < 1.0 else "at least 85 %"
            lines.append([f"recommendations {label} noise: {aim}", _percent(pooled), missed])
    lines += [
        [f"{label}: no problem with an interval below 80 %", *_missed(_uppers(view, part), 0.8, 1.0)]
        for part, label in LABELS.items()
    ]
    return table(["aim", "found", "missed"], lines)


def _uppers(view: Runs, part: str) -> dict[str, float]:
    """The upper ends of the intervals of problems with several runs."""
    found = {problem: held[2] for problem, held in _of_problems(view, part).items()}
    return {problem: high for problem, high in found.items() if np.isfinite(high)}


def _missed(found: Mapping[str, float], least: float, most: float) -> list[str]:
    """How many are within these bounds, and which are not."""
    outside = [f"{name}: {percent(value)}" for name, value in found.items() if not _within(value, least, most)]
    return [f"met in {len(found) - len(outside)} of {len(found)}", "; ".join(outside)]


def _within(value: float, least: float, most: float) -> bool:
    """As shown on the page."""
    return not np.isfinite(value) or round(100 * least) <= round(100 * value) <= round(100 * most)


def _compared(views: Mapping[str, Runs], other: str, part: str, stages: Sequence[tuple[int, int]]) -> list[list[str]]:
    """Interval scores of the reported view, divided by those of the other on the same outcomes."""
    lines = []
    for label, kinds in {"no noise": ("none",), "any noise": ALL_NOISES, "all": ("none", *ALL_NOISES)}.items():
        for first, last in (*stages, (stages[0][0], stages[-1][1])):
            theirs = views[other].only(kinds).by_problem(part, first, last)
            ours = views["reported"].only(kinds).by_problem(part, first, last)
            scores, held = [], []
            for problem, runs in theirs.items():
                pairs = [_paired(ours[problem][key], run) for key, run in runs.items() if key in ours.get(problem, {})]
                pairs = [pair for pair in pairs if len(pair[0])]
                if pairs:
                    scores.append(np.array([[_capped(run, 4) for run in pair] for pair in pairs]))
                    held.append(np.mean([[_held(run) for run in pair] for pair in pairs], axis=0))
            if scores:
                shares = [percent(value) for value in np.mean(held, axis=0)]
                count = str(sum(map(len, scores)))
                lines.append([other, label, _stage(first, last), count, *shares, interval(ratio_of_means(scores))])
    return lines


def _paired(a: Array, b: Array) -> tuple[Array, Array]:
    """The entries with the same number of outcomes."""
    both = np.intersect1d(a[:, 0], b[:, 0])
    return a[np.isin(a[:, 0], both)], b[np.isin(b[:, 0], both)]


def _report(archive: Archive, half: Sequence[Problem], told: str) -> Report:
    names = {problem.name for problem in half}
    rows = [row for row in archive.rows if not row["error"] and row["problem"] in names and row["seed"] < archive.seeds]
    views = {view: Runs.of(view, rows) for view in (*VIEWS, *OTHERS)}
    if not views["reported"].rows:
        return Report(f"{told}\n\nThere are no runs.")
    at = [(n, n) for n in RECOMMENDED]
    others = {"outcomes": STAGES, "recommended": at}
    compared = {
        part: [
            *_compared(views, "decided", part, stages),
            *(line for other in OTHERS for line in _compared(views, other, part, at[:4])),
        ]
        for part, stages in others.items()
    }
    few = f"; {FEW} for the forecasts of others" if any(views[other].rows for other in OTHERS) else ""
    against = ["beside", "noise", "outcomes", "runs", "covered", "covered by it", "interval score / its"]
    parts = [
        f"{told} {archive.seeds} seeds{few}. {ABOUT}",
        READING,
        "## Aims",
        "Reported view. A kind of noise at a stage, or a problem, counts as one. Of problems, upper ends are shown.",
        _aims(views["reported"]),
        "## Next outcomes",
        _tables(views, "outcomes", STAGES),
        "## Recommendations",
        _tables(views, "recommended", at),
        "## Beside other forecasts of the same outcomes",
        "Mean interval scores, ours divided by theirs: below 1 the reported intervals are better. Posteriors of peers "
        "are Normal.",
        "### Next outcomes",
        table(against, compared["outcomes"]),
        "### Recommendations",
        table(against, compared["recommended"]),
        "## By problem",
        "Reported view, all stages and kinds of noise; intervals resample seeds.",
        _problems(views["reported"]),
    ]
    return Report("\n\n".join(parts))


CHOSEN = "**Development half:** the reported model was chosen on some of these problems, or on others like them."
CONFIRMED = "**Confirmation half:** nothing was chosen on these problems."


HONESTY = (
    Experiment(
        "honesty",
        "Do the intervals hold?",
        partial(_cells, PROBLEMS, ()),
        lambda archive: _report(archive, PROBLEMS, CHOSEN),
    ),
    Experiment(
        "honesty-held-out",
        "Do the intervals hold? Confirmation",
        partial(_cells, HELD_OUT, OTHERS),
        lambda archive: _report(archive, HELD_OUT, CONFIRMED),
    ),
)
