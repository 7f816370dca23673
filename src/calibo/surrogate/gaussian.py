"""The Gaussian process as a surrogate: hyper-parameters, scale of the outcomes and warps of the inputs by evidence."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from math import ceil, log
from typing import Any

import numpy as np

from calibo.cache import Cache
from calibo.cube import Cube
from calibo.errors import InputError, demand_number
from calibo.gp.covariances import Covariance, ProductCovariance, ScaledCovariance
from calibo.gp.kernels import Hamming, Kernel, Matern52
from calibo.gp.likelihood import Belief, Prior, maximum
from calibo.gp.process import Process
from calibo.gp.warping import SHAPES, Warped
from calibo.observations import Observations, spread
from calibo.parts import identity, register, spec
from calibo.surrogate.fitted import FittedGaussianProcess
from calibo.surrogate.marginal import Posterior, TransformedEvidence, standardized
from calibo.surrogate.outcomes import LearnedTransform, Untransformed
from calibo.surrogate.priors import Priors
from calibo.types import Array

__all__ = ["GaussianProcess", "forget_fits", "shapes_of"]

MOVED = 1.5  # factor of the outcomes' spread after which hyper-parameters of earlier ones no longer fit
MULTISTART = 256  # beyond, only the powers of two are fitted from several starts: the others lie near one of them
BURN_IN = 10  # draws left out of a chain that begins at the likeliest setting
FIRST_CHAIN = 4  # outcomes of the first chain

FITS = Cache(10_000)  # by their keys: a replay needs many, and twice


def forget_fits() -> None:
    """Forget what this process has fitted; it is only fitted again, which a measurement of time may want."""
    FITS.clear()


@register("gaussian-process")
@dataclass(frozen=True)
class GaussianProcess:
    """A Gaussian process on standardized outcomes, with the hyper-parameters of highest posterior density.

    Hyper-parameters are refitted as the data grow, to the first m observations with m from a fixed
    schedule, and again when the spread of the outcomes has changed a lot since. The starts are the
    prior's centre, the same with much noise, and the fit to the largest power of two below m. So they
    depend on the data alone, and ``previous`` only saves computing them again.
    """

    kernel: Kernel = Matern52()
    """Of the numeric columns; categories have a Hamming kernel, multiplied with it."""

    priors: Priors = field(default_factory=Priors)

    growth: float = 0.1
    """Of the data between two refits, once there are 20; 0 to refit at every observation."""

    transform: LearnedTransform = Untransformed()
    """The scale on which outcomes are Gaussian; learned with the hyper-parameters."""

    warped: bool = False
    """Whether axes are bent by learned Beta distribution functions, as far as their ``warp`` allows; WARP14."""

    samples: int = 0
    """Settings of the hyper-parameters drawn by slice sampling, each a row of the forecast; 0 for the likeliest one."""

    def __post_init__(self) -> None:
        if not isinstance(self.samples, int | np.integer) or self.samples < 0:
            raise InputError(f"`samples` must be a whole number of at least 0, but got {self.samples!r}.")
        if not isinstance(self.kernel, Kernel):
            advice = _advice(self.kernel)
            raise InputError(f"`kernel` must be a kernel, as Matern52() is, but got {self.kernel!r}. {advice}")
        if not isinstance(self.priors, Priors):
            raise InputError(f"`priors` must be Priors, but got {self.priors!r}.")
        demand_number("growth", self.growth, "a number of at least 0", least=0.0)
        for part in (self.kernel, self.transform):
            spec(part)  # raises where one has no name: its fits could not be told from others

    def fit(
        self, observations: Observations, *, rng: np.random.Generator, previous: Any = None
    ) -> "FittedGaussianProcess":
        kernel = self.covariance(observations.cube)
        fits: dict[str, Any] = dict(previous or {})
        size = self._size(observations.y)
        keys = [self._key(observations, m) for m in (anchor(size), size)]
        if self.samples and size >= 2:
            thetas = self._draws(kernel, observations, size, fits)
            keys.append(f"draws-{keys[1]}")
        else:
            thetas = self._theta(kernel, observations, size, fits)[None]
        state = {key: fit for key in keys if (fit := fits.get(key) or FITS.get(key))}
        return self._fitted(kernel, thetas, observations, observations.head(size).y, state)

    def refit(self, observations: Observations, fitted: "FittedGaussianProcess") -> "FittedGaussianProcess":
        kernel = self.covariance(observations.cube)
        thetas = fitted.thetas
        if len(observations) >= 2:
            evidence, prior = self._evidence(kernel, observations), self._prior(kernel, observations.cube)
            best, _ = maximum(evidence, prior, [thetas[0]])
            thetas = best[None]
            if self.samples:
                rng = np.random.default_rng(len(observations))
                thetas = Posterior(evidence, prior, best).draws(self.samples, rng, burn_in=BURN_IN)
        return self._fitted(kernel, thetas, observations, observations.y, {})

    def posterior(self, observations: Observations) -> Posterior:
        """The density of the hyper-parameters given at least two outcomes."""
        kernel, n = self.covariance(observations.cube), len(observations)
        mode = self._theta(kernel, observations, n, {})
        return Posterior(self._evidence(kernel, observations), self._prior(kernel, observations.cube), mode)

    def _fitted(
        self, kernel: Covariance, thetas: Array, observations: Observations, known: Array, state: Mapping[str, Any]
    ) -> "FittedGaussianProcess":
        """Conditioned on all observations; the transform has the units of the outcomes ``known`` to the fit."""
        size = thetas.shape[1] - len(self.transform.beliefs)
        transform = self.transform.at(thetas[0, size:], known)
        t, noise, center, scale = standardized(observations.y, observations.noise_std, transform)
        processes = tuple(Process.condition(kernel, theta[:size], observations.x, t, noise) for theta in thetas)
        jacobian = float(transform.log_slope(observations.y).sum())
        weights = np.full(len(thetas), 1.0 / len(thetas))
        return FittedGaussianProcess(processes, weights, center, scale, state, transform, jacobian, thetas)

    def _evidence(self, kernel: Covariance, observations: Observations) -> "TransformedEvidence":
        return TransformedEvidence(kernel, observations, self.transform)

    def _prior(self, kernel: Covariance, cube: Cube) -> Prior:
        return self.priors.of(kernel.labels, cube.width, self.transform.beliefs, shapes_of(cube))

    def covariance(self, cube: Cube) -> Covariance:
        """The kernel over the columns that vary."""
        numeric = tuple(int(j) for j in np.flatnonzero(cube.free & ~cube.categorical))
        categories = tuple(int(j) for j in np.flatnonzero(cube.free & cube.categorical))
        if not numeric:
            return ScaledCovariance(Hamming().on(categories))  # over no column at all it is constant
        inner = self.kernel.on(numeric)
        kernel = ScaledCovariance(ProductCovariance(inner, Hamming().on(categories)) if categories else inner)
        return Warped(kernel, cube.warped) if self.warped and cube.warped else kernel

    def _theta(self, kernel: Covariance, observations: Observations, size: int, fits: dict[str, Any]) -> Array:
        prior = self._prior(kernel, observations.cube)
        if size < 2:
            return prior.center
        key = self._key(observations, size)
        if not _usable(fits.get(key), prior):
            fits[key] = FITS.get(key)
        if not _usable(fits.get(key), prior):
            starts = self._starts(kernel, prior) if size <= MULTISTART or size & (size - 1) == 0 else []
            if size > 2:
                starts.append(self._theta(kernel, observations, anchor(size), fits))
            theta, _ = maximum(self._evidence(kernel, observations.head(size)), prior, starts)
            fits[key] = theta.tolist()
            FITS.put(key, fits[key])
        return np.array(fits[key])

    def _size(self, y: Array) -> int:
        """To how many of the outcomes hyper-parameters are fitted."""
        return fitted_size(y, self.growth)

    def _earlier(self, y: Array, size: int) -> int:
        """The fit whose chain is continued by that of ``size``."""
        return self._size(y[: size - 1])

    def _starts(self, kernel: Covariance, prior: Prior) -> list[Array]:
        """From little noise no ascent finds the long lengthscales under much noise."""
        noisy = prior.center.copy()
        noisy[len(kernel.labels)] = log(0.1)
        return [prior.center, noisy]

    def _draws(self, kernel: Covariance, observations: Observations, size: int, fits: dict[str, Any]) -> Array:
        """(samples, k) of a chain that goes on where that of the last smaller fit ended; the first begins at the best.

        So they depend on the data alone, too, and what is stored saves drawing them again.
        """
        sizes = [size]
        while (known := self._kept(kernel, observations, sizes[-1], fits)) is None:
            earlier = self._earlier(observations.y[: sizes[-1]], sizes[-1])
            if earlier < FIRST_CHAIN:
                break
            sizes.append(earlier)
        for m in reversed(sizes):
            if known is None or m > sizes[-1]:
                key = self._chain_key(observations, m)
                seed = int(key.rpartition("-")[2], 16)
                known = self._drawn(kernel, observations, m, fits, None if known is None else known[-1], seed)
                fits[key] = known.tolist()
                FITS.put(key, fits[key])
        assert known is not None
        return known

    def _drawn(
        self,
        kernel: Covariance,
        observations: Observations,
        size: int,
        fits: dict[str, Any],
        start: Array | None,
        seed: int,
    ) -> Array:
        best = self._theta(kernel, observations, size, fits)
        prior = self._prior(kernel, observations.cube)
        posterior = Posterior(self._evidence(kernel, observations.head(size)), prior, best)
        burn_in = BURN_IN if start is None else 0
        return posterior.draws(self.samples, np.random.default_rng(seed), start, burn_in=burn_in)

    def _kept(self, kernel: Covariance, observations: Observations, size: int, fits: dict[str, Any]) -> Array | None:
        """The chain of a fit, where it is stored."""
        key, prior = self._chain_key(observations, size), self._prior(kernel, observations.cube)
        stored = fits.get(key) or FITS.get(key)
        rows = stored if isinstance(stored, list) else []
        if len(rows) != self.samples or not all(_usable(row, prior) for row in rows):
            return None
        fits[key] = rows
        return np.array(rows)

    def _chain_key(self, observations: Observations, size: int) -> str:
        return f"draws-{self._key(observations, size)}"

    def _key(self, observations: Observations, size: int) -> str:
        """Names a fit by all it depends on, so that one of other data or of another recipe is never taken for it."""
        first = observations.head(size)
        recipe = f"{identity(self)} {identity(first.cube)}".encode()
        parts = [recipe, *(part.tobytes() for part in (first.x, first.y, first.noise_std))]
        return f"{size}-{blake2b(b''.join(parts), digest_size=6).hexdigest()}"


def _advice(kernel: Any) -> str:
    if isinstance(kernel, type):
        return f"Write {kernel.__name__}()."
    return "Write `register_kernel('its name')(function)`: under that name other processes find it again."


def shapes_of(cube: Cube, tasks: int = 1) -> tuple[Belief, ...]:
    """Beliefs about the shapes of the warps of all columns that may be bent, in each of some tasks."""
    warped = [SHAPES[warp] for j in cube.warped if (warp := cube.axes[j].warp) is not None]
    return tuple(alpha for alpha, _ in warped) * tasks + tuple(beta for _, beta in warped) * tasks


def _usable(fit: Any, prior: Prior) -> bool:
    """Whether a stored fit is one: storages are open to others."""
    numbers = isinstance(fit, list) and len(fit) == len(prior.center) and all(isinstance(v, float) for v in fit)
    return numbers and all(low <= value <= high for value, (low, high) in zip(fit, prior.bounds, strict=True))


def fitted_size(y: Array, growth: float) -> int:
    """To how many of the outcomes hyper-parameters are fitted: by schedule, or later, when their spread has moved."""
    size = scheduled(len(y), growth)
    before = spread(y[:size])
    for m in range(size + 1, len(y) + 1):
        now = spread(y[:m])
        if not before / MOVED <= now <= before * MOVED and m >= 1.02 * size:  # no refit at every step for ever
            size, before = m, now
    return size


def scheduled(n: int, growth: float) -> int:
    """The largest size up to ``n`` at which hyper-parameters are fitted: all to 20, then each larger by a share."""
    size = min(n, 20)
    while (following := size + max(ceil(size * growth - 1e-9), 1)) <= n:
        size = following
    return size


def anchor(size: int) -> int:
    """The largest power of two below ``size``."""
    return 1 << max(size - 1, 1).bit_length() - 1
