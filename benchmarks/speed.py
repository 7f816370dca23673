"""How fast a suggestion is, beside Optuna's GPSampler and BoTorch, in one run.

    python benchmarks/speed.py            everything; writes docs/results/speed.md
    python benchmarks/speed.py --quick    a first look: one repetition, small n, nothing written

Each measurement runs in a process of its own, once with one BLAS thread and once with the default count.
"""

import argparse
import importlib.metadata
import json
import os
import platform
import re
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

PAGE = Path(__file__).parent.parent / "docs" / "results" / "speed.md"
D = 6
TARGETS = {("GPSampler", 50): 5, ("GPSampler", 100): 4, ("GPSampler", 200): 3}
BOTORCH_TARGET = 10
Ask = Callable[[], np.ndarray]
Tell = Callable[[np.ndarray, float], None]
FITTED: list[int] = []  # to how many outcomes the hyper-parameters of each suggestion of calibo were fitted


# The three, each as ask and tell over the unit cube


def calibo_loop(x: np.ndarray, y: np.ndarray) -> tuple[Ask, Tell]:
    from calibo import Float, Optimizer

    optimizer = Optimizer({f"x{i}": Float(0, 1) for i in range(D)}, strategy="plain", seed=0)

    def tell(point: np.ndarray, value: float) -> None:
        optimizer.tell({f"x{i}": float(point[i]) for i in range(D)}, value)

    for point, value in zip(x, y, strict=True):
        tell(point, value)

    def ask() -> np.ndarray:
        params = optimizer.ask()
        FITTED.append(max(optimizer._state["surrogate"]))
        return np.array(list(params.values()), dtype=float)

    return ask, tell


def optuna_loop(x: np.ndarray, y: np.ndarray) -> tuple[Ask, Tell]:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    space = {f"x{i}": optuna.distributions.FloatDistribution(0, 1) for i in range(D)}
    study = optuna.create_study(sampler=optuna.samplers.GPSampler(seed=0, n_startup_trials=1))
    for point, value in zip(x, y, strict=True):
        params = {f"x{i}": float(point[i]) for i in range(D)}
        study.add_trial(optuna.trial.create_trial(params=params, distributions=space, value=value))
    asked: list[Any] = []

    def ask() -> np.ndarray:
        asked.append(study.ask(space))
        return np.array([asked[-1].params[f"x{i}"] for i in range(D)])

    return ask, lambda _, value: study.tell(asked[-1], value) and None


def botorch_loop(x: np.ndarray, y: np.ndarray) -> tuple[Ask, Tell]:
    import torch
    from botorch.acquisition import LogExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.optim import optimize_acqf
    from gpytorch.mlls import ExactMarginalLogLikelihood

    torch.manual_seed(0)
    bounds = torch.tensor([[0.0] * D, [1.0] * D], dtype=torch.float64)
    points, values = list(x), list(y)

    def ask() -> np.ndarray:
        inputs = torch.tensor(np.array(points))
        targets = -torch.tensor(np.array(values))[:, None]
        model = SingleTaskGP(inputs, targets)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        criterion = LogExpectedImprovement(model, best_f=targets.max())
        # the effort of the example in BoTorch's own README
        found, _ = optimize_acqf(criterion, bounds, q=1, num_restarts=5, raw_samples=20)
        return found[0].detach().numpy()

    def tell(point: np.ndarray, value: float) -> None:
        points.append(point)
        values.append(value)

    return ask, tell


LOOPS = {"calibo": calibo_loop, "GPSampler": optuna_loop, "BoTorch": botorch_loop}


# Jobs: each is run in a fresh process and prints JSON


def data(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, Callable[[np.ndarray], float]]:
    from problems import PROBLEMS

    function = PROBLEMS["hartmann6"][0]
    x = np.random.default_rng(seed).random((n, D))
    return x, np.array([function(row) for row in x]), function


def side_by_side(n: int, seed: int) -> dict[str, Any]:
    """Seconds of ten consecutive suggestions of each, taken in turns, after one that warms up."""
    x, y, function = data(first(n) - 1, seed)
    seconds: dict[str, Any] = {name: [] for name in LOOPS}
    loops = {name: loop(x, y) for name, loop in LOOPS.items()}
    for turn in range(11):
        for name, (ask, tell) in loops.items():
            start = time.perf_counter()
            point = ask()
            spent = time.perf_counter() - start
            tell(point, function(point))
            if turn:
                seconds[name].append(spent)
    return {**seconds, "refit": np.diff(FITTED).astype(bool).tolist()}


