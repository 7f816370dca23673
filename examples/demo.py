"""Tune a support vector machine on scikit-learn's digits data set: `make demo`."""

import argparse

from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC

from calibo import Categorical, Float, optimize
from calibo.cli import main as calibo

SPACE = {
    "C": Float(1e-3, 1e3, log=True),
    "gamma": Float(1e-5, 10, log=True),
    "scaler": Categorical(["standard", "min-max"]),
}


def digits(C: float, gamma: float, scaler: str) -> tuple[float, float]:
    """Cross-validated error in percent, and its standard error over the folds."""
    pixels, numbers = load_digits(return_X_y=True)
    scale = StandardScaler() if scaler == "standard" else MinMaxScaler()
    scores = cross_val_score(make_pipeline(scale, SVC(C=C, gamma=gamma)), pixels[:900], numbers[:900], cv=5)
    return 100 * (1 - scores.mean()), 100 * scores.std(ddof=1) / len(scores) ** 0.5


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=25)
    parser.add_argument("--storage", default="demo.db")
    arguments = parser.parse_args()

    print("Tuning C, gamma and the scaler of an SVM on 900 handwritten digits; values are errors in percent.")
    optimize(digits, SPACE, arguments.trials, seed=0, storage=arguments.storage)
    calibo(["show", "digits", "--storage", arguments.storage, "--rows", "5"])

    print(f"\nThe study is stored in {arguments.storage}.")
    print(f"Show it:   .venv/bin/calibo show digits --storage {arguments.storage}")
    print(f"Continue:  .venv/bin/python examples/demo.py --trials {arguments.trials + 25}")
