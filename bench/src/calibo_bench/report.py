"""Markdown tables of result files."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from calibo_bench.markdown import interval, table
from calibo_bench.statistics import Comparison, Evaluations, Results, holm

__all__ = ["best_peer", "is_peer", "markdown", "under_noise"]

TOLD = """
Regrets are in units of the problem's range (from its minimum to the median over the space); final ones are floored at
1e-3. {noise} Ratios to {reference!r} are geometric means over problems and the seeds that both have; below 1 the
strategy is better. The area is the mean regret from the last given point to the end of the run. The 95 % intervals
resample problems, then seeds; there are none for fewer than five seeds. Wins, ties and losses compare runs by their
final value, then by how early it was found. A run that failed on its way, or took too long for a suggestion, keeps the
point that it had. Seconds are per suggestion, model fitting included, with one BLAS thread, on a machine with a load of
{low:.1f} to {high:.1f}.
""".strip().replace("\n", " ")
EVALUATIONS = """
E is the number of evaluations, given points included, after which the median regret of {reference!r} over the seeds is
at least as good as that of the other strategy after B = {budget}, but at best 1e-3; it is 2 B if that is never reached.
The ratio is the geometric mean of E / B over problems: 0.5 means half the evaluations. Problems on which the given
points suffice are left out.
""".strip().replace("\n", " ")


def markdown(
    results: Results,
    reference: str,
    title: str,
    kinds: Mapping[str, Sequence[str]],
    failures: Sequence[Mapping[str, Any]] = (),
) -> str:
    """All tables, under a title if there is one; ``kinds`` groups problems; ``failures`` are rows of failed runs."""
    reached = {name: results.evaluations(reference, name) for name in results.strategies if name != reference}
    made = {name: found for name, found in reached.items() if found is not None}
    parts = [f"# {title}" if title else "", _about(results, reference), _overall(results, reference, failures)]
    parts += [
        _evaluations(made, reference, results.budget),
        _ranks(results, reference),
        _by_kind(results, reference, kinds),
        _losses(results, reference),
        _by_problem(results, made, reference),
        _calibration(results),
        _failed(failures),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def is_peer(strategy: str) -> bool:
    """Whether it is another optimizer."""
    return not strategy.startswith("calibo")


def best_peer(made: Mapping[str, Evaluations]) -> str | None:
    """The other optimizer to whose result the reference needs most evaluations."""
    known = [name for name, found in made.items() if is_peer(name) and np.isfinite(found.ratio[0])]
    return max(known, key=lambda name: made[name].ratio[0], default=None)


def under_noise(rows: Sequence[Mapping[str, Any]]) -> str:
    """By which point runs with noise are judged, if there are any."""
    noisy = [row for row in rows if row.get("observed")]
    if not noisy:
        return ""
    if any(row.get("recommended") is None for row in noisy):
        return (
            "Under noise, the regret is that of the best evaluated point, because these rows were made before "
            "recommended points were recorded."
        )
    return (
        "Under noise, the regret is that of the recommended point: its true value is looked up after every evaluation, "
        "and shown to no optimizer."
    )


def _about(results: Results, reference: str) -> str:
    rows = results.rows
    versions = sorted({f"{name} {number}" for row in rows for name, number in row["versions"].items()})
    loads = [row["load"] for row in rows]
    told = TOLD.format(reference=reference, noise=under_noise(rows), low=min(loads), high=max(loads))
    return (
        f"{len(rows)} runs on {len(results.problems)} problems, compared after {results.budget} evaluations; "
        f"{_given(rows)} {told}\n\n"
        f"Versions: {', '.join(versions)}."
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


def _overall(results: Results, reference: str, failures: Sequence[Mapping[str, Any]]) -> str:
    others = [name for name in results.strategies if name != reference]
    compared = {name: results.compared(name, reference) for name in others}
    area_p, regret_p = _corrected(compared, "area_p"), _corrected(compared, "regret_p")
    rows = []
    for name in results.strategies:
        failed = sum(row["strategy"] == name for row in failures)
        seconds = [f"{value:.2g}" for value in results.seconds(name)]
        cells = ["1", "1", "1", "", "", ""]
        if name != reference:
            found = compared[name]
            cells = [interval(found.area), interval(found.regret), interval(found.coarse)]
            cells += [f"{found.wins} / {found.ties} / {found.losses}", _p(area_p[name]), _p(regret_p[name])]
        counts = [str(len({p for p, _ in results.curves[name]})), str(results.seeds(name))]
        rows.append([name, *counts, *cells, str(failed), *seconds])
    head = ["strategy", "problems", "seeds", "area, ratio", "final regret, ratio", "floored at 1e-2"]
    head += ["wins / ties / losses", "p, area", "p, final", "failed", "wall time (s)", "CPU (s)"]
    text = (
        "p: signed-rank test over problems of their mean log ratios to the reference, corrected for the number of "
        f"strategies (Holm); the smallest possible with {len(results.problems)} problems is "
        f"{_p(2.0 ** (1 - len(results.problems)))} before correction."
    )
    return f"## All problems\n\n{table(head, rows)}\n\n{text}"


def _corrected(compared: Mapping[str, Comparison], measure: str) -> dict[str, float]:
    return holm({name: getattr(found, measure) for name, found in compared.items()})


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.2g}"


def _evaluations(made: Mapping[str, Evaluations], reference: str, budget: int) -> str:
    if not made:
        return ""
    rows = [
        [name, interval(found.ratio), str(len(found.by_problem)), _listed(found.never), _listed(found.given)]
        for name, found in made.items()
    ]
    head, best = ["strategy", "E / B", "problems", "never reached", "left out"], best_peer(made)
    verdict = f"\n\nThe best peer is {best}: {interval(made[best].ratio)}." if best else ""
    told = EVALUATIONS.format(reference=reference, budget=budget)
    return f"## Evaluations to each strategy's result\n\n{told}\n\n{table(head, rows)}{verdict}"


def _listed(problems: Sequence[str]) -> str:
    return f"{len(problems)}: {', '.join(problems)}" if problems else "0"


def _ranks(results: Results, reference: str) -> str:
    """Of the strategies with all runs, and of all strategies on the runs that all have."""
    parts = [_ranking(results, "")]
    shared = results.shared()
    if 0 < len(shared.rows) < len(results.rows) and reference in shared.strategies:
        cells = {(row["problem"], row["seed"]) for row in shared.rows}
        parts.append(_ranking(shared, f" On the {len(cells)} pairs of problem and seed that all strategies have:"))
    parts = [part for part in parts if part]
    return "\n\n".join(["## Mean ranks", *parts]) if parts else ""


def _ranking(results: Results, words: str) -> str:
    ranks, others = results.ranks()
    if len(ranks) < 2:
        return ""
    missing = f" Not ranked because of missing runs: {', '.join(others)}." if others else ""
    shown = ", ".join(f"{name} {rank:.2f}" for name, rank in sorted(ranks.items(), key=lambda item: item[1]))
    begin = words.strip() or "Strategies without missing runs:"
    return f"{begin} mean rank over {len(results.problems)} problems by mean log regret: {shown}.{missing}"


def _by_kind(results: Results, reference: str, kinds: Mapping[str, Sequence[str]]) -> str:
    """Ratios to the reference for each kind of problem."""
    groups = {}
    for kind, names in kinds.items():
        members = [row for row in results.rows if row["problem"] in names]
        if any(row["strategy"] == reference for row in members):
            groups[kind] = Results(members)
    if not groups:
        return ""
    rows = [
        [name, *(interval(g.compared(name, reference).area) if name in g.strategies else "" for g in groups.values())]
        for name in results.strategies
        if name != reference
    ]
    head = [f"{kind} ({len(group.problems)})" for kind, group in groups.items()]
    told = "Ratio of areas to the reference, with its 95 % interval; in brackets, the number of problems."
    return f"## By kind of problem\n\n{told}\n\n{table(['strategy', *head], rows)}"


def _losses(results: Results, reference: str) -> str:
    """Problems on which another strategy is better than the reference, over seeds."""
    found, pairs = [], 0
    for problem in results.problems:
        rows = Results([row for row in results.rows if row["problem"] == problem])
        for name in rows.strategies:
            if name != reference and reference in rows.strategies:
                compared = rows.compared(name, reference)
                better = [
                    f"{word} {interval(ratio)}"
                    for word, ratio in (("final regret", compared.regret), ("area", compared.area))
                    if ratio[2] < 1.0
                ]
                pairs += 1
                found += [f"* {problem}: {name}, {', '.join(better)}"] if better else []
    told = (
        f"Ratios whose 95 % interval over the seeds of the problem lies below 1: {len(found)} of {pairs} pairs of "
        "problem and strategy. Equal strategies would give one in forty by chance, for each measure."
    )
    return "\n".join([f"## Where {reference} loses", "", told, *(["", *found] if found else [])])


def _by_problem(results: Results, made: Mapping[str, Evaluations], reference: str) -> str:
    reached = {name: found.by_problem for name, found in made.items()}
    lines = [
        "## Each problem",
        "",
        "Final regret in units of the range: mean ± standard error, median, and normalised area (per run, lo and hi "
        "over the strategies of its seed). Bold: best mean among the strategies with most seeds. Different numbers of "
        "seeds mean different instances."
        + (f" E: evaluations after which {reference!r} is as good as the strategy." if reached else ""),
    ]
    for problem in results.problems:
        finals = {name: results.finals(name, problem) for name in results.strategies}
        finals = {name: values for name, values in finals.items() if len(values)}
        most = max(len(values) for values in finals.values())
        best = min((n for n in finals if len(finals[n]) == most), key=lambda name: float(finals[name].mean()))
        rows = []
        for name, values in finals.items():
            error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
            mean = f"{values.mean():.3g} ± {error:.2g}"
            shown = f"**{mean}**" if name == best else mean
            area = f"{results.areas(name, problem).mean():.3f}"
            evaluations = [str(reached.get(name, {}).get(problem, ""))] if reached else []
            rows.append([name, str(len(values)), shown, f"{np.median(values):.3g}", area, *evaluations])
        head = ["strategy", "seeds", "mean ± s.e.", "median", "area", *(["E"] if reached else [])]
        lines += ["", f"### {problem}", "", table(head, rows)]
    return "\n".join(lines)


def _failed(failures: Sequence[Mapping[str, Any]]) -> str:
    if not failures:
        return ""
    lines = [f"{row['problem']}, {row['strategy']}, seed {row['seed']}: {row['error']}" for row in failures]
    plain = [" ".join(line.replace("|", "/").replace("<", "(").replace(">", ")").split()) for line in lines]
    return "\n".join(["## Runs that failed", "", *(f"* {line}" for line in plain)])


def _calibration(results: Results) -> str:
    rows = []
    for name in results.strategies:
        for problem in (None, *results.problems):
            scores = results.scores(name, problem)
            if scores is not None:
                covered = " / ".join(f"{100 * share:.0f}" for share in scores.coverage.values())
                shown = [f"{scores.calibration_error:.3f}", f"{scores.calibration_score:.3f}", covered]
                shown += [
                    f"{scores.bias:+.3f}",
                    *(f"{v:.3g}" for v in (scores.crps, scores.log_score, scores.sharpness)),
                ]
                rows.append([name, problem or "all", str(scores.count), *shown])
    head = ["strategy", "problem", "forecasts", "calibration error", "score", "coverage of 50 / 80 / 90 / 95 %"]
    head += ["bias", "CRPS", "log score", "sharpness"]
    told = "For strategies that forecast their observations; CRPS and sharpness in units of the range."
    return f"## Forecasts\n\n{told}\n\n{table(head, rows)}" if rows else ""
