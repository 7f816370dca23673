"""Markdown tables of result files."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from calibo_bench.statistics import Results

__all__ = ["markdown"]


def markdown(
    results: Results,
    reference: str,
    title: str,
    kinds: Mapping[str, Sequence[str]],
    failures: Sequence[Mapping[str, Any]] = (),
) -> str:
    """All tables; ``kinds`` groups problems by name prefix; ``failures`` are the rows of failed runs."""
    parts = [f"# {title}", _about(results, reference), _overall(results, reference), _ranks(results)]
    parts += [
        _by_kind(results, reference, kinds),
        _losses(results, reference),
        _by_problem(results),
        _calibration(results),
    ]
    parts += [_failed(failures)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _about(results: Results, reference: str) -> str:
    rows = results.rows
    versions = sorted({f"{name} {number}" for row in rows for name, number in row["versions"].items()})
    loads = [row["load"] for row in rows]
    budgets = sorted({row["budget"] for row in rows})
    return (
        f"{len(rows)} runs on {len(results.problems)} problems, {', '.join(map(str, budgets))} evaluations each; "
        f"{_given(rows)} Regrets are in units of the problem's range (from its "
        "minimum to the median over the space) and floored at 1e-6. Ratios to "
        f"{reference!r} are geometric means over the problems and seeds that both have; below 1 the strategy is "
        "better. The 95 % intervals resample seeds (problems fixed; none for fewer than five seeds). Wins, ties and "
        "losses compare runs by their final value, then by how early it was found; f is the strategy's share of runs "
        "not worse than the reference. "
        "Seconds are per suggestion, model fitting included, with one BLAS thread, on a machine with a load of "
        f"{min(loads):.1f} to {max(loads):.1f}.\n\nVersions: {', '.join(versions)}."
    )


def _given(rows: Sequence[Mapping[str, Any]]) -> str:
    """The initial points of all strategies of a seed."""
    starts = sorted({row.get("start", "") for row in rows})
    if starts == ["own"]:
        return "every strategy starts with its own initial design."
    given = "max(5, d + 1) Sobol points" if starts == [""] else f"points ({', '.join(starts)})"
    return (
        f"the first are {given}, the same for every strategy of a seed. Optimizers with a random startup phase count "
        "these points as part of it."
    )


def _overall(results: Results, reference: str) -> str:
    lines = ["## All problems", ""]
    lines += [
        "| strategy | runs | final regret, ratio | area, ratio | wins / ties / losses | f | wall time (s) | CPU (s) |"
    ]
    lines += ["|---|---|---|---|---|---|---|---|"]
    for name in results.strategies:
        beside, (wall, processor) = results.compared(name, reference), results.seconds(name)
        ratios = "1 | 1" if name == reference else f"{_interval(beside.regret)} | {_interval(beside.area)}"
        duel = (
            " | " if name == reference else f"{beside.wins} / {beside.ties} / {beside.losses} | {beside.fraction:.2f}"
        )
        lines.append(f"| {name} | {beside.cells} | {ratios} | {duel} | {wall:.3g} | {processor:.3g} |")
    return "\n".join(lines)


def _interval(ratio: tuple[float, float, float]) -> str:
    middle, low, high = (f"{value:,.0f}" if value >= 1000 else f"{value:.3g}" for value in ratio)
    return f"{middle} ({low} to {high})" if np.isfinite(ratio[1]) else middle


def _ranks(results: Results) -> str:
    ranks, difference, others = results.ranks()
    if len(ranks) < 2:
        return ""
    missing = f" Not ranked because of missing runs: {', '.join(others)}." if others else ""
    shown = ", ".join(f"{name} {rank:.2f}" for name, rank in sorted(ranks.items(), key=lambda item: item[1]))
    return (
        f"## Mean ranks\n\nMean rank over {len(results.problems)} problems by mean log regret, for strategies without "
        f"missing runs: {shown}. Differences above {difference:.2f} are significant at 5 % (Nemenyi)."
        f"{missing}"
    )


def _by_kind(results: Results, reference: str, kinds: Mapping[str, Sequence[str]]) -> str:
    """Ratios to the reference for each kind of problem."""
    groups = {}
    for kind, names in kinds.items():
        rows = [row for row in results.rows if any(row["problem"].startswith(f"{name}-") for name in names)]
        if any(row["strategy"] == reference for row in rows):
            groups[kind] = Results(rows)
    if not groups:
        return ""
    lines = ["## By kind of problem", "", "Ratio of final regrets to the reference, with its 95 % interval.", ""]
    lines += [f"| strategy | {' | '.join(groups)} |", f"|---|{'---|' * len(groups)}"]
    for name in results.strategies:
        if name != reference:
            cells = [
                _interval(group.compared(name, reference).regret) if name in group.strategies else ""
                for group in groups.values()
            ]
            lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _losses(results: Results, reference: str) -> str:
    """Problems on which another strategy is significantly better than the reference."""
    found = []
    for problem in results.problems:
        rows = Results([row for row in results.rows if row["problem"] == problem])
        for name in rows.strategies:
            if name != reference and reference in rows.strategies:
                ratio = rows.compared(name, reference).regret
                if ratio[2] < 1.0:
                    found.append(f"* {problem}: {name}, {_interval(ratio)}")
    if not found:
        return f"## Where {reference} loses\n\nNo other strategy is better on any problem beyond its 95 % interval."
    head = f"Ratios of final regrets with a 95 % interval below 1; {len(found)} pairs of problem and strategy."
    return "\n".join([f"## Where {reference} loses", "", head, "", *found])


def _by_problem(results: Results) -> str:
    lines = [
        "## Each problem",
        "",
        "Final regret in units of the range: mean ± standard error, median, and normalised area (per run, lo and hi "
        "over the strategies of its seed). Bold: best mean among the strategies with most seeds. Different numbers of "
        "seeds mean different instances.",
    ]
    for problem in results.problems:
        finals = {name: results.finals(name, problem) for name in results.strategies}
        finals = {name: values for name, values in finals.items() if len(values)}
        most = max(len(values) for values in finals.values())
        best = min((n for n in finals if len(finals[n]) == most), key=lambda name: float(finals[name].mean()))
        lines += [
            "",
            f"### {problem}",
            "",
            "| strategy | seeds | mean ± s.e. | median | area |",
            "|---|---|---|---|---|",
        ]
        for name, values in finals.items():
            error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
            mean = f"{values.mean():.3g} ± {error:.2g}"
            shown = f"**{mean}**" if name == best else mean
            area = results.areas(name, problem).mean()
            lines.append(f"| {name} | {len(values)} | {shown} | {np.median(values):.3g} | {area:.3f} |")
    return "\n".join(lines)


def _failed(failures: Sequence[Mapping[str, Any]]) -> str:
    if not failures:
        return ""
    lines = [f"{row['problem']}, {row['strategy']}, seed {row['seed']}: {row['error']}" for row in failures]
    plain = [" ".join(line.replace("|", "/").replace("<", "(").replace(">", ")").split()) for line in lines]
    return "\n".join(["## Runs that failed", "", *(f"* {line}" for line in plain)])


def _calibration(results: Results) -> str:
    lines = [
        "## Forecasts",
        "",
        "For strategies that forecast their observations; CRPS and sharpness in units of the range.",
        "",
    ]
    head = ["strategy", "problem", "forecasts", "calibration error", "score", "coverage of 50 / 80 / 90 / 95 %"]
    lines += [f"| {' | '.join([*head, 'bias', 'CRPS', 'log score', 'sharpness'])} |"]
    lines += ["|---|---|---|---|---|---|---|---|---|---|"]
    empty = True
    for name in results.strategies:
        for problem in (None, *results.problems):
            scores = results.scores(name, problem)
            if scores is None:
                continue
            empty = False
            covered = " / ".join(f"{100 * share:.0f}" for share in scores.coverage.values())
            lines.append(
                f"| {name} | {problem or 'all'} | {scores.count} | {scores.calibration_error:.3f} | "
                f"{scores.calibration_score:.3f} | {covered} | {scores.bias:+.3f} | {scores.crps:.3g} | "
                f"{scores.log_score:.3g} | {scores.sharpness:.3g} |"
            )
    return "" if empty else "\n".join(lines)