def first(n: int) -> int:
    """The number of outcomes known at the first of the ten: just below n, and before a refit of calibo."""
    from calibo.surrogate.gaussian import scheduled

    return scheduled(n, 0.1) - 1


def steps(n: int, seed: int) -> dict[str, float]:
    """Seconds of a step of calibo that refits, of one that does not, and of one that starts from nothing."""
    from calibo.cube import Axis, Cube
    from calibo.observations import Observations
    from calibo.strategy import Strategy
    from calibo.surrogate.gaussian import anchor, scheduled

    x, y, _ = data(n, seed)
    cube = Cube((Axis(),) * D)
    observed = Observations(cube, x, y, np.full(n, np.nan), np.ones(n, dtype=bool), np.empty((0, D)))
    strategy = Strategy()

    def propose(previous: Any) -> tuple[float, Any]:
        start = time.perf_counter()
        proposal = strategy.propose(observed, seed=seed, previous=previous)
        return time.perf_counter() - start, proposal.state

    strategy.propose(observed.head(10), seed=seed)  # loads what it loads
    fresh, state = propose(None)
    half = anchor(scheduled(n, 0.1))
    refit, _ = propose({"surrogate": {half: state["surrogate"][half]}})
    update = float(np.mean([propose(state)[0] for _ in range(3)]))
    return {"fresh": fresh, "refit": refit, "update": update, "peak": peak()}


def peer_steps(n: int, seed: int) -> dict[str, float]:
    """Seconds of a suggestion of GPSampler, which refits every time: the first, and the next two."""
    x, y, function = data(n, seed)
    optuna_loop(x[:20], y[:20])[0]()  # loads what it loads
    ask, tell = optuna_loop(x, y)
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        point = ask()
        seconds.append(time.perf_counter() - start)
        tell(point, function(point))
    return {"first": seconds[0], "next": float(np.mean(seconds[1:])), "peak": peak()}


def importing() -> dict[str, float]:
    """Seconds that `import calibo` takes after NumPy and scipy.optimize."""
    code = "import time, numpy, scipy.optimize; t = time.perf_counter(); import calibo; print(time.perf_counter() - t)"
    runs = [float(subprocess.check_output([sys.executable, "-c", code], text=True)) for _ in range(11)]
    return {"median": float(np.median(runs[1:])), "largest": max(runs[1:])}


def installed() -> dict[str, float]:
    """Megabytes of the core install and of NumPy + SciPy alone, from the files each package says it has."""
    return {"core": size(closure("calibo")), "base": size(closure("numpy") | closure("scipy"))}


def closure(name: str) -> set[str]:
    """A package and everything it needs, extras aside."""
    found, todo = set(), [name]
    while todo:
        current = todo.pop()
        if current in found:
            continue
        found.add(current)
        for requirement in importlib.metadata.requires(current) or []:
            needed = re.split(r"[\s;\[<>=!~(]", requirement, maxsplit=1)[0].lower().replace("_", "-")
            if "extra ==" in requirement or not present(needed):
                continue
            todo.append(needed)
    return found


