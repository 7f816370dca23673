"""The Gaussian process surrogate: MAP or sampled hyperparameters, outcome transforms, input warping."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from math import ceil, log
from typing import Any

import numpy as np

from calibo.arrays import Array
from calibo.cube import Cube
from calibo.errors import FitError, InputError, require_number
from calibo.forecasts import Forecast
from calibo.gp.kernels import Covariance, Hamming, Kernel, Matern52, ProductCovariance, ScaledCovariance
from calibo.gp.process import LogMarginal, Process, maximum_a_posteriori
from calibo.gp.slice import Reference, sample
from calibo.gp.warping import WARP_PRIORS, WarpedCovariance
from calibo.models.base import FittedSurrogate, Noise, Surrogate
from calibo.observations import Observations, spread
from calibo.parts import Cache, identity, register, spec
from calibo.priors import HyperPriors, JointPrior, NormalPrior, joint_prior
from calibo.transforms import IDENTITY, LearnedTransform, Transform, Untransformed

REFIT_SCALE_CHANGE = 1.5  # change of the outcomes' standard deviation, as a factor, that triggers a refit
MULTISTART = 256  # beyond, only fits to powers of two use several starts: the others are close to one of them
BURN_IN = 10  # draws discarded from a chain started at MAP
FIRST_CHAIN = 4  # outcomes of the first chain
LEAST_NOISE = 1e-6  # variance of a fantasy outcome, standardized: keeps the Cholesky factor well-conditioned
MOST_NOISE = 1e6  # in standard deviations of the outcomes: with more noise an outcome is uninformative
STEP = 1e-4  # finite-difference step of gradients
UPDATES = 6  # elliptical updates, and as many along lines, between two draws
MAX_ASYMMETRY = 0.1  # relative asymmetry of the Hessian; more is rounding error, e.g. jitter added at only some points
INFLATION = 1.3  # inflation of the Laplace approximation, for heavier tails
MAX_STD = 3.0  # standard deviation of the reference along an unidentified direction


class MarginalLikelihood:
    """The log marginal likelihood of outcomes as a function of hyperparameters and transform parameters.

    L(theta, phi) = log p(t | theta) + sum log T'(y) - n log s, where t = (T(y) - m) / s has mean 0 and variance 1. So
    dL/dphi = sum_i dL/dt_i dt_i/dphi + sum_i dlogT'_i/dphi - n ds/dphi / s, and dL/dt = -K^-1 (t - mean).
    """

    def __init__(self, kernel: Covariance, observations: Observations, transform: LearnedTransform) -> None:
        self.transform, self.y, self.noise_std = transform, observations.y, observations.noise_std
        self.k = len(transform.priors)
        t, noise, _, _ = standardize(
            self.y, self.noise_std, transform.at(np.array([prior.center for prior in transform.priors]), self.y)
        )
        self.marginal = LogMarginal(kernel, observations.x, t, noise)

    def at(self, theta: Array) -> LogMarginal:
        """The marginal likelihood of the outcomes transformed by the phi in ``theta``, as a function of the rest."""
        t, noise, _, _ = standardize(self.y, self.noise_std, self.transform.at(theta[len(theta) - self.k :], self.y))
        return self.marginal.with_outcomes(t, noise)

    def __call__(self, theta: Array) -> tuple[float, Array]:
        if not self.k:
            return self.marginal(theta)
        theta, phi = theta[: -self.k], theta[-self.k :]
        T = self.transform.at(phi, self.y)
        t, noise, _, scale = standardize(self.y, self.noise_std, T)
        value, gradient, by_t, by_noise = self.marginal.of(theta, t, np.where(self.marginal.inferred, 0.0, noise))
        d_t, d_slope = self.transform.partials(phi, self.y)
        d_center = d_t.mean(axis=1, keepdims=True)
        d_scale = ((d_t - d_center) * t).mean(axis=1, keepdims=True)  # derivative of s, as t has mean 0 and variance 1
        moved = (d_t - d_center) / scale - t * (d_scale / scale)
        relative = d_scale[:, 0] / scale
        # a known noise s_y becomes s_y T'(y) / s
        known = np.where(self.marginal.inferred, 0.0, by_noise * noise)
        by_phi = moved @ by_t + d_slope.sum(axis=1) - len(t) * relative
        by_phi += 2.0 * (d_slope @ known - relative * known.sum())
        value += float(T.log_slope(self.y).sum()) - len(t) * log(scale)
        return value, np.concatenate([gradient, by_phi])


class HyperPosterior:
    """The posterior density of the hyperparameters, with the transform fixed at ``mode``, the MAP estimate."""

    def __init__(self, evidence: MarginalLikelihood, prior: JointPrior, mode: Array) -> None:
        size = len(mode) - evidence.k
        self.mode, self.rest = mode[:size], mode[size:]
        self.marginal = evidence.at(mode)
        self.center, self.precision = prior.center[:size], prior.precision[:size]
        self.low, self.high = (np.array(side)[:size] for side in zip(*prior.bounds, strict=True))

    def __call__(self, theta: Array) -> float:
        """Log density, up to a constant."""
        if np.any(theta < self.low) or np.any(theta > self.high):
            return -np.inf
        return self.marginal.value(theta) - 0.5 * float(self.precision @ np.square(theta - self.center))

    def draws(self, count: int, rng: np.random.Generator, start: Array | None = None, burn_in: int = 0) -> Array:
        """(count, k) draws of a chain from ``start`` or the mode, with the transform's parameters appended."""
        first = self.mode if start is None else start[: len(self.mode)]
        draws = sample(self, first, self.reference, rng, count, updates=UPDATES, burn_in=burn_in)
        return np.column_stack([draws, np.tile(self.rest, (count, 1))])

    @cached_property
    def reference(self) -> Reference:
        """The Laplace approximation at the mode, with the Hessian by finite differences of the gradient."""
        hessian = self._negative_hessian()
        values, vectors = np.linalg.eigh(0.5 * (hessian + hessian.T) + np.diag(self.precision))
        return Reference(self.mode, INFLATION * vectors / np.sqrt(np.maximum(values, MAX_STD**-2)))

    def _negative_hessian(self) -> Array:
        """Negative Hessian of the log evidence; zero if dominated by rounding, which leaves only the prior."""
        nothing = np.zeros((len(self.mode), len(self.mode)))
        try:
            here, *there = (self.marginal(self.mode + step)[1] for step in [nothing[0], *STEP * np.eye(len(nothing))])
        except FitError:
            return nothing
        hessian = np.array([(here - slope) / STEP for slope in there])
        gap, size = np.abs(hessian - hessian.T).max(), max(np.abs(hessian).max(), 1.0)
        return hessian if np.isfinite(hessian).all() and gap <= MAX_ASYMMETRY * size else nothing


