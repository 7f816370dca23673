"""Textbook functions on the unit cube with minimum 0, for choosing defaults; optima lie off the centre."""

from collections.abc import Callable

import numpy as np

Array = np.ndarray

HARTMANN_WEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])
HARTMANN3 = (
    np.array([[3.0, 10, 30], [0.1, 10, 35], [3.0, 10, 30], [0.1, 10, 35]]),
    1e-4 * np.array([[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]]),
)
HARTMANN6 = (
    np.array(
        [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
    ),
    1e-4
    * np.array(
        [
            [1312, 1696, 5569, 124, 8283, 5886],
            [2329, 4135, 8307, 3736, 1004, 9991],
            [2348, 1451, 3522, 2883, 3047, 6650],
            [4047, 8828, 8732, 5743, 1091, 381],
        ]
    ),
)


def hartmann(x: Array, tables: tuple[Array, Array], minimum: float) -> float:
    rates, centers = tables
    return float(-HARTMANN_WEIGHTS @ np.exp(-(rates * (x - centers) ** 2).sum(axis=1)) - minimum)


def branin(x: Array) -> float:
    a, b = 15 * x[0] - 5, 15 * x[1]
    bowl = (b - 5.1 / (4 * np.pi**2) * a**2 + 5 / np.pi * a - 6) ** 2
    return float(bowl + 10 * (1 - 1 / (8 * np.pi)) * np.cos(a) + 10 - 0.39788735772973816)


def camel(x: Array) -> float:
    a, b = 4 * x[0] - 2, 2 * x[1] - 1
    return float((4 - 2.1 * a**2 + a**4 / 3) * a**2 + a * b + (4 * b**2 - 4) * b**2 + 1.031628453489877)


def ackley(x: Array) -> float:
    z = 25 * x - 10
    root, cosines = np.sqrt((z**2).mean()), np.cos(2 * np.pi * z).mean()
    return float(20 + np.e - 20 * np.exp(-0.2 * root) - np.exp(cosines))


def rosenbrock(x: Array) -> float:
    z = 15 * x - 5
    return float((100 * (z[1:] - z[:-1] ** 2) ** 2 + (1 - z[:-1]) ** 2).sum())


def levy(x: Array) -> float:
    w = 1 + (16 * x - 7) / 4
    middle = ((w[:-1] - 1) ** 2 * (1 + 10 * np.sin(np.pi * w[:-1] + 1) ** 2)).sum()
    return float(np.sin(np.pi * w[0]) ** 2 + middle + (w[-1] - 1) ** 2 * (1 + np.sin(2 * np.pi * w[-1]) ** 2))


def styblinski(x: Array) -> float:
    z = 10 * x - 5
    return float(0.5 * (z**4 - 16 * z**2 + 5 * z).sum() + 39.16616570377142 * len(z))


def alpine(x: Array) -> float:
    z = 17 * x - 7
    return float(np.abs(z * np.sin(z) + 0.1 * z).sum())


PROBLEMS: dict[str, tuple[Callable[[Array], float], int]] = {
    "branin": (branin, 2),
    "camel": (camel, 2),
    "hartmann3": (lambda x: hartmann(x, HARTMANN3, -3.8627797869493365), 3),
    "ackley3": (ackley, 3),
    "rosenbrock4": (rosenbrock, 4),
    "alpine4": (alpine, 4),
    "levy5": (levy, 5),
    "styblinski5": (styblinski, 5),
    "hartmann6": (lambda x: hartmann(x, HARTMANN6, -3.322368011415515), 6),
}
