"""Which evidence and which recalibrator find the valley that three given points have missed: CAL21, CAL23, CAL24."""

from collections.abc import Mapping

import numpy as np

from calibo_bench.experiments.experiment import Experiment
from calibo_bench.markdown import table
from calibo_bench.problems.functions import function
from calibo_bench.runner import Cell
from calibo_bench.targets import Archive, Report, Run
from calibo_bench.variants import EVIDENCE, RECALIBRATORS, correction

__all__ = ["FORRESTER"]

FOUND = 0.1  # above the global minimum
PAIRS = [(None, None), *((e, r) for e in EVIDENCE for r in RECALIBRATORS)]
RUNS: Mapping[tuple[str | None, str | None], Run] = {
    pair: Run("forrester", correction(*pair), "missed3", 25) for pair in PAIRS
}
ABOUT = f"""
Forrester's function from three random points away from its global minimum, the same for every cell; RBF, maximum
likelihood, lower confidence bound with weight 2, as in the papers. Each cell: runs that come within {FOUND} of the
global minimum -6.02, and the mean regret over the steps with its standard error.
""".strip().replace("\n", " ")


def _cells(seeds: int, quick: bool) -> list[Cell]:
    archive = Archive((), seeds, quick)
    return [archive.cell(run, seed) for seed in range(seeds) for run in RUNS.values()]


def _report(archive: Archive) -> Report:
    lowest = function("forrester").minimum

    def cell(evidence: str | None, recalibrator: str | None) -> str:
        curves = np.array(list(archive.curves(RUNS[evidence, recalibrator]).values())) - lowest
        if not len(curves):
            return ""
        areas = curves.mean(axis=1)
        error = areas.std(ddof=1) / np.sqrt(len(areas)) if len(areas) > 1 else np.nan
        return f"{(curves[:, -1] < FOUND).sum()}/{len(curves)}, {areas.mean():.2f} ± {error:.2f}"

    rows = [[r, *(cell(e, r) for e in EVIDENCE)] for r in RECALIBRATORS]
    steps = archive.steps(RUNS[None, None])
    text = [f"{steps} steps. {ABOUT}", f"Without calibration: {cell(None, None)}.", table(["", *EVIDENCE], rows)]
    return Report("\n\n".join(text))


FORRESTER = Experiment("forrester", "Forrester's function from three points that miss its valley", _cells, _report)
