"""Functions that confirm a finished default: none was used to choose one.

Every function has its minimum over the whole space at a known point. A seed places that point at random in the box and
may rotate the axes, so that no optimizer gains from the centre of the box or from separable axes.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any
from zlib import crc32

import numpy as np

from calibo.arrays import Array
from calibo.space import Float, Space
from calibo_bench.problems.synthetic import Instance, Problem

__all__ = ["FEW_MINIMA", "MANY_MINIMA", "fitted", "moved"]

INSIDE = 0.15  # of each axis: the minimiser is at least so far from the boundary


def moved(
    name: str, call: Callable[[Array], float], minimizer: Any, width: Any, *, rotated: bool, minimum: float = 0.0
) -> Problem:
    """A function in a box of this width, at a random position around its minimiser."""

    def at(seed: int) -> Instance:
        rng = np.random.default_rng([seed, crc32(name.encode())])
        best = np.asarray(minimizer, dtype=float)
        d, widths = len(best), np.broadcast_to(np.asarray(width, dtype=float), len(best))
        place = rng.uniform(INSIDE, 1.0 - INSIDE, d)
        axes = _rotation(d, rng) if rotated else np.eye(d)
        space = Space({f"x{j}": Float(0.0, 1.0) for j in range(d)})

        def value(params: Mapping[str, Any]) -> float:
            u = np.array([params[f"x{j}"] for j in range(d)])
            return float(call(best + axes @ (widths * (u - place))))

        return Instance(space, value, minimum)

    return Problem(name, at)


def _rotation(d: int, rng: np.random.Generator) -> Array:
    """Uniform over rotations and reflections: Q of a Gaussian matrix, with the signs of R."""
    q, r = np.linalg.qr(rng.standard_normal((d, d)))
    return np.asarray(q * np.sign(np.diag(r)))


# many local minima


def salomon(x: Array) -> float:
    r = float(np.linalg.norm(x))
    return float(1.0 - np.cos(2.0 * np.pi * r) + 0.1 * r)


def egg_crate(x: Array) -> float:
    return float((x**2 + 25.0 * np.sin(x) ** 2).sum())


def bird(x: Array) -> float:
    a, b = x
    return float(np.sin(a) * np.exp((1 - np.cos(b)) ** 2) + np.cos(b) * np.exp((1 - np.sin(a)) ** 2) + (a - b) ** 2)


def vincent(x: Array) -> float:
    """Waves whose length grows with x; -1 at every crest of all axes."""
    return -float(np.sin(10.0 * np.log(np.maximum(x, 1e-3))).mean())


def lunacek(x: Array) -> float:
    """Two funnels, the wider of which leads to the wrong one, with the waves of Rastrigin's function."""
    d = len(x)
    s = 1.0 - 1.0 / (2.0 * np.sqrt(d + 20.0) - 8.2)
    away = -np.sqrt((2.5**2 - 1.0) / s)
    funnels = min(float(((x - 2.5) ** 2).sum()), d + s * float(((x - away) ** 2).sum()))
    return float(funnels + 10.0 * (1.0 - np.cos(2.0 * np.pi * (x - 2.5))).sum())


def schaffers(x: Array) -> float:
    r = np.sqrt(x[1:] ** 2 + x[:-1] ** 2)
    return float((np.sqrt(r) * (1.0 + np.sin(50.0 * r**0.2) ** 2)).mean() ** 2)


def peaks(d: int, count: int = 21, noticed: int | None = None) -> Problem:
    """Gaussian peaks of different height and shape, the highest of which is known; only the first axes matter, if
    ``noticed`` is less than d.
    """
    k = noticed or d
    name = f"peaks{k}-in{d}" if noticed else f"peaks{d}"

    def at(seed: int) -> Instance:
        rng = np.random.default_rng([seed, crc32(name.encode())])
        centers = rng.uniform(INSIDE, 1.0 - INSIDE, (count, k))
        heights = np.concatenate([[10.0], rng.uniform(2.0, 9.0, count - 1)])
        lengths = 0.1 * np.sqrt(k) * np.exp(rng.uniform(-0.7, 0.7, (count, k)))
        space = Space({f"x{j}": Float(0.0, 1.0) for j in range(d)})
        noticing = [f"x{j}" for j in rng.permutation(d)[:k]]

        def value(params: Mapping[str, Any]) -> float:
            u = np.array([params[axis] for axis in noticing])
            return float(10.0 - (heights * np.exp(-0.5 * (((u - centers) / lengths) ** 2).sum(axis=1))).max())

        return Instance(space, value, 0.0)

    return Problem(name, at)


# few local minima, ill-conditioned or in many dimensions


def powell(x: Array) -> float:
    a, b, c, e = x.reshape(-1, 4).T
    return float(((a + 10 * b) ** 2 + 5 * (c - e) ** 2 + (b - 2 * c) ** 4 + 10 * (a - e) ** 4).sum())


def qing(x: Array) -> float:
    return float(((x**2 - np.arange(1, len(x) + 1)) ** 2).sum())


def trid(x: Array) -> float:
    d = len(x)
    return float(((x - 1.0) ** 2).sum() - (x[1:] * x[:-1]).sum()) + d * (d + 4) * (d - 1) / 6


def helical(x: Array) -> float:
    """A valley along a screw."""
    a, b, c = x
    turn = np.arctan2(b, a) / (2.0 * np.pi)
    return float(100.0 * ((c - 10.0 * turn) ** 2 + (np.hypot(a, b) - 1.0) ** 2) + c**2)


