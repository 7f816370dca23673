"""CAL24 Tables 1 to 4."""

from collections.abc import Mapping, Sequence

import numpy as np

from calibo.reproduce import drawing
from calibo.reproduce.calibration import printed
from calibo.reproduce.calibration.setup import BASES, DEFAULT, OURS, PAPERS, TITLES, count, fraction, made, start, table
from calibo.reproduce.targets import Archive, Report, Run, Target, mean_and_error

__all__ = ["TABLES"]

METHODS: Mapping[str, str | None] = {
    "uncalibrated": "",
    "input warping": None,
    "output warping (tanh)": "+tanh",
    "Box-Cox": "+boxcox",
    "log": "+log",
    "bagged ensemble of 5": "+bagged",
    "calibrated": "+papers",
}
"""What Tables 1 and 3 compare, and the part that makes it; None where there is none yet."""

ABOUT_METHODS = """
m: best value after 25 steps, mean over seeds and its standard error. f: share of paired runs in which
the calibrated method is not worse than the row's (wins/ties/losses of the calibrated method). a: normalised area under
the curve of best values, per run, lo and hi over all methods, seeds and steps of the table; mean and standard error.
Forrester: LCB, three random points outside the valley of the global minimum, as in the paper's Figure 1; the others:
EI, three random points. Five runs in the paper."""


def _methods(problem: str, base: str) -> dict[str, Run]:
    runs = {label: made(problem, base, part) for label, part in METHODS.items() if part is not None}
    return {**runs, "calibo's default": Run(problem, DEFAULT, start(problem))} if base == OURS else runs


def _methods_target(name: str, title: str, problems: Sequence[str]) -> Target:
    def report(archive: Archive) -> Report:
        parts, figures = [ABOUT_METHODS.strip()], []
        for problem in problems:
            parts.append(f"## {TITLES[problem]}")
            for base_title, base in BASES.items():
                runs = _methods(problem, base)
                parts.append(f"On {base_title}, {count(archive, list(runs.values()))} seeds.")
                parts.append(_methods_table(archive, problem, runs, with_paper=base == PAPERS))
                figures.append(drawing.traces(archive, f"{TITLES[problem]}, {base_title}", runs))
        return Report("\n\n".join(parts), figures)

    runs = [run for problem in problems for base in BASES.values() for run in _methods(problem, base).values()]
    return Target(name, title, tuple(runs), report)


def _methods_table(archive: Archive, problem: str, runs: Mapping[str, Run], *, with_paper: bool) -> str:
    areas, calibrated, rows = archive.areas(list(runs.values())), runs["calibrated"], []
    for label in [*METHODS, *(name for name in runs if name not in METHODS)]:
        row = [label, "not built yet", "", ""]
        if label in runs:
            run = runs[label]
            beaten = "" if run == calibrated else fraction(archive, calibrated, run)
            row = [label, archive.minimum(run), beaten, mean_and_error(areas[run], 3)]
        if with_paper:
            m, error, f, a = printed.TABLE3[problem][label]
            row += [f"{m:g} ({error:g})", "" if label == "calibrated" else f"{f:g}", f"{a:.4f}"]
        rows.append(row)
    return table(["method", "m", "f", "a"] + (["paper: m", "f", "a"] if with_paper else []), rows)


ABOUT_TABLE2 = """
Matern kernel, probability of improvement, time-series splits, three random points, 25 steps. A map that
is the same at every point and increases strictly cannot move the point where improvement is most probable: runs with
such a map must be those without, evaluation by evaluation ("same"). So the paper's differences cannot be its effect. A
scale that depends on the place (wider where leave-one-out errors nearby were large) does move the point; f and a are
of that method, beside the uncalibrated one's a and the paper's columns. Areas are normalised over the methods and
seeds of a row."""
PARTS2 = ("+pi", "+pi+splits1", "+pi+local")


