"""CAL24 Tables 1 to 4."""

from collections.abc import Mapping, Sequence

from calibo_bench import plots
from calibo_bench.markdown import count, fraction, table
from calibo_bench.reproduce.calibration import paper_values as printed
from calibo_bench.reproduce.calibration.setup import (
    BASES,
    DEFAULT,
    OURS,
    PAPERS,
    RULES,
    SETTINGS,
    TITLES,
    made,
    start,
)
from calibo_bench.targets import Archive, Report, Reproduction, Run, mean_and_error

__all__ = ["TABLES"]

METHODS: Mapping[str, str] = {
    "uncalibrated": "",
    "input warping": "+warped",
    "output warping (tanh)": "+tanh",
    "Box-Cox": "+boxcox",
    "log": "+log",
    "bagged ensemble of 5": "+bagged",
    "calibrated": "+papers",
}
"""The methods of Tables 1 and 3, and their parts."""


# Tables 1 and 3


def _methods(problem: str, base: str) -> dict[str, Run]:
    runs = {label: made(problem, base, part) for label, part in METHODS.items()}
    return {**runs, "calibo's default": Run(problem, DEFAULT, start(problem))} if base == OURS else runs


def _methods_target(name: str, title: str, problems: Sequence[str]) -> Reproduction:
    panels = [(problem, told, _methods(problem, base)) for problem in problems for told, base in BASES.items()]

    def report(archive: Archive) -> Report:
        steps = archive.steps(Run(problems[0], PAPERS))
        parts = [
            f"{steps} steps. Forrester: LCB from three random points outside the basin of the global minimum, as in "
            f"the paper's Figure 1; the others: EI from three random points. {SETTINGS}",
            RULES,
        ]
        for problem, told, runs in panels:
            known = archive.shared(list(runs.values()))
            parts.append(f"## {TITLES[problem]}, {told}\n\n{count(known, list(runs.values()))} seeds.")
            parts.append(_methods_table(known, problem, runs, with_paper=told == next(iter(BASES))))
        return Report("\n\n".join(parts), lambda: [plots.traces(archive, f"{TITLES[p]}, {t}", r) for p, t, r in panels])

    return Reproduction(name, title, tuple(run for _, _, runs in panels for run in runs.values()), report)


def _methods_table(archive: Archive, problem: str, runs: Mapping[str, Run], *, with_paper: bool) -> str:
    areas, calibrated, rows = archive.areas(list(runs.values())), runs["calibrated"], []
    for label, run in runs.items():
        beaten = "" if run == calibrated else fraction(archive, calibrated, run)
        row = [label, archive.minimum(run), beaten, mean_and_error(areas[run], 3)]
        if with_paper:
            m, error, f, a = printed.TABLE3[problem][label]
            row += [f"{m:g} ({error:g})", "" if label == "calibrated" else f"{f:g}", f"{a:.4f}"]
        rows.append(row)
    return table(["method", "m", "f", "a"] + (["paper: m", "f", "a"] if with_paper else []), rows)


# Table 2

ABOUT_TABLE2 = """
Matern kernel, probability of improvement, time-series splits, three random points. An increasing map that is the same
at every point cannot move the maximum of the probability of improvement. So calibo maximises the raw probability
for any global map, and runs with and without one are identical by construction, evaluation by evaluation ("same").
"Through the map" maximises the recalibrated probability itself. Its maximum is in the same place, but on plateaus the
search ends elsewhere. These differences from the uncalibrated run are due to rounding in the search, not calibration,
and show how large chance differences between five runs are. A local scale (wider where nearby leave-one-out errors
were large) does move the maximum. f and a compare each with the uncalibrated runs. Functions are the textbook forms;
"powers" is the sum of different powers on [-1, 1]^2. GPyOpt's Beale, Drop-Wave and powers differ, and it is unknown
which the paper used.
""".strip().replace("\n", " ")
PARTS2 = {"uncalibrated": "+pi", "mapped": "+pi+splits1", "through": "+pi-mapped+splits1", "local": "+pi+local"}


def _table2_runs(problem: str, base: str) -> dict[str, Run]:
    kernel = "+matern" if base == PAPERS else ""
    return {label: Run(problem, f"{base}{kernel}{part}") for label, part in PARTS2.items()}


