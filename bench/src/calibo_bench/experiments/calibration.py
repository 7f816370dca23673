"""Effect of calibration and model choice on optimization and forecasts, on the suite "calibration".

Twelve functions without noise in cropped boxes, and eight with Gaussian, heteroscedastic or heavy-tailed noise or with
warped axes.
"""

from collections.abc import Sequence

import numpy as np

from calibo.scoring import Scores
from calibo_bench.experiments.experiment import Experiment
from calibo_bench.problems.suites import SUITES
from calibo_bench.report import under_noise
from calibo_bench.runner import Cell, Row
from calibo_bench.statistics import Results
from calibo_bench.targets import Archive, Report

__all__ = ["CALIBRATION"]

BUDGET, LONG, QUICK = 30, 50, 12
PLAIN, DEFAULT = "calibo-plain", "calibo"  # in these rows the default always decides with calibrated forecasts
ALONE = "calibo-plain+choice"  # the default without recalibration
STRATEGIES = {
    PLAIN: "none",
    DEFAULT: "default: model choice, prequential scores, gate",
    ALONE: "none, model choice",
    "calibo+single": "gate",
    "calibo-plain+shift-scale": "shift-scale on prequential scores",
    "calibo-plain+choice+shift-scale": "shift-scale on prequential scores, model choice",
    "calibo-plain+online": "online",
    "calibo-plain+choice+online": "online, model choice",
    "calibo-plain+time-series": "time series, sigma scale",
    "calibo-plain+loo-sigma": "refitted leave-one-out, sigma scale",
    "calibo-plain+loo-gp": "refitted leave-one-out, GP recalibrator",
    "calibo-plain+lcb1": "LCB, 1 sigma",
}
LCB = [f"calibo-plain+lcb{kappa}" for kappa in ("0.5", "1", "1.5", "2", "3")]
"""The LCB weight in STRATEGIES is the best of these on other functions, of which two are in the suite with noise."""

OTHERS = ("goldstein_price", "dixon_price4", "rastrigin3", "hartmann3", "levy5", "ackley5")
KINDS = {
    "noisy": "noisy",
    "heteroscedastic": "heteroscedastic",
    "heavy_tailed": "heavy-tailed",
    "warped": "non-stationary",
}
NOISY = ("noisy", "heteroscedastic", "heavy-tailed")
ABOUT = """
Twelve functions without noise in cropped boxes and eight with Gaussian, heteroscedastic or heavy-tailed noise or with
warped axes; the same first max(5, d + 1) points for all strategies of a seed. Ratios to the plain Gaussian process
without calibration are geometric means over problems and seeds (below 1 is better). The 95 % intervals resample
problems, then seeds. Final regrets are floored at 1e-3 of a problem's range. The calibration error is that of the
forecasts used, pooled over the seeds of a problem and averaged over problems. If a strategy has fewer seeds, ratios use
the shared ones. These rows are older than the rule of decisions: the default always decides with calibrated forecasts.
""".strip().replace("\n", " ")


def _cells(seeds: int, quick: bool) -> list[Cell]:
    suite = [problem.name for problem in SUITES["calibration"]]
    if quick:
        return [Cell(p, s, seed, QUICK) for seed in range(seeds) for p in suite for s in (PLAIN, DEFAULT)]
    runs = [Cell(p, s, seed, BUDGET) for s in STRATEGIES for seed in range(seeds) for p in suite]
    tuning = [Cell(f"{p}-cropped", s, seed, BUDGET) for seed in range(10) for p in OTHERS for s in (PLAIN, *LCB)]
    return [*runs, *tuning, *(Cell(p, DEFAULT, seed, LONG) for seed in range(min(seeds, 20)) for p in suite)]


def _kind(problem: str) -> str:
    return next((name for word, name in KINDS.items() if problem.endswith(word)), "clean")


def _part(results: Results, problems: Sequence[str], names: Sequence[str]) -> Results:
    return Results([row for row in results.rows if row["problem"] in problems and row["strategy"] in names])


