"""What calibration and model choice do to the search and to the forecasts, on the suite "calibration" of the bench.

    python benchmarks/effects.py run      resumable, some four processor-hours; writes benchmarks/results/calibration.jsonl
    python benchmarks/effects.py table    writes docs/results/calibration.md from what there is

Twelve functions without noise in cropped boxes, and eight with Gaussian, heteroscedastic or heavy-tailed noise or with a warp of the
axes; 30 seeds, 30 evaluations, the same first points for all strategies of a seed.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from calibo.bench.runner import read_rows
from calibo.bench.statistics import Results
from calibo.cli import main as calibo

FOLDER = Path(__file__).parent
RESULTS, LONG, KAPPAS = (FOLDER / "results" / f"{name}.jsonl" for name in ("calibration", "calibration-long", "kappas"))
PAGE = FOLDER.parent / "docs" / "results" / "calibration.md"
PLAIN, DEFAULT = "calibo-plain", "calibo"
ALONE = "calibo-plain+choice"  # the default without its map
STRATEGIES = {
    PLAIN: "none",
    DEFAULT: "default: model choice, stream, gate",
    ALONE: "none, model choice",
    "calibo+single": "gate",
    "calibo-plain+shift-scale": "shift-scale on the stream",
    "calibo-plain+choice+shift-scale": "shift-scale on the stream, model choice",
    "calibo-plain+online": "online",
    "calibo-plain+choice+online": "online, model choice",
    "calibo-plain+time-series": "time series, sigma scale",
    "calibo-plain+loo-sigma": "refitted leave-one-out, sigma scale",
    "calibo-plain+loo-gp": "refitted leave-one-out, GP recalibrator",
}
LCB = [f"calibo-plain+lcb{kappa}" for kappa in ("0.5", "1", "1.5", "2", "3")]
OTHERS = (
    "goldstein_price-cropped,dixon_price4-cropped,rastrigin3-cropped,hartmann3-cropped,levy5-cropped,ackley5-cropped"
)
KINDS = {
    "noisy": "noisy",
    "heteroscedastic": "heteroscedastic",
    "heavy_tailed": "heavy-tailed",
    "warped": "non-stationary",
}


def run(jobs: int) -> None:
    def bench(suite: str, strategies: Sequence[str], seeds: int, budget: int, out: Path) -> None:
        words = ["--seeds", str(seeds), "--budget", str(budget), "--jobs", str(jobs), "--out", str(out)]
        calibo(["bench", "run", "--suite", suite, "--strategies", ",".join(strategies), *words])

    names = list(STRATEGIES)
    bench("calibration", names[:4], 30, 30, RESULTS)
    bench(OTHERS, [PLAIN, *LCB], 10, 30, KAPPAS)
    bench("calibration", [tuned()], 30, 30, RESULTS)
    bench("calibration", names[4:8], 30, 30, RESULTS)
    bench("calibration", [DEFAULT], 20, 50, LONG)
    for name in names[8:]:
        bench("calibration", [name], 30, 30, RESULTS)


def tuned() -> str:
    """The best of five weights of a lower confidence bound, on other functions; two of them are in the suite with noise."""
    results = Results(read_rows(KAPPAS))
    return min(LCB, key=lambda name: results.compared(name, PLAIN).area[0])


def kind(problem: str) -> str:
    return next((name for word, name in KINDS.items() if problem.endswith(word)), "clean")


def part(results: Results, problems: Sequence[str], names: Sequence[str]) -> Results:
    return Results([row for row in results.rows if row["problem"] in problems and row["strategy"] in names])


def interval(values: Sequence[float]) -> str:
    middle, low, high = values
    return f"{middle:.3g}" if np.isnan(low) else f"{middle:.3g} ({low:.3g} to {high:.3g})"


def errors(results: Results, name: str, problem: str) -> tuple[float, float]:
    """Calibration error of the forecasts that were used, pooled over seeds, and its standard error by a bootstrap of seeds."""
    rows = [row for row in results.rows if row["strategy"] == name and row["problem"] == problem and row["forecasts"]]
    pooled = Results(rows).scores(name).calibration_error
    rng = np.random.default_rng(0)
    draws = [
        Results([rows[i] for i in rng.integers(len(rows), size=len(rows))]).scores(name).calibration_error
        for _ in range(50)
    ]
    return pooled, float(np.std(draws))


def table() -> str:
    results = Results(read_rows(RESULTS))
    names = {name: STRATEGIES.get(name, f"LCB, {name.rpartition('lcb')[2]} sigma") for name in results.strategies}
    seeds = {name: len({row["seed"] for row in results.rows if row["strategy"] == name}) for name in names}
    kinds = list(dict.fromkeys(kind(problem) for problem in results.problems))
    lines = [
        "# What calibration and model choice do",
        "",
        "`python benchmarks/effects.py run` and `table`. Twelve functions without noise in cropped boxes and eight with Gaussian, heteroscedastic "
        "or heavy-tailed noise or with a warp of the axes, 30 evaluations, the same first max(5, d + 1) points for all strategies of a seed. "
        "Ratios are geometric means over problems and seeds to the plain Gaussian process without calibration (below 1 is better), with 95 % "
        "intervals by resampling seeds. The calibration error is that of the forecasts that were used, pooled over the seeds of a problem and "
        "averaged over problems. Where fewer than 30 seeds are in, ratios use those that both have.",
        "",
        "| strategy | seeds | final regret | area | calibration error | wins / ties / losses |",
        "|---|---|---|---|---|---|",
    ]
    for name, told in names.items():
        scored = [errors(results, name, p) for p in part(results, results.problems, [name]).problems]
        error = (
            f"{np.mean([e for e, _ in scored]):.3f} ± {np.sqrt(np.mean([s**2 for _, s in scored]) / len(scored)):.3f}"
        )
        if name == PLAIN:
            lines.append(f"| {told} | {seeds[name]} | 1 | 1 | {error} | |")
            continue
        beside = results.compared(name, PLAIN)
        counts = f"{beside.wins} / {beside.ties} / {beside.losses}"
        lines.append(
            f"| {told} | {seeds[name]} | {interval(beside.regret)} | {interval(beside.area)} | {error} | {counts} |"
        )
    lines += ["", "## By kind of problem", "", "Area, ratio to none.", "", "| strategy | " + " | ".join(kinds) + " |"]
    lines.append("|---" * (len(kinds) + 1) + "|")
    for name, told in names.items():
        if name != PLAIN:
            cells = []
            for each in kinds:
                group = part(results, [p for p in results.problems if kind(p) == each], [name, PLAIN])
                cells.append(interval(group.compared(name, PLAIN).area) if name in group.strategies else "")
            lines.append(f"| {told} | " + " | ".join(cells) + " |")
    lines += _alone(results, kinds) + _targets(results) + _coverage()
    return "\n".join(lines) + "\n"


def _alone(results: Results, kinds: Sequence[str]) -> list[str]:
    """The default with and without its map."""
    if ALONE not in results.strategies or DEFAULT not in results.strategies:
        return []
    lines = [
        "",
        "## Calibration alone",
        "",
        "The default with its map against the same model choice without: final regret, area (below 1: the map helps), and the calibration error.",
        "",
        "| kind | final regret | area | error without | error with |",
        "|---|---|---|---|---|",
    ]
    for each in ["all", *kinds]:
        problems = [p for p in results.problems if each in ("all", kind(p))]
        beside = part(results, problems, [DEFAULT, ALONE]).compared(DEFAULT, ALONE)
        without, having = (np.mean([errors(results, name, p)[0] for p in problems]) for name in (ALONE, DEFAULT))
        lines.append(f"| {each} | {interval(beside.regret)} | {interval(beside.area)} | {without:.3f} | {having:.3f} |")
    return lines


def _targets(results: Results) -> list[str]:
    lines = [
        "",
        "## The default on each problem",
        "",
        "| problem | final regret, ratio | area, ratio | raw error | error | inside the 90 % interval |",
        "|---|---|---|---|---|---|",
    ]
    ratios, small, worst = [], [], []
    for problem in results.problems:
        rows = part(results, [problem], [DEFAULT, PLAIN])
        beside, scores = rows.compared(DEFAULT, PLAIN), rows.scores(DEFAULT)
        (raw, _), (error, _) = errors(results, PLAIN, problem), errors(results, DEFAULT, problem)
        (ratios if raw > 0.1 else small).append(error / raw if raw > 0.1 else error)
        if beside.area[1] > 1.10:
            worst.append(problem)
        lines.append(
            f"| {problem} | {interval(beside.regret)} | {interval(beside.area)} | {raw:.3f} | {error:.3f} | {scores.coverage[0.9]:.0%} |"
        )
    area = results.compared(DEFAULT, PLAIN).area
    lines += [
        "",
        "| target | found |",
        "|---|---|",
        f"| area at most 0.88, interval below 1 | {interval(area)} |",
        f"| no problem whose lower bound is above 1.10 | {', '.join(worst) or 'none'} |",
        f"| error at most 0.6 of the raw one, geometric mean where that exceeds 0.10 | {np.exp(np.mean(np.log(ratios))):.2f} on {len(ratios)} problems |",
        f"| error at most 0.10 elsewhere | largest {max(small, default=np.nan):.3f} on {len(small)} problems |",
    ]
    return lines


def _coverage() -> list[str]:
    """Coverage after the tenth outcome in long runs."""
    rows = read_rows(LONG)
    if not rows:
        return []
    lines = [
        "",
        "## 50 evaluations: outcomes of forecasts after the tenth",
        "",
        "| problem | runs | inside the 90 % interval |",
        "|---|---|---|",
    ]
    for problem in dict.fromkeys(row["problem"] for row in rows):
        late = [
            {**row, "forecasts": row["forecasts"][max(10 - row["initial"], 0) :]}
            for row in rows
            if row["problem"] == problem
        ]
        scores = Results(late).scores(DEFAULT)
        lines.append(f"| {problem} | {len(late)} | {scores.coverage[0.9]:.0%} |")
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    if arguments.what == "run":
        run(arguments.jobs)
    else:
        PAGE.write_text(table())
        print(PAGE.read_text())
