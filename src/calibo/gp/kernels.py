"""Kernels, and covariances: kernels over given columns, with derivatives w.r.t. hyperparameters and inputs.

| symbol | meaning |
|---|---|
| theta | (size,) hyperparameters, logarithms of positive quantities |
| geometry | the part that depends only on the points, computed once per fit; (columns, pairs) or a pair of such |
| K | (pairs,) or (m, n) covariances |
| W | weights of the same shape as K, or one row shared by all |
| pullback | vector-Jacobian product: W -> derivative of sum(W * K) w.r.t. theta (size,) or the rows of x (m, d) |
| r2 | sum_j (a_j - b_j)^2 / lengthscale_j^2 |

Derivatives are computed in reverse mode, as sums weighted by W. So no (n, n, size) or (m, n, d) array is ever
allocated, and sums and products of kernels compose.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibo.arrays import Array, Indices
from calibo.errors import InputError
from calibo.parts import register

Geometry = Any

Pullback = Callable[[Array], Array]

Cross = Callable[[Array], tuple[Array, Pullback]]


class Covariance(ABC):
    """A kernel over some columns; stateless: ``theta`` is always an argument."""

    stationary: ClassVar[bool] = False
    """Whether its variance is the same everywhere."""

    @property
    @abstractmethod
    def labels(self) -> tuple[str, ...]:
        """The role of each hyperparameter: "lengthscale", "amplitude", "period" or "decay"."""

    @abstractmethod
    def geometry(self, x: Array, first: Indices, second: Indices) -> Geometry:
        """Precomputed quantities for the covariances of the pairs x[first], x[second] of points (n, d)."""

    @abstractmethod
    def pairwise(self, theta: Array, geometry: Geometry) -> tuple[Array, Pullback]:
        """Covariances (pairs,), and their pullback to theta."""

    @abstractmethod
    def cross(self, theta: Array, z: Array) -> Cross:
        """The function x (m, d) -> covariances (m, n) with ``z``, and their pullback to x."""

    def diagonal(self, theta: Array, x: Array) -> tuple[Array, Array]:
        """Variances (m,) at ``x``, 1 unless overridden, and their derivatives (m, d)."""
        return np.ones(len(x)), np.zeros_like(x)


def _gaps(x: Array, first: Indices, second: Indices, columns: tuple[int, ...]) -> Array:
    """(columns, pairs) differences."""
    by_column = np.ascontiguousarray(x[:, list(columns)].T)  # read one column at a time
    return np.asarray(by_column[:, first] - by_column[:, second])


Profile = Callable[[Array], tuple[Array, Array]]
"""A stationary kernel as a function of r2, and its derivative."""


@dataclass(frozen=True)
class RadialCovariance(Covariance):
    """A stationary kernel of r2 over some ``columns``, with one lengthscale per column (ARD)."""

    profile: Profile
    columns: tuple[int, ...]
    stationary: ClassVar[bool] = True

    @property
    def labels(self) -> tuple[str, ...]:
        return ("lengthscale",) * len(self.columns)

    def geometry(self, x: Array, first: Indices, second: Indices) -> Array:
        return np.square(_gaps(x, first, second, self.columns))

    def pairwise(self, theta: Array, geometry: Geometry) -> tuple[Array, Pullback]:
        inverse = np.exp(-2.0 * theta)
        k, slope = self.profile(inverse @ geometry)

        def pullback(W: Array) -> Array:
            return np.asarray(-2.0 * inverse * (geometry @ (W * slope)))

        return k, pullback

    def cross(self, theta: Array, z: Array) -> Cross:
        columns, d = list(self.columns), z.shape[1]
        inverse = np.exp(-theta)
        # centred: r2 = |a|^2 + |b|^2 - 2 a b suffers from cancellation when |a|, |b| are large
        b = (z[:, columns] - 0.5) * inverse
        b_squared, minus_twice_b = np.einsum("nj,nj->n", b, b), np.ascontiguousarray(-2.0 * b.T)

        def evaluate(x: Array) -> tuple[Array, Pullback]:
            a = (x[:, columns] - 0.5) * inverse
            r2 = a @ minus_twice_b
            r2 += b_squared
            r2 += np.einsum("mj,mj->m", a, a)[:, None]
            k, slope = self.profile(np.maximum(r2, 0.0, out=r2))

            def pullback(W: Array) -> Array:
                G = W * slope
                gradient = np.zeros((len(x), d))
                gradient[:, columns] = 2.0 * inverse * (a * G.sum(axis=1)[:, None] - G @ b)
                return gradient

            return k, pullback

        return evaluate


@dataclass(frozen=True)
class PeriodicCovariance(Covariance):
    """exp(-2 sum_j sin^2(pi (a_j - b_j) / period_j) / lengthscale_j^2) [RW06, Eq. 4.31]."""

    columns: tuple[int, ...]
    stationary: ClassVar[bool] = True

    @property
    def labels(self) -> tuple[str, ...]:
        return ("lengthscale",) * len(self.columns) + ("period",) * len(self.columns)

    def geometry(self, x: Array, first: Indices, second: Indices) -> Array:
        return _gaps(x, first, second, self.columns)

    def pairwise(self, theta: Array, geometry: Geometry) -> tuple[Array, Pullback]:
        size = len(self.columns)
        inverse, period = np.exp(-2.0 * theta[:size]), np.exp(theta[size:])[:, None]
        phase = np.pi * geometry / period
        sines = np.square(np.sin(phase))
        k = np.exp(-2.0 * (inverse @ sines))

        def pullback(W: Array) -> Array:
            G = W * k
            by_period = (2.0 * inverse) * ((np.sin(2.0 * phase) * phase) @ G)
            return np.concatenate([4.0 * inverse * (sines @ G), by_period])

        return k, pullback

    def cross(self, theta: Array, z: Array) -> Cross:
        size = len(self.columns)
        inverse, period = np.exp(-2.0 * theta[:size]), np.exp(theta[size:])

        def evaluate(x: Array) -> tuple[Array, Pullback]:
            gaps = np.stack([x[:, None, j] - z[None, :, j] for j in self.columns])
            k = np.exp(-2.0 * np.tensordot(inverse, np.square(np.sin(np.pi * gaps / period[:, None, None])), 1))

            def pullback(W: Array) -> Array:
                gradient = np.zeros_like(x)
                for i, j in enumerate(self.columns):
                    rate = -2.0 * inverse[i] * np.pi / period[i]
                    gradient[:, j] = rate * (W * k * np.sin(2.0 * np.pi * gaps[i] / period[i])).sum(axis=1)
                return gradient

            return k, pullback

        return evaluate


@dataclass(frozen=True)
class LinearCovariance(Covariance):
    """sum_j (a_j - 1/2) (b_j - 1/2) / lengthscale_j^2: linear functions around the cube's centre [RW06, Eq. 4.1]."""

    columns: tuple[int, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        return ("lengthscale",) * len(self.columns)

    def geometry(self, x: Array, first: Indices, second: Indices) -> Array:
        centred = x[:, list(self.columns)].T - 0.5
        return np.asarray(centred[:, first] * centred[:, second])

    def pairwise(self, theta: Array, geometry: Geometry) -> tuple[Array, Pullback]:
        inverse = np.exp(-2.0 * theta)

        def pullback(W: Array) -> Array:
            return np.asarray(-2.0 * inverse * (geometry @ W))

        return np.asarray(inverse @ geometry), pullback

    def cross(self, theta: Array, z: Array) -> Cross:
        columns = list(self.columns)
        b = (z[:, columns] - 0.5) * np.exp(-2.0 * theta)

        def evaluate(x: Array) -> tuple[Array, Pullback]:
            def pullback(W: Array) -> Array:
                gradient = np.zeros_like(x)
                gradient[:, columns] = W @ b
                return gradient

            return (x[:, columns] - 0.5) @ b.T, pullback

        return evaluate

    def diagonal(self, theta: Array, x: Array) -> tuple[Array, Array]:
        columns = list(self.columns)
        inverse, centred = np.exp(-2.0 * theta), x[:, columns] - 0.5
        gradient = np.zeros_like(x)
        gradient[:, columns] = 2.0 * inverse * centred
        return np.square(centred) @ inverse, gradient


@dataclass(frozen=True)
class HammingCovariance(Covariance):
    """exp(-sum_j [a_j != b_j] / decay_j) over categorical columns; not differentiable w.r.t. inputs."""

    columns: tuple[int, ...]
    stationary: ClassVar[bool] = True

    @property
    def labels(self) -> tuple[str, ...]:
        return ("decay",) * len(self.columns)

    def geometry(self, x: Array, first: Indices, second: Indices) -> Array:
        category = x[:, np.array(self.columns, dtype=int)].T  # may be empty: then every covariance is 1
        return np.asarray(category[:, first] != category[:, second], dtype=float)

    def pairwise(self, theta: Array, geometry: Geometry) -> tuple[Array, Pullback]:
        rate = np.exp(-theta)
        k = np.exp(-(rate @ geometry))

        def pullback(W: Array) -> Array:
            return np.asarray(rate * (geometry @ (W * k)))

        return k, pullback

    def cross(self, theta: Array, z: Array) -> Cross:
        columns, rate = np.array(self.columns, dtype=int), np.exp(-theta)

        def evaluate(x: Array) -> tuple[Array, Pullback]:
            differs = x[:, None, columns] != z[None, :, columns]
            return np.exp(-(differs @ rate)), lambda _: np.zeros_like(x)

        return evaluate


@dataclass(frozen=True)
class ScaledCovariance(Covariance):
    """A covariance scaled by the variance exp(theta[0])."""

    kernel: Covariance

    @property
    def labels(self) -> tuple[str, ...]:
        return ("amplitude", *self.kernel.labels)

    @property
    def stationary(self) -> bool:  # type: ignore[override]
        return self.kernel.stationary

    def geometry(self, x: Array, first: Indices, second: Indices) -> Geometry:
        return self.kernel.geometry(x, first, second)

    def pairwise(self, theta: Array, geometry: Geometry) -> tuple[Array, Pullback]:
        variance = np.exp(theta[0])
        unit, inner = self.kernel.pairwise(theta[1:], geometry)
        k = variance * unit

        def pullback(W: Array) -> Array:
            return np.concatenate([[np.vdot(W, k)], variance * inner(W)])

        return k, pullback

    def cross(self, theta: Array, z: Array) -> Cross:
        variance = np.exp(theta[0])
        inner = self.kernel.cross(theta[1:], z)

        def evaluate(x: Array) -> tuple[Array, Pullback]:
            unit, pullback = inner(x)
            return variance * unit, lambda W: variance * pullback(W)

        return evaluate

    def diagonal(self, theta: Array, x: Array) -> tuple[Array, Array]:
        variance = np.exp(theta[0])
        value, gradient = self.kernel.diagonal(theta[1:], x)
        return variance * value, variance * gradient


@dataclass(frozen=True)
class PairCovariance(Covariance):
    """Two covariances combined; theta is that of the first, followed by that of the second."""

    first: Covariance
    second: Covariance

    @property
    def labels(self) -> tuple[str, ...]:
        return self.first.labels + self.second.labels

    @property
    def stationary(self) -> bool:  # type: ignore[override]
        return self.first.stationary and self.second.stationary

    def geometry(self, x: Array, first: Indices, second: Indices) -> Geometry:
        return self.first.geometry(x, first, second), self.second.geometry(x, first, second)

    def _split(self, theta: Array) -> tuple[Array, Array]:
        return theta[: len(self.first.labels)], theta[len(self.first.labels) :]

    def _both(self, theta: Array, geometry: Geometry) -> tuple[Array, Pullback, Array, Pullback]:
        one, two = self._split(theta)
        return *self.first.pairwise(one, geometry[0]), *self.second.pairwise(two, geometry[1])

    def _crosses(self, theta: Array, z: Array) -> tuple[Cross, Cross]:
        one, two = self._split(theta)
        return self.first.cross(one, z), self.second.cross(two, z)


class SumCovariance(PairCovariance):
    """first + second."""

    def pairwise(self, theta: Array, geometry: Geometry) -> tuple[Array, Pullback]:
        k, pullback, l, pull_l = self._both(theta, geometry)
        return k + l, lambda W: np.concatenate([pullback(W), pull_l(W)])

    def cross(self, theta: Array, z: Array) -> Cross:
        first, second = self._crosses(theta, z)

        def evaluate(x: Array) -> tuple[Array, Pullback]:
            (k, pullback), (l, pull_l) = first(x), second(x)
            return k + l, lambda W: pullback(W) + pull_l(W)

        return evaluate

    def diagonal(self, theta: Array, x: Array) -> tuple[Array, Array]:
        one, two = self._split(theta)
        (k, dk), (l, dl) = self.first.diagonal(one, x), self.second.diagonal(two, x)
        return k + l, dk + dl


class ProductCovariance(PairCovariance):
    """first * second."""

    def pairwise(self, theta: Array, geometry: Geometry) -> tuple[Array, Pullback]:
        k, pullback, l, pull_l = self._both(theta, geometry)
        return k * l, lambda W: np.concatenate([pullback(W * l), pull_l(W * k)])

    def cross(self, theta: Array, z: Array) -> Cross:
        first, second = self._crosses(theta, z)

        def evaluate(x: Array) -> tuple[Array, Pullback]:
            (k, pullback), (l, pull_l) = first(x), second(x)
            return k * l, lambda W: pullback(W * l) + pull_l(W * k)

        return evaluate

    def diagonal(self, theta: Array, x: Array) -> tuple[Array, Array]:
        one, two = self._split(theta)
        (k, dk), (l, dl) = self.first.diagonal(one, x), self.second.diagonal(two, x)
        return k * l, l[:, None] * dk + k[:, None] * dl


class Kernel(ABC):
    """A covariance function; subclasses are registered frozen dataclasses."""

    @abstractmethod
    def on(self, columns: tuple[int, ...]) -> Covariance:
        """The covariance over these columns."""

    def __add__(self, other: "Kernel") -> "Sum":
        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: "Kernel") -> "Product":
        return Product(self, other) if isinstance(other, Kernel) else NotImplemented


