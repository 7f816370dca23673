"""The targets of `calibo-bench reproduce`: tables and figures of papers, and our own experiments."""

from collections.abc import Mapping

from calibo_bench.experiments import EXPERIMENTS
from calibo_bench.reproduce import PAPERS
from calibo_bench.targets import Target

__all__ = ["TARGETS"]

TARGETS: Mapping[str, Target] = {target.name: target for target in (*PAPERS, *EXPERIMENTS)}
