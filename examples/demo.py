"""Tune a support vector machine on the digits that come with scikit-learn: `make demo`."""

import argparse

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC

from calibo import Categorical, Float, Optimizer

SPACE = {
    "C": Float(1e-3, 1e3, log=True),
    "gamma": Float(1e-5, 10, log=True),
    "scaler": Categorical(["standard", "min-max"]),
}
BLOCKS = "▁▂▃▄▅▆▇█"


def error(C: float, gamma: float, scaler: str) -> tuple[float, float]:
    """Cross-validated error in per cent, and its standard error over the folds."""
    pixels, digits = load_digits(return_X_y=True)
    scale = StandardScaler() if scaler == "standard" else MinMaxScaler()
    scores = cross_val_score(make_pipeline(scale, SVC(C=C, gamma=gamma)), pixels[:900], digits[:900], cv=5)
    return 100 * (1 - scores.mean()), 100 * scores.std(ddof=1) / len(scores) ** 0.5


def main(trials: int, seed: int) -> None:
    console = Console()
    console.print(f"Tuning C, gamma and the scaler of an SVM on 900 handwritten digits, {trials} evaluations.")
    optimizer = Optimizer(SPACE, seed=seed)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("best {task.fields[best]}"),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("evaluating", total=trials, best="-")
        for _ in range(trials):
            params = optimizer.ask()
            value, noise = error(**params)
            optimizer.tell(params, value, noise=noise)
            bar.update(task, advance=1, best=f"{optimizer.best.value:.2f} %")
    show(console, optimizer)


def show(console: Console, optimizer: Optimizer) -> None:
    values = [trial.value for trial in optimizer.trials]
    best = np.minimum.accumulate(values)
    table = Table("trial", "C", "gamma", "scaler", "error %", title="Each new best")
    for i, trial in enumerate(optimizer.trials):
        if i == 0 or trial.value < best[i - 1]:
            params = trial.params
            table.add_row(
                str(i + 1), f"{params['C']:.4g}", f"{params['gamma']:.4g}", str(params["scaler"]), f"{trial.value:.2f}"
            )
    console.print(table)
    heights = np.log(best) - np.log(best[-1])
    marks = (heights / max(heights[0], 1e-12) * (len(BLOCKS) - 1)).round().astype(int)
    console.print(f"Trace  {best[0]:.1f} % {''.join(BLOCKS[mark] for mark in marks)} {best[-1]:.2f} %")
    advice = optimizer.recommend()
    low, high = advice.interval
    console.print(f"Best   {optimizer.best.params} with {optimizer.best.value:.2f} % measured")
    console.print(f"Advice {advice.params}: {advice.median:.2f} %, with probability 0.9 in [{low:.2f}, {high:.2f}]")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=25)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    main(arguments.trials, arguments.seed)