def present(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def size(packages: set[str]) -> float:
    total = 0
    for package in packages:
        paths = [Path(str(file.locate())) for file in importlib.metadata.files(package) or []]
        if package == "calibo":  # an editable install lists no sources
            paths = [path for path in (Path(__file__).parent.parent / "src").rglob("*") if path.is_file()]
        total += sum(path.stat().st_size for path in paths if path.exists())
    return total / 1e6


def peak() -> float:
    """Megabytes this process has used at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


JOBS: dict[str, Callable[..., Any]] = {f.__name__: f for f in (side_by_side, steps, peer_steps, importing, installed)}


def job(name: str, *arguments: int, threads: int | None = 1) -> Any:
    """What a job prints in a process of its own."""
    environment = dict(os.environ)
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        environment.pop(variable, None)
        if threads:
            environment[variable] = str(threads)
    command = [sys.executable, __file__, "--job", name, *map(str, arguments)]
    return json.loads(subprocess.check_output(command, env=environment, text=True).splitlines()[-1])


# The page


def versions() -> str:
    names = ("calibo", "numpy", "scipy", "optuna", "torch", "gpytorch", "botorch")
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)


def ratio_lines(sizes: list[int], repetitions: int, progress: Callable[[], None]) -> list[str]:
    lines = [
        "## Beside GPSampler and BoTorch",
        "",
        f"Hartmann6, d = {D}: about n random points told to all, then ten consecutive suggestions, in turns. The ten begin",
        "just below n, so that at least one of them is a refit of calibo, oftener than it comes in the long run.",
        f"Mean milliseconds of a suggestion over {repetitions} data sets, ± standard error; ratios are those of the means.",
        "calibo refits when the data have grown by a tenth or their spread has changed by half, the others at every step;",
        "its steps with and without a refit are also given apart, with their number. BoTorch: SingleTaskGP and LogEI as",
        "they come, searched with the effort of the example in its README (5 restarts, 20 raw samples).",
        "",
        "| BLAS threads | n | calibo | without refit | with refit | GPSampler | ratio | target | BoTorch | ratio | target |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for threads in (1, None):
        for n in sizes:
            runs = []
            for seed in range(repetitions):
                runs.append(job("side_by_side", n, seed, threads=threads))
                progress()
            means = {name: np.array([np.mean(run[name]) for run in runs]) for name in LOOPS}
            ours, refits = 1e3 * np.array([run["calibo"] for run in runs]), np.array([run["refit"] for run in runs])
            apart = [f"{ours[flags].mean():.1f} ({flags.sum()})" for flags in (~refits, refits)]
            cells = [f"{1e3 * v.mean():.1f} ± {1e3 * v.std() / max(len(v) - 1, 1) ** 0.5:.1f}" for v in means.values()]
            against = [means[name].mean() / means["calibo"].mean() for name in ("GPSampler", "BoTorch")]
            lines.append(
                f"| {threads or 'default'} | {n} | {cells[0]} | {apart[0]} | {apart[1]} | {cells[1]} | **{against[0]:.1f}** | "
                f"{TARGETS.get(('GPSampler', n), '')} | {cells[2]} | **{against[1]:.0f}** | {BOTORCH_TARGET} |"
            )
    return [*lines, ""]


def growth_lines(sizes: list[int], progress: Callable[[], None]) -> list[str]:
    lines = [
        "## Growth",
        "",
        "Seconds, one BLAS thread: a step of calibo without a refit, one with a refit (once in a tenth of growth), and the",
        "first step of a fresh process that was told n points at once. GPSampler refits at every step. Peak is the",
        "largest resident memory of the process, libraries included. Target at n = 1600: at most 1 s without, 10 s with refit.",
        "",
        "| n | without refit | with refit | fresh process | peak MB | GPSampler, a step | its peak MB |",
        "|---|---|---|---|---|---|---|",
    ]
    ours, theirs = [], []
    for n in sizes:
        ours.append(job("steps", n, 0))
        progress()
        theirs.append(job("peer_steps", n, 0))
        progress()
        a, b = ours[-1], theirs[-1]
        cells = [f"{a[key]:.3f}" for key in ("update", "refit", "fresh")]
        lines.append(f"| {n} | {' | '.join(cells)} | {a['peak']:.0f} | {b['next']:.3f} | {b['peak']:.0f} |")

    def exponent(values: list[float]) -> str:
        return f"{np.polyfit(np.log(sizes), np.log(values), 1)[0]:.2f}"

    fitted = [exponent([row[key] for row in ours]) for key in ("update", "refit", "fresh")]
    return [*lines, f"| exponent | {' | '.join(fitted)} | | {exponent([row['next'] for row in theirs])} | |", ""]


def weight_lines() -> list[str]:
    seconds, megabytes = job("importing"), job("installed")
    return [
        "## Weight",
        "",
        f"* `import calibo` after `import numpy, scipy.optimize`: {seconds['median']:.3f} s (median of 10; largest "
        f"{seconds['largest']:.3f} s). Target: at most 0.4 s.",
        f"* Core install beyond NumPy + SciPy: {megabytes['core'] - megabytes['base']:.0f} MB "
        f"(NumPy + SciPy: {megabytes['base']:.0f} MB). Target: at most 65 MB.",
        "",
    ]


def main(quick: bool) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

    sizes, repetitions, growth = ([50], 1, [100, 200]) if quick else ([50, 100, 200], 3, [100, 200, 400, 800, 1600])
    columns = ("[progress.description]{task.description}", BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("measuring", total=2 * len(sizes) * repetitions + 2 * len(growth))
        lines = [
            "# Speed",
            "",
            "Written by `python benchmarks/speed.py`; every figure is as it came out of one run.",
            f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}; {versions()}.",
            "",
            *ratio_lines(sizes, repetitions, lambda: bar.advance(task)),
            *growth_lines(growth, lambda: bar.advance(task)),
            *weight_lines(),
        ]
    text = "\n".join(lines)
    print(text)
    if not quick:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--job", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.job:
        warnings.filterwarnings("ignore")
        print(json.dumps(JOBS[arguments.job[0]](*map(int, arguments.job[1:]))))
    else:
        main(arguments.quick)