def _interval(values: Sequence[float]) -> str:
    middle, low, high = values
    return f"{middle:.3g}" if np.isnan(low) else f"{middle:.3g} ({low:.3g} to {high:.3g})"


def _comparable(rows: Sequence[Row]) -> list[Row]:
    """The rows of strategies that were run on the same problems as the plain one."""
    known = {row["problem"] for row in rows if row["strategy"] == PLAIN}
    counts = {
        name: {row["problem"] for row in rows if row["strategy"] == name} for name in {r["strategy"] for r in rows}
    }
    whole = {name for name, problems in counts.items() if problems == known}
    return [row for row in rows if row["strategy"] in whole]


def _tuned(archive: Archive) -> str:
    """The LCB weight and its alternatives."""
    others = {f"{name}-cropped" for name in OTHERS}
    rows = [row for row in archive.rows if not row["error"] and row["problem"] in others]
    results = Results(rows)
    if not {PLAIN, *LCB} <= set(results.strategies):
        return ""
    best = min(LCB, key=lambda name: results.compared(name, PLAIN).area[0])
    return f"Of five LCB weights, that of {best!r} has the smallest area on six other functions."


def _scored(results: Results, name: str) -> Scores:
    found = results.scores(name)
    assert found is not None, "every calibo strategy forecasts"
    return found


def _errors(results: Results, name: str, problem: str) -> tuple[float, float]:
    """Calibration error of the forecasts used, pooled over seeds, and its standard error by a bootstrap of seeds."""
    rows = [row for row in results.rows if row["strategy"] == name and row["problem"] == problem and row["forecasts"]]
    rng = np.random.default_rng(0)
    draws = [
        _scored(Results([rows[i] for i in rng.integers(len(rows), size=len(rows))]), name).calibration_error
        for _ in range(50)
    ]
    return _scored(Results(rows), name).calibration_error, float(np.std(draws))


def _report(archive: Archive) -> Report:
    suite = {problem.name for problem in SUITES["calibration"]}
    whole = [row for row in archive.rows if not row["error"] and row["problem"] in suite]
    budget = QUICK if archive.quick else BUDGET
    results = Results(_comparable([row for row in whole if row["budget"] == budget and row["seed"] < archive.seeds]))
    if PLAIN not in results.strategies:
        return Report("There are no runs of the plain strategy to compare with.")
    names = {name: STRATEGIES.get(name, f"LCB, {name.rpartition('lcb')[2]} sigma") for name in results.strategies}
    seeds = {name: len({row["seed"] for row in results.rows if row["strategy"] == name}) for name in names}
    kinds = list(dict.fromkeys(_kind(problem) for problem in results.problems))
    lines = [
        f"{budget} evaluations. {ABOUT} {under_noise(results.rows)} {_tuned(archive)}".strip(),
        "",
        "| strategy | seeds | final regret | area | calibration error | wins / ties / losses |",
        "|---|---|---|---|---|---|",
    ]
    for name, told in names.items():
        scored = [_errors(results, name, p) for p in _part(results, results.problems, [name]).problems]
        error = (
            f"{np.mean([e for e, _ in scored]):.3f} ± {np.sqrt(np.mean([s**2 for _, s in scored]) / len(scored)):.3f}"
        )
        if name == PLAIN:
            lines.append(f"| {told} | {seeds[name]} | 1 | 1 | {error} | |")
            continue
        beside = results.compared(name, PLAIN)
        counts = f"{beside.wins} / {beside.ties} / {beside.losses}"
        lines.append(
            f"| {told} | {seeds[name]} | {_interval(beside.regret)} | {_interval(beside.area)} | {error} | {counts} |"
        )
    lines += ["", "## By kind of problem", "", "Area ratio to none.", "", "| strategy | " + " | ".join(kinds) + " |"]
    lines.append("|---" * (len(kinds) + 1) + "|")
    for name, told in names.items():
        if name != PLAIN:
            cells = []
            for each in kinds:
                group = _part(results, [p for p in results.problems if _kind(p) == each], [name, PLAIN])
                cells.append(_interval(group.compared(name, PLAIN).area) if name in group.strategies else "")
            lines.append(f"| {told} | " + " | ".join(cells) + " |")
    long = [row for row in whole if row["budget"] == LONG]
    return Report("\n".join(lines + _alone(results, kinds) + _targets(results) + _coverage(long)))


