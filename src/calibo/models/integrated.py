"""A Gaussian process integrated over its hyperparameters, so that its intervals hold with few and noisy outcomes.

Lengthscales are integrated by importance sampling: half of the nodes come from the prior, half from around the MAP
estimates of one model per outcome scale. The share of noise is integrated on a grid with an atom for "exact", the mean
and the variance of the function in closed form.

| symbol | meaning |
|---|---|
| psi | (K, p) nodes: log lengthscales and decays |
| t | (n,) outcomes, transformed and standardized |
| R | correlations at a node, plus the prior variance of a constant mean relative to that of the function |
| W | diagonal matrix: noise variances if they were told, else 1 |
| r | share: the variance of the noise is r A W, if A is that of the function |
| Q, l | eigenvectors and eigenvalues, W^-1/2 R W^-1/2 = Q diag(l) Q' |
| M | W^1/2 Q diag(l + r) Q' W^1/2, so that t ~ Normal(0, A M) |
| q | t' M^-1 t |
| a, b | A ~ inverse gamma(a, b); given t, inverse gamma(a + n / 2, b + q / 2) |

So t is a Student t with 2 a degrees of freedom and scale matrix (b / a) M, and a prediction is one with 2 a + n degrees
of freedom [RW06, Sec. 9.9]. It is represented by a few Gaussians, one for each node of a quadrature over A.
If the noise was told, r = 1 / A: then the grid of shares is one over A, and predictions are Gaussian.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import inf, lgamma, log, pi
from typing import Any, Self

import numpy as np
from scipy.special import ndtri, roots_genlaguerre

from calibo.arrays import Array, Indices, read_only
from calibo.design import sobol_points
from calibo.errors import InputError, require_number
from calibo.forecasts import Forecast
from calibo.gp import linalg
from calibo.gp.kernels import Covariance, Cross, ScaledCovariance
from calibo.models.base import FittedSurrogate, Noise, Surrogate
from calibo.models.choice import SCALES, ModelChoice, of_model
from calibo.models.gaussian_process import LEAST_NOISE, MOST_NOISE, GaussianProcess, standardize
from calibo.observations import Observations, spread
from calibo.parts import register
from calibo.priors import JointPrior
from calibo.transforms import Transform

AROUND = 0.5  # standard deviation of the nodes around a MAP estimate, on the log scale
MEAN = 1.0  # prior variance of the mean, relative to that of the function
EXACT = 1e-8  # share of noise of the atom "exact": keeps matrices well-conditioned
SHARES = np.geomspace(1e-2, 3.0, 8)  # of noise, if it was not told
VARIANCES = np.geomspace(1e-3, 1e2, 16)  # of the function, if the noise was told
SHAPE, RATE = 0.5, 1.0  # a and b, for standardized outcomes
NEAR_NORMAL, NORMAL = 30.0, 100.0  # degrees of freedom from which three Gaussians are as good as a Student t, or one
MOST = 64  # components of the mixture
TELLING = 6  # outcomes that can tell one scale from another
LARGE, FEWEST = 40, 6  # outcomes from which there are fewer nodes, and their least number
LIMIT = 150  # outcomes beyond which MAP estimates are used: the posterior is narrow, and a node costly
TINIEST = 1e-300  # weight
SMALLEST = 1e-12  # variance relative to that of the function


@register("integrated-process")
@dataclass(frozen=True)
class IntegratedProcess(Surrogate):
    """A Gaussian process whose lengthscales, variances, noise and outcome scale are integrated, not estimated.

    With more than 150 outcomes it is a mixture of the MAP models of the outcome scales.
    """

    scales: tuple[tuple[str, GaussianProcess], ...] = SCALES
    """Names and MAP models of the outcome scales, with the same kernel; before the sixth outcome only the first."""

    nodes: int = 48
    """Number of vectors of lengthscales; fewer with many outcomes, when each is costly and the posterior is narrow."""

    exact: float = 0.1
    """Prior probability that outcomes have no noise."""

    handicap: float = 5.0
    """Nats by which every other scale must beat the first."""

    coarsening: float = 10.0
    """The likelihood of n outcomes has the power c / (c + n), with this c: no node is exactly right, so the more
    outcomes there are, the less may a few nodes get all of the weight [MD19]."""

    def __post_init__(self) -> None:
        names = [name for name, _ in self.scales]
        if not names or len(set(names)) < len(names):
            raise InputError(f"`scales` must have unique names, but got {names}.")
        for _, model in self.scales:
            if not isinstance(model, GaussianProcess) or model.warped or model.kernel != self.scales[0][1].kernel:
                raise InputError(f"`scales` must be unwarped Gaussian processes with one kernel, but got {model!r}.")
        if not isinstance(self.nodes, int | np.integer) or self.nodes < 2:
            raise InputError(f"`nodes` must be a whole number of at least 2, but got {self.nodes!r}.")
        require_number("exact", self.exact, "a probability between 0 and 1", above=0.0, below=1.0)
        require_number("handicap", self.handicap, "a number of at least 0", least=0.0)
        require_number("coarsening", self.coarsening, "a positive number", above=0.0)

    @property
    def transforms_outcomes(self) -> bool:
        return any(model.transforms_outcomes for _, model in self.scales)

    def fit(
        self, observations: Observations, *, rng: np.random.Generator, previous: Mapping[str, Any] | None = None
    ) -> FittedSurrogate:
        if len(observations) > LIMIT:
            return ModelChoice(self.scales, mode="mixture").fit(observations, rng=rng, previous=previous)
        state: dict[str, Any] = {}
        outcomes: list[_Outcomes] = []
        modes = []
        model = self.scales[0][1]
        scaled = model.covariance(observations.cube)
        assert isinstance(scaled, ScaledCovariance)
        lengths = slice(1, 1 + len(scaled.kernel.labels))  # of theta
        telling = len(observations) >= TELLING and spread(observations.y) > 0.0
        for name, recipe in self.scales if telling else self.scales[:1]:
            fitted = recipe.fit(observations, rng=rng, previous=of_model(previous or {}, name))
            handicap = self.handicap if outcomes else 0.0
            outcomes.append(_Outcomes.of(observations, fitted.transform, handicap))
            modes.append(fitted.thetas[0, lengths])
            state |= {f"{name}/{key}": fit for key, fit in fitted.state.items()}
        prior = model.prior(scaled, observations.cube).part(lengths)
        nodes = _Nodes.of(scaled.kernel, prior, np.array(modes), self._count(len(observations)))
        return integrate(nodes, observations.x, tuple(outcomes), self.exact, self.coarsening, state)

    def _count(self, n: int) -> int:
        return int(np.clip(self.nodes * (LARGE / n) ** 2, min(FEWEST, self.nodes), self.nodes))


@dataclass(frozen=True, eq=False)
class _Outcomes:
    """The outcomes on one scale."""

    transform: Transform
    center: float
    spread: float
    t: Array

    noise: Array | None
    """(n,) W; None if no noise was told. Outcomes without a told noise have the typical one."""

    offset: float
    """The log Jacobian of the scale, less its handicap: added to the log evidence."""

    @classmethod
    def of(cls, observations: Observations, transform: Transform, handicap: float) -> "_Outcomes":
        t, noise, center, scale = standardize(observations.y, observations.noise_std, transform)
        told = ~np.isnan(noise)
        known = np.maximum(np.where(told, noise, np.median(noise[told])), EXACT) if told.any() else None
        jacobian = float(transform.log_slope(observations.y).sum()) - len(t) * log(scale)
        return cls(transform, center, scale, t, known, jacobian - handicap)

    @property
    def typical_noise(self) -> float:
        """An entry of W."""
        return 1.0 if self.noise is None else float(np.median(self.noise))

    def standardized_noise(self, std: Array, t: Array) -> Array:
        """Noise standard deviations in the units of outcomes, standardized, where function values are near ``t``."""
        slope = np.exp(self.transform.log_slope(self.transform.inverse(self.center + self.spread * t)))
        return np.asarray(np.minimum(std * slope / self.spread, np.sqrt(MOST_NOISE)))


@dataclass(frozen=True, eq=False)
class _Nodes:
    """Hyperparameters of the correlation."""

    kernel: Covariance

    psi: Array
    """(K, p)"""

    log_weights: Array
    """(K,) prior / proposal"""

    @classmethod
    def of(cls, kernel: Covariance, prior: JointPrior, modes: Array, count: int) -> "_Nodes":
        """Half of them from the prior, half from around the ``modes`` (m, p) in turn."""
        p = modes.shape[1]
        normal = ndtri(np.clip(sobol_points(max(p, 1), 0, count, 0)[:, :p], 1e-9, 1.0 - 1e-9))
        std, half = prior.precision**-0.5, count // 2
        around = modes[np.arange(count - half) % len(modes)] + AROUND * normal[half:]
        low, high = np.array(prior.bounds).reshape(p, 2).T
        psi = np.clip(np.concatenate([prior.center + std * normal[:half], around]), low, high)
        log_prior = _log_density((psi - prior.center) / std) - float(np.log(std).sum())
        log_around = _log_density((psi[:, None] - modes) / AROUND) - p * log(AROUND)
        log_around = np.logaddexp.reduce(log_around, axis=1) - log(len(modes))
        return cls(kernel, psi, np.asarray(log_prior - np.logaddexp(log_prior, log_around) + log(2.0)))

    def correlations(self, x: Array) -> Array:
        """(K, n, n) R"""
        n = len(x)
        rows, columns, _ = linalg.pairs(n)
        geometry = self.kernel.geometry(x, rows, columns)
        packed = MEAN + np.stack([self.kernel.pairwise(psi, geometry)[0] for psi in self.psi])
        R = np.empty((len(self.psi), n, n))
        R[:, rows, columns] = R[:, columns, rows] = packed
        return R


def _log_density(z: Array) -> Array:
    """Of independent standard Normals ``z`` (..., p), up to a constant."""
    return np.asarray(-0.5 * np.square(z).sum(axis=-1))


@dataclass(frozen=True, eq=False)
class _Basis:
    """The eigendecompositions of all nodes for one W."""

    root: Array
    """(n,) W^1/2"""

    values: Array
    """(K, n) l"""

    vectors: Array
    """(K, n, n) Q"""

    @classmethod
    def of(cls, R: Array, noise: Array | None) -> "_Basis":
        root = np.ones(R.shape[1]) if noise is None else np.sqrt(noise)
        values, vectors = np.linalg.eigh(R / np.multiply.outer(root, root))
        return cls(root, np.maximum(values, 0.0), vectors)

    def rotated(self, t: Array) -> Array:
        """(K, n) Q' W^-1/2 t"""
        return np.asarray((t / self.root) @ self.vectors)