class Stationary(Kernel):
    """A kernel that depends only on r2, the squared distance scaled by lengthscales."""

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


@dataclass(frozen=True)
class ColumnKernel(Kernel):
    """A kernel whose covariance is made from the columns alone."""

    covariance: ClassVar[Any]
    """Its class."""

    def on(self, columns: tuple[int, ...]) -> Covariance:
        return self.covariance(columns)  # type: ignore[no-any-return]


@register("periodic")
class Periodic(ColumnKernel):
    """exp(-2 sum_j sin^2(pi (a_j - b_j) / period_j) / lengthscale_j^2) [RW06, Eq. 4.31]."""

    covariance = PeriodicCovariance


@register("linear")
class Linear(ColumnKernel):
    """Linear functions around the cube's centre [RW06, Eq. 4.1]."""

    covariance = LinearCovariance


@register("hamming")
class Hamming(ColumnKernel):
    """exp(-sum_j [a_j != b_j] / decay_j), for categorical columns."""

    covariance = HammingCovariance


@register("scaled")
@dataclass(frozen=True)
class Scaled(Kernel):
    """A kernel with its own variance; a process already scales the whole kernel."""

    kernel: Kernel

    def __post_init__(self) -> None:
        _require_kernels(self.kernel)

    def on(self, columns: tuple[int, ...]) -> Covariance:
        return ScaledCovariance(self.kernel.on(columns))


