"""Kernels: values that add and multiply, and are bound to columns later [RW06, Sec. 4.2].

    GaussianProcess(kernel=RBF() + Linear() * Periodic())

A kernel says how alike two points are; ``on(columns)`` gives its covariance over some columns of the cube, with the
derivatives that fits and searches need.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibo.errors import InputError
from calibo.gp.covariances import (
    Covariance,
    HammingCovariance,
    LinearCovariance,
    PeriodicCovariance,
    ProductCovariance,
    RadialCovariance,
    ScaledCovariance,
    SumCovariance,
)
from calibo.parts import register
from calibo.types import Array

__all__ = [
    "RBF",
    "FunctionKernel",
    "Hamming",
    "Kernel",
    "Linear",
    "Matern32",
    "Matern52",
    "Periodic",
    "Product",
    "Scaled",
    "Sum",
    "register_kernel",
]


class Kernel(ABC):
    """How alike two points are; subclasses are registered frozen dataclasses."""

    @abstractmethod
    def on(self, columns: tuple[int, ...]) -> Covariance:
        """The covariance over these columns."""

    def __add__(self, other: "Kernel") -> "Sum":
        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: "Kernel") -> "Product":
        return Product(self, other) if isinstance(other, Kernel) else NotImplemented


class Stationary(Kernel):
    """One that depends on r2, the squared distance in lengthscales, alone."""

    @abstractmethod
    def profile(self, r2: Array) -> tuple[Array, Array]:
        """The kernel as a function of r2, and its derivative."""

    def on(self, columns: tuple[int, ...]) -> Covariance:
        return RadialCovariance(self.profile, columns)


@register("rbf")
@dataclass(frozen=True)
class RBF(Stationary):
    """exp(-r2 / 2), infinitely smooth [RW06, Eq. 4.9]."""

    def profile(self, r2: Array) -> tuple[Array, Array]:
        k = np.exp(-0.5 * r2)
        return k, -0.5 * k


@register("matern32")
@dataclass(frozen=True)
class Matern32(Stationary):
    """Once differentiable [RW06, Eq. 4.17]."""

    def profile(self, r2: Array) -> tuple[Array, Array]:
        s = np.sqrt(3.0 * r2)
        decay = np.exp(-s)
        return (1.0 + s) * decay, -1.5 * decay


@register("matern52")
@dataclass(frozen=True)
class Matern52(Stationary):
    """Twice differentiable [RW06, Eq. 4.17]."""

    def profile(self, r2: Array) -> tuple[Array, Array]:
        s = np.sqrt(5.0 * r2)
        decay = np.exp(-s)
        linear = s
        linear += 1.0
        linear *= decay
        return linear + (5.0 / 3.0) * r2 * decay, (-5.0 / 6.0) * linear


@register("periodic")
@dataclass(frozen=True)
class Periodic(Kernel):
    """exp(-2 sum_j sin^2(pi (a_j - b_j) / period_j) / lengthscale_j^2) [RW06, Eq. 4.31]."""

    def on(self, columns: tuple[int, ...]) -> Covariance:
        return PeriodicCovariance(columns)


@register("linear")
@dataclass(frozen=True)
class Linear(Kernel):
    """Straight lines through the cube's centre [RW06, Eq. 4.1]."""

    def on(self, columns: tuple[int, ...]) -> Covariance:
        return LinearCovariance(columns)


@register("hamming")
@dataclass(frozen=True)
class Hamming(Kernel):
    """exp(-sum_j [a_j != b_j] / decay_j), for columns of categories."""

    def on(self, columns: tuple[int, ...]) -> Covariance:
        return HammingCovariance(columns)


def _demand_kernels(*parts: Any) -> None:
    for part in parts:
        if not isinstance(part, Kernel):
            raise InputError(f"A kernel must be made of kernels, but got {part!r}. Write RBF() + Linear().")


@register("scaled")
@dataclass(frozen=True)
class Scaled(Kernel):
    """A kernel times a variance of its own; a process has one for the whole kernel anyway."""

    kernel: Kernel

    def __post_init__(self) -> None:
        _demand_kernels(self.kernel)

    def on(self, columns: tuple[int, ...]) -> Covariance:
        return ScaledCovariance(self.kernel.on(columns))


@register("sum")
@dataclass(frozen=True)
class Sum(Kernel):
    """first + second."""

    first: Kernel
    second: Kernel

    def __post_init__(self) -> None:
        _demand_kernels(self.first, self.second)

    def on(self, columns: tuple[int, ...]) -> Covariance:
        return SumCovariance(self.first.on(columns), self.second.on(columns))


@register("product")
@dataclass(frozen=True)
class Product(Kernel):
    """first * second."""

    first: Kernel
    second: Kernel

    def __post_init__(self) -> None:
        _demand_kernels(self.first, self.second)

    def on(self, columns: tuple[int, ...]) -> Covariance:
        return ProductCovariance(self.first.on(columns), self.second.on(columns))


@register("function")
@dataclass(frozen=True)
class FunctionKernel(Kernel):
    """A function of columns that gives a covariance, by the name under which this process has registered it."""

    name: str

    def on(self, columns: tuple[int, ...]) -> Covariance:
        if self.name not in _FUNCTIONS:
            raise InputError(
                f"The kernel {self.name!r} is not registered here. "
                f"Call `register_kernel({self.name!r})` with its function."
            )
        return _FUNCTIONS[self.name](columns)


_FUNCTIONS: dict[str, Callable[[tuple[int, ...]], Covariance]] = {}


def _redefined(known: Any, function: Any) -> bool:
    """Whether it is the same function, or a later version of it, as in a notebook."""
    one, two = ((getattr(f, "__module__", None), getattr(f, "__qualname__", "<")) for f in (known, function))
    return known is function or (one == two and "<lambda>" not in one[1] and one[1] != "<")


def register_kernel(name: str) -> Callable[[Callable[[tuple[int, ...]], Covariance]], FunctionKernel]:
    """Make a kernel of a function of columns, known by ``name`` in every process that registers it.

    The name stands for what the function does: give another one when you change it.
    """
    if not isinstance(name, str) or not name:
        raise InputError(f"`name` must be a string that is not empty, but got {name!r}.")

    def registering(function: Callable[[tuple[int, ...]], Covariance]) -> FunctionKernel:
        if name in _FUNCTIONS and not _redefined(_FUNCTIONS[name], function):
            raise InputError(f"`name` must be free, but {name!r} is {_FUNCTIONS[name]!r}. Take another name.")
        _FUNCTIONS[name] = function
        return FunctionKernel(name)

    return registering
