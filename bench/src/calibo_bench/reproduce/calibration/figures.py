"""Figures of CAL24 and CAL21."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from calibo.presets import get_strategy
from calibo_bench import plots
from calibo_bench.markdown import count, fraction, table
from calibo_bench.problems.synthetic import plain
from calibo_bench.reproduce.calibration.selected import steps
from calibo_bench.reproduce.calibration.setup import (
    BASES,
    BOUND,
    PAPERS,
    RULES,
    SETTINGS,
    TITLES,
    made,
    start,
)
from calibo_bench.runner import initial_points
from calibo_bench.targets import Archive, Report, Reproduction, Run, mean_and_error

__all__ = ["FIGURES"]

BOTH = {"uncalibrated": "", "calibrated": "+papers"}
ACQUISITIONS = {BOUND: " LCB", "": " EI", "+pi": " PI", None: ""}
SHOWN = (1, 4, 8, 12, 16)  # steps of Figure 1
FOUND = -5.0  # on Forrester's function: only the global minimum is lower
SCORED = "The calibration score is that of all forecasts of a run, mean over seeds; lower is better."


# the uncalibrated and the calibrated method, panel by panel


def _panels(problems: Sequence[str], acquisitions: Sequence[str | None], **more: Any) -> dict[str, dict[str, Run]]:
    return {
        f"{TITLES[problem]}{ACQUISITIONS[acquisition]}, {told}": {
            label: made(problem, base, part, acquisition, **more) for label, part in BOTH.items()
        }
        for told, base in BASES.items()
        for problem in problems
        for acquisition in acquisitions
    }


def _compared(name: str, title: str, panels: Mapping[str, dict[str, Run]], about: str = "") -> Reproduction:
    def report(archive: Archive) -> Report:
        rows = []
        for panel, both in panels.items():
            without, having = both.values()
            known = archive.shared([without, having])
            areas = known.areas([without, having])
            row = [panel, count(known, [without, having]), known.minimum(without), known.minimum(having)]
            row += [fraction(known, having, without), *(mean_and_error(areas[run], 3) for run in (without, having))]
            scores = (known.scores(without)[0], *known.scores(having))
            rows.append([*row, *(f"{score[-1]:.2f}" if len(score) else "" for score in scores)])
        head = ["panel", "seeds", "m, uncalibrated", "m, calibrated", "f (wins/ties/losses)"]
        head += ["a, uncalibrated", "a, calibrated"]
        head += ["score, uncalibrated", "calibrated: score before recalibration", "after"]
        first = next(iter(panels.values()))["uncalibrated"]
        words = [f"{archive.steps(first)} steps.", about, SCORED, SETTINGS]
        text = "\n\n".join([" ".join(word for word in words if word), RULES, table(head, rows)])
        return Report(text, lambda: _drawn(archive, panels))

    return Reproduction(name, title, tuple(run for both in panels.values() for run in both.values()), report)


def _drawn(archive: Archive, panels: Mapping[str, dict[str, Run]]) -> list[Any]:
    figures = []
    for panel, both in panels.items():
        without, having = both.values()
        figures.append(plots.traces(archive, panel, both))
        figures.append(plots.improvement(archive, f"{panel}: improvement", {"per run": (without, having)}))
        figures.append(plots.scores(archive, f"{panel}: calibration score", both))
    return figures


# Figure 1

FIGURE1 = {label: made("forrester", PAPERS, part) for label, part in BOTH.items()}


def _figure1(archive: Archive) -> Report:
    """Draws a seed whose uncalibrated run stays in the local minimum and whose calibrated run escapes, if any."""
    known = archive.shared(list(FIGURE1.values()))
    without, having = (
        {seed: curve[-1] < FOUND for seed, curve in known.curves(run).items()} for run in FIGURE1.values()
    )
    pairs = [(without[seed], having[seed]) for seed in without if seed in having]
    cases = {"both": (True, True), "only with": (False, True), "only without": (True, False), "neither": (False, False)}
    counts = ", ".join(f"{label} {pairs.count(case)}" for label, case in cases.items())
    text = (
        f"{len(pairs)} starts with three points outside the basin of the global minimum, LCB, "
        f"{known.steps(FIGURE1['calibrated'])} steps. Basin found with and without calibration: {counts}. "
        f"{SETTINGS}"
    )
    chosen = [seed for seed in without if seed in having and having[seed] and not without[seed]]
    if not pairs:
        return Report(text)
    seed = chosen[0] if chosen else next(iter(without))
    told = "the first that succeeds only with calibration" if chosen else "none succeeds only with calibration"
    return Report(f"{text} Drawn: seed {seed}; {told}.", lambda: [_steps(seed)], wide=True)


def _steps(seed: int) -> Any:
    points = initial_points(plain("forrester").at(seed), "forrester", seed, "missed3")
    strategies = {
        label: replace(get_strategy(run.strategy.removeprefix("calibo-")), initial=0) for label, run in FIGURE1.items()
    }
    return steps(strategies, [float(str(point["x0"])) for point in points], SHOWN, seed)


# Figure 4

ABOUT_FIGURE4 = """
Lower confidence bounds. Conformal is [STA23] with the bound as utility; adaptive is [BER19]; the tuned weight is the
best of five on other functions (`calibo-bench reproduce calibration`). The paper shows curves and does not name the
functions; we use those of its Figure 2.
""".strip().replace("\n", " ")
METHODS = {
    "uncalibrated": BOUND,
    "calibrated": f"+papers{BOUND}",
    "conformal": "+conformal-lcb",
    "adaptive": "+adaptive",
    "tuned weight": "+lcb1",
}
PANELS4 = {
    f"{TITLES[problem]}, {told}": {
        label: Run(problem, f"{base}{part}", start(problem)) for label, part in METHODS.items()
    }
    for told, base in BASES.items()
    for problem in ("forrester", "ackley2", "alpine10")
}


def _figure4(archive: Archive) -> Report:
    parts = [f"{archive.steps(Run('forrester', PAPERS))} steps. {ABOUT_FIGURE4} {SETTINGS}", RULES]
    for title, runs in PANELS4.items():
        known, rows = archive.shared(list(runs.values())), []
        areas, calibrated = known.areas(list(runs.values())), runs["calibrated"]
        for label, run in runs.items():
            beaten = "" if run == calibrated else fraction(known, calibrated, run)
            rows.append([label, known.minimum(run), beaten, mean_and_error(areas[run], 3)])
        parts.append(f"## {title}\n\n{count(known, list(runs.values()))} seeds.")
        parts.append(table(["method", "m", "f", "a"], rows))
    return Report("\n\n".join(parts), lambda: [plots.traces(archive, title, runs) for title, runs in PANELS4.items()])


FIGURES = (
    Reproduction(
        "cal24-fig1",
        "CAL24 Figures 1 and 6: selected steps on Forrester's function",
        tuple(FIGURE1.values()),
        _figure1,
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
        "Under PI a global map changes nothing, by construction (see Table 2).",
    ),
    Reproduction(
        "cal24-fig4",
        "CAL24 Figure 4: conformal and adaptive bounds",
        tuple(run for runs in PANELS4.values() for run in runs.values()),
        _figure4,
    ),
    _compared(
        "cal24-alpine100",
        "CAL24 App. A.4: Alpine 10D for 100 steps",
        _panels(("alpine10",), ("",), steps=100),
        "The paper: 'an improvement in the minima found at the 100-th step from 12.75 to 11.43'; it does not say which "
        "runs had 12.75 (its Table 1 has 12.537 calibrated after 25 steps).",
    ),
    _compared(
        "cal21-fig3",
        "CAL21 Figure 3: Alpine 7D and 15D under LCB",
        _panels(("alpine7", "alpine15"), (BOUND,)),
        "The paper's text: the calibrated method reached 10 about twice as fast in 7D.",
    ),
)
