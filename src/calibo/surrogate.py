"""Surrogates: recipes that turn observations into something that forecasts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from math import ceil, log
from typing import Any, Protocol, Self

import numpy as np

from calibo.cube import Cube
from calibo.forecasts import Forecast
from calibo.gp.kernels import Hamming, Kernel, Matern52, Product, Scaled
from calibo.gp.likelihood import Belief, LogMarginal, Prior, maximum
from calibo.gp.process import Process
from calibo.observations import Observations, spread
from calibo.transforms import IDENTITY
from calibo.types import Array

__all__ = ["FLAT", "FittedGaussianProcess", "FittedSurrogate", "GaussianProcess", "Priors", "Surrogate"]


LEAST_NOISE = 1e-6  # of an imagined outcome, in squared spreads: keeps the root apart from rounding
MOST_NOISE = 1e6  # in spreads of the outcomes: an outcome with more says nothing
MOVED = 1.5  # factor of the outcomes' spread after which hyper-parameters of earlier ones no longer fit
MULTISTART = 256  # beyond, only the powers of two are fitted from several starts: the others lie near one of them


class FittedSurrogate(Protocol):
    """A belief about the objective everywhere in the cube."""

    @property
    def state(self) -> Any:
        """A small storable value that saves the next fit work; it never changes what is fitted."""
        ...

    @property
    def log_evidence(self) -> float:
        """Of the outcomes, in their units."""
        ...

    def predict(self, x: Array, noise_std: Array | None = None) -> Forecast:
        """Of an observation at each point; ``noise_std`` (n,) is that of each where it is known, NaN elsewhere."""
        ...

    def latent(self, x: Array) -> Forecast:
        """Of the function at each point."""
        ...

    def latent_with_gradient(self, x: Array) -> tuple[Forecast, Array, Array]:
        """Of the function, with the derivatives (S, n, d) of loc and scale."""
        ...

    def leave_one_out(self) -> Forecast:
        """Of each outcome, from the others."""
        ...

    def one_step_ahead(self) -> Forecast:
        """Of each outcome, from those before it."""
        ...

    def smoothed(self) -> Array:
        """(n,) mean of the function at the observed points: the outcomes, freed from noise."""
        ...

    def given(self, x: Array, y: Array) -> Self:
        """Conditioned on further outcomes, not refitted."""
        ...

    def believing(self, x: Array) -> Self:
        """Each row conditioned on its own latent mean at ``x``: as if what it expects had happened."""
        ...


class Surrogate(Protocol):
    """A recipe for a fitted surrogate."""

    def fit(self, observations: Observations, *, rng: np.random.Generator, previous: Any = None) -> FittedSurrogate:
        """``previous`` is the state of an earlier fit, or None; what of it belongs to other data is not used."""
        ...

    def refit(self, observations: Observations, fitted: Any) -> FittedSurrogate:
        """A short fit that begins where ``fitted``, of much the same data, ended: for evidence that takes many."""
        ...


@dataclass(frozen=True)
class Priors:
    """Beliefs about hyper-parameters of standardized outcomes in the unit cube; chosen in docs/results/choices.md."""

    lengthscale: Belief = Belief(log(0.15), 1.0, log(1e-3), log(1e3))
    """Centred on exp(center) sqrt(d): distances in the cube grow with the root of the dimension [HVA24]."""

    amplitude: Belief = Belief(0.0, 1.0, log(1e-3), log(1e3))
    noise: Belief = Belief(log(1e-5), 3.0, log(1e-8), log(1.0))
    mean: Belief = Belief(0.0, 1.0)
    decay: Belief = Belief(0.0, 1.0, log(1e-2), log(1e3))
    period: Belief = Belief(log(0.5), 0.5, log(0.05), log(10.0))

    def of(self, labels: tuple[str, ...], width: int | None = None) -> Prior:
        """The prior of a kernel's hyper-parameters, then noise and mean; ``width`` if points lack some columns."""
        wide = width or max(labels.count("lengthscale"), 1)
        scaled = replace(self.lengthscale, center=self.lengthscale.center + 0.5 * log(wide))
        beliefs = [scaled if label == "lengthscale" else getattr(self, label) for label in labels]
        return Prior.of([*beliefs, self.noise, self.mean])


