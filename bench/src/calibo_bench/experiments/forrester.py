"""Score sources and recalibrators that find a minimum missed by three initial points: CAL21, CAL23, CAL24."""

from collections.abc import Mapping

import numpy as np

from calibo_bench.experiments.experiment import Experiment
from calibo_bench.markdown import table
from calibo_bench.problems.functions import function
from calibo_bench.runner import Cell
from calibo_bench.targets import Archive, Report, Run
from calibo_bench.variants import RECALIBRATORS, SCORE_SOURCES, correction

__all__ = ["FORRESTER"]

FOUND = 0.1  # above the global minimum
PAIRS = [(None, None), *((s, r) for s in SCORE_SOURCES for r in RECALIBRATORS)]
STARTS = {
    "missed3": "Three random points, each at least 0.15 away from the global minimum",
    "outside3": "Three random points outside [0.6, 0.9], where the global minimum is",
}
RUNS: Mapping[tuple[str, str | None, str | None], Run] = {
    (start, *pair): Run("forrester", correction(*pair), start, 25) for start in STARTS for pair in PAIRS
}
ABOUT = f"""
Forrester's function from three points that miss its global minimum, the same for every cell; RBF kernel, maximum
likelihood, LCB with weight 2, as in the papers. Each cell: number of runs that come within {FOUND} of the global
minimum -6.02, and mean regret over the steps ± standard error. The effect of calibration depends on the start, so there
are two sets of starts.
""".strip().replace("\n", " ")


def _cells(seeds: int, quick: bool) -> list[Cell]:
    archive = Archive((), seeds, quick)
    return [archive.cell(run, seed) for seed in range(seeds) for run in RUNS.values()]


def _report(archive: Archive) -> Report:
    lowest = function("forrester").minimum

    def cell(start: str, source: str | None, recalibrator: str | None) -> str:
        curves = np.array(list(archive.curves(RUNS[start, source, recalibrator]).values())) - lowest
        if not len(curves):
            return ""
        areas = curves.mean(axis=1)
        error = areas.std(ddof=1) / np.sqrt(len(areas)) if len(areas) > 1 else np.nan
        return f"{(curves[:, -1] < FOUND).sum()}/{len(curves)}, {areas.mean():.2f} ± {error:.2f}"

    parts = [f"{archive.steps(RUNS['missed3', None, None])} steps. {ABOUT}"]
    for start, word in STARTS.items():
        rows = [[r, *(cell(start, s, r) for s in SCORE_SOURCES)] for r in RECALIBRATORS]
        none = f"Without calibration: {cell(start, None, None) or 'no runs'}."
        parts += [f"## {word}", none, table(["", *SCORE_SOURCES], rows)]
    return Report("\n\n".join(parts))


FORRESTER = Experiment("forrester", "Forrester's function from three points that miss its minimum", _cells, _report)