@dataclass(frozen=True, eq=False)
class _Components:
    """Combinations of outcome scale, node and share."""

    weights: Array
    scale: Indices
    node: Indices
    share: Array

    variance: Array
    """(C,) A if the noise was told, else (b + q / 2) / (a + n / 2)."""


@dataclass(frozen=True, eq=False)
class _Group:
    """Components that share eigenvectors; a single one once further outcomes were added."""

    rows: Indices
    kernel: Covariance
    psi: Array

    x: Array
    """(n, d)"""

    projection: Array
    """(n, n) G, e.g. W^-1/2 Q"""

    inverse: Array
    """(n, rows) D, e.g. 1 / (l + r), so that M^-1 = G diag(D) G'"""

    alpha: Array
    """(n, rows) M^-1 t"""

    @cached_property
    def cross(self) -> Cross:
        return self.kernel.cross(self.psi, self.x)

    def extended(self, x: Array, rows: Array, noise: Array) -> "list[_Group]":
        """With further standardized outcomes ``rows`` (C, m) at ``x`` and their ``noise`` (C,), relative to A.

        The inverse by blocks: with S = K_xx + noise - K_x M^-1 K_x' = L L', it is G G' for
        G = [[G D^1/2, -M^-1 K_x' L'^-1], [0, L'^-1]].
        """
        k, corner = self.cross(x)[0] + MEAN, self.kernel.cross(self.psi, x)(x)[0] + MEAN
        n, m = len(self.x), len(x)
        groups = []
        for i, row in enumerate(self.rows.tolist()):
            half = self.projection * np.sqrt(self.inverse[:, i])
            B = k @ half
            L = np.linalg.cholesky(corner + noise[row] * np.eye(m) - B @ B.T)
            G = np.zeros((n + m, n + m))
            G[:n, :n], G[n:, n:] = half, np.linalg.inv(L).T
            G[:n, n:] = -half @ B.T @ G[n:, n:]
            # the mean of the new outcomes is K_x alpha
            added = G[:, n:] @ (G[n:, n:].T @ (rows[row] - k @ self.alpha[:, i]))
            alpha = np.append(self.alpha[:, i], np.zeros(m)) + added
            points = np.concatenate([self.x, x])
            rest = (self.rows[i : i + 1], self.kernel, self.psi, points, G, np.ones((n + m, 1)), alpha[:, None])
            groups.append(_Group(*rest))
        return groups


