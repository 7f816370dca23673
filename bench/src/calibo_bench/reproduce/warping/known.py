"""Beyond the tables of WARP14: recovery of known warps, and misleading source tasks."""

from collections.abc import Mapping
from functools import cache

import numpy as np

from calibo.arrays import Array
from calibo.design import sobol_points
from calibo.gp.warping import WarpedCovariance
from calibo.models import GaussianProcess
from calibo.observations import Observations
from calibo.threads import one_blas_thread
from calibo_bench import plots
from calibo_bench.markdown import count, interval, table
from calibo_bench.problems.source_tasks import RELATIONS
from calibo_bench.problems.synthetic import axis_warp, drawn, warped
from calibo_bench.reproduce.warping.figures import RULES, beside
from calibo_bench.statistics import Results
from calibo_bench.targets import Archive, Report, Reproduction, Run, mean_and_error

__all__ = ["KNOWN"]

LENGTH = 0.25  # lengthscale of the functions drawn
POINTS = (20, 40, 60)
CHAINS, DRAWS, BURN_IN = 4, 25, 20  # as in `calibo plot warps`
RUNS: Mapping[str, Run] = {
    "unwarped": Run("drawn2-warped", "calibo-plain", "sobol5", 35),
    "warped": Run("drawn2-warped", "calibo-plain+warped", "sobol5", 35),
    "unwarped, sampled": Run("drawn2-warped", "calibo-plain+sampled", "sobol5", 35),
    "warped, sampled": Run("drawn2-warped", "calibo-plain+warped+sampled", "sobol5", 35),
}
ABOUT = f"""
Functions of two variables drawn from a stationary Gaussian process with lengthscale {LENGTH:g}, then warped: position u
of each axis becomes u^p or 1 - (1 - u)^p, p between 2 and 4. Both are Beta CDFs, so the warp can be learned exactly in
principle.
""".strip().replace("\n", " ")


@cache
def _distances(seed: int, n: int) -> tuple[float, float]:
    """Largest distance to the true warp, mean over axes, of the MAP warp and the mean warp, from n points."""
    inner = drawn(2, LENGTH)
    instance, u = warped(inner).at(seed), np.linspace(0.0, 1.0, 201)
    x = sobol_points(2, 0, n, seed)
    y = np.array([instance.value(instance.space.from_cube(point)) for point in x])
    known = np.ones(n, dtype=bool)
    data = Observations(instance.space.cube, x, y, np.full(n, np.nan), known, np.empty((0, 2)))
    recipe = GaussianProcess(warped=True)
    kernel, posterior = recipe.covariance(data.cube), recipe.hyper_posterior(data)
    assert isinstance(kernel, WarpedCovariance)
    chains = [posterior.draws(DRAWS, np.random.default_rng(c), burn_in=BURN_IN) for c in range(CHAINS)]
    drawn_warps = [kernel.warps(theta, u) for theta in np.concatenate(chains)]
    true = axis_warp(inner, seed)(np.column_stack([u, u])).T
    at_map, mean = (
        float(np.abs(learned - true).max(axis=1).mean())
        for learned in (kernel.warps(posterior.mode, u), np.mean(drawn_warps, axis=0))
    )
    return at_map, mean


def _known(archive: Archive) -> Report:
    seeds = sorted({seed for run in RUNS.values() for seed in archive.shared(list(RUNS.values())).of(run)})
    with one_blas_thread():
        found = {n: np.array([_distances(seed, n) for seed in seeds]).reshape(-1, 2) for n in POINTS}
    rows = [
        [label, *(mean_and_error(found[n][:, i], 3) for n in POINTS)]
        for i, label in enumerate(("MAP estimate", f"mean of {CHAINS * DRAWS} draws"))
    ]
    identity = [float(np.abs(_identity(seed)).max(axis=0).mean()) for seed in seeds]
    rows.append(["no warp", mean_and_error(identity, 3), "", ""])
    head = ["learned", *(f"{n} points" for n in POINTS)]
    parts = [
        f"{count(archive.shared(list(RUNS.values())), list(RUNS.values()))} seeds. {ABOUT}",
        "Largest distance between the true warp and the one learned from Sobol points, mean over axes, then over "
        "seeds (standard error):",
        table(head, rows),
        f"Optimization, {5 + archive.steps(RUNS['unwarped'])} evaluations. {RULES}",
        beside(archive, RUNS, "unwarped"),
        _ratios(archive, RUNS, "unwarped"),
    ]
    return Report("\n\n".join(parts), lambda: [plots.traces(archive, "best value", RUNS)], wide=True)


