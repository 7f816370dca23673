"""WARP14 Figures 3 and 5: softmax regression with and without warps, and transfer between tasks."""

from collections.abc import Mapping

import numpy as np

from calibo_bench import plots
from calibo_bench.markdown import count, fraction, table
from calibo_bench.targets import Archive, Report, Reproduction, Run, mean_and_error

__all__ = ["FIGURES", "beside"]

ABOUT3 = """
Softmax regression on 10,000 images of MNIST, trained at every evaluation (the paper: all 60,000). The paper's other
panels, online LDA, latent SVM and a convolutional network, are not reproduced here, but see Table 1. Learning rate 1e-4
to 5, L2 penalty 1e-6 to 1, batch size 20 to 2,000, epochs 1 to 50; error in per cent on 10,000 held-out images. All
scales are linear, except in the runs with declared log scales for rate, penalty and batch size. All methods are
calibo's plain Gaussian process with log EI from five Sobol points. The runs with log scales start from other points and
are not paired with the rest. Sampled: ten hyperparameter samples.
""".strip().replace("\n", " ")
RUNS3: Mapping[str, Run] = {
    "linear scales": Run("softmax-mnist", "calibo-plain", "sobol5", 35),
    "linear scales, warped": Run("softmax-mnist", "calibo-plain+warped", "sobol5", 35),
    "linear scales, warped, sampled": Run("softmax-mnist", "calibo-plain+warped+sampled", "sobol5", 35),
    "log scales declared": Run("softmax-mnist-log", "calibo-plain", "sobol5", 35),
}

ABOUT5 = """
The source task is a run of calibo's plain strategy with 30 evaluations. The target task starts from two Sobol points,
the same for all methods of a seed. Single-task is the plain Gaussian process. Multi-task has one more candidate model,
the process over both tasks, which is selected as long as it forecasts no worse (`transfer_from`). "Alone" is that
process without model choice, as in the paper, which samples hyperparameters where we use the MAP estimate. The paper
has 60,000 images of MNIST, and 50,000 and 200,000 documents. The topic models here were trained once at each of 180
grid points (20 topics, 1,000 words, one pass); the grid is searched by index, not by value.
""".strip().replace("\n", " ")
PARTS5 = {
    "single-task": "",
    "multi-task": "+transfer",
    "warped multi-task": "+warped+transfer",
}
ALONE5 = {"multi-task alone": "+joint", "warped multi-task alone": "+warped+joint"}
TASKS5 = {
    "USPS (6,000 images) to MNIST (10,000): softmax regression, error in per cent": (
        "softmax-mnist-after_usps",
        PARTS5,
    ),
    "20 Newsgroups, 1,500 to 11,000 documents: online LDA, perplexity": ("topics-many-after_few", PARTS5 | ALONE5),
}
PANELS5: Mapping[str, Mapping[str, Run]] = {
    title: {label: Run(problem, f"calibo-plain{part}", "sobol2", 23) for label, part in parts.items()}
    for title, (problem, parts) in TASKS5.items()
}


def beside(archive: Archive, runs: Mapping[str, Run], reference: str, digits: int = 4) -> str:
    """A table that compares each run with the reference."""
    known = archive.shared(list(runs.values()))
    areas, rows = known.areas(list(runs.values())), []
    for label, run in runs.items():
        curves = list(known.curves(run).values())
        early = [float(curve[len(curve) // 3]) for curve in curves]
        row = [label, mean_and_error(early, digits), known.minimum(run), mean_and_error(areas[run], 3)]
        paired = label != reference and run.problem == runs[reference].problem
        rows.append([*row, fraction(known, run, runs[reference]) if paired else ""])
    steps = known.steps(runs[reference])
    return table(["method", f"best after {(steps + 1) // 3} steps", "best", "area", f"f vs. {reference}"], rows)


def _figure3(archive: Archive) -> Report:
    known = archive.shared(list(RUNS3.values()))
    evaluations = 5 + archive.steps(RUNS3["linear scales"])
    text = f"{count(known, list(RUNS3.values()))} seeds, {evaluations} evaluations. {ABOUT3}\n\n{RULES}\n\n"
    text += beside(archive, RUNS3, "linear scales")
    return Report(text, lambda: [plots.traces(archive, "softmax regression, error in per cent", RUNS3)], wide=True)


RULES = (
    "Values are means over seeds (standard errors). Area: area under the curve of best values, normalised so that 0 is "
    "the best and 1 the worst value of any method, seed and step. f: the share of paired runs in which the method's "
    "final value is not worse (wins/ties/losses)."
)


def _figure5(archive: Archive) -> Report:
    parts = [ABOUT5, RULES]
    for title, runs in PANELS5.items():
        known = archive.shared(list(runs.values()))
        evaluations = 2 + archive.steps(runs["single-task"])
        parts.append(f"## {title}\n\n{count(known, list(runs.values()))} seeds, {evaluations} evaluations.")
        parts.append(beside(archive, runs, "single-task"))
        compared = {label: run for label, run in runs.items() if known.of(run) and known.of(runs["single-task"])}
        reached = {label: _until(known, run, runs["single-task"]) for label, run in compared.items()}
        if reached:
            told = ", ".join(f"{label} {steps:g}" for label, steps in reached.items())
            never = f"median over seeds ({evaluations + 1} if never)"
            parts.append(f"Evaluations until the final value of single-task is reached, {never}: {told}.")
    return Report("\n\n".join(parts), lambda: [plots.traces(archive, t, runs) for t, runs in PANELS5.items()])


def _until(archive: Archive, run: Run, reference: Run) -> float:
    """Evaluations, initial points included, until a run reaches the final value of the reference of its seed."""
    ours, theirs = archive.curves(run), archive.curves(reference)
    steps = []
    for seed in ours:
        if seed in theirs:
            reached = ours[seed] <= theirs[seed][-1]
            steps.append(2 + int(np.argmax(reached)) if reached.any() else 2 + len(ours[seed]))
    return float(np.median(steps)) if steps else np.nan


FIGURES = (
    Reproduction(
        "warp14-fig3", "WARP14 Figure 3: input warping versus log scales on MNIST", tuple(RUNS3.values()), _figure3
    ),
    Reproduction(
        "warp14-fig5",
        "WARP14 Figure 5: transfer between tasks",
        tuple(run for runs in PANELS5.values() for run in runs.values()),
        _figure5,
    ),
)