FLAT = Priors(
    lengthscale=Belief(log(0.2), low=log(1e-2), high=log(1e2)),
    amplitude=Belief(0.0, low=log(1e-3), high=log(1e3)),
    noise=Belief(log(1e-4), low=log(1e-8), high=log(1.0)),
    mean=Belief(0.0),
    decay=Belief(0.0, low=log(1e-2), high=log(1e2)),
    period=Belief(log(0.5), low=log(0.05), high=log(10.0)),
)
"""No beliefs, only bounds: maximum likelihood."""


@dataclass(frozen=True)
class GaussianProcess:
    """A Gaussian process on standardized outcomes, with the hyper-parameters of highest posterior density.

    Hyper-parameters are refitted as the data grow, to the first m observations with m from a fixed
    schedule, and again when the spread of the outcomes has changed a lot since. The starts are the
    prior's centre, the same with much noise, and the fit to the largest power of two below m. So they
    depend on the data alone, and ``previous`` only saves computing them again.
    """

    kernel: Callable[[tuple[int, ...]], Kernel] = Matern52
    """Of the numeric columns; categories have a Hamming kernel, multiplied with it."""

    priors: Priors = field(default_factory=Priors)

    growth: float = 0.1
    """Of the data between two refits, once there are 20; 0 to refit at every observation."""

    def fit(
        self, observations: Observations, *, rng: np.random.Generator, previous: Any = None
    ) -> "FittedGaussianProcess":
        kernel = self.covariance(observations.cube)
        fits: dict[str, Any] = dict(previous or {})
        size = fitted_size(observations.y, self.growth)
        theta = self._theta(kernel, observations, size, fits)
        x, y, noise, center, scale = _standardized(observations)
        process = Process.condition(kernel, theta, x, y, noise)
        keys = [self._key(observations, m) for m in (anchor(size), size)]
        state = {key: fits[key] for key in keys if key in fits}
        return FittedGaussianProcess((process,), np.ones(1), center, scale, state)

    def refit(self, observations: Observations, fitted: "FittedGaussianProcess") -> "FittedGaussianProcess":
        kernel = self.covariance(observations.cube)
        x, y, noise, center, scale = _standardized(observations)
        theta = fitted.processes[0].theta
        if len(observations) >= 2:
            prior = self.priors.of(kernel.labels, observations.cube.width)
            theta, _ = maximum(LogMarginal(kernel, x, y, noise), prior, [theta])
        process = Process.condition(kernel, theta, x, y, noise)
        return FittedGaussianProcess((process,), np.ones(1), center, scale, {})

    def covariance(self, cube: Cube) -> Kernel:
        """The kernel over the columns that vary."""
        numeric = tuple(int(j) for j in np.flatnonzero(cube.free & ~cube.categorical))
        categories = tuple(int(j) for j in np.flatnonzero(cube.free & cube.categorical))
        if not numeric:
            return Scaled(Hamming(categories))  # over no column at all it is constant
        return Scaled(Product(self.kernel(numeric), Hamming(categories)) if categories else self.kernel(numeric))

    def _theta(self, kernel: Kernel, observations: Observations, size: int, fits: dict[str, Any]) -> Array:
        prior = self.priors.of(kernel.labels, observations.cube.width)
        if size < 2:
            return prior.center
        key = self._key(observations, size)
        if not _usable(fits.get(key), prior):
            noisy = prior.center.copy()
            noisy[-2] = log(0.1)  # from little noise no ascent finds the long lengthscales under much noise
            starts = [prior.center, noisy] if size <= MULTISTART or size & (size - 1) == 0 else []
            if size > 2:
                starts.append(self._theta(kernel, observations, anchor(size), fits))
            x, y, noise, _, _ = _standardized(observations.head(size))
            theta, _ = maximum(LogMarginal(kernel, x, y, noise), prior, starts)
            fits[key] = theta.tolist()
        return np.array(fits[key])

    def _key(self, observations: Observations, size: int) -> str:
        """Names a fit by all it depends on, so that one of other data or of another recipe is never taken for it."""
        first = observations.head(size)
        parts = [repr((self, first.cube)).encode(), *(part.tobytes() for part in (first.x, first.y, first.noise_std))]
        return f"{size}-{blake2b(b''.join(parts), digest_size=8).hexdigest()}"