def _table2_runs(problem: str, base: str) -> tuple[Run, ...]:
    """Uncalibrated, with a global map, with a local scale."""
    kernel = "+matern" if base == PAPERS else ""
    return tuple(Run(problem, f"{base}{kernel}{part}") for part in PARTS2)


def _table2(archive: Archive) -> Report:
    parts, figures = [ABOUT_TABLE2.strip()], []
    head = ["function", "seeds", "same under a global map", "local: f", "local: a", "uncalibrated: a"]
    for base_title, base in BASES.items():
        rows = []
        for problem, (f, calibrated, uncalibrated) in printed.TABLE2.items():
            plain, mapped, local = _table2_runs(problem, base)
            areas = archive.areas([plain, mapped, local])
            one, two = archive.curves(plain), archive.curves(mapped)
            pairs = [np.array_equal(one[seed], two[seed]) for seed in one if seed in two]
            row = [problem, count(archive, [plain, mapped, local]), f"{sum(pairs)} of {len(pairs)}"]
            row += [fraction(archive, local, plain), *(mean_and_error(areas[run], 3) for run in (local, plain))]
            rows.append([*row, f"{f:g}", f"{calibrated:.4f}", f"{uncalibrated:.4f}"])
            drawn = {"uncalibrated": plain, "local scale": local}
            figures.append(drawing.traces(archive, f"{problem}, {base_title}", drawn))
        parts.append(f"## On {base_title}")
        parts.append(table([*head, "paper: f", "a, calibrated", "a, uncalibrated"], rows))
    return Report("\n\n".join(parts), figures)


ABOUT_TABLE4 = """
Forrester's function, 25 steps. The base case is Matern, N-1 time-series splits, GP recalibrator, three
random points, EI (inferred from the paper). f: share of paired runs in which the calibrated method is not worse
(wins/ties/losses); a: normalised area, lo and hi over both methods of a row and all seeds."""


def _variant(base: str, kernel: str, calibration: str, acquisition: str, begin: str) -> tuple[Run, Run]:
    """Uncalibrated and calibrated."""
    without, having = (f"{base}{kernel}{part}{acquisition}" for part in ("", calibration))
    return Run("forrester", without, begin), Run("forrester", having, begin)


def _table4(archive: Archive) -> Report:
    parts = [ABOUT_TABLE4.strip()]
    head = ["varied", "to", "seeds", "f", "a, calibrated", "a, uncalibrated"]
    for base_title, base in BASES.items():
        rows = []
        for group, variants in printed.TABLE4.items():
            for label, (*settings, (f, calibrated, uncalibrated)) in variants.items():
                without, having = _variant(base, *settings)
                areas = archive.areas([without, having])
                row = [group, label, count(archive, [without, having]), fraction(archive, having, without)]
                row += [mean_and_error(areas[run], 3) for run in (having, without)]
                rows.append([*row, f"{f:g}", f"{calibrated:.4f}", f"{uncalibrated:.4f}"])
        parts.append(f"## On {base_title}")
        parts.append(table([*head, "paper: f", "a, calibrated", "a, uncalibrated"], rows))
    return Report("\n\n".join(parts))


TABLES = (
    _methods_target(
        "cal24-table1", "CAL24 Table 1: calibration beside other remedies", ("forrester", "ackley2", "alpine10")
    ),
    Target(
        "cal24-table2",
        "CAL24 Table 2: seven functions, probability of improvement",
        tuple(run for base in BASES.values() for problem in printed.TABLE2 for run in _table2_runs(problem, base)),
        _table2,
    ),
    _methods_target(
        "cal24-table3", "CAL24 Table 3: the same with Cosines", ("forrester", "ackley2", "cosines", "alpine10")
    ),
    Target(
        "cal24-table4",
        "CAL24 Table 4: sensitivity on Forrester's function",
        tuple(
            run
            for base in BASES.values()
            for variants in printed.TABLE4.values()
            for *settings, _ in variants.values()
            for run in _variant(base, *settings)
        ),
        _table4,
    ),
)
