"""Conditional parameters: columns that are active only where another one, their parent, has certain values.

A column that an evaluation did not have is NaN in ``x``. Mostly one discrete column decides whether another is active,
say the kind of model or the number of layers: its parent. Parents are learned from the trials. The engine then sees
points whose inactive columns are imputed, and searches every combination of the parents' values. A column whose
presence no parent explains is left out of the search: the sampler asks again when it is suggested, with the rest fixed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from calibo.arrays import Array, Flags
from calibo.cube import SAME, Cube
from calibo.observations import Observations

PARENT_CELLS = 64  # a column of more values is not looked at as a parent
MOST = 32  # combinations searched in one proposal
BEST = 8  # outcomes whose combinations are among them, where there are more

Rules = Mapping[int, tuple[int, Mapping[int, bool]]]  # column -> its parent, and in which of its cells it is active


@dataclass(frozen=True, eq=False)
class ConditionalParameters:
    """The combinations of parents' values that a proposal can take."""

    fixed: Array
    """(b, d) what each combination fixes, NaN where it is free."""

    inactive: Flags
    """(b, d) which columns are not active in it."""

    unexplained: Flags
    """(d,) columns whose presence no parent explains."""

    @classmethod
    def learn(cls, observations: Observations, fixed: Array, rng: np.random.Generator) -> "ConditionalParameters":
        """Those that agree with the columns of ``fixed`` (d,) that are not NaN."""
        cube, nowhere = observations.cube, np.zeros(len(fixed), dtype=bool)
        if not np.isnan(observations.all_points()).any():
            return cls(fixed[None], nowhere[None], nowhere)
        # an evaluation that failed may have ended before it came to all its columns: what it lacks is unknown
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
        if not rows:  # what is fixed was never seen together
            return cls(fixed[None], nowhere[None], nowhere)
        return cls(np.array(rows), np.array(inactive), unexplained)

    def impute(self, observations: Observations) -> Observations:
        """The same observations without NaN in their points, and without the columns that are unexplained."""
        if not self.unexplained.any():
            return observations.impute()
        x, pending = (np.where(self.unexplained, np.nan, points) for points in (observations.x, observations.pending))
        return replace(observations, x=x, pending=pending).impute()

    def fully_described(self, observations: Observations) -> Flags:
        """(n + q,) which evaluations have no unexplained column: others may be repeated in the rest."""
        return np.asarray(np.isnan(observations.all_points()[:, self.unexplained]).all(axis=1))

    def deactivate(self, x: Array) -> Array:
        """The point (d,) found by the search, NaN in the columns that are not active there."""
        agrees = (np.isnan(self.fixed) | (np.abs(self.fixed - x) <= SAME)).all(axis=1)
        return np.where(self.inactive[np.argmax(agrees)], np.nan, x)


def _rules(cube: Cube, x: Array, ended: Flags, always: Flags) -> Rules:
    """For each column that is not always present, the parent that explains its presence, if one does."""
    found = {}
    for j in np.flatnonzero(~always).tolist():
        telling = x[ended | ~np.isnan(x[:, j])]
        parents = [(g, _cells(cube, telling, g, j)) for g in range(len(cube)) if g != j]
        explaining = [(g, cells) for g, cells in parents if cells is not None]
        if explaining:
            # by chance a column of many values explains anything: the one of fewest values is taken
            found[j] = min(explaining, key=lambda parent: (cube.axes[parent[0]].cells, parent[0]))
    understood = {int(j) for j in np.flatnonzero(always)}
    while more := {j for j, (g, _) in found.items() if g in understood} - understood:
        understood |= more
    return {j: rule for j, rule in found.items() if j in understood}


def _cells(cube: Cube, x: Array, g: int, j: int) -> dict[int, bool] | None:
    """In which cells of column ``g`` column ``j`` is active; None where ``g`` does not decide about it."""
    axis, here, there = cube.axes[g], ~np.isnan(x[:, g]), ~np.isnan(x[:, j])
    if not 2 <= axis.cells <= PARENT_CELLS or there[~here].any() or there[here].all() or not there[here].any():
        return None
    index, present = axis.index(x[here, g]), there[here]
    cells = {int(cell): present[index == cell] for cell in np.unique(index)}
    if any(flags.any() != flags.all() for flags in cells.values()):
        return None
    return {cell: bool(flags.all()) for cell, flags in cells.items()}


def _is_active(cube: Cube, rule: tuple[int, Mapping[int, bool]], cells: Mapping[int, int]) -> bool:
    """Whether a column with this rule is active where the parents are in ``cells``."""
    parent, present = rule
    if cells.get(parent, -1) < 0:
        return False
    if cube.axes[parent].kind == "ordered":  # of a value never tried the nearest one tells most
        return present[min(present, key=lambda cell: abs(cell - cells[parent]))]
    return present.get(cells[parent], False)


def _combinations(
    cube: Cube, rules: Rules, observations: Observations, rng: np.random.Generator
) -> list[dict[int, int]]:
    """Cells of the parents that are active: all combinations, or of too many some, with those of the best outcomes."""
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
    """How many parents stand above this one."""
    return 1 + _depth(rules[parent][0], rules) if parent in rules else 0
