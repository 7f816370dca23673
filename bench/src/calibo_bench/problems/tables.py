"""Tabular benchmarks: hyperparameters evaluated on complete grids by others.

The tables are not part of the package. They are read from the folder ``hpo_tables`` in the directory CALIBO_DATA.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from calibo.arrays import Array
from calibo.errors import InputError
from calibo.space import Categorical, Int, Parameter, Space
from calibo_bench.problems.data import data_file
from calibo_bench.problems.synthetic import Instance, Problem

__all__ = ["TABLES", "grid", "looked_up", "table"]


@dataclass(frozen=True)
class _Table:
    file: str
    digest: str
    source: str
    outcome: str
    """The column, or the array, that is minimised."""

    axes: tuple[str, ...]


HPOLIB = "HPOlib of the University of Freiburg (github.com/automl/HPOlib)"
FCNET = "the FCNet tabular benchmarks (github.com/automl/nas_benchmarks)"
FCNET_DIGEST = "2bb8b574778b896edca6e6befc28efac09f0d2874f3835c280cdee19236a1aff"

TABLES: Mapping[str, _Table] = {
    "lda": _Table(
        "lda_on_grid.csv",
        "85ce685f89984097d47eb76d24ba72ab9a9eedb28ee9800f9dda23a64018a64a",
        HPOLIB,
        "perplexity",
        ("kappa", "tau", "S"),
    ),
    "svm": _Table(
        "svm_on_grid.csv",
        "b7163cdce671e6cde89b35cc174ce9542bfbd4a6fd14a6118a85571f03c2c4ef",
        HPOLIB,
        "error",
        ("C", "alpha", "epsilon"),
    ),
    "logistic": _Table(
        "logreg_on_grid.csv",
        "7969cee1aa544378c5cfc7dbd11795248cfcd2d2fe0c97eeb67ed4e0084cebb7",
        HPOLIB,
        "valid_error",
        ("lrate", "l2_reg", "batchsize", "n_epochs"),
    ),
    **{
        f"fcnet-{short}": _Table("fcnet_tabular.npz", FCNET_DIGEST, FCNET, f"{name}_val_loss", ())
        for short, name in (
            ("naval", "naval_propulsion"),
            ("parkinsons", "parkinsons_telemonitoring"),
            ("protein", "protein_structure"),
            ("slice", "slice_localization"),
        )
    },
}


def table(name: str) -> Problem:
    """A table as a problem; the file is read when the first instance is made."""
    if name not in TABLES:
        raise InputError(f"`name` must be one of {list(TABLES)}, but got {name!r}.")
    return Problem(f"table-{name}", lambda _: _instance(name))


@cache
def _instance(name: str) -> Instance:
    entry = TABLES[name]
    path = data_file(f"hpo_tables/{entry.file}", entry.digest, entry.source)
    values, seeds = grid(path, entry.axes, entry.outcome) if path.suffix == ".csv" else _dense(path, entry.outcome)
    return looked_up(values, seeds)


def looked_up(values: Mapping[str, list[Any]], outcomes: Array) -> Instance:
    """A grid: the values along each axis, and outcomes with one more axis for repeated evaluations."""
    means = outcomes.mean(axis=-1)
    space = Space({name: _axis(along) for name, along in values.items()})

    def index(params: Mapping[str, Any]) -> tuple[int, ...]:
        return tuple(
            params[name] if isinstance(parameter, Int) else parameter.choices.index(params[name])  # type: ignore[union-attr]
            for name, parameter in space.items()
        )

    def noise(params: Mapping[str, Any], rng: np.random.Generator) -> float:
        repeats = outcomes[index(params)]
        return float(repeats[rng.integers(len(repeats))] - repeats.mean())

    repeated = outcomes.shape[-1] > 1
    return Instance(space, lambda p: float(means[index(p)]), float(means.min()), noise if repeated else None)


def _axis(along: list[Any]) -> Parameter:
    """Numbers by index in sorted order; strings as categories."""
    if all(isinstance(value, int | float) for value in along):
        return Int(0, len(along) - 1)
    return Categorical(along)


def grid(path: Path, axes: tuple[str, ...], outcome: str) -> tuple[dict[str, list[Any]], Array]:
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    values = {name: sorted({float(row[name]) for row in rows}) for name in axes}
    outcomes = np.full([len(along) for along in values.values()], np.nan)
    for row in rows:
        outcomes[tuple(values[name].index(float(row[name])) for name in axes)] = float(row[outcome])
    if np.isnan(outcomes).any():
        raise InputError(f"{str(path)!r} must have every point of its grid, but lacks {int(np.isnan(outcomes).sum())}.")
    return dict(values), outcomes[..., None]


def _dense(path: Path, outcome: str) -> tuple[dict[str, list[Any]], Array]:
    with np.load(path) as arrays:
        names = [str(name) for name in arrays["param_names"]]
        return {name: arrays[f"values_{name}"].tolist() for name in names}, arrays[outcome].astype(float)