def standardize(y: Array, noise_std: Array, transform: Transform) -> tuple[Array, Array, float, float]:
    """Transformed outcomes of mean 0 and standard deviation 1, noise variances on their scale, center, scale."""
    t = transform(y)
    scale = spread(t)
    largest = float(np.abs(t).max()) or 1.0
    center = largest * float((t / largest).mean())  # their sum may overflow
    if scale == 0.0:  # constant outcomes
        scale = 1.0
        t = np.full_like(t, center)
    with np.errstate(over="ignore"):
        noise = np.minimum(noise_std * np.exp(transform.log_slope(y)) / scale, MOST_NOISE)
    return t / scale - center / scale, np.square(noise), center, scale


@dataclass(frozen=True, eq=False)
class FittedGaussianProcess(FittedSurrogate):
    """One process per hyperparameter sample: components of one mixture."""

    processes: tuple[Process, ...]
    weights: Array

    center: float
    spread: float
    """Transformed outcomes are center + spread times the processes' standardized outcomes."""

    fits: Mapping[str, Any]

    transform: Transform = IDENTITY

    log_jacobian: float = 0.0
    """Sum of the log slopes of the transform at the outcomes."""

    thetas: Array = field(default_factory=lambda: np.empty((1, 0)))
    """(rows, k) hyperparameters of each process, then the parameters of the transform."""

    @property
    def state(self) -> Mapping[str, Any]:
        return self.fits

    @property
    def log_evidence(self) -> float:
        rows = np.array([p.log_marginal() for p in self.processes])
        top = float(rows.max())
        jacobian = self.log_jacobian - len(self.processes[0].y) * log(self.spread)
        return top + log(float(self.weights @ np.exp(rows - top))) + jacobian

    def posterior(self, x: Array, *, noise: Noise = False) -> Forecast:
        means, variances = zip(*[p.posterior(x) for p in self.processes], strict=True)
        if noise is not False:
            rows = zip(self.processes, means, variances, strict=True)
            variances = tuple(self._noise(p, mean, noise) + variance for p, mean, variance in rows)
        return self._forecast(means, variances)

    def _noise(self, process: Process, mean: Array, noise: Noise) -> Array | float:
        """Noise variance of observations at function values ``mean``, on the standardized scale."""
        if isinstance(noise, bool):
            return process.typical_noise
        slope = np.exp(self.transform.log_slope(self.transform.inverse(self.center + self.spread * mean)))
        with np.errstate(over="ignore"):
            known = np.square(np.minimum(noise * slope / self.spread, MOST_NOISE))
        return np.where(np.isnan(known), process.typical_noise, known)

    def posterior_with_gradient(self, x: Array) -> tuple[Forecast, Array, Array]:
        rows = [p.posterior_with_gradient(x) for p in self.processes]
        means, variances, d_means, d_variances = zip(*rows, strict=True)
        forecast = self._forecast(means, variances)
        # d sqrt(v) = dv / (2 sqrt(v)), with sqrt(v) = scale / spread
        d_scale = np.array(d_variances) * (0.5 * self.spread * (self.spread / forecast.scale))[..., None]
        return forecast, self.spread * np.array(d_means), d_scale

    def leave_one_out(self) -> Forecast:
        means, variances = zip(*[p.leave_one_out() for p in self.processes], strict=True)
        return self._forecast(means, variances)

    def in_sample_mean(self, x: Array) -> Array:
        """Also at points it was conditioned on; avoids the cubic cost of ``posterior``."""
        rows = np.stack([p.in_sample_mean() for p in self.processes])
        return self.transform.inverse(np.asarray(self.center + self.spread * (self.weights @ rows)))

    def condition(self, x: Array, y: Array) -> "FittedGaussianProcess":
        t, unknown = (self.transform(y) - self.center) / self.spread, np.full(len(x), np.nan)
        return replace(self, processes=tuple(p.condition(x, t, unknown) for p in self.processes))

    def condition_on_mean(self, x: Array) -> "FittedGaussianProcess":
        noises = [np.full(len(x), max(p.typical_noise, LEAST_NOISE)) for p in self.processes]
        pairs = zip(self.processes, noises, strict=True)
        return replace(self, processes=tuple(p.condition(x, p.posterior(x)[0], noise) for p, noise in pairs))

    def condition_rows(self, x: Array, rows: Array) -> "FittedGaussianProcess":
        """Each component conditioned on its own function values (S, n), on the scale of its forecast."""
        t, noise = (rows - self.center) / self.spread, np.full(len(x), LEAST_NOISE)
        pairs = zip(self.processes, t, strict=True)
        return replace(self, processes=tuple(p.condition(x, row, noise) for p, row in pairs))

    def with_lengthscales_divided_by(self, factor: float) -> "FittedGaussianProcess":
        """The same data with shorter lengthscales."""
        processes = []
        for p in self.processes:
            short = np.append([label == "lengthscale" for label in p.kernel.labels], [False, False])
            theta = p.theta - log(factor) * short
            processes.append(Process.from_data(p.kernel, theta, p.x, p.y, p.noise))
        return replace(self, processes=tuple(processes))

    def _forecast(self, means: Any, variances: Any) -> Forecast:
        loc = self.center + self.spread * np.array(means)
        scale = self.spread * np.sqrt(variances)
        return Forecast(loc, scale, self.weights, (self.transform,) * len(self.processes))


