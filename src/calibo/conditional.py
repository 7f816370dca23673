"""Conditional parameters: columns that are active only for certain values of another one, their parent.

Inactive columns of an evaluation are NaN in ``x``. Usually one discrete column, the parent, determines whether another
is active, such as the type of model or the number of layers. Parents are inferred from the trials. The model then sees
points with inactive columns imputed, and every combination of the parents' values is searched. A column that no parent
explains is left out of the search: when it is suggested, the sampler runs again with the other columns fixed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from calibo.arrays import Array, Flags
from calibo.cube import SAME, Cube
from calibo.observations import Observations

PARENT_CELLS = 64  # maximum number of values of a parent
MOST = 32  # maximum number of combinations searched per proposal
BEST = 8  # if there are more, the combinations of this many best outcomes are included

Rules = Mapping[int, tuple[int, Mapping[int, bool]]]  # column -> parent, and whether active in each of its cells


@dataclass(frozen=True, eq=False)
class ConditionalParameters:
    """The combinations of parent values available to a proposal."""

    fixed: Array
    """(b, d) values fixed by each combination, NaN in free columns."""

    inactive: Flags
    """(b, d) which columns are inactive in each combination."""

    unexplained: Flags
    """(d,) columns whose activity no parent explains."""

    @classmethod
    def learn(cls, observations: Observations, fixed: Array, rng: np.random.Generator) -> "ConditionalParameters":
        """Infer the combinations that agree with the non-NaN columns of ``fixed`` (d,)."""
        cube, nowhere = observations.cube, np.zeros(len(fixed), dtype=bool)
        if not np.isnan(observations.all_points()).any():
            return cls(fixed[None], nowhere[None], nowhere)
        # a failed evaluation may have ended before suggesting all its columns: NaN there is uninformative
        ended = observations.feasible | (not observations.feasible.any())
        always = np.asarray(~np.isnan(observations.x[ended]).any(axis=0))
        rules = _rules(cube, observations.x, ended, always)
        unexplained = ~always & np.isnan(fixed)
        unexplained[list(rules)] = False
        rows, inactive = [], []
        for cells in _combinations(cube, rules, observations, rng):
            missing = np.array([j in rules and not _is_active(cube, rules[j], cells) for j in range(len(cube))])
            row = np.where(missing | unexplained, cube.center, np.nan)
            for j, cell in cells.items():
                row[j] = cube.axes[j].position(cell)
            contradicts = ~np.isnan(fixed) & (missing | (np.abs(row - fixed) > SAME))
            if not contradicts.any():
                rows.append(np.where(np.isnan(fixed), row, fixed))
                inactive.append(missing | unexplained)
        if not rows:  # the fixed values were never observed together
            return cls(fixed[None], nowhere[None], nowhere)
        return cls(np.array(rows), np.array(inactive), unexplained)

    def impute(self, observations: Observations) -> Observations:
        """The same observations with NaN and unexplained columns imputed."""
        if not self.unexplained.any():
            return observations.impute()
        x, pending = (np.where(self.unexplained, np.nan, points) for points in (observations.x, observations.pending))
        return replace(observations, x=x, pending=pending).impute()

    def fully_described(self, observations: Observations) -> Flags:
        """(n + q,) which evaluations have no unexplained column; others may be repeated in the remaining columns."""
        return np.asarray(np.isnan(observations.all_points()[:, self.unexplained]).all(axis=1))

    def deactivate(self, x: Array) -> Array:
        """The point (d,) found by the search, with NaN in inactive columns."""
        agrees = (np.isnan(self.fixed) | (np.abs(self.fixed - x) <= SAME)).all(axis=1)
        return np.where(self.inactive[np.argmax(agrees)], np.nan, x)


def _rules(cube: Cube, x: Array, ended: Flags, always: Flags) -> Rules:
    """For each column that is not always active, the parent that explains it, if there is one."""
    found = {}
    for j in np.flatnonzero(~always).tolist():
        telling = x[ended | ~np.isnan(x[:, j])]
        parents = [(g, _cells(cube, telling, g, j)) for g in range(len(cube)) if g != j]
        explaining = [(g, cells) for g, cells in parents if cells is not None]
        if explaining:
            # a column of many values may explain anything by chance: take the one with the fewest values
            found[j] = min(explaining, key=lambda parent: (cube.axes[parent[0]].cells, parent[0]))
    understood = {int(j) for j in np.flatnonzero(always)}
    while more := {j for j, (g, _) in found.items() if g in understood} - understood:
        understood |= more
    return {j: rule for j, rule in found.items() if j in understood}


def _cells(cube: Cube, x: Array, g: int, j: int) -> dict[int, bool] | None:
    """Whether column ``j`` is active in each cell of column ``g``; None if ``g`` does not determine it."""
    axis, here, there = cube.axes[g], ~np.isnan(x[:, g]), ~np.isnan(x[:, j])
    if not 2 <= axis.cells <= PARENT_CELLS or there[~here].any() or there[here].all() or not there[here].any():
        return None
    index, present = axis.index(x[here, g]), there[here]
    cells = {int(cell): present[index == cell] for cell in np.unique(index)}
    if any(flags.any() != flags.all() for flags in cells.values()):
        return None
    return {cell: bool(flags.all()) for cell, flags in cells.items()}


def _is_active(cube: Cube, rule: tuple[int, Mapping[int, bool]], cells: Mapping[int, int]) -> bool:
    """Whether a column with this rule is active if the parents are in ``cells``."""
    parent, present = rule
    if cells.get(parent, -1) < 0:
        return False
    if cube.axes[parent].kind == "ordered":  # for an untried value, use the nearest tried one
        return present[min(present, key=lambda cell: abs(cell - cells[parent]))]
    return present.get(cells[parent], False)


def _combinations(
    cube: Cube, rules: Rules, observations: Observations, rng: np.random.Generator
) -> list[dict[int, int]]:
    """All combinations of cells of active parents; if too many, a random subset plus those of the best outcomes."""
    parents = list(dict.fromkeys(parent for parent, _ in rules.values()))
    parents.sort(key=lambda parent: _depth(parent, rules))
    rows: list[dict[int, int]] = [{}]
    cut = False
    for parent in parents:
        here = [parent not in rules or _is_active(cube, rules[parent], row) for row in rows]
        every = range(cube.axes[parent].cells)
        rows = [{**row, parent: cell} for row, has in zip(rows, here, strict=True) for cell in (every if has else [-1])]
        if len(rows) > MOST:
            rows, cut = [rows[i] for i in rng.choice(len(rows), MOST, replace=False)], True
    if cut:
        best = observations.x[observations.feasible][np.argsort(observations.y[observations.feasible])[:BEST]]
        for x in best:
            rows.append({g: -1 if np.isnan(x[g]) else int(cube.axes[g].index(x[g])) for g in parents})
    # an inactive parent has no cell
    present = [{parent: cell for parent, cell in row.items() if cell >= 0} for row in rows]
    return [row for i, row in enumerate(present) if row not in present[:i]]


def _depth(parent: int, rules: Rules) -> int:
    """Number of ancestors of a parent."""
    return 1 + _depth(rules[parent][0], rules) if parent in rules else 0