@dataclass(frozen=True, eq=False)
class FittedIntegrated(FittedSurrogate):
    """A mixture of Student t processes; of Gaussian ones if the noise was told."""

    components: _Components
    groups: tuple[_Group, ...]
    outcomes: tuple[_Outcomes, ...]
    """On each scale."""

    evidence: float

    freedom: float
    """Degrees of freedom; infinite if the noise was told."""

    fits: Mapping[str, Any]

    @property
    def state(self) -> Mapping[str, Any]:
        return self.fits

    @property
    def log_evidence(self) -> float:
        return self.evidence

    def condition(self, x: Array, y: Array) -> Self:
        rows = np.stack([(each.transform(y) - each.center) / each.spread for each in self._outcomes])
        return self._extended(x, rows, np.maximum(self._noise_share, LEAST_NOISE))

    def condition_on_mean(self, x: Array) -> Self:
        return self._extended(x, self._moments(x)[0], np.maximum(self._noise_share, LEAST_NOISE))

    def _extended(self, x: Array, rows: Array, noise: Array) -> Self:
        return replace(self, groups=tuple(new for group in self.groups for new in group.extended(x, rows, noise)))

    def posterior(self, x: Array, *, noise: Noise = False) -> Forecast:
        return self._forecast(*self._moments(x), noise)

    def _moments(self, x: Array) -> tuple[Array, Array]:
        """(C, m) means, standardized, and variances relative to that of the function."""
        loc, variance = (np.empty((len(self.components.weights), len(x))) for _ in range(2))
        for group in self.groups:
            k, _ = group.cross(x)
            prior, _ = group.kernel.diagonal(group.psi, x)
            loc[group.rows] = ((k + MEAN) @ group.alpha).T
            variance[group.rows] = (prior[:, None] + MEAN - np.square((k + MEAN) @ group.projection) @ group.inverse).T
        return loc, np.maximum(variance, SMALLEST)

    def posterior_with_gradient(self, x: Array) -> tuple[Forecast, Array, Array]:
        loc, variance = self._moments(x)
        d_loc, d_variance = (np.empty((*loc.shape, x.shape[1])) for _ in range(2))
        for group in self.groups:
            k, pullback = group.cross(x)
            _, d_prior = group.kernel.diagonal(group.psi, x)
            B = (k + MEAN) @ group.projection
            for row, alpha, inverse in zip(group.rows, group.alpha.T, group.inverse.T, strict=True):
                d_loc[row] = pullback(alpha)
                d_variance[row] = d_prior - 2.0 * pullback((B * inverse) @ group.projection.T)
        d_variance[variance <= SMALLEST] = 0.0
        forecast = self._forecast(loc, variance, False)
        d_loc *= np.array([each.spread for each in self._outcomes])[:, None, None]
        d_log_scale = 0.5 * d_variance / variance[..., None]
        count = len(forecast.loc) // len(loc)  # Gaussians per component
        d_scale = np.repeat(d_log_scale, count, axis=0) * forecast.scale[..., None]
        return forecast, np.repeat(d_loc, count, axis=0), d_scale

    @cached_property
    def _outcomes(self) -> list[_Outcomes]:
        """Of each component."""
        return [self.outcomes[scale] for scale in self.components.scale]

    @cached_property
    def _noise_share(self) -> Array:
        """(C,) variance of a typical noise relative to that of the function."""
        return np.asarray(self.components.share * [each.typical_noise for each in self._outcomes])

    def _forecast(self, loc: Array, variance: Array, noise: Noise) -> Forecast:
        """Of components with these means and variances."""
        std = np.sqrt(self.components.variance[:, None] * variance)
        if noise is not False:
            added = np.broadcast_to(np.sqrt(self.components.variance * self._noise_share)[:, None], loc.shape)
            if not isinstance(noise, bool):
                pairs = zip(self._outcomes, loc, strict=True)
                known = np.stack([each.standardized_noise(noise, t) for each, t in pairs])
                added = np.where(np.isnan(known), added, known)
            std = np.hypot(std, added)
        center, spread = np.array([(each.center, each.spread) for each in self._outcomes]).T[:, :, None]
        factors, shares = student_rows(self.freedom)
        return Forecast(
            np.repeat(center + spread * loc, len(factors), axis=0),
            np.multiply.outer(spread * std, factors).swapaxes(1, 2).reshape(-1, loc.shape[1]),
            np.outer(self.components.weights, shares).ravel(),
            tuple(each.transform for each in self._outcomes for _ in factors),
        )


