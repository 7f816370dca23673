"""What warps and sampled hyper-parameters cost, as ratios in one run.

python benchmarks/warping.py    writes docs/results/warping-cost.md

Ten suggestions in a row from n = 50 outcomes of Hartmann's function of six variables on, the same outcomes for all methods,
in turns; hyper-parameters are refitted as always, once or twice in ten steps.
"""

import os
import time
from pathlib import Path

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np

from calibo import Optimizer
from calibo.bench.problems import plain
from calibo.surrogate.gaussian import REMEMBERED

PAGE = Path(__file__).parent.parent / "docs" / "results" / "warping-cost.md"
METHODS = ("plain", "plain+warped", "plain+sampled", "plain+warped+sampled")
N, STEPS, RUNS = 50, 10, 7


def seconds(strategy, seed):
    """Of each suggestion; the points evaluated are those of the plain strategy."""
    instance = plain("hartmann6").at(seed)
    optimizer, guide = (Optimizer(instance.space, strategy=name, seed=seed) for name in (strategy, "plain"))
    taken = []
    for i in range(N + STEPS):
        params = guide.ask()
        value = instance.value(params)
        if i >= N - 1:
            REMEMBERED.clear()  # what another method has fitted is not known
            begun = time.perf_counter()
            suggested = optimizer.ask()
            taken.append(time.perf_counter() - begun)
            optimizer.cancel(suggested)  # nothing is pending at the next
        guide.tell(params, value)
        optimizer.tell(params, value)
    return taken[1:]  # the first has all fits to make that came before


def main():
    found = {name: [] for name in METHODS}
    for seed in range(RUNS):
        for name in METHODS:
            found[name].append(seconds(name, seed))
            print(seed, name, np.round(1000 * np.array(found[name][-1])), flush=True)
    means = {name: 1000 * np.mean(found[name], axis=1) for name in METHODS}
    worst = {name: 1000 * np.max(found[name], axis=1) for name in METHODS}
    lines = [
        "# What warps and sampling cost",
        "",
        f"`python benchmarks/warping.py`: {STEPS} suggestions in a row from n = {N} on, d = 6, refits included, the same outcomes for all "
        f"methods, in turns, one BLAS thread; medians of {RUNS} runs. Ratios are those of a run, and their median. Sampled means ten "
        "settings of all hyper-parameters. Target: 12 for warped and sampled.",
        "",
        "| method | ms a suggestion | ratio | ms, the slowest of ten, with a refit | ratio |",
        "|---|---|---|---|---|",
    ]
    for name in METHODS:
        cells = [
            f"{np.median(part[name]):.0f} | {np.median(part[name] / part['plain']):.1f}" for part in (means, worst)
        ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    PAGE.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
