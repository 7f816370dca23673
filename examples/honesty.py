"""Do the intervals hold with few and noisy measurements? Asks, tells and recommends as you would, and counts.

python examples/honesty.py            # 20 runs of each row, about three minutes
python examples/honesty.py --runs 5
"""

import argparse

import numpy as np
from rich.progress import track

import calibo

AFTER = (5, 10, 20, 40)  # measurements
SPACE = {"temperature": calibo.Float(0.0, 1.0), "time": calibo.Float(0.0, 1.0)}
VIEWS = {"reported (default)": "default", "decided": "default+unreported"}


def yield_of(temperature: float, time: float) -> float:
    """The truth, which a lab never sees: two hills, a standard deviation of about one."""
    hill = np.exp(-20.0 * ((temperature - 0.7) ** 2 + (time - 0.3) ** 2))
    other = np.exp(-8.0 * ((temperature - 0.2) ** 2 + (time - 0.8) ** 2))
    return float(4.0 * hill + 3.0 * other - 1.0 * temperature * time)


def run(seed: int, noise: float, strategy: str) -> tuple[list[bool], list[bool]]:
    """Whether intervals held: of the next measurement, and of the truth at the recommended point."""
    rng = np.random.default_rng(seed)
    optimizer = calibo.Optimizer(SPACE, direction="maximize", seed=seed, strategy=strategy)
    measured, recommended = [], []
    for n in range(max(AFTER) + 1):
        if n in AFTER:
            advice = optimizer.recommend()
            low, high = advice.interval
            recommended.append(low - 1e-9 <= yield_of(**advice.params) <= high + 1e-9)
        params = optimizer.ask()
        outcome = yield_of(**params) + noise * rng.standard_normal()
        if n in AFTER:
            low, high = optimizer.forecast(params, noise=True).interval(0.9)
            measured.append(bool(low <= outcome <= high))
        optimizer.tell(params, outcome)
    return measured, recommended


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    runs = parser.parse_args().runs
    rows = [(noise, view) for noise in (0.0, 0.2, 0.5) for view in VIEWS]
    found = {row: [] for row in rows}
    for noise, view in track(rows, "rows"):
        found[noise, view] = [run(seed, noise, VIEWS[view]) for seed in range(runs)]
    for part, title in enumerate(("next measurement", "true value of the recommended point")):
        print(f"\nRuns in which the 90 % interval held: {title}\n")
        print(f"{'noise':<8}{'forecast':<22}" + "".join(f"{f'after {n}':>10}" for n in AFTER))
        for noise, view in rows:
            shares = np.mean([each[part] for each in found[noise, view]], axis=0)
            print(f"{noise:<8g}{view:<22}" + "".join(f"{share:>10.0%}" for share in shares))


if __name__ == "__main__":
    main()
