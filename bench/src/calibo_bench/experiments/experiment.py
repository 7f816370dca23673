"""Experiments: measurements, and a page made from their rows only."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from calibo_bench.runner import Measurement
from calibo_bench.targets import Archive, Report

__all__ = ["Experiment"]


@dataclass(frozen=True)
class Experiment:
    """One of our own experiments."""

    name: str
    title: str
    measurements: Callable[[int, bool], Sequence[Measurement]]
    """For a number of seeds; fewer and shorter ones for a quick check."""

    report: Callable[[Archive], Report]
    seeds: int = 20
    alone: bool = False
    """Whether measurements must run one at a time, because they are timed."""

    def cells(self, seeds: int, *, quick: bool) -> Sequence[Measurement]:
        return self.measurements(seeds, quick)
