"""What an experiment is: measurements, and a page made of their rows alone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from calibo_bench.runner import Measurement
from calibo_bench.targets import Archive, Report

__all__ = ["Experiment"]


@dataclass(frozen=True)
class Experiment:
    """A comparison of ours."""

    name: str
    title: str
    measurements: Callable[[int, bool], Sequence[Measurement]]
    """For so many seeds; fewer and shorter ones for a first look."""

    report: Callable[[Archive], Report]
    seeds: int = 20
    alone: bool = False
    """Whether nothing else may run beside a measurement: times."""

    def cells(self, seeds: int, *, quick: bool) -> Sequence[Measurement]:
        return self.measurements(seeds, quick)