def integrate(
    nodes: _Nodes,
    x: Array,
    outcomes: tuple[_Outcomes, ...],
    exact: float,
    coarsening: float,
    state: Mapping[str, Any],
) -> FittedIntegrated:
    """The mixture over outcome scales, nodes and shares of noise."""
    n, a = len(x), SHAPE + 0.5 * len(x)
    told, R = outcomes[0].noise is not None, nodes.correlations(x)
    shared = None if told else _Basis.of(R, None)
    bases = [shared or _Basis.of(R, each.noise) for each in outcomes]
    shares, log_prior = _told_shares() if told else _shares(exact)
    log_likelihood, variance = np.empty((2, len(outcomes), len(nodes.psi), len(shares)))
    for i, (each, basis) in enumerate(zip(outcomes, bases, strict=True)):
        spectrum = basis.values[:, None] + shares[:, None]
        q = (np.square(basis.rotated(each.t))[:, None] / spectrum).sum(axis=2)
        half_log_det = 0.5 * np.log(spectrum).sum(axis=2) + float(np.log(basis.root).sum())
        if told:
            fit, variance[i] = 0.5 * (n * np.log(shares) - q * shares), 1.0 / shares
        else:
            fit = lgamma(a) - lgamma(SHAPE) + SHAPE * log(RATE) - a * np.log(RATE + 0.5 * q)
            variance[i] = (RATE + 0.5 * q) / a
        log_likelihood[i] = each.offset + fit - half_log_det - 0.5 * n * log(2.0 * pi)
    joint = log_likelihood + nodes.log_weights[:, None] + log_prior
    coarsened = coarsening / (coarsening + n) * log_likelihood + nodes.log_weights[:, None] + log_prior
    weights = np.exp(coarsened - coarsened.max()).ravel()
    order, kept = representatives(weights)
    scale, node, share = np.unravel_index(order, joint.shape)
    components = _Components(kept, scale, node, shares[share], variance.ravel()[order])
    evidence = float(np.logaddexp.reduce(joint, axis=None)) - log(len(nodes.psi))
    groups = _groups(nodes, x, outcomes, bases, components)
    return FittedIntegrated(components, groups, outcomes, evidence, inf if told else 2.0 * a, state)