@dataclass(frozen=True, eq=False)
class FittedGaussianProcess:
    """One process a setting of the hyper-parameters: rows of one mixture."""

    processes: tuple[Process, ...]
    weights: Array

    center: float
    spread: float
    """The outcomes are center + spread times what the processes know."""

    state: Mapping[str, list[float]]

    @property
    def log_evidence(self) -> float:
        rows = np.array([p.log_marginal() for p in self.processes])
        top = float(rows.max())
        jacobian = len(self.processes[0].y) * log(self.spread)
        return top + log(float(self.weights @ np.exp(rows - top))) - jacobian

    def predict(self, x: Array, noise_std: Array | None = None) -> Forecast:
        unknown = np.full(len(x), np.nan)
        known = unknown if noise_std is None else np.square(np.minimum(noise_std / self.spread, MOST_NOISE))
        rows = [(np.where(np.isnan(known), p.typical_noise, known), *p.predict(x)) for p in self.processes]
        return self._forecast([mean for _, mean, _ in rows], [noise + variance for noise, _, variance in rows])

    def latent(self, x: Array) -> Forecast:
        means, variances = zip(*[p.predict(x) for p in self.processes], strict=True)
        return self._forecast(means, variances)

    def latent_with_gradient(self, x: Array) -> tuple[Forecast, Array, Array]:
        means, variances, d_means, d_variances = zip(*[p.predict_with_gradient(x) for p in self.processes], strict=True)
        forecast = self._forecast(means, variances)
        # d sqrt(v) = dv / (2 sqrt(v)), with sqrt(v) = scale / spread
        d_scale = np.array(d_variances) * (0.5 * self.spread * (self.spread / forecast.scale))[..., None]
        return forecast, self.spread * np.array(d_means), d_scale

    def leave_one_out(self) -> Forecast:
        means, variances = zip(*[p.leave_one_out() for p in self.processes], strict=True)
        return self._forecast(means, variances)

    def one_step_ahead(self) -> Forecast:
        means, variances = zip(*[p.one_step_ahead() for p in self.processes], strict=True)
        return self._forecast(means, variances)

    def smoothed(self) -> Array:
        rows = np.stack([p.smoothed() for p in self.processes])
        return np.asarray(self.center + self.spread * (self.weights @ rows))

    def given(self, x: Array, y: Array) -> "FittedGaussianProcess":
        told, unknown = (y - self.center) / self.spread, np.full(len(x), np.nan)
        return replace(self, processes=tuple(p.given(x, told, unknown) for p in self.processes))

    def believing(self, x: Array) -> "FittedGaussianProcess":
        noises = [np.full(len(x), max(p.typical_noise, LEAST_NOISE)) for p in self.processes]
        pairs = zip(self.processes, noises, strict=True)
        return replace(self, processes=tuple(p.given(x, p.predict(x)[0], noise) for p, noise in pairs))

    def _forecast(self, means: Any, variances: Any) -> Forecast:
        loc = self.center + self.spread * np.array(means)
        scale = self.spread * np.sqrt(variances)
        return Forecast(loc, scale, self.weights, (IDENTITY,) * len(self.processes))


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


def _standardized(observations: Observations) -> tuple[Array, Array, Array, float, float]:
    """Points, outcomes of mean 0 and spread 1, noise variances on their scale, center, spread."""
    y, scale = observations.y, spread(observations.y)
    largest = float(np.abs(y).max()) or 1.0
    center = largest * float((y / largest).mean())  # their sum may overflow
    if scale == 0.0:  # all the same: nothing to scale by
        scale = 1.0
        y = np.full_like(y, center)
    with np.errstate(over="ignore"):
        noise = np.minimum(observations.noise_std / scale, MOST_NOISE)
    return observations.x, y / scale - center / scale, np.square(noise), center, scale
