"""Time per suggestion, compared with Optuna's GPSampler and BoTorch in one run."""

import importlib.metadata
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import calibo
from calibo import Float, Optimizer, Strategy
from calibo.arrays import Array
from calibo.cube import Axis, Cube
from calibo.models import forget_fits
from calibo.observations import Observations
from calibo_bench.experiments.experiment import Experiment
from calibo_bench.experiments.timing import Timing, times_of
from calibo_bench.markdown import table
from calibo_bench.problems.synthetic import on_cube
from calibo_bench.targets import Archive, Report

__all__ = ["JOBS", "SPEED", "hartmann", "random_outcomes"]

D = 6
SIZES, GROWTH, REPETITIONS = (50, 100, 200), (100, 200, 400, 800, 1600), 3
TARGETS = {50: 5, 100: 4, 200: 3}
BOTORCH_TARGET = 10
DIMENSIONS, STAGES = (2, 6, 10), ((11, 20), (21, 40))  # of reports
HARTMANN = on_cube("hartmann6").at(0)
Ask = Callable[[], Array]
Tell = Callable[[Array, float], None]


def hartmann(x: Array) -> float:
    """Hartmann's function of six variables on the unit cube."""
    return HARTMANN.value({f"x{i}": float(v) for i, v in enumerate(x)})


def random_outcomes(n: int, seed: int) -> Observations:
    """Values of ``hartmann`` at random points."""
    x = np.random.default_rng(seed).random((n, D))
    y = np.array([hartmann(row) for row in x])
    return Observations(Cube((Axis(),) * D), x, y, np.full(n, np.nan), np.ones(n, dtype=bool), np.empty((0, D)))


# The optimizers, each as ask and tell over the unit cube


def _calibo(known: Observations, strategy: str) -> tuple[Ask, Tell]:
    optimizer = Optimizer({f"x{i}": Float(0, 1) for i in range(D)}, strategy=strategy, seed=0)

    def tell(point: Array, value: float) -> None:
        optimizer.tell({f"x{i}": float(point[i]) for i in range(D)}, value)

    for point, value in zip(known.x, known.y, strict=True):
        tell(point, float(value))
    return lambda: np.array(list(optimizer.ask().values()), dtype=float), tell


def _gp_sampler(known: Observations) -> tuple[Ask, Tell]:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    space = {f"x{i}": optuna.distributions.FloatDistribution(0, 1) for i in range(D)}
    study = optuna.create_study(sampler=optuna.samplers.GPSampler(seed=0, n_startup_trials=1))
    for point, value in zip(known.x, known.y, strict=True):
        params = {f"x{i}": float(point[i]) for i in range(D)}
        study.add_trial(optuna.trial.create_trial(params=params, distributions=dict(space), value=float(value)))
    asked: list[Any] = []

    def ask() -> Array:
        asked.append(study.ask(dict(space)))
        return np.array([asked[-1].params[f"x{i}"] for i in range(D)])

    def tell(_: Array, value: float) -> None:
        study.tell(asked[-1], value)

    return ask, tell


def _botorch(known: Observations) -> tuple[Ask, Tell]:
    import torch
    from botorch.acquisition.analytic import LogExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.optim.optimize import optimize_acqf
    from gpytorch.mlls import ExactMarginalLogLikelihood

    torch.manual_seed(0)
    bounds = torch.tensor([[0.0] * D, [1.0] * D], dtype=torch.float64)
    points, values = list(known.x), list(known.y)

    def ask() -> Array:
        inputs = torch.tensor(np.array(points))
        targets = -torch.tensor(np.array(values))[:, None]
        model = SingleTaskGP(inputs, targets)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        criterion = LogExpectedImprovement(model, best_f=targets.max())
        # as in the example of BoTorch's README
        found, _ = optimize_acqf(criterion, bounds, q=1, num_restarts=5, raw_samples=20)
        return np.asarray(found[0].detach().numpy())

    def tell(point: Array, value: float) -> None:
        points.append(point)
        values.append(value)

    return ask, tell