def _identity(seed: int) -> Array:
    u = np.linspace(0.0, 1.0, 201)
    points = np.column_stack([u, u])
    return axis_warp(drawn(2, LENGTH), seed)(points) - points


def _ratios(archive: Archive, runs: Mapping[str, Run], reference: str) -> str:
    rows = []
    for label, run in runs.items():
        if label != reference:
            both = [row for each in (run, runs[reference]) for row in archive.of(each).values()]
            rows.append([label, *_ratio(both, run.strategy, runs[reference].strategy)])
    return table(["method", f"final regret, ratio to {reference} (95 %)", "area, ratio (95 %)"], rows)


def _ratio(rows: list[dict[str, object]], ours: str, theirs: str) -> list[str]:
    if not rows:
        return ["", ""]
    found = Results(rows).compared(ours, theirs)
    return [interval(found.regret), interval(found.area)]


# similar and misleading source tasks

PROBLEMS = ("branin", "hartmann3", "levy3")
METHODS = {"without": "calibo", "with": "calibo+transfer"}
WORDS = {
    "alike": "the same function in other units, shifted by 0.02 along each axis",
    "shifted": "the same function shifted by 0.4 along each axis with wrap-around: its minimum lies elsewhere",
    "negated": "the negated function",
    "random": "unrelated random numbers",
}
MISLED: Mapping[tuple[str, str, str], Run] = {
    (problem, kind, label): Run(f"{problem}-cropped-after_{kind}", strategy, "sobol2", 23)
    for kind in RELATIONS
    for problem in PROBLEMS
    for label, strategy in METHODS.items()
}
WORSE = 1.10  # area with the source task, relative to that without
ABOUT_MISLED = """
calibo's default with and without `transfer_from` a source run of 30 evaluations; the first two evaluations are the
same. A ratio below 1 means that the source task helps. Target: no source task significantly increases the area by more
than a tenth, that is, no interval of the area lies above 1.10.
""".strip().replace("\n", " ")


def _misled(archive: Archive) -> Report:
    known = archive.shared(list(MISLED.values()))
    rows: list[list[str]] = []
    failing: list[str] = []
    for kind, word in WORDS.items():
        for problem in (*PROBLEMS, "all"):
            chosen = PROBLEMS if problem == "all" else (problem,)
            both = [row for name in chosen for label in METHODS for row in known.of(MISLED[name, kind, label]).values()]
            cells = _ratio(both, METHODS["with"], METHODS["without"])
            rows.append([f"{kind}: {word}" if problem == PROBLEMS[0] else "", problem, *cells])
            if both and Results(both).compared(METHODS["with"], METHODS["without"]).area[1] > WORSE:
                failing.append(f"{kind}, {problem}")
    head = ["source task", "function", "final regret, ratio (95 %)", "area, ratio (95 %)"]
    seeds, evaluations = count(known, list(MISLED.values())), 2 + archive.steps(next(iter(MISLED.values())))
    verdict = f"Intervals of the area that lie above {WORSE:.2f}: {', '.join(failing) or 'none'}."
    text = f"{seeds} seeds, {evaluations} evaluations. {ABOUT_MISLED}\n\n{table(head, rows)}\n\n{verdict}"

    def draw() -> list[object]:
        return [
            plots.traces(archive, f"{p}, {kind}", {f"{m} transfer": MISLED[p, kind, m] for m in METHODS})
            for kind in RELATIONS
            for p in PROBLEMS
        ]

    return Report(text, draw)


KNOWN = (
    Reproduction("warp14-known", "Recovery of known warps", tuple(RUNS.values()), _known),
    Reproduction("warp14-misled", "Similar and misleading source tasks", tuple(MISLED.values()), _misled),
)
