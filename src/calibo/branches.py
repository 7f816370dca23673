"""Branches: which columns are present together, where parameters exist only under conditions.

A column that an evaluation did not have is NaN in ``x``. Mostly one discrete column decides about another's
presence, say the kind of model or the number of layers: its gate. Gates are learned from what was present. The
engine then sees points whose absent columns stand still, and searches every branch with its gates held. A column
whose presence no gate explains is left out of the search: whoever comes to it asks again, with the rest fixed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from calibo.cube import SAME, Cube
from calibo.observations import Observations
from calibo.types import Array, Flags

__all__ = ["Branches", "filled", "middle", "stilled"]

GATE_CELLS = 64  # a column of more values is not looked at as a gate
MOST = 32  # branches searched in one proposal
BEST = 8  # outcomes whose branches are among them, where there are more

Rules = Mapping[int, tuple[int, Mapping[int, bool]]]  # column -> its gate, and in which cells of it it is present


@dataclass(frozen=True, eq=False)
class Branches:
    """The ways a proposal can go."""

    held: Array
    """(b, d) what each branch holds still, NaN where it is free."""

    absent: Flags
    """(b, d) which columns a branch does not have."""

    left_out: Flags
    """(d,) columns whose presence is not understood."""

    @classmethod
    def of(cls, observations: Observations, fixed: Array, rng: np.random.Generator) -> "Branches":
        """Those that agree with the columns of ``fixed`` (d,) that are not NaN."""
        cube, nowhere = observations.cube, np.zeros(len(fixed), dtype=bool)
        if not np.isnan(observations.seen()).any():
            return cls(fixed[None], nowhere[None], nowhere)
        # an evaluation that failed may have ended before it came to all its columns: what it lacks is unknown
        ended = observations.feasible | (not observations.feasible.any())
        always = np.asarray(~np.isnan(observations.x[ended]).any(axis=0))
        rules = _rules(cube, observations.x, ended, always)
        left_out = ~always & np.isnan(fixed)
        left_out[list(rules)] = False
        held, absent = [], []
        for cells in _combinations(cube, rules, observations, rng):
            missing = np.array([j in rules and not _present(cube, rules[j], cells) for j in range(len(cube))])
            row = np.where(missing | left_out, middle(cube), np.nan)
            for j, cell in cells.items():
                row[j] = cube.axes[j].position(cell)
            contradicts = ~np.isnan(fixed) & (missing | (np.abs(row - fixed) > SAME))
            if not contradicts.any():
                held.append(np.where(np.isnan(fixed), row, fixed))
                absent.append(missing | left_out)
        if not held:  # what is fixed was never seen together
            return cls(fixed[None], nowhere[None], nowhere)
        return cls(np.array(held), np.array(absent), left_out)

    def closed(self, observations: Observations) -> Observations:
        """The same observations without NaN in their points; what is left out says nothing."""
        if not self.left_out.any():
            return filled(observations)
        x, pending = (np.where(self.left_out, np.nan, points) for points in (observations.x, observations.pending))
        return filled(replace(observations, x=x, pending=pending))

    def settled(self, observations: Observations) -> Flags:
        """(n + q,) which evaluations the columns that are searched describe wholly: others may be repeated in them."""
        return np.asarray(np.isnan(observations.seen()[:, self.left_out]).all(axis=1))

    def opened(self, x: Array) -> Array:
        """The point (d,) found by the search, NaN where its branch has no such column."""
        agrees = (np.isnan(self.held) | (np.abs(self.held - x) <= SAME)).all(axis=1)
        return np.where(self.absent[np.argmax(agrees)], np.nan, x)


def filled(observations: Observations) -> Observations:
    """Absent columns put in the middle, where they stand still."""
    if not np.isnan(observations.seen()).any():
        return observations
    cube = observations.cube
    present = ~np.isnan(observations.seen()) & cube.free & ~cube.categorical
    x, pending = (stilled(cube, points) for points in (observations.x, observations.pending))
    width = max(int(present.sum(axis=1).max()), 1)
    return replace(observations, cube=replace(cube, width=width), x=x, pending=pending)


def stilled(cube: Cube, x: Array) -> Array:
    """Points (n, d) with the middle of the cube for NaN."""
    return np.where(np.isnan(x), middle(cube), x)


def middle(cube: Cube) -> Array:
    """(d,) a point in the middle of every column."""
    return np.asarray(cube.snap(np.full((1, len(cube)), 0.5))[0])


def _rules(cube: Cube, x: Array, ended: Flags, always: Flags) -> Rules:
    """For each column that is not always present, the gate that explains its presence, if one does."""
    found = {}
    for j in np.flatnonzero(~always).tolist():
        telling = x[ended | ~np.isnan(x[:, j])]
        gates = [(g, _cells(cube, telling, g, j)) for g in range(len(cube)) if g != j]
        explaining = [(g, cells) for g, cells in gates if cells is not None]
        if explaining:
            # by chance a column of many values explains anything: the one of fewest values is believed
            found[j] = min(explaining, key=lambda gate: (cube.axes[gate[0]].cells, gate[0]))
    understood = {int(j) for j in np.flatnonzero(always)}
    while more := {j for j, (g, _) in found.items() if g in understood} - understood:
        understood |= more
    return {j: rule for j, rule in found.items() if j in understood}


def _cells(cube: Cube, x: Array, g: int, j: int) -> dict[int, bool] | None:
    """In which cells of column ``g`` column ``j`` is present; None where ``g`` does not decide about it."""
    axis, here, there = cube.axes[g], ~np.isnan(x[:, g]), ~np.isnan(x[:, j])
    if not 2 <= axis.cells <= GATE_CELLS or there[~here].any() or there[here].all() or not there[here].any():
        return None
    index, present = axis.index(x[here, g]), there[here]
    cells = {int(cell): present[index == cell] for cell in np.unique(index)}
    if any(flags.any() != flags.all() for flags in cells.values()):
        return None
    return {cell: bool(flags.all()) for cell, flags in cells.items()}


def _present(cube: Cube, rule: tuple[int, Mapping[int, bool]], cells: Mapping[int, int]) -> bool:
    """Whether a column with this rule is present where the gates are in ``cells``."""
    gate, present = rule
    if cells.get(gate, -1) < 0:
        return False
    if cube.axes[gate].kind == "ordered":  # of a value never tried the nearest one tells most
        return present[min(present, key=lambda cell: abs(cell - cells[gate]))]
    return present.get(cells[gate], False)


def _combinations(
    cube: Cube, rules: Rules, observations: Observations, rng: np.random.Generator
) -> list[dict[int, int]]:
    """Cells of the gates that are present: all combinations, or of too many some, with those of the best outcomes."""
    gates = list(dict.fromkeys(gate for gate, _ in rules.values()))
    gates.sort(key=lambda gate: _depth(gate, rules))
    rows: list[dict[int, int]] = [{}]
    cut = False
    for gate in gates:
        here = [gate not in rules or _present(cube, rules[gate], row) for row in rows]
        every = range(cube.axes[gate].cells)
        rows = [{**row, gate: cell} for row, has in zip(rows, here, strict=True) for cell in (every if has else [-1])]
        if len(rows) > MOST:
            rows, cut = [rows[i] for i in rng.choice(len(rows), MOST, replace=False)], True
    if cut:
        best = observations.x[observations.feasible][np.argsort(observations.y[observations.feasible])[:BEST]]
        for x in best:
            rows.append({g: -1 if np.isnan(x[g]) else int(cube.axes[g].index(x[g])) for g in gates})
    # an absent gate has no cell
    present = [{gate: cell for gate, cell in row.items() if cell >= 0} for row in rows]
    return [row for i, row in enumerate(present) if row not in present[:i]]


def _depth(gate: int, rules: Rules) -> int:
    """How many gates stand above this one."""
    return 1 + _depth(rules[gate][0], rules) if gate in rules else 0