def representatives(weights: Array) -> tuple[Indices, Array]:
    """Indices and weights of at most ``MOST`` components that represent all of them, by systematic sampling [KIT96].

    The components of most weight alone would be too sure: they are all near the mode.
    """
    if len(weights) <= MOST:
        return np.arange(len(weights)), np.maximum(weights / weights.sum(), TINIEST)
    levels = (np.arange(MOST) + 0.5) / MOST
    order, counts = np.unique(np.searchsorted(np.cumsum(weights), levels * weights.sum()), return_counts=True)
    return order, counts / MOST


def _groups(
    nodes: _Nodes, x: Array, outcomes: tuple[_Outcomes, ...], bases: list[_Basis], components: _Components
) -> tuple[_Group, ...]:
    c, groups = components, []
    of_basis = np.zeros_like(c.scale) if bases[0] is bases[-1] else c.scale
    for scale, node in dict.fromkeys(zip(of_basis.tolist(), c.node.tolist(), strict=True)):
        rows = np.flatnonzero((of_basis == scale) & (c.node == node))
        projection = bases[scale].vectors[node] / bases[scale].root[:, None]
        t = np.stack([outcomes[each].t for each in c.scale[rows]], axis=1)
        inverse = 1.0 / (bases[scale].values[node][:, None] + c.share[rows])
        alpha = projection @ (inverse * (projection.T @ t))
        groups.append(_Group(rows, nodes.kernel, nodes.psi[node], x, projection, inverse, alpha))
    return tuple(groups)


def _shares(exact: float) -> tuple[Array, Array]:
    """Shares of noise, and their log prior probabilities."""
    others = np.full(len(SHARES), (1.0 - exact) / len(SHARES))
    return np.append(EXACT, SHARES), np.log(np.append(exact, others))


def _told_shares() -> tuple[Array, Array]:
    """1 / A, and the log prior probability of A on a logarithmic grid."""
    log_density = -SHAPE * np.log(VARIANCES) - RATE / VARIANCES
    return 1.0 / VARIANCES, log_density - np.logaddexp.reduce(log_density)


@lru_cache(maxsize=256)
def student_rows(freedom: float) -> tuple[Array, Array]:
    """Scales and weights of Gaussians that together are close to a Student t.

    Its precision is gamma(freedom / 2, freedom / 2); they are the nodes of a Gauss-Laguerre quadrature [GW69].
    """
    if freedom >= NORMAL:
        return read_only(np.ones(1)), read_only(np.ones(1))
    precision, weights = roots_genlaguerre(5 if freedom < NEAR_NORMAL else 3, 0.5 * freedom - 1.0)
    return read_only(np.sqrt(0.5 * freedom / precision)), read_only(weights / weights.sum())
