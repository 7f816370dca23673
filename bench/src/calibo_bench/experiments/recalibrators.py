"""Recalibrators on simulated scores with a known miscalibration."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from calibo.arrays import Array
from calibo.calibration import Gate, NoRecalibration, Recalibrator, ShiftScaleRecalibrator
from calibo.research import (
    EmpiricalRecalibrator,
    GPRecalibrator,
    MLPRecalibrator,
    OnlineRecalibrator,
    SigmaScaleRecalibrator,
)
from calibo.scoring import calibration_error
from calibo_bench.clients import source_digest
from calibo_bench.experiments.experiment import Experiment
from calibo_bench.markdown import table
from calibo_bench.runner import Key, Row, blank_row
from calibo_bench.targets import Archive, Report

__all__ = ["RECALIBRATORS"]

SIZES = (20, 50, 200)
FAULTS: Mapping[str, Callable[[np.random.Generator, Array], Array]] = {
    "none": lambda rng, t: rng.standard_normal(t.shape),
    "over-confident": lambda rng, t: 2.0 * rng.standard_normal(t.shape),
    "under-confident": lambda rng, t: 0.5 * rng.standard_normal(t.shape),
    "biased": lambda rng, t: 0.8 + rng.standard_normal(t.shape),
    "skewed": lambda rng, t: 1.5 * (rng.chisquare(3, t.shape) - 3.0) / np.sqrt(6.0),
    "drifting": lambda rng, t: 1.5 * (1.0 - t) + rng.standard_normal(t.shape),
}
COMPARED: Mapping[str, Recalibrator] = {
    "identity": NoRecalibration(),
    "EmpiricalRecalibrator": EmpiricalRecalibrator(),
    "GPRecalibrator": GPRecalibrator(),
    "MLPRecalibrator": MLPRecalibrator(),
    "SigmaScaleRecalibrator": SigmaScaleRecalibrator(),
    "ShiftScaleRecalibrator": ShiftScaleRecalibrator(),
    "OnlineRecalibrator": OnlineRecalibrator(),
    "Gate(ShiftScaleRecalibrator)": Gate(),
}
ABOUT = """
Each recalibrator is fitted to n scores of a sequence, and its map is applied to the next 4,000; calibration error
(root mean square over 19 levels) of those, mean over sequences. Over-confident: scores with standard deviation 2;
under-confident: 1/2; biased: by 0.8; skewed: chi-squared with 3 degrees of freedom, standard deviation 1.5; drifting:
the bias falls from 1.5 to 0 over the n scores and then stays 0. Sampling error alone is about 0.01.
""".strip().replace("\n", " ")


@dataclass(frozen=True)
class ScoreSequence:
    """A recalibrator fitted to n scores of one sequence per fault."""

    recalibrator: str
    n: int
    seed: int

    @property
    def key(self) -> Key:
        return "streams", self.recalibrator, self.seed, self.n, ""

    def measured(self) -> Row:
        errors = {name: self._error(fault) for name, fault in FAULTS.items()}
        return {**blank_row(self.key), "errors": errors, "versions": {"calibo source": source_digest()}}

    def _error(self, fault: Callable[[np.random.Generator, Array], Array]) -> float:
        """Calibration error on the scores that follow."""
        rng = np.random.default_rng([self.seed, self.n])
        past, future = fault(rng, np.linspace(0.0, 1.0, self.n)), fault(rng, np.ones(4000))
        return calibration_error(ndtr(COMPARED[self.recalibrator].fit(past)(future)))


def _measurements(seeds: int, quick: bool) -> list[ScoreSequence]:
    sizes = SIZES[:1] if quick else SIZES
    return [ScoreSequence(name, n, seed) for seed in range(seeds) for n in sizes for name in COMPARED]


def _report(archive: Archive) -> Report:
    parts, widest = [], 0.0
    for n in SIZES:
        rows = []
        for name in COMPARED:
            made = [row for row in archive.rows if not row["error"]]
            found = [row for row in made if (row["strategy"], row["budget"]) == (name, n)]
            errors = np.array([[row["errors"][f] for f in FAULTS] for row in found if row["seed"] < archive.seeds])
            if len(errors) > 1:
                widest = max(widest, float((errors.std(axis=0, ddof=1) / np.sqrt(len(errors))).max()))
                means = errors.mean(axis=0)
                rows.append([name, *(f"{error:.3f}" for error in [*means, means.mean()])])
        if rows:
            parts += [f"## After {n} outcomes", table(["", *FAULTS, "mean"], rows)]
    said = f"Standard errors are at most {widest:.3f}." if parts else "There are fewer than two sequences to report."
    return Report("\n\n".join([f"{archive.seeds} sequences. {ABOUT} {said}", *parts]))


RECALIBRATORS = Experiment("recalibrators", "Recalibrators on scores with a known fault", _measurements, _report)
