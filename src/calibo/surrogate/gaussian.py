"""The Gaussian process as a surrogate, of outcomes as they are or on a scale that is learned with it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from math import ceil, log
from typing import Any

import numpy as np

from calibo.cube import Cube
from calibo.errors import InputError
from calibo.forecasts import Forecast
from calibo.gp.kernels import Hamming, Kernel, Matern52, Product, Scaled
from calibo.gp.likelihood import Belief, LogMarginal, Prior, maximum
from calibo.gp.process import Process
from calibo.gp.slice import sample
from calibo.gp.warping import SHAPES, Warped
from calibo.memory import Memory
from calibo.observations import Observations, spread
from calibo.surrogate.outcomes import LearnedTransform, Untransformed
from calibo.transforms import IDENTITY, Transform
from calibo.types import Array

__all__ = ["FLAT", "FittedGaussianProcess", "GaussianProcess", "Priors"]


LEAST_NOISE = 1e-6  # of an imagined outcome, in squared spreads: keeps the root apart from rounding
MOST_NOISE = 1e6  # in spreads of the outcomes: an outcome with more says nothing
MOVED = 1.5  # factor of the outcomes' spread after which hyper-parameters of earlier ones no longer fit
MULTISTART = 256  # beyond, only the powers of two are fitted from several starts: the others lie near one of them


REMEMBERED = Memory(10_000)  # fits: a replay needs many, and twice

BURN_IN = 10  # draws left out of a chain that begins at the likeliest setting
FIRST_CHAIN = 4  # outcomes of the first chain
UPDATES = 4  # along random directions between two draws


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

    def of(
        self,
        labels: tuple[str, ...],
        width: int | None = None,
        more: tuple[Belief, ...] = (),
        shapes: tuple[Belief, ...] = (),
    ) -> Prior:
        """The prior of a kernel's hyper-parameters, then noise, mean and ``more``; ``width`` if points lack columns.

        ``shapes`` are the beliefs about those labelled so, in order.
        """
        wide = width or max(labels.count("lengthscale"), 1)
        scaled = replace(self.lengthscale, center=self.lengthscale.center + 0.5 * log(wide))
        rest = iter(shapes)
        known = {"lengthscale": lambda: scaled, "shape": lambda: next(rest)}
        beliefs = [known[label]() if label in known else getattr(self, label) for label in labels]
        return Prior.of([*beliefs, self.noise, self.mean, *more])


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

    transform: LearnedTransform = Untransformed()
    """The scale on which outcomes are Gaussian; learned with the hyper-parameters."""

    warped: bool = False
    """Whether axes are bent by learned Beta distribution functions, as far as their ``warp`` allows; WARP14."""

    samples: int = 0
    """Settings of the hyper-parameters drawn by slice sampling, each a row of the forecast; 0 for the likeliest one."""

    def __post_init__(self) -> None:
        if not isinstance(self.samples, int | np.integer) or self.samples < 0:
            raise InputError(f"`samples` must be a whole number of at least 0, but got {self.samples!r}.")

    def fit(
        self, observations: Observations, *, rng: np.random.Generator, previous: Any = None
    ) -> "FittedGaussianProcess":
        kernel = self.covariance(observations.cube)
        fits: dict[str, Any] = dict(previous or {})
        size = fitted_size(observations.y, self.growth)
        keys = [self._key(observations, m) for m in (anchor(size), size)]
        if self.samples and size >= 2:
            thetas = self._draws(kernel, observations, size, fits)
            keys.append(f"draws-{keys[1]}")
        else:
            thetas = self._theta(kernel, observations, size, fits)[None]
        state = {key: fit for key in keys if (fit := fits.get(key) or REMEMBERED.get(self, key))}
        return self._fitted(kernel, thetas, observations, observations.head(size).y, state)

    def refit(self, observations: Observations, fitted: "FittedGaussianProcess") -> "FittedGaussianProcess":
        kernel = self.covariance(observations.cube)
        thetas = fitted.thetas
        if len(observations) >= 2:
            evidence, prior = self._evidence(kernel, observations), self._prior(kernel, observations.cube)
            if self.samples:
                density = self._density(evidence, prior, thetas[0])
                rng = np.random.default_rng(len(observations))
                chain = sample(
                    density, self._sampled(thetas[-1]), self._widths(prior), rng, len(thetas), updates=UPDATES
                )
                thetas = np.column_stack([chain.draws, thetas[:, chain.draws.shape[1] :]])
            else:
                thetas = maximum(evidence, prior, [thetas[0]])[0][None]
        return self._fitted(kernel, thetas, observations, observations.y, {})

    def _fitted(
        self, kernel: Kernel, thetas: Array, observations: Observations, known: Array, state: Mapping[str, Any]
    ) -> "FittedGaussianProcess":
        """Conditioned on all observations; the transform has the units of the outcomes ``known`` to the fit."""
        size = thetas.shape[1] - len(self.transform.beliefs)
        transform = self.transform.at(thetas[0, size:], known)
        t, noise, center, scale = _standardized(observations.y, observations.noise_std, transform)
        processes = tuple(Process.condition(kernel, theta[:size], observations.x, t, noise) for theta in thetas)
        jacobian = float(transform.log_slope(observations.y).sum())
        weights = np.full(len(thetas), 1.0 / len(thetas))
        return FittedGaussianProcess(processes, weights, center, scale, state, transform, jacobian, thetas)

    def _evidence(self, kernel: Kernel, observations: Observations) -> "TransformedEvidence":
        return TransformedEvidence(kernel, observations, self.transform)

    def _prior(self, kernel: Kernel, cube: Cube) -> Prior:
        warped = [SHAPES[warp] for j in cube.warped if (warp := cube.axes[j].warp) is not None]
        shapes = tuple(alpha for alpha, _ in warped) + tuple(beta for _, beta in warped)
        return self.priors.of(kernel.labels, cube.width, self.transform.beliefs, shapes)

    def covariance(self, cube: Cube) -> Kernel:
        """The kernel over the columns that vary."""
        numeric = tuple(int(j) for j in np.flatnonzero(cube.free & ~cube.categorical))
        categories = tuple(int(j) for j in np.flatnonzero(cube.free & cube.categorical))
        if not numeric:
            return Scaled(Hamming(categories))  # over no column at all it is constant
        kernel = Scaled(Product(self.kernel(numeric), Hamming(categories)) if categories else self.kernel(numeric))
        return Warped(kernel, cube.warped) if self.warped and cube.warped else kernel

    def _theta(self, kernel: Kernel, observations: Observations, size: int, fits: dict[str, Any]) -> Array:
        prior = self._prior(kernel, observations.cube)
        if size < 2:
            return prior.center
        key = self._key(observations, size)
        if not _usable(fits.get(key), prior):
            fits[key] = REMEMBERED.get(self, key)
        if not _usable(fits.get(key), prior):
            noisy = prior.center.copy()
            noisy[len(kernel.labels)] = log(
                0.1
            )  # from little noise no ascent finds the long lengthscales under much noise
            starts = [prior.center, noisy] if size <= MULTISTART or size & (size - 1) == 0 else []
            if size > 2:
                starts.append(self._theta(kernel, observations, anchor(size), fits))
            theta, _ = maximum(self._evidence(kernel, observations.head(size)), prior, starts)
            fits[key] = theta.tolist()
            REMEMBERED.put(self, key, fits[key])
        return np.array(fits[key])

    def _draws(self, kernel: Kernel, observations: Observations, size: int, fits: dict[str, Any]) -> Array:
        """(samples, k) of a chain that goes on where that of the last smaller fit ended; the first begins at the best.

        So they depend on the data alone, too, and what is stored saves drawing them again.
        """
        key = f"draws-{self._key(observations, size)}"
        prior = self._prior(kernel, observations.cube)
        stored = fits.get(key) or REMEMBERED.get(self, key)
        rows = stored if isinstance(stored, list) else []
        if len(rows) != self.samples or not all(_usable(row, prior) for row in rows):
            rows = self._drawn(kernel, observations, size, fits, prior, seed=int(key.rpartition("-")[2], 16)).tolist()
            REMEMBERED.put(self, key, rows)
        fits[key] = rows
        return np.array(rows)

    def _drawn(
        self, kernel: Kernel, observations: Observations, size: int, fits: dict[str, Any], prior: Prior, seed: int
    ) -> Array:
        earlier = fitted_size(observations.y[: size - 1], self.growth)
        begun = earlier >= FIRST_CHAIN
        start = self._draws(kernel, observations.head(size - 1), earlier, fits)[-1] if begun else prior.center
        if not begun or self.transform.beliefs:  # the transform is that of the likeliest setting
            best = self._theta(kernel, observations, size, fits)
            drawn = self._sampled(start if begun else best)
            start = np.concatenate([drawn, best[len(drawn) :]])
        density = self._density(self._evidence(kernel, observations.head(size)), prior, start)
        settings = {"updates": UPDATES, "burn_in": 0 if begun else BURN_IN}
        drawn = self._sampled(start)
        chain = sample(density, drawn, self._widths(prior), np.random.default_rng(seed), self.samples, **settings)
        return np.column_stack([chain.draws, np.tile(start[len(drawn) :], (self.samples, 1))])

    def _density(self, evidence: "TransformedEvidence", prior: Prior, best: Array) -> Callable[[Array], float]:
        """The log posterior density of hyper-parameters, the transform of the outcomes as in ``best``."""
        marginal = evidence.at(best)
        low, high = (np.array(side) for side in zip(*prior.bounds, strict=True))
        size = len(self._sampled(best))

        def density(theta: Array) -> float:
            if np.any(theta < low[:size]) or np.any(theta > high[:size]):
                return -np.inf
            gap = theta - prior.center[:size]
            return marginal.value(theta) - 0.5 * float(prior.precision[:size] @ np.square(gap))

        return density

    def _sampled(self, theta: Array) -> Array:
        """The part that is drawn: all but the transform's parameters."""
        return theta[: len(theta) - len(self.transform.beliefs)]

    def _widths(self, prior: Prior) -> Array:
        """Of slices, by the standard deviation of the belief, 1 where there is none."""
        with np.errstate(divide="ignore"):
            widths = np.where(prior.precision > 0.0, prior.precision**-0.5, 1.0)
        return self._sampled(widths)

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
    """Transformed outcomes are center + spread times what the processes know."""

    state: Mapping[str, list[float]]

    transform: Transform = IDENTITY

    log_jacobian: float = 0.0
    """Sum of the logarithms of the transform's slopes at the outcomes."""

    thetas: Array = field(default_factory=lambda: np.empty((1, 0)))
    """(rows, k) hyper-parameters of each process, then the parameters of the transform."""

    @property
    def log_evidence(self) -> float:
        rows = np.array([p.log_marginal() for p in self.processes])
        top = float(rows.max())
        jacobian = self.log_jacobian - len(self.processes[0].y) * log(self.spread)
        return top + log(float(self.weights @ np.exp(rows - top))) + jacobian

    @property
    def models(self) -> Mapping[str, float]:
        return {}

    def predict(self, x: Array, noise_std: Array | None = None) -> Forecast:
        rows = [
            (self._noise(p, mean, noise_std), mean, variance)
            for p in self.processes
            for mean, variance in [p.predict(x)]
        ]
        return self._forecast([mean for _, mean, _ in rows], [noise + variance for noise, _, variance in rows])

    def _noise(self, process: Process, mean: Array, noise_std: Array | None) -> Array | float:
        """The variance of the noise of observations where the function is ``mean``, on the processes' scale."""
        if noise_std is None:
            return process.typical_noise
        slope = np.exp(self.transform.log_slope(self.transform.inverse(self.center + self.spread * mean)))
        with np.errstate(over="ignore"):
            known = np.square(np.minimum(noise_std * slope / self.spread, MOST_NOISE))
        return np.where(np.isnan(known), process.typical_noise, known)

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
        return self.transform.inverse(np.asarray(self.center + self.spread * (self.weights @ rows)))

    def given(self, x: Array, y: Array) -> "FittedGaussianProcess":
        told, unknown = (self.transform(y) - self.center) / self.spread, np.full(len(x), np.nan)
        return replace(self, processes=tuple(p.given(x, told, unknown) for p in self.processes))

    def believing(self, x: Array) -> "FittedGaussianProcess":
        noises = [np.full(len(x), max(p.typical_noise, LEAST_NOISE)) for p in self.processes]
        pairs = zip(self.processes, noises, strict=True)
        return replace(self, processes=tuple(p.given(x, p.predict(x)[0], noise) for p, noise in pairs))

    def shortened(self, factor: float) -> "FittedGaussianProcess":
        """The same outcomes under lengthscales divided by ``factor``."""
        processes = []
        for p in self.processes:
            short = np.append([label == "lengthscale" for label in p.kernel.labels], [False, False])
            theta = p.theta - log(factor) * short
            processes.append(Process.condition(p.kernel, theta, p.x, p.y, p.noise))
        return replace(self, processes=tuple(processes))

    def _forecast(self, means: Any, variances: Any) -> Forecast:
        loc = self.center + self.spread * np.array(means)
        scale = self.spread * np.sqrt(variances)
        return Forecast(loc, scale, self.weights, (self.transform,) * len(self.processes))


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


