"""Topic models of 20 Newsgroups, trained at every point of a grid by `lda_table`: WARP14 Sec. 4.4."""

from dataclasses import replace
from functools import cache
from pathlib import Path

from calibo_bench.problems.source_tasks import source_task_of
from calibo_bench.problems.synthetic import Instance, Problem
from calibo_bench.problems.tables import grid, looked_up

__all__ = ["TOPICS"]

TABLE = Path(__file__).with_suffix(".csv")
FEW, MANY = 1_500, 11_000


@cache
def _instance(documents: int) -> Instance:
    values, outcomes = grid(TABLE, ("documents", "kappa", "tau", "batch"), "perplexity")
    row = values.pop("documents").index(documents)
    return looked_up(values, outcomes[row])


def _after_few(seed: int) -> Instance:
    source_tasks = cache(lambda: (source_task_of("few", _instance(FEW), seed),))
    return replace(_instance(MANY), source_tasks=source_tasks)


TOPICS = (
    Problem("topics-few", lambda _: _instance(FEW)),
    Problem("topics-many", lambda _: _instance(MANY)),
    Problem("topics-many-after_few", _after_few),
)
"""With 1,500 documents, with 11,000, and with 11,000 and the 1,500 as source task."""
