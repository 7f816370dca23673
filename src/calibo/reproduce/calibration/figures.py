"""Figures of CAL24 and CAL21."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from calibo.bench.problems import plain
from calibo.bench.runner import initial_points
from calibo.presets import named
from calibo.reproduce import drawing
from calibo.reproduce.calibration.setup import BASES, BOUND, PAPERS, TITLES, count, fraction, made, start, table
from calibo.reproduce.targets import Archive, Report, Run, Target, mean_and_error

__all__ = ["FIGURES"]

BOTH = {"uncalibrated": "", "calibrated": "+papers"}
ACQUISITIONS = {BOUND: " LCB", "": " EI", "+pi": " PI", None: ""}
SHOWN = (1, 4, 8, 12, 16)  # steps of Figure 1
FOUND = -5.0  # on Forrester's function: no local minimum is lower
SCORED = "The calibration score is that of all forecasts of a run, mean over seeds; lower is better."


# the uncalibrated and the calibrated method, panel by panel


def _panels(problems: Sequence[str], acquisitions: Sequence[str | None], **more: Any) -> dict[str, dict[str, Run]]:
    return {
        f"{TITLES[problem]}{ACQUISITIONS[acquisition]}, {base_title}": {
            label: made(problem, base, part, acquisition, **more) for label, part in BOTH.items()
        }
        for base_title, base in BASES.items()
        for problem in problems
        for acquisition in acquisitions
    }


def _compared(name: str, title: str, panels: Mapping[str, dict[str, Run]], about: str = SCORED) -> Target:
    def report(archive: Archive) -> Report:
        rows, figures = [], []
        for panel, both in panels.items():
            without, having = both.values()
            areas = archive.areas([without, having])
            row = [panel, count(archive, [without, having]), archive.minimum(without), archive.minimum(having)]
            row += [fraction(archive, having, without), *(mean_and_error(areas[run], 3) for run in (without, having))]
            scores = (archive.scores(without)[0], *archive.scores(having))
            rows.append([*row, *(f"{score[-1]:.2f}" if len(score) else "" for score in scores)])
            figures.append(drawing.traces(archive, panel, both))
            figures.append(drawing.improvement(archive, f"{panel}: improvement", {"per run": (without, having)}))
            figures.append(drawing.scores(archive, f"{panel}: calibration score", both))
        head = ["panel", "seeds", "m, uncalibrated", "m, calibrated", "f (wins/ties/losses)"]
        head += ["a, uncalibrated", "a, calibrated"]
        head += ["score, uncalibrated", "calibrated: score before correction", "after"]
        return Report(f"{about}\n\n{table(head, rows)}", figures)

    return Target(name, title, tuple(run for both in panels.values() for run in both.values()), report)


# Figure 1

FIGURE1 = {label: made("forrester", PAPERS, part) for label, part in BOTH.items()}


def _figure1(archive: Archive) -> Report:
    """The first seed whose uncalibrated run never leaves the local minimum, while the calibrated one does."""
    without, having = (archive.curves(run) for run in FIGURE1.values())
    stuck, lost = ([seed for seed, curve in curves.items() if curve[-1] > FOUND] for curves in (without, having))
    text = (
        f"Of {len(without)} starts with three points outside the valley of the global minimum, {len(stuck)} runs "
        f"without calibration and {len(lost)} with it have not found the valley at their end."
    )
    if not without:
        return Report(text)
    seed = next((seed for seed in stuck if seed not in lost), next(iter(without)))
    points = [
        float(str(given["x0"])) for given in initial_points(plain("forrester").at(seed), "forrester", seed, "missed3")
    ]
    strategies = {
        label: replace(named(run.strategy.removeprefix("calibo-")), initial=0) for label, run in FIGURE1.items()
    }
    return Report(f"{text} Drawn: seed {seed}.", [drawing.steps(strategies, points, SHOWN, seed)], wide=True)


# Figure 4

ABOUT_FIGURE4 = """
Lower confidence bounds. Conformal is [STA23] with the bound as utility; adaptive is [BER19]; the tuned
weight is the best of five on other functions (`python benchmarks/effects.py run`). f: share of paired runs in which
the calibrated method is not worse than the row's. The paper shows curves, and its text does not name the functions;
these are those of its Figure 2."""
METHODS = {
    "uncalibrated": BOUND,
    "calibrated": f"+papers{BOUND}",
    "conformal": "+conformal-lcb",
    "adaptive": "+adaptive",
    "tuned weight": "+lcb1",
}
PROBLEMS = ("forrester", "ackley2", "alpine10")


def _figure4_runs(problem: str, base: str) -> dict[str, Run]:
    return {label: Run(problem, f"{base}{part}", start(problem)) for label, part in METHODS.items()}


def _figure4(archive: Archive) -> Report:
    parts, figures = [ABOUT_FIGURE4.strip()], []
    for base_title, base in BASES.items():
        for problem in PROBLEMS:
            runs, rows = _figure4_runs(problem, base), []
            areas, calibrated = archive.areas(list(runs.values())), runs["calibrated"]
            for label, run in runs.items():
                beaten = "" if run == calibrated else fraction(archive, calibrated, run)
                rows.append([label, archive.minimum(run), beaten, mean_and_error(areas[run], 3)])
            title = f"{TITLES[problem]}, {base_title}"
            parts.append(f"## {title}\n\n{count(archive, list(runs.values()))} seeds.")
            parts.append(table(["method", "m", "f", "a"], rows))
            figures.append(drawing.traces(archive, title, runs))
    return Report("\n\n".join(parts), figures)


FIGURES = (
    Target(
        "cal24-fig1", "CAL24 Figures 1 and 6: selected steps on Forrester's function", tuple(FIGURE1.values()), _figure1
    ),
    _compared(
        "cal24-fig2",
        "CAL24 Figure 2: Forrester, Ackley and Alpine 10D with calibration scores",
        _panels(("forrester", "ackley2", "alpine10"), (None,)),
    ),
    _compared(
        "cal24-fig3",
        "CAL24 Figure 3, CAL21 Figure 4: Six-Hump Camel under LCB, EI and PI",
        _panels(("camel6",), (BOUND, "", "+pi")),
    ),
    Target(
        "cal24-fig4",
        "CAL24 Figure 4: conformal and adaptive bounds",
        tuple(run for base in BASES.values() for problem in PROBLEMS for run in _figure4_runs(problem, base).values()),
        _figure4,
    ),
    _compared(
        "cal24-alpine100",
        "CAL24 App. A.4: Alpine 10D for 100 steps",
        _panels(("alpine10",), ("",), steps=100),
        f"{SCORED} The paper's calibrated runs: 12.75 after 25 steps, 11.43 after 100.",
    ),
    _compared(
        "cal21-fig3",
        "CAL21 Figure 3: Alpine 7D and 15D under LCB",
        _panels(("alpine7", "alpine15"), (BOUND,)),
        f"{SCORED} The paper's text: the calibrated method was about twice as fast to 10 in 7D.",
    ),
)