def _alone(results: Results, kinds: Sequence[str]) -> list[str]:
    """The default with and without recalibration."""
    if ALONE not in results.strategies or DEFAULT not in results.strategies:
        return []
    lines = [
        "",
        "## Calibration alone",
        "",
        "The default versus the same model choice without recalibration: "
        "final regret and area (below 1: recalibration helps), and calibration error. With and without noise the "
        "effects may be opposite, so they are not averaged.",
        "",
        "| kind | final regret | area | error without | error with |",
        "|---|---|---|---|---|",
    ]
    groups = {each: (each,) for each in kinds} | {"any noise": NOISY}
    for each, chosen in groups.items():
        problems = [p for p in results.problems if _kind(p) in chosen]
        if not problems:
            continue
        beside = _part(results, problems, [DEFAULT, ALONE]).compared(DEFAULT, ALONE)
        without, having = (np.mean([_errors(results, name, p)[0] for p in problems]) for name in (ALONE, DEFAULT))
        lines.append(
            f"| {each} | {_interval(beside.regret)} | {_interval(beside.area)} | {without:.3f} | {having:.3f} |"
        )
    return lines


def _targets(results: Results) -> list[str]:
    if DEFAULT not in results.strategies:
        return []
    lines = [
        "",
        "## The default on each problem",
        "",
        "| problem | final regret, ratio | area, ratio | raw error | error | coverage of the 90 % interval |",
        "|---|---|---|---|---|---|",
    ]
    ratios: list[float] = []
    small: list[float] = []
    worst: list[str] = []
    for problem in results.problems:
        rows = _part(results, [problem], [DEFAULT, PLAIN])
        beside, scores = rows.compared(DEFAULT, PLAIN), _scored(rows, DEFAULT)
        (raw, _), (error, _) = _errors(results, PLAIN, problem), _errors(results, DEFAULT, problem)
        (ratios if raw > 0.1 else small).append(error / raw if raw > 0.1 else error)
        if beside.area[1] > 1.10:
            worst.append(problem)
        compared = f"{_interval(beside.regret)} | {_interval(beside.area)}"
        lines.append(f"| {problem} | {compared} | {raw:.3f} | {error:.3f} | {scores.coverage[0.9]:.0%} |")
    area = results.compared(DEFAULT, PLAIN).area
    lines += [
        "",
        "| target | found |",
        "|---|---|",
        f"| area at most 0.88, interval below 1 | {_interval(area)} |",
        f"| no problem with a lower bound above 1.10 | {', '.join(worst) or 'none'} |",
        "| error at most 0.6 of the raw error, geometric mean over problems with a raw error above 0.10 | "
        f"{np.exp(np.mean(np.log(ratios))):.2f} on {len(ratios)} problems |",
        f"| error at most 0.10 elsewhere | largest {max(small, default=np.nan):.3f} on {len(small)} problems |",
    ]
    return lines


def _coverage(rows: Sequence[Row]) -> list[str]:
    """Coverage after the tenth outcome in long runs."""
    if not rows:
        return []
    lines = [
        "",
        "## 50 evaluations: coverage after the tenth outcome",
        "",
        "| problem | runs | coverage of the 90 % interval |",
        "|---|---|---|",
    ]
    for problem in dict.fromkeys(row["problem"] for row in rows):
        late = [
            {**row, "forecasts": row["forecasts"][max(10 - row["initial"], 0) :]}
            for row in rows
            if row["problem"] == problem
        ]
        scores = _scored(Results(late), DEFAULT)
        lines.append(f"| {problem} | {len(late)} | {scores.coverage[0.9]:.0%} |")
    return lines


CALIBRATION = Experiment("calibration", "Effect of calibration and model choice", _cells, _report, seeds=30)