def ellipsoid(condition: float) -> Callable[[Array], float]:
    return lambda x: float((condition ** (np.arange(len(x)) / (len(x) - 1)) * x**2).sum())


def cluster(x: Array) -> float:
    """Energy of four Lennard-Jones atoms above its minimum, -6, on a log scale; symmetries are fixed."""
    atoms = np.array([[0, 0, 0], [x[0], 0, 0], [x[1], x[2], 0], x[3:6]], dtype=float)
    i, j = np.triu_indices(4, 1)
    sixth = np.maximum(((atoms[i] - atoms[j]) ** 2).sum(axis=1), 1e-3) ** -3
    return float(np.log1p(max(float((4.0 * (sixth**2 - sixth)).sum()) + 6.0, 0.0)))


EDGE = 2.0 ** (1.0 / 6.0)
TETRAHEDRON = [EDGE, EDGE / 2, EDGE * 3**0.5 / 2, EDGE / 2, EDGE / (2 * 3**0.5), EDGE * (2 / 3) ** 0.5]


# parameters of a simulation, fitted to its outcome


def fitted(name: str, space: Mapping[str, Float], simulated: Callable[[Mapping[str, Any]], Array]) -> Problem:
    """The root mean squared difference to the simulation of hidden parameters."""

    def at(seed: int) -> Instance:
        rng, made = np.random.default_rng([seed, crc32(name.encode())]), Space(space)
        hidden = made.from_cube(rng.uniform(INSIDE, 1.0 - INSIDE, len(made)))
        seen = simulated(hidden)

        @cache
        def value(*values: float) -> float:
            return float(np.sqrt(np.mean((simulated(dict(zip(made, values, strict=True))) - seen) ** 2)))

        return Instance(made, lambda params: value(*(params[name] for name in made)), 0.0)

    return Problem(name, at)


def _oscillator(p: Mapping[str, Any]) -> Array:
    t = np.linspace(0.0, 8.0, 60)
    return np.asarray(p["amplitude"] * np.exp(-p["damping"] * t) * np.cos(p["frequency"] * t + p["phase"]))


def _epidemic(p: Mapping[str, Any]) -> Array:
    """Infected per thousand on ninety days."""
    healthy, infected, course = 1.0 - p["begun"], p["begun"], []
    for step in range(360):
        new, gone = 0.25 * p["contact"] * healthy * infected, 0.25 * p["recovery"] * infected
        healthy, infected = healthy - new, infected + new - gone
        if step % 4 == 3:
            course.append(1000.0 * infected)
    return np.array(course)


def _predators(p: Mapping[str, Any]) -> Array:
    """Logarithms of prey and predators."""
    prey, hunters, course = 0.0, 0.0, []
    for step in range(400):
        prey += 0.03 * (p["birth"] - p["hunting"] * np.exp(hunters))
        hunters += 0.03 * (p["gain"] * np.exp(prey) - p["death"])
        if step % 10 == 9:
            course += [prey, hunters]
    return np.asarray(np.clip(course, -30.0, 30.0))


OSCILLATOR = fitted(
    "oscillator",
    {
        "amplitude": Float(0.5, 2.0),
        "damping": Float(0.01, 1.0, log=True),
        "frequency": Float(1.0, 6.0),
        "phase": Float(-1.5, 1.5),
    },
    _oscillator,
)
EPIDEMIC = fitted(
    "epidemic",
    {
        "contact": Float(0.1, 2.0, log=True),
        "recovery": Float(0.02, 0.8, log=True),
        "begun": Float(1e-5, 1e-2, log=True),
    },
    _epidemic,
)
PREDATORS = fitted(
    "predators", {name: Float(0.3, 2.0, log=True) for name in ("birth", "hunting", "gain", "death")}, _predators
)

MANY_MINIMA = (
    peaks(2),
    peaks(5),
    moved("salomon4", salomon, [0.0] * 4, 12.0, rotated=False),
    moved("lunacek5", lunacek, [2.5] * 5, 8.0, rotated=True),
    moved("vincent3", vincent, [np.exp(np.pi / 20 + np.pi / 5)] * 3, 4.0, rotated=False, minimum=-1.0),
    moved("bird2", bird, [4.701043130195973, 3.152938503721904], 12.0, rotated=False, minimum=-106.76453674926468),
    moved("egg_crate4", egg_crate, [0.0] * 4, 10.0, rotated=False),
    moved("schaffers6", schaffers, [0.0] * 6, 40.0, rotated=True),
    OSCILLATOR,
)
FEW_MINIMA = (
    moved("powell8", powell, [0.0] * 8, 8.0, rotated=False),
    moved("ellipsoid6", ellipsoid(1e3), [0.0] * 6, 4.0, rotated=True),
    moved("qing5", qing, np.sqrt(np.arange(1, 6)), 5.0, rotated=False),
    moved("helical3", helical, [1.0, 0.0, 0.0], 10.0, rotated=True),
    moved("trid10", trid, [i * (11 - i) for i in range(1, 11)], 120.0, rotated=False),
    EPIDEMIC,
    PREDATORS,
    moved("cluster6", cluster, TETRAHEDRON, 3.0, rotated=False),
    moved("ellipsoid20", ellipsoid(1e2), [0.0] * 20, 4.0, rotated=True),
    peaks(20, noticed=3),
)