LOOPS: dict[str, Callable[[Observations], tuple[Ask, Tell]]] = {
    "plain": lambda known: _calibo(known, "plain"),
    "default": lambda known: _calibo(known, "default"),
    "GPSampler": _gp_sampler,
    "BoTorch": _botorch,
}


# Jobs


def side_by_side(n: int, seed: int) -> dict[str, list[float]]:
    """Seconds of ten consecutive suggestions of each from n outcomes on, alternating, after one warm-up."""
    known = random_outcomes(n - 1, seed)
    seconds: dict[str, list[float]] = {name: [] for name in LOOPS}
    loops = {name: loop(known) for name, loop in LOOPS.items()}
    for turn in range(11):
        for name, (ask, tell) in loops.items():
            forget_fits()  # neither of ours profits from the other
            start = time.perf_counter()
            point = ask()
            spent = time.perf_counter() - start
            tell(point, hartmann(point))
            if turn:
                seconds[name].append(spent)
    return seconds


def steps(n: int, seed: int) -> dict[str, float]:
    """Seconds of a step of the plain strategy with a refit, and of one that reuses all fits."""
    from calibo.presets import get_strategy

    observed, strategy = random_outcomes(n, seed), get_strategy("plain")
    fewer = int(0.9 * n)  # after which one refit is due, from the same power of two

    def propose(known: Observations, previous: Any, strategy: Strategy = strategy) -> tuple[float, Any]:
        start = time.perf_counter()
        proposal = strategy.propose(known, seed=seed, previous=previous)
        return time.perf_counter() - start, proposal.state

    propose(observed.head(10), None)  # warm-up: lazy imports
    _, before = propose(observed.head(fewer), None)
    refit, state = propose(observed, before)
    update = float(np.mean([propose(observed, state)[0] for _ in range(3)]))
    return {"refit": refit, "update": update, "peak": _peak()}


def fresh(n: int, seed: int) -> dict[str, float]:
    """Seconds of the first step of a process that was told n outcomes at once."""
    from calibo.presets import get_strategy

    observed = random_outcomes(n, seed)
    get_strategy("plain").propose(observed.head(10), seed=seed)  # warm-up: lazy imports
    start = time.perf_counter()
    get_strategy("plain").propose(observed, seed=seed)
    return {"fresh": time.perf_counter() - start}


def peer_steps(n: int, seed: int) -> dict[str, float]:
    """Seconds of a suggestion of GPSampler, which refits every time: the first, and the next two."""
    _gp_sampler(random_outcomes(20, seed))[0]()  # warm-up: lazy imports
    ask, tell = _gp_sampler(random_outcomes(n, seed))
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        point = ask()
        seconds.append(time.perf_counter() - start)
        tell(point, hartmann(point))
    return {"first": seconds[0], "next": float(np.mean(seconds[1:])), "peak": _peak()}


def reporting(d: int, seed: int) -> dict[str, list[float]]:
    """Milliseconds by STAGES of a suggestion in d dimensions with noise: the decision, and with its report."""
    optimizers = {
        name: Optimizer({f"x{i}": Float(0, 1) for i in range(d)}, strategy=strategy, seed=seed)
        for name, strategy in (("decision", "default+unreported"), ("with its report", "default"))
    }
    rng, seconds = np.random.default_rng(seed), {name: np.zeros(STAGES[-1][1] + 1) for name in optimizers}
    for n in range(STAGES[-1][1] + 1):
        for name, optimizer in optimizers.items():
            forget_fits()  # neither profits from the other
            start = time.perf_counter()
            params = optimizer.ask()
            seconds[name][n] = time.perf_counter() - start
        x = np.array(list(params.values()))
        outcome = float(np.square(x - 0.4).sum() + 0.3 * np.cos(9.0 * x).sum() + 0.1 * rng.standard_normal())
        for optimizer in optimizers.values():  # reports change no decision: both have asked for the same point
            optimizer.tell(params, outcome)
    return {name: [1e3 * float(spent[a : b + 1].mean()) for a, b in STAGES] for name, spent in seconds.items()}