@dataclass(frozen=True)
class PairKernel(Kernel):
    """Two kernels, combined."""

    covariance: ClassVar[type[PairCovariance]]

    first: Kernel
    second: Kernel

    def __post_init__(self) -> None:
        _require_kernels(self.first, self.second)

    def on(self, columns: tuple[int, ...]) -> Covariance:
        return self.covariance(self.first.on(columns), self.second.on(columns))


@register("sum")
class Sum(PairKernel):
    """first + second."""

    covariance = SumCovariance


@register("product")
class Product(PairKernel):
    """first * second."""

    covariance = ProductCovariance


def _require_kernels(*parts: Any) -> None:
    for part in parts:
        if not isinstance(part, Kernel):
            raise InputError(f"A kernel must be composed of kernels, but got {part!r}. Write RBF() + Linear().")


@register("function")
@dataclass(frozen=True)
class FunctionKernel(Kernel):
    """A kernel defined by a function from columns to a covariance, referenced by its registered name."""

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
    """Whether it is the same function, or a redefinition of it, as in a notebook."""
    one, two = ((getattr(f, "__module__", None), getattr(f, "__qualname__", "<")) for f in (known, function))
    return known is function or (one == two and "<lambda>" not in one[1] and one[1] != "<")


def register_kernel(name: str) -> Callable[[Callable[[tuple[int, ...]], Covariance]], FunctionKernel]:
    """Register a function from columns to a covariance as the kernel ``name``; each process must register it.

    The name identifies what the function computes: change it when you change the function.
    """
    if not isinstance(name, str) or not name:
        raise InputError(f"`name` must be a string that is not empty, but got {name!r}.")

    def registering(function: Callable[[tuple[int, ...]], Covariance]) -> FunctionKernel:
        if name in _FUNCTIONS and not _redefined(_FUNCTIONS[name], function):
            raise InputError(f"`name` must be unused, but {name!r} is {_FUNCTIONS[name]!r}. Choose another name.")
        _FUNCTIONS[name] = function
        return FunctionKernel(name)

    return registering
