"""Compare two revisions bit by bit: forty suggestions of every preset and every kind of search space.

    python bench/compare_revisions.py REVISION [REVISION]     the second defaults to the working tree

Each revision is checked out with `git worktree` and run in this environment. If the identity of a recipe has changed,
sampled models get other chain seeds; for those, densities and draws under one seed are compared instead.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
STEPS = 40


# Run inside each revision: only what all revisions have


def suggestions() -> dict[str, list[str]]:
    import warnings

    import numpy as np
    import optuna

    from calibo import CalibratedSampler, Categorical, Float, Int, Optimizer
    from calibo.presets import PRESETS

    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    found: dict[str, list[str]] = {}

    def shown(params):
        return json.dumps({k: v.hex() if isinstance(v, float) else v for k, v in params.items()}, sort_keys=True)

    def rosenbrock(x, y):
        return (1 - x) ** 2 + 20 * (y - x * x) ** 2

    def asked(name, space, value, told=None, **options):
        optimizer = Optimizer(space, seed=1, **options)
        for i in range(STEPS):
            params = optimizer.ask()
            found.setdefault(name, []).append(shown(params))
            optimizer.tell(params, value(**params), **({} if told is None else told(i, params)))

    box = {"x": Float(-2, 2), "y": Float(-1, 3)}
    for preset in PRESETS:
        asked(f"preset {preset}", box, rosenbrock, strategy=preset)
    for part in ("bagged", "local", "online", "conformal-lcb", "adaptive", "warped", "tanh", "periodic"):
        asked(f"plain+{part}", box, rosenbrock, strategy=f"plain+{part}")
    for mode in ("always", "never"):
        asked(f"recalibrate {mode}", box, rosenbrock, recalibrate=mode)
    mixed = {"rate": Float(1e-4, 1, log=True), "n": Int(1, 64, log=True), "s": Float(0, 1, step=0.25)}
    mixed["c"] = Categorical(["a", "b", "c"])
    asked("mixed", mixed, lambda rate, n, s, c: (np.log10(rate) + 2) ** 2 + abs(np.log2(n) - 3) + s + (c == "a"))
    noise = np.random.default_rng(0).standard_normal(STEPS)
    draws = iter(noise)
    asked("noise", box, lambda x, y: rosenbrock(x, y) + 0.5 * next(draws))
    asked("told noise", box, rosenbrock, told=lambda i, _: {"noise": 0.1 * (i % 3)})
    asked("constraints", box, rosenbrock, told=lambda _, p: {"constraints": (p["x"] + p["y"] - 1.0,)})
    asked("known optimum", box, rosenbrock, known_optimum=0.0)
    asked("bound", box, rosenbrock, known_optimum=-1.0, optimum_is_bound=True, direction="minimize")
    asked("maximize", box, lambda x, y: -rosenbrock(x, y), direction="maximize")

    def batch():
        optimizer = Optimizer(box, seed=2)
        for _ in range(10):
            for params in optimizer.ask(4):
                found.setdefault("batch", []).append(shown(params))
                optimizer.tell(params, rosenbrock(**params))

    batch()

    def studied(name, objective, steps=STEPS, **options):
        study = optuna.create_study(sampler=CalibratedSampler(seed=3, **options))
        study.optimize(objective, n_trials=steps, catch=(ValueError,))
        found[name] = [shown(trial.params) for trial in study.trials]
        return study

    def conditional(trial):
        kind = trial.suggest_categorical("kind", ["a", "b"])
        rate = trial.suggest_float("rate", 1e-4, 1.0, log=True)
        if kind == "a":
            layers = trial.suggest_int("layers", 1, 8)
            trial.set_constraint("limit", layers - 6.5)
            return (np.log10(rate) + 2) ** 2 + 0.1 * (layers - 3) ** 2
        return (np.log10(rate) + 1) ** 2 + 0.5

    def failing(trial):
        x, y = trial.suggest_float("x", -2, 2), trial.suggest_float("y", -1, 3)
        if x + y > 3:
            raise ValueError("infeasible")
        return rosenbrock(x, y)

    studied("study, conditional", conditional)
    studied("study, failures", failing)
    plain = studied(
        "study, plain",
        lambda t: rosenbrock(t.suggest_float("x", -2, 2), t.suggest_float("y", -1, 3)),
        20,
        strategy="plain",
    )

    def shifted(trial):
        return 3 * rosenbrock(trial.suggest_float("x", -2, 2) + 0.1, trial.suggest_float("y", -1, 3)) + 7

    studied("study, transfer", shifted, transfer_from=[plain])
    studied("study, transfer and known optimum", shifted, transfer_from=[plain], known_optimum=7.0)
    found.update(sampled())
    return found


def sampled() -> dict[str, list[str]]:
    """Log densities and draws of hyperparameters under one seed, with and without warps."""
    import numpy as np

    from calibo.cube import Axis, Cube
    from calibo.observations import Observations

    try:
        from calibo.models import GaussianProcess
    except ImportError:  # its former name
        from calibo.surrogate import GaussianProcess

    rng, n, d = np.random.default_rng(5), 25, 3
    x = rng.random((n, d))
    y = np.sin(5 * x[:, 0]) + ((x - 0.4) ** 2).sum(axis=1)
    data = Observations(Cube((Axis(),) * d), x, y, np.full(n, np.nan), np.ones(n, dtype=bool), np.empty((0, d)))
    found = {}
    for warped in (False, True):
        process = GaussianProcess(warped=warped, samples=4)
        posterior = process.hyper_posterior(data) if hasattr(process, "hyper_posterior") else process.posterior(data)
        draws = posterior.draws(6, np.random.default_rng(7), burn_in=3)
        values = [posterior.mode, *draws, [posterior(theta) for theta in draws]]
        found[f"draws{', warped' if warped else ''}"] = [" ".join(float(v).hex() for v in row) for row in values]
    return found


# Comparison


def emitted(source: Path) -> dict[str, list[str]]:
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    environment = {**os.environ, **threads, "PYTHONPATH": str(source / "src")}
    command = [sys.executable, __file__, "--emit"]
    printed = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
    answer = json.loads(printed.splitlines()[-1])
    if not Path(answer["package"]).is_relative_to(source):
        raise SystemExit(f"{answer['package']} was imported instead of {source}")
    found: dict[str, list[str]] = answer["suggestions"]
    return found


def _git(*words: str) -> None:
    if subprocess.run(["git", "-C", str(ROOT), *words]).returncode:
        raise SystemExit(f"git {' '.join(words)} failed")


def main(revisions: list[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        sources: list[Path] = []
        try:
            for revision in revisions:
                place = Path(folder) / str(len(sources))
                _git("worktree", "add", "-q", "--detach", str(place), revision)
                sources.append(place)
            one, two = (emitted(source) for source in (*sources, ROOT)[:2])
        finally:
            for place in sources:
                _git("worktree", "remove", "--force", str(place))
    different = 0
    for name in {**one, **two}:
        a, b = one.get(name, []), two.get(name, [])
        first = next((i for i, pair in enumerate(zip(a, b, strict=False)) if pair[0] != pair[1]), min(len(a), len(b)))
        if a != b:
            different += 1
            print(f"{name}: differs from number {first} on ({len(a)} and {len(b)} in total)")
        else:
            print(f"{name}: {len(a)} identical")
    print(f"{len({**one, **two}) - different} of {len({**one, **two})} are bit-identical")
    return 1 if different else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revisions", nargs="*", metavar="REVISION")
    parser.add_argument("--emit", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.emit:
        import calibo

        print(json.dumps({"package": calibo.__file__, "suggestions": suggestions()}))
    elif not 1 <= len(arguments.revisions) <= 2:
        parser.error("one or two revisions must be given")
    else:
        sys.exit(main(arguments.revisions))