def importing(_: int, __: int) -> dict[str, float]:
    """Seconds that `import calibo` takes after NumPy and scipy.optimize."""
    code = "import time, numpy, scipy.optimize; t = time.perf_counter(); import calibo; print(time.perf_counter() - t)"
    runs = [float(subprocess.check_output([sys.executable, "-c", code], text=True)) for _ in range(11)]
    return {"median": float(np.median(runs[1:])), "largest": max(runs[1:])}


def installed(_: int, __: int) -> dict[str, float]:
    """Megabytes of the core install and of NumPy + SciPy alone, from the files listed by each package."""
    return {"core": _size(_closure("calibo")), "base": _size(_closure("numpy") | _closure("scipy"))}


def _closure(name: str) -> set[str]:
    """A package and its dependencies, without extras."""
    found: set[str] = set()
    todo = [name]
    while todo:
        current = todo.pop()
        if current in found:
            continue
        found.add(current)
        for requirement in importlib.metadata.requires(current) or []:
            needed = re.split(r"[\s;\[<>=!~(]", requirement, maxsplit=1)[0].lower().replace("_", "-")
            if "extra ==" not in requirement and _present(needed):
                todo.append(needed)
    return found


def _present(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _size(packages: set[str]) -> float:
    total = 0
    for package in packages:
        paths = [Path(str(file.locate())) for file in importlib.metadata.files(package) or []]
        if package == "calibo":  # an editable install lists no sources
            paths = [path for path in Path(calibo.__file__).parent.rglob("*") if path.is_file()]
        total += sum(path.stat().st_size for path in paths if path.exists())
    return total / 1e6


def _peak() -> float:
    """Peak memory of this process in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


JOBS: dict[str, Callable[[int, int], Any]] = {
    job.__name__: job for job in (side_by_side, reporting, steps, fresh, peer_steps, importing, installed)
}


# The page


def _beside(n: int, seed: int, threads: int | None) -> Timing:
    return Timing("side_by_side", n, seed, threads)


def _measurements(_: int, quick: bool) -> list[Timing]:
    sizes, growth = (SIZES[:1], GROWTH[:2]) if quick else (SIZES, GROWTH)
    seeds = range(1 if quick else REPETITIONS)
    beside = [_beside(n, seed, threads) for threads in (1, None) for n in sizes for seed in seeds]
    grown = [Timing(job, n) for n in growth for job in ("steps", "fresh", "peer_steps")]
    reports = [Timing("reporting", d, seed) for d in DIMENSIONS for seed in seeds]
    return [*beside, *reports, *grown, Timing("importing"), Timing("installed")]


def _report(archive: Archive) -> Report:
    rows = list(archive.rows)
    machine = "; ".join(sorted({row["machine"] for row in rows if "machine" in row}))
    versions = sorted({f"{k} {v}" for row in rows for k, v in row["versions"].items()})
    parts = [f"{machine}; {', '.join(versions)}."]
    return Report("\n\n".join([*parts, *_ratios(rows), *_reports(rows), *_growth(rows), *_weight(rows)]))


def _ratios(rows: list[Any]) -> list[str]:
    about = (
        f"Hartmann6, d = {D}: all are told n random points, then make ten consecutive suggestions, alternating, refits "
        "included. Mean milliseconds per suggestion over the data sets ± standard error. Ratios are ratios of means "
        "to calibo's plain strategy (one model); the default selects among three, and reports with a fourth. calibo "
        "refits when the data have grown by a tenth or their spread has changed by half, the others at every step. "
        "BoTorch: SingleTaskGP and LogEI with defaults, optimized as in the example of its README (5 restarts, 20 raw "
        "samples)."
    )
    lines = []
    for threads in (1, None):
        for n in SIZES:
            runs = [found for seed in range(REPETITIONS) if (found := times_of(rows, _beside(n, seed, threads)))]
            if not runs:
                continue
            means = {name: 1e3 * np.array([np.mean(run[name]) for run in runs]) for name in LOOPS}
            cells = {k: f"{v.mean():.1f} ± {v.std() / max(len(v) - 1, 1) ** 0.5:.1f}" for k, v in means.items()}
            theirs = [f"**{means[k].mean() / means['plain'].mean():.1f}**" for k in ("GPSampler", "BoTorch")]
            line = [str(threads or "default"), str(n), cells["plain"], cells["default"]]
            line += [cells["GPSampler"], theirs[0], str(TARGETS[n]), cells["BoTorch"], theirs[1], str(BOTORCH_TARGET)]
            lines.append(line)
    head = [
        "BLAS threads",
        "n",
        "calibo, plain",
        "calibo",
        "GPSampler",
        "ratio",
        "target",
        "BoTorch",
        "ratio",
        "target",
    ]
    return ["## Compared with GPSampler and BoTorch", about, table(head, lines)]


def _reports(rows: list[Any]) -> list[str]:
    about = (
        "Milliseconds per suggestion while a noisy function is optimized, one BLAS thread: the decision alone "
        "(`default+unreported`), and with the forecast that is reported. Target: at most twice."
    )
    lines = []
    for d in DIMENSIONS:
        found = [times for seed in range(REPETITIONS) if (times := times_of(rows, Timing("reporting", d, seed)))]
        for i, (first, last) in enumerate(STAGES):
            if found:
                alone, both = (np.mean([run[name][i] for run in found]) for name in ("decision", "with its report"))
                lines.append([str(d), f"{first} to {last}", f"{alone:.1f}", f"{both:.1f}", f"**{both / alone:.2f}**"])
    head = ["parameters", "outcomes known", "decision", "with its report", "ratio"]
    return ["## The cost of a report", about, table(head, lines)] if lines else []


def _growth(rows: list[Any]) -> list[str]:
    about = (
        "Seconds per step of the plain strategy, one BLAS thread: without a refit, with a refit (whenever the data "
        "have grown by a tenth), and the first step of a fresh process that was told n points at once. GPSampler "
        "refits at every step. Peak is the peak resident memory of the process, libraries included. Target at "
        "n = 1600: at most 1 s without, 10 s with refit."
    )
    known = {n: [times_of(rows, Timing(job, n)) for job in ("steps", "fresh", "peer_steps")] for n in GROWTH}
    whole = {n: found for n, found in known.items() if all(found)}
    lines = [
        [
            str(n),
            *(f"{v:.3f}" for v in (a["update"], a["refit"], b["fresh"])),
            f"{a['peak']:.0f}",
            f"{c['next']:.3f}",
            f"{c['peak']:.0f}",
        ]
        for n, (a, b, c) in whole.items()
    ]
    if len(whole) > 1:
        series = [[a["update"], a["refit"], b["fresh"], c["next"]] for a, b, c in whole.values()]
        slopes = [f"{np.polyfit(np.log(list(whole)), np.log(part), 1)[0]:.2f}" for part in zip(*series, strict=True)]
        lines.append(["exponent", *slopes[:3], "", slopes[3], ""])
    head = ["n", "without refit", "with refit", "fresh process", "peak MB", "GPSampler, per step", "its peak MB"]
    return ["## Scaling with n", about, table(head, lines)]


def _weight(rows: list[Any]) -> list[str]:
    seconds, megabytes = times_of(rows, Timing("importing")), times_of(rows, Timing("installed"))
    if not seconds or not megabytes:
        return []
    return [
        "## Import time and install size",
        f"* `import calibo` after `import numpy, scipy.optimize`: {seconds['median']:.3f} s (median of 10; largest "
        f"{seconds['largest']:.3f} s). Target: at most 0.4 s.\n"
        f"* Core install beyond NumPy + SciPy: {megabytes['core'] - megabytes['base']:.0f} MB "
        f"(NumPy + SciPy: {megabytes['base']:.0f} MB). Target: at most 65 MB.",
    ]


SPEED = Experiment("speed", "Speed", _measurements, _report, seeds=1, alone=True)