FITS = Cache(10_000)  # by key: replaying a study reuses many


def forget_fits() -> None:
    """Clear the cache of fits of this Python process, e.g. for timing. Results do not change."""
    FITS.clear()


@register("gaussian-process")
@dataclass(frozen=True)
class GaussianProcess(Surrogate):
    """A Gaussian process on standardized outcomes, with MAP or sampled hyperparameters.

    Hyperparameters are refitted as the data grow, to the first m observations with m from a fixed schedule, and when
    the standard deviation of the outcomes has changed a lot. The fit starts from the prior's centre, the same with
    high noise, and the fit to the largest power of two below m. So hyperparameters depend only on the data, and
    ``previous`` only avoids recomputing them.
    """

    kernel: Kernel = Matern52()
    """Kernel of the numeric columns; multiplied with a Hamming kernel of the categorical ones."""

    priors: HyperPriors = field(default_factory=HyperPriors)

    growth: float = 0.1
    """Relative growth of the data between refits beyond 20 observations; 0 to refit at every observation."""

    transform: LearnedTransform = Untransformed()
    """The outcome transform; learned jointly with the hyperparameters."""

    warped: bool = False
    """Whether inputs are warped by learned Beta CDFs, except on axes with ``warp=None``; WARP14."""

    samples: int = 0
    """Number of hyperparameter samples drawn by slice sampling, each a component of the forecast; 0 for MAP."""

    def __post_init__(self) -> None:
        if not isinstance(self.samples, int | np.integer) or self.samples < 0:
            raise InputError(f"`samples` must be a whole number of at least 0, but got {self.samples!r}.")
        if not isinstance(self.kernel, Kernel):
            advice = _advice(self.kernel)
            raise InputError(f"`kernel` must be a kernel such as Matern52(), but got {self.kernel!r}. {advice}")
        if not isinstance(self.priors, HyperPriors):
            raise InputError(f"`priors` must be HyperPriors, but got {self.priors!r}.")
        require_number("growth", self.growth, "a number of at least 0", least=0.0)
        for part in (self.kernel, self.transform):
            spec(part)  # raises if one is not registered: its fits could not be identified

    @property
    def transforms_outcomes(self) -> bool:
        return self.transform != Untransformed()

    def with_process(self, **parts: Any) -> "GaussianProcess":
        return replace(self, **parts)

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
            evidence, prior = self._evidence(kernel, observations), self.prior(kernel, observations.cube)
            best, _ = maximum_a_posteriori(evidence, prior, [thetas[0]])
            thetas = best[None]
            if self.samples:
                rng = np.random.default_rng(len(observations))
                thetas = HyperPosterior(evidence, prior, best).draws(self.samples, rng, burn_in=BURN_IN)
        return self._fitted(kernel, thetas, observations, observations.y, {})

    def hyper_posterior(self, observations: Observations) -> HyperPosterior:
        """The posterior of the hyperparameters given at least two outcomes."""
        kernel, n = self.covariance(observations.cube), len(observations)
        mode = self._theta(kernel, observations, n, {})
        return HyperPosterior(self._evidence(kernel, observations), self.prior(kernel, observations.cube), mode)

    def _fitted(
        self, kernel: Covariance, thetas: Array, observations: Observations, known: Array, state: Mapping[str, Any]
    ) -> "FittedGaussianProcess":
        """Conditioned on all observations; the transform is scaled by ``known``, the outcomes used in the fit."""
        size = thetas.shape[1] - len(self.transform.priors)
        transform = self.transform.at(thetas[0, size:], known)
        t, noise, center, scale = standardize(observations.y, observations.noise_std, transform)
        processes = tuple(Process.from_data(kernel, theta[:size], observations.x, t, noise) for theta in thetas)
        jacobian = float(transform.log_slope(observations.y).sum())
        weights = np.full(len(thetas), 1.0 / len(thetas))
        return FittedGaussianProcess(processes, weights, center, scale, state, transform, jacobian, thetas)

    def _evidence(self, kernel: Covariance, observations: Observations) -> "MarginalLikelihood":
        return MarginalLikelihood(kernel, observations, self.transform)

    def prior(self, kernel: Covariance, cube: Cube) -> JointPrior:
        return joint_prior(
            self.priors, tuple(kernel.labels), cube.width, tuple(self.transform.priors), warp_priors(cube)
        )

    def covariance(self, cube: Cube) -> Covariance:
        """The kernel over the columns that vary."""
        numeric = tuple(int(j) for j in np.flatnonzero(cube.free & ~cube.categorical))
        categories = tuple(int(j) for j in np.flatnonzero(cube.free & cube.categorical))
        if not numeric:
            return ScaledCovariance(Hamming().on(categories))  # constant if there are no columns
        inner = self.kernel.on(numeric)
        kernel = ScaledCovariance(ProductCovariance(inner, Hamming().on(categories)) if categories else inner)
        return WarpedCovariance(kernel, cube.warped) if self.warped and cube.warped else kernel

    def _theta(self, kernel: Covariance, observations: Observations, size: int, fits: dict[str, Any]) -> Array:
        prior = self.prior(kernel, observations.cube)
        if size < 2:
            return prior.center
        key = self._key(observations, size)
        if not _usable(fits.get(key), prior):
            fits[key] = FITS.get(key)
        if not _usable(fits.get(key), prior):
            starts = self._starts(kernel, prior) if size <= MULTISTART or size & (size - 1) == 0 else []
            if size > 2:
                starts.append(self._theta(kernel, observations, anchor(size), fits))
            theta, _ = maximum_a_posteriori(self._evidence(kernel, observations.head(size)), prior, starts)
            fits[key] = theta.tolist()
            FITS.put(key, fits[key])
        return np.array(fits[key])

    def _size(self, y: Array) -> int:
        """Number of outcomes to which hyperparameters are fitted."""
        return size_of_fit(y, self.growth)

    def _earlier(self, y: Array, size: int) -> int:
        """Size of the fit whose chain is continued by that of ``size``."""
        return self._size(y[: size - 1])

    def _starts(self, kernel: Covariance, prior: JointPrior) -> list[Array]:
        """Also one with high noise: from low noise the optimizer misses long lengthscales of noisy data."""
        noisy = prior.center.copy()
        noisy[len(kernel.labels)] = log(0.1)
        return [prior.center, noisy]

    def _draws(self, kernel: Covariance, observations: Observations, size: int, fits: dict[str, Any]) -> Array:
        """(samples, k) of a chain that continues that of the previous smaller fit; the first starts at MAP.

        So draws, too, depend only on the data, and stored ones only avoid recomputation.
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
        prior = self.prior(kernel, observations.cube)
        posterior = HyperPosterior(self._evidence(kernel, observations.head(size)), prior, best)
        burn_in = BURN_IN if start is None else 0
        return posterior.draws(self.samples, np.random.default_rng(seed), start, burn_in=burn_in)

    def _kept(self, kernel: Covariance, observations: Observations, size: int, fits: dict[str, Any]) -> Array | None:
        """The chain of a fit, if stored."""
        key, prior = self._chain_key(observations, size), self.prior(kernel, observations.cube)
        stored = fits.get(key) or FITS.get(key)
        rows = stored if isinstance(stored, list) else []
        if len(rows) != self.samples or not all(_usable(row, prior) for row in rows):
            return None
        fits[key] = rows
        return np.array(rows)

    def _chain_key(self, observations: Observations, size: int) -> str:
        return f"draws-{self._key(observations, size)}"

    def _key(self, observations: Observations, size: int) -> str:
        """Cache key of a fit: a digest of the model, the cube and the data."""
        return fit_key(self, observations.head(size))


def fit_key(recipe: Surrogate, data: Observations) -> str:
    """Cache key of a fit: a digest of the model, the cube and the data."""
    name = f"{identity(recipe)} {identity(data.cube)}".encode()
    parts = [name, *(part.tobytes() for part in (data.x, data.y, data.noise_std))]
    return f"{len(data)}-{blake2b(b''.join(parts), digest_size=6).hexdigest()}"


def _advice(kernel: Any) -> str:
    if isinstance(kernel, type):
        return f"Write {kernel.__name__}()."
    return "Write `register_kernel('its name')(function)`, so that other processes can find it by name."


def warp_priors(cube: Cube, tasks: int = 1) -> tuple[NormalPrior, ...]:
    """Warp priors of all columns that may be warped, repeated for each task."""
    warped = [WARP_PRIORS[warp] for j in cube.warped if (warp := cube.axes[j].warp) is not None]
    return tuple(alpha for alpha, _ in warped) * tasks + tuple(beta for _, beta in warped) * tasks


def _usable(fit: Any, prior: JointPrior) -> bool:
    """Whether a stored fit is valid; a storage may hold anything."""
    numbers = isinstance(fit, list) and len(fit) == len(prior.center) and all(isinstance(v, float) for v in fit)
    return numbers and all(low <= value <= high for value, (low, high) in zip(fit, prior.bounds, strict=True))


def size_of_fit(y: Array, growth: float) -> int:
    """Number of outcomes used to fit hyperparameters: by schedule, or later if their standard deviation has changed."""
    size = scheduled_size(len(y), growth)
    before = spread(y[:size])
    for m in range(size + 1, len(y) + 1):
        now = spread(y[:m])
        changed = not before / REFIT_SCALE_CHANGE <= now <= before * REFIT_SCALE_CHANGE
        if changed and m >= 1.02 * size:  # avoids a refit at every step
            size, before = m, now
    return size


def scheduled_size(n: int, growth: float) -> int:
    """The largest scheduled fit size up to ``n``: every size up to 20, then growing geometrically."""
    size = min(n, 20)
    while (following := size + max(ceil(size * growth - 1e-9), 1)) <= n:
        size = following
    return size


def anchor(size: int) -> int:
    """The largest power of two below ``size``."""
    return 1 << max(size - 1, 1).bit_length() - 1