def _table2(archive: Archive) -> Report:
    parts, panels = [f"{archive.steps(Run('cosines', PAPERS))} steps. {ABOUT_TABLE2} {SETTINGS}", RULES], []
    head = [
        "function",
        "seeds",
        "same under a global map",
        "through the map: f",
        "a",
        "local: f",
        "a",
        "uncalibrated: a",
    ]
    for told, base in BASES.items():
        rows = []
        for problem, (f, calibrated, uncalibrated) in printed.TABLE2.items():
            runs = _table2_runs(problem, base)
            known = archive.shared(list(runs.values()))
            areas, plain = known.areas(list(runs.values())), runs["uncalibrated"]
            one, two = known.of(plain), known.of(runs["mapped"])
            pairs = [one[seed]["values"] == two[seed]["values"] for seed in one if seed in two]
            row = [problem, count(known, list(runs.values())), f"{sum(pairs)} of {len(pairs)}"]
            for label in ("through", "local"):
                row += [fraction(known, runs[label], plain), mean_and_error(areas[runs[label]], 3)]
            row += [mean_and_error(areas[plain], 3), f"{f:g}", f"{calibrated:.4f}", f"{uncalibrated:.4f}"]
            rows.append(row)
            drawn = {"uncalibrated": plain, "through the map": runs["through"], "local scale": runs["local"]}
            panels.append((f"{problem}, {told}", drawn))
        parts.append(f"## On {told}")
        parts.append(table([*head, "paper: f", "a, calibrated", "a, uncalibrated"], rows))
    return Report("\n\n".join(parts), lambda: [plots.traces(archive, title, runs) for title, runs in panels])


# Table 4

ABOUT_TABLE4 = """
Forrester's function. The base case is Matern, N-1 time-series splits, GP recalibrator, three random points, EI
(inferred from the paper). Areas are normalised over all rows of a table. Under PI a global map changes nothing, by
construction (see Table 2).
""".strip().replace("\n", " ")


def _variant(base: str, kernel: str, calibration: str, acquisition: str, begin: str) -> tuple[Run, Run]:
    """Uncalibrated and calibrated."""
    without, having = (f"{base}{kernel}{part}{acquisition}" for part in ("", calibration))
    return Run("forrester", without, begin), Run("forrester", having, begin)


def _variants(base: str) -> dict[tuple[str, str], tuple[Run, Run]]:
    return {
        (group, label): _variant(base, *settings)
        for group, variants in printed.TABLE4.items()
        for label, (*settings, _) in variants.items()
    }


def _table4(archive: Archive) -> Report:
    parts, panels = [f"{archive.steps(Run('forrester', PAPERS))} steps. {ABOUT_TABLE4} {SETTINGS}", RULES], []
    head = ["setting", "value", "seeds", "f", "a, calibrated", "a, uncalibrated"]
    for told, base in BASES.items():
        rows, variants = [], _variants(base)
        everything = list(dict.fromkeys(run for both in variants.values() for run in both))
        known = archive.shared(everything)
        areas = known.areas(everything)
        for (group, label), (without, having) in variants.items():
            f, calibrated, uncalibrated = printed.TABLE4[group][label][-1]
            row = [group, label, count(known, [without, having]), fraction(known, having, without)]
            row += [mean_and_error(areas[run], 3) for run in (having, without)]
            rows.append([*row, f"{f:g}", f"{calibrated:.4f}", f"{uncalibrated:.4f}"])
            panels.append((f"{group}: {label}, {told}", {"uncalibrated": without, "calibrated": having}))
        parts.append(f"## On {told}")
        parts.append(table([*head, "paper: f", "a, calibrated", "a, uncalibrated"], rows))
    return Report("\n\n".join(parts), lambda: [plots.traces(archive, title, runs) for title, runs in panels])


TABLES = (
    _methods_target(
        "cal24-table1", "CAL24 Table 1: calibration versus other remedies", ("forrester", "ackley2", "alpine10")
    ),
    Reproduction(
        "cal24-table2",
        "CAL24 Table 2: seven functions, probability of improvement",
        tuple(run for base in BASES.values() for p in printed.TABLE2 for run in _table2_runs(p, base).values()),
        _table2,
    ),
    _methods_target(
        "cal24-table3", "CAL24 Table 3: as Table 1, with Cosines", ("forrester", "ackley2", "cosines", "alpine10")
    ),
    Reproduction(
        "cal24-table4",
        "CAL24 Table 4: sensitivity on Forrester's function",
        tuple(run for base in BASES.values() for both in _variants(base).values() for run in both),
        _table4,
    ),
)
