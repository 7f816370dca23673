"""Textbook functions to minimise, in their usual form and bounds [SB13]; every minimum is known.

Notation: x (d,) a point in the function's own units; low, high (d,) its bounds; minimum f*, and one of its
minimisers. A family is a function that returns the function of d dimensions.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import cos, e, exp, pi, sin, sqrt
from typing import Any

import numpy as np

from calibo.arrays import Array
from calibo.errors import InputError

__all__ = ["FAMILIES", "FUNCTIONS", "Function", "function"]


@dataclass(frozen=True, eq=False)
class Function:
    """A function of d real numbers in a box, and its minimum there."""

    name: str
    call: Callable[[Array], Any]
    low: Array
    high: Array
    minimum: float
    minimizer: Array
    """One of the points where it takes its minimum."""

    def __call__(self, x: Array) -> float:
        return float(self.call(np.asarray(x, dtype=float)))

    @property
    def d(self) -> int:
        return len(self.low)


def function(name: str) -> Function:
    """The function of a name; "ackley5" is the five-dimensional one of a family."""
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    family = name.rstrip("0123456789")
    if family in FAMILIES and family != name:
        return FAMILIES[family](int(name[len(family) :]))
    raise InputError(
        f"`function` must be one of {sorted(FUNCTIONS)} or of {sorted(FAMILIES)} with a dimension, but got {name!r}."
    )


def _box(low: object, high: object, d: int) -> tuple[Array, Array]:
    return np.broadcast_to(np.asarray(low, dtype=float), d).copy(), np.broadcast_to(
        np.asarray(high, dtype=float), d
    ).copy()


def _given(
    name: str, call: Callable[[Array], Any], bounds: tuple[object, object], minimum: float, minimizer: list[float]
) -> Function:
    low, high = _box(*bounds, len(minimizer))
    return Function(name, call, low, high, minimum, np.array(minimizer, dtype=float))


# one and two dimensions


def _forrester(x: Array) -> Any:
    return (6 * x[0] - 2) ** 2 * sin(12 * x[0] - 4)


def _gramacy_lee(x: Array) -> Any:
    return sin(10 * pi * x[0]) / (2 * x[0]) + (x[0] - 1) ** 4


def _beale(x: Array) -> Any:
    a, b = x
    return (1.5 - a + a * b) ** 2 + (2.25 - a + a * b**2) ** 2 + (2.625 - a + a * b**3) ** 2


def _booth(x: Array) -> Any:
    return (x[0] + 2 * x[1] - 7) ** 2 + (2 * x[0] + x[1] - 5) ** 2


def _branin(x: Array) -> Any:
    a, b = x
    return (b - 5.1 / (4 * pi**2) * a**2 + 5 / pi * a - 6) ** 2 + 10 * (1 - 1 / (8 * pi)) * cos(a) + 10


def _bukin(x: Array) -> Any:
    return 100 * sqrt(abs(x[1] - 0.01 * x[0] ** 2)) + 0.01 * abs(x[0] + 10)


def _camel3(x: Array) -> Any:
    a, b = x
    return 2 * a**2 - 1.05 * a**4 + a**6 / 6 + a * b + b**2


def _camel6(x: Array) -> Any:
    a, b = x
    return (4 - 2.1 * a**2 + a**4 / 3) * a**2 + a * b + (-4 + 4 * b**2) * b**2


def _cosines(x: Array) -> Any:
    u = 1.6 * x - 0.5
    return float(-(1 - (u**2 - 0.3 * np.cos(3 * pi * u)).sum()))


def _cross_in_tray(x: Array) -> Any:
    wave = abs(sin(x[0]) * sin(x[1]) * exp(abs(100 - sqrt(x[0] ** 2 + x[1] ** 2) / pi)))
    return -0.0001 * (wave + 1) ** 0.1


def _drop_wave(x: Array) -> Any:
    square = float((x**2).sum())
    return -(1 + cos(12 * sqrt(square))) / (0.5 * square + 2)


def _easom(x: Array) -> Any:
    return -cos(x[0]) * cos(x[1]) * exp(-((x[0] - pi) ** 2) - (x[1] - pi) ** 2)


def _eggholder(x: Array) -> Any:
    a, b = x
    return -(b + 47) * sin(sqrt(abs(b + a / 2 + 47))) - a * sin(sqrt(abs(a - (b + 47))))


def _goldstein_price(x: Array) -> Any:
    a, b = x
    left = 1 + (a + b + 1) ** 2 * (19 - 14 * a + 3 * a**2 - 14 * b + 6 * a * b + 3 * b**2)
    right = 30 + (2 * a - 3 * b) ** 2 * (18 - 32 * a + 12 * a**2 + 48 * b - 36 * a * b + 27 * b**2)
    return left * right


def _holder_table(x: Array) -> Any:
    return -abs(sin(x[0]) * cos(x[1]) * exp(abs(1 - sqrt(x[0] ** 2 + x[1] ** 2) / pi)))


def _mccormick(x: Array) -> Any:
    return sin(x[0] + x[1]) + (x[0] - x[1]) ** 2 - 1.5 * x[0] + 2.5 * x[1] + 1


def _shubert(x: Array) -> Any:
    i = np.arange(1, 6)
    return float(np.prod([(i * np.cos((i + 1) * value + i)).sum() for value in x]))


# three to six dimensions

_WEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])
_RATES3 = np.array([[3, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]])
_PLACES3 = 1e-4 * np.array([[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]])
_RATES6 = np.array(
    [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
)
_PLACES6 = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)
_SHEKEL_DEPTHS = 0.1 * np.array([1, 2, 2, 4, 4, 6, 3, 7, 5, 5])
_SHEKEL_PLACES = np.array(
    [
        [4, 1, 8, 6, 3, 2, 5, 8, 6, 7],
        [4, 1, 8, 6, 7, 9, 3, 1, 2, 3.6],
        [4, 1, 8, 6, 3, 2, 5, 8, 6, 7],
        [4, 1, 8, 6, 7, 9, 3, 1, 2, 3.6],
    ]
)


def _hartmann3(x: Array) -> Any:
    return float(-_WEIGHTS @ np.exp(-(_RATES3 * (x - _PLACES3) ** 2).sum(axis=1)))


def _hartmann6(x: Array) -> Any:
    return float(-_WEIGHTS @ np.exp(-(_RATES6 * (x - _PLACES6) ** 2).sum(axis=1)))


def _shekel(x: Array) -> Any:
    return float(-(1 / (((x[:, None] - _SHEKEL_PLACES) ** 2).sum(axis=0) + _SHEKEL_DEPTHS)).sum())


def _colville(x: Array) -> Any:
    a, b, c, d = x
    terms = 100 * (a**2 - b) ** 2 + (a - 1) ** 2 + (c - 1) ** 2 + 90 * (c**2 - d) ** 2
    return terms + 10.1 * ((b - 1) ** 2 + (d - 1) ** 2) + 19.8 * (b - 1) * (d - 1)


# any dimension


def _ackley(x: Array) -> Any:
    return float(-20 * np.exp(-0.2 * np.sqrt((x**2).mean())) - np.exp(np.cos(2 * pi * x).mean()) + 20 + e)


def _alpine(x: Array) -> Any:
    return float(np.abs(x * np.sin(x) + 0.1 * x).sum())


def _different_powers(x: Array) -> Any:
    return float((np.abs(x) ** np.arange(2, len(x) + 2)).sum())


def _dixon_price(x: Array) -> Any:
    i = np.arange(2, len(x) + 1)
    return float((x[0] - 1) ** 2 + (i * (2 * x[1:] ** 2 - x[:-1]) ** 2).sum())


def _griewank(x: Array) -> Any:
    return float((x**2).sum() / 4000 - np.prod(np.cos(x / np.sqrt(np.arange(1, len(x) + 1)))) + 1)


def _gsobol(x: Array) -> Any:
    a = np.arange(len(x)) / 2.0  # one zero, the others positive: the minimum is 0
    return float(np.prod((np.abs(4 * x - 2) + a) / (1 + a)))


def _levy(x: Array) -> Any:
    w = 1 + (x - 1) / 4
    inner = (w[:-1] - 1) ** 2 * (1 + 10 * np.sin(pi * w[:-1] + 1) ** 2)
    return float(np.sin(pi * w[0]) ** 2 + inner.sum() + (w[-1] - 1) ** 2 * (1 + np.sin(2 * pi * w[-1]) ** 2))


def _michalewicz(x: Array) -> Any:
    return float(-(np.sin(x) * np.sin(np.arange(1, len(x) + 1) * x**2 / pi) ** 20).sum())


def _rastrigin(x: Array) -> Any:
    return float((x**2 - 10 * np.cos(2 * pi * x) + 10).sum())


def _rosenbrock(x: Array) -> Any:
    return float((100 * (x[1:] - x[:-1] ** 2) ** 2 + (x[:-1] - 1) ** 2).sum())


def _schwefel(x: Array) -> Any:
    return float(418.9828872724338 * len(x) - (x * np.sin(np.sqrt(np.abs(x)))).sum())


def _sphere(x: Array) -> Any:
    return float((x**2).sum())


def _styblinski(x: Array) -> Any:
    return float((x**4 - 16 * x**2 + 5 * x).sum() / 2)


def _zakharov(x: Array) -> Any:
    slope = float((0.5 * np.arange(1, len(x) + 1) * x).sum())
    return float((x**2).sum()) + slope**2 + slope**4


FUNCTIONS: dict[str, Function] = {
    made.name: made
    for made in (
        _given("forrester", _forrester, (0, 1), -6.020740055767083, [0.7572487144081974]),
        _given("gramacy_lee", _gramacy_lee, (0.5, 2.5), -0.8690111349894997, [0.548563444114526]),
        _given("beale", _beale, (-4.5, 4.5), 0.0, [3.0, 0.5]),
        _given("booth", _booth, (-10, 10), 0.0, [1.0, 3.0]),
        _given("branin", _branin, ([-5, 0], [10, 15]), 0.39788735772973816, [pi, 2.275]),
        _given("bukin", _bukin, ([-15, -3], [-5, 3]), 0.0, [-10.0, 1.0]),
        _given("camel3", _camel3, (-5, 5), 0.0, [0.0, 0.0]),
        _given("camel6", _camel6, ([-2, -1], [2, 1]), -1.0316284534898774, [0.08984201368301331, -0.7126564032704135]),
        _given("cosines", _cosines, (0, 1), -1.6, [0.3125, 0.3125]),
        _given("cross_in_tray", _cross_in_tray, (-10, 10), -2.062611870822739, [1.349406608602084, 1.349406608602084]),
        _given("drop_wave", _drop_wave, (-5.12, 5.12), -1.0, [0.0, 0.0]),
        _given("easom", _easom, (-100, 100), -1.0, [pi, pi]),
        _given("eggholder", _eggholder, (-512, 512), -959.6406627208506, [512.0, 404.2318058008512]),
        _given("goldstein_price", _goldstein_price, (-2, 2), 3.0, [0.0, -1.0]),
        _given("holder_table", _holder_table, (-10, 10), -19.208502567886743, [8.055023472141116, 9.664590028909654]),
        _given(
            "mccormick",
            _mccormick,
            ([-1.5, -3], [4, 4]),
            -1.9132229549810367,
            [-0.5471975602214493, -1.547197559268372],
        ),
        _given("shubert", _shubert, (-10, 10), -186.73090883102398, [4.858056878526046, -0.8003211004719731]),
        _given("hartmann3", _hartmann3, (0, 1), -3.862779787332663, [0.11458888, 0.55564888, 0.85254698]),
        _given("shekel", _shekel, (0, 10), -10.536443153483528, [4.00074652, 3.99951208, 4.00074652, 3.99951208]),
        _given("colville", _colville, (-10, 10), 0.0, [1.0] * 4),
        _given(
            "hartmann6",
            _hartmann6,
            (0, 1),
            -3.322368011415515,
            [0.20168951, 0.15001069, 0.47687398, 0.27533243, 0.31165162, 0.65730053],
        ),
    )
}


def _michalewicz_of(d: int) -> Function:
    known = {  # no closed form
        2: (-1.8013034100985537, [2.20290552, 1.57079633]),
        5: (-4.687658179088149, [2.20290552, 1.57079633, 1.28499157, 1.92305847, 1.72046977]),
    }
    if d not in known:
        raise InputError(
            f"`d` must be one of {list(known)} for michalewicz, whose minimum is known only there, but got {d}."
        )
    return _given(f"michalewicz{d}", _michalewicz, (0, pi), *known[d])


def _dixon_price_of(d: int) -> Function:
    if d < 2:
        raise InputError(f"`d` must be at least 2 for dixon_price, but got {d}.")
    place = [2.0 ** -((2**i - 2) / 2**i) for i in range(1, d + 1)]
    return _given(f"dixon_price{d}", _dixon_price, (-10, 10), 0.0, place)


def _family(
    name: str, call: Callable[[Array], Any], bounds: tuple[float, float], place: float, least: float = 0.0
) -> Callable[[int], Function]:
    """A family with the same bounds and minimiser along every axis; ``least`` is the minimum per axis."""

    def of(d: int) -> Function:
        if d < 1 or (call is _rosenbrock and d < 2):
            raise InputError(f"`d` must be at least {2 if call is _rosenbrock else 1} for {name}, but got {d}.")
        return _given(f"{name}{d}", call, bounds, least * d, [place] * d)

    return of


FAMILIES: dict[str, Callable[[int], Function]] = {
    "ackley": _family("ackley", _ackley, (-32.768, 32.768), 0.0),
    "alpine": _family("alpine", _alpine, (-10, 10), 0.0),
    "different_powers": _family("different_powers", _different_powers, (-1, 1), 0.0),
    "dixon_price": _dixon_price_of,
    "griewank": _family("griewank", _griewank, (-600, 600), 0.0),
    "gsobol": _family("gsobol", _gsobol, (0, 1), 0.5),
    "levy": _family("levy", _levy, (-10, 10), 1.0),
    "michalewicz": _michalewicz_of,
    "rastrigin": _family("rastrigin", _rastrigin, (-5.12, 5.12), 0.0),
    "rosenbrock": _family("rosenbrock", _rosenbrock, (-5, 10), 1.0),
    "schwefel": _family("schwefel", _schwefel, (-500, 500), 420.968746359982),
    "sphere": _family("sphere", _sphere, (-5.12, 5.12), 0.0),
    "styblinski": _family("styblinski", _styblinski, (-5, 5), -2.903534027771177, -39.166165703771416),
    "zakharov": _family("zakharov", _zakharov, (-5, 10), 0.0),
}