class TransformedEvidence:
    """The log marginal likelihood of outcomes as a function of hyper-parameters and of the transform's parameters.

    L(theta, phi) = log p(t | theta) + sum log T'(y) - n log s, where t = (T(y) - m) / s has mean 0 and spread 1. So
    dL/dphi = sum_i dL/dt_i dt_i/dphi + sum_i dlogT'_i/dphi - n ds/dphi / s, and dL/dt = -K^-1 (t - mean).
    """

    def __init__(self, kernel: Kernel, observations: Observations, transform: LearnedTransform) -> None:
        self.transform, self.y, self.noise_std = transform, observations.y, observations.noise_std
        self.k = len(transform.beliefs)
        t, noise, _, _ = _standardized(self.y, self.noise_std, transform.at(_centers(transform), self.y))
        self.marginal = LogMarginal(kernel, observations.x, t, noise)

    def at(self, theta: Array) -> LogMarginal:
        """The marginal likelihood of the outcomes on the scale of this setting, a function of the others alone."""
        t, noise, _, _ = _standardized(self.y, self.noise_std, self.transform.at(theta[len(theta) - self.k :], self.y))
        return self.marginal.with_outcomes(t, noise)

    def __call__(self, theta: Array) -> tuple[float, Array]:
        if not self.k:
            return self.marginal(theta)
        theta, phi = theta[: -self.k], theta[-self.k :]
        T = self.transform.at(phi, self.y)
        t, noise, _, scale = _standardized(self.y, self.noise_std, T)
        value, gradient, by_t, by_noise = self.marginal.of(theta, t, np.where(self.marginal.inferred, 0.0, noise))
        d_t, d_slope = self.transform.partials(phi, self.y)
        d_center = d_t.mean(axis=1, keepdims=True)
        d_scale = ((d_t - d_center) * t).mean(axis=1, keepdims=True)  # of the spread, as t has mean 0 and spread 1
        moved = (d_t - d_center) / scale - t * (d_scale / scale)
        relative = d_scale[:, 0] / scale
        # a known noise s_y becomes s_y T'(y) / s
        known = np.where(self.marginal.inferred, 0.0, by_noise * noise)
        by_phi = moved @ by_t + d_slope.sum(axis=1) - len(t) * relative
        by_phi += 2.0 * (d_slope @ known - relative * known.sum())
        value += float(T.log_slope(self.y).sum()) - len(t) * log(scale)
        return value, np.concatenate([gradient, by_phi])


def _centers(transform: LearnedTransform) -> Array:
    return np.array([belief.center for belief in transform.beliefs])


def _standardized(y: Array, noise_std: Array, transform: Transform) -> tuple[Array, Array, float, float]:
    """Transformed outcomes of mean 0 and spread 1, noise variances on their scale, center, spread."""
    t = transform(y)
    scale = spread(t)
    largest = float(np.abs(t).max()) or 1.0
    center = largest * float((t / largest).mean())  # their sum may overflow
    if scale == 0.0:  # all the same: nothing to scale by
        scale = 1.0
        t = np.full_like(t, center)
    with np.errstate(over="ignore"):
        noise = np.minimum(noise_std * np.exp(transform.log_slope(y)) / scale, MOST_NOISE)
    return t / scale - center / scale, np.square(noise), center, scale
