"""Transfer learning with a multi-task Gaussian process over source tasks and the target, WARP14 Sec. 2.3 and 3.2.

Every task has its own scale, noise and, with input warping, warps. The correlations between tasks are learned.
Forecasts are for the target, task 0.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from math import log
from typing import Any

import numpy as np

from calibo.arrays import Array
from calibo.cube import Axis, Cube
from calibo.errors import InputError
from calibo.forecasts import Forecast
from calibo.gp.kernels import Covariance, Hamming, ProductCovariance, ScaledCovariance, SumCovariance
from calibo.gp.process import Process
from calibo.gp.tasks import MissingColumnsCovariance, TaskCovariance, TaskNoiseCovariance, task_correlations
from calibo.gp.warping import WarpedCovariance
from calibo.models.base import Noise, Surrogate, WrappedSurrogate
from calibo.models.gaussian_process import FittedGaussianProcess, GaussianProcess, size_of_fit, warp_priors
from calibo.observations import Observations, spread
from calibo.parts import identity, register
from calibo.priors import JointPrior, joint_prior

FEWEST = 2  # outcomes of a source: fewer have no standard deviation
NARROWEST = 0.1  # minimum standard deviation of the target's outcomes, relative to a source's


@register("source")
@dataclass(frozen=True, eq=False)
class SourceTask:
    """The data of a source task, with points in the target's cube; NaN in missing columns."""

    name: str
    x: Array
    y: Array
    noise_std: Array

    key: str = ""
    """Identifies its data independently of the target's cube; by default a digest of outcomes and points."""

    def __post_init__(self) -> None:
        if len(self.y) < FEWEST or spread(self.y) == 0.0:
            raise InputError(f"`{self.name}` must have outcomes that differ, but got {self.y!r}.")

    def identity_fields(self) -> dict[str, str]:
        """The fields that identify it; the data enter as a digest."""
        return {"name": self.name, "key": self.key or self._digest()}

    def _digest(self) -> str:
        return blake2b(b"".join(part.tobytes() for part in (self.x, self.y, self.noise_std)), digest_size=6).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SourceTask) and identity(self) == identity(other)

    def __hash__(self) -> int:
        return hash(identity(self))

    def __repr__(self) -> str:
        return f"SourceTask({self.name!r}, {len(self.y)} outcomes)"

    @property
    def lacking(self) -> tuple[int, ...]:
        """The missing columns."""
        return tuple(int(j) for j in np.flatnonzero(np.isnan(self.x).all(axis=0)))

    def data(self, cube: Cube) -> tuple[Observations, list[int]]:
        """Its data in the columns it shares with the target's ``cube``, and the indices of these columns."""
        own = [j for j in range(len(cube)) if j not in self.lacking]
        part = Cube(tuple(cube.axes[j] for j in own))
        known, nothing = np.ones(len(self.y), dtype=bool), np.empty((0, len(own)))
        return Observations(part, self.x[:, own], self.y, self.noise_std, known, nothing), own


@register("joint-process")
@dataclass(frozen=True)
class JointProcess(GaussianProcess):
    """A multi-task Gaussian process; the last column of its cube is the task index."""

    tasks: int = 2
    known: int = 0
    """Number of source outcomes; they come first and never change."""

    gaps: tuple[tuple[int, int], ...] = ()
    """(task, column) of each numeric column missing in a task."""

    def _size(self, y: Array) -> int:
        return self.known + super()._size(y[self.known :])

    def _earlier(self, y: Array, size: int) -> int:
        """0: chains are not continued, because the target's standardization changes with every fit."""
        return 0

    def covariance(self, cube: Cube) -> Covariance:
        own, column = Cube(cube.axes[:-1], cube.width), len(cube) - 1
        numeric = tuple(int(j) for j in np.flatnonzero(own.free & ~own.categorical))
        categories = tuple(int(j) for j in np.flatnonzero(own.free & own.categorical))
        kernel: Covariance = ScaledCovariance(TaskCovariance(column, self.tasks))
        if numeric:
            inner = self.kernel.on(numeric)
            if self.warped and own.warped:
                inner = WarpedCovariance(inner, own.warped, column, self.tasks)
            kernel = ProductCovariance(inner, kernel)
        if categories:
            kernel = ProductCovariance(kernel, Hamming().on(categories))
        if self.gaps:
            kernel = MissingColumnsCovariance(kernel, self.gaps, column)
        return SumCovariance(kernel, TaskNoiseCovariance(column, self.tasks))

    def _starts(self, kernel: Covariance, prior: JointPrior) -> list[Array]:
        """Also one where only the sources are noisy: otherwise a noisy source makes all lengthscales short."""
        excess = prior.center.copy()
        excess[: len(kernel.labels)][[label == "excess" for label in kernel.labels]] = log(0.5)
        return [*super()._starts(kernel, prior), excess]

    def prior(self, kernel: Covariance, cube: Cube) -> JointPrior:
        shapes = warp_priors(Cube(cube.axes[:-1]), self.tasks)
        return joint_prior(self.priors, tuple(kernel.labels), cube.width, tuple(self.transform.priors), shapes)


@register("transfer")
@dataclass(frozen=True)
class Transfer(Surrogate):
    """A model that learns from source tasks, too."""

    sources: tuple[SourceTask, ...]

    recipe: GaussianProcess = field(default_factory=GaussianProcess)
    """Settings of the joint process; outcomes are standardized per task, without a transform."""

    def __post_init__(self) -> None:
        if not self.sources:
            raise InputError("`sources` must hold at least one task, but got none.")
        if self.recipe.transform.priors:
            raise InputError("`recipe` must not have an outcome transform, but has one: tasks have no common one.")

    def fit(
        self, observations: Observations, *, rng: np.random.Generator, previous: Mapping[str, Any] | None = None
    ) -> "FittedTransfer":
        process = self._process(observations)
        # standardized by the outcomes used in the fit, so that it stays valid until the next
        joint, center, scale = self._joint(observations, size_of_fit(observations.y, process.growth))
        return self._fitted(process.fit(joint, rng=rng, previous=previous), center, scale)

    def refit(self, observations: Observations, fitted: "FittedTransfer") -> "FittedTransfer":
        joint, center, scale = self._joint(observations, len(observations))
        return self._fitted(self._process(observations).refit(joint, fitted.inner), center, scale)

    def correlations(self, observations: Observations, draws: int, chains: int, burn_in: int) -> Array:
        """(chains, draws, T, T) posterior draws of the correlations between tasks, the target first."""
        process = self._process(observations)
        joint, _, _ = self._joint(observations, len(observations))
        labels = process.covariance(joint.cube).labels
        posterior = process.hyper_posterior(joint)
        found = [posterior.draws(draws, np.random.default_rng(c), burn_in=burn_in) for c in range(chains)]
        return np.array([[_correlations(labels, theta, process.tasks) for theta in thetas] for thetas in found])

    def _fitted(self, inner: FittedGaussianProcess, center: float, scale: float) -> "FittedTransfer":
        processes = tuple(replace(process, n_source=self._known) for process in inner.processes)
        return FittedTransfer(replace(inner, processes=processes), self._known, len(self.sources), center, scale)

    @property
    def _known(self) -> int:
        return sum(len(source.y) for source in self.sources)

    def _process(self, observations: Observations) -> JointProcess:
        fields = {name: getattr(self.recipe, name) for name in ("kernel", "priors", "growth", "warped", "samples")}
        numeric = ~observations.cube.categorical
        gaps = [(t, j) for t, source in enumerate(self.sources, start=1) for j in source.lacking if numeric[j]]
        return JointProcess(**fields, tasks=len(self.sources) + 1, known=self._known, gaps=tuple(gaps))

    def _joint(self, observations: Observations, size: int) -> tuple[Observations, float, float]:
        """All data, standardized per task, and the centre and scale from the first ``size`` target outcomes."""
        center, scale = self._unit(observations.head(size))
        nowhere = np.where(observations.cube.categorical, -1.0, np.nan)  # a missing category matches none
        parts = [
            (np.where(np.isnan(s.x), nowhere, s.x), s.y, s.noise_std, t, *_unit(s.y))
            for t, s in enumerate(self.sources, start=1)
        ]
        parts.append((observations.x, observations.y, observations.noise_std, 0, center, scale))
        x = np.concatenate([np.column_stack([x, np.full(len(x), float(t))]) for x, _, _, t, _, _ in parts])
        y = np.concatenate([y / unit - middle / unit for _, y, _, _, middle, unit in parts])
        noise = np.concatenate([noise / unit for _, _, noise, _, _, unit in parts])
        cube = Cube((*observations.cube.axes, Axis("categorical", len(self.sources) + 1)), observations.cube.width)
        feasible = np.ones(len(y), dtype=bool)
        return Observations(cube, x, y, noise, feasible, np.empty((0, len(cube)))), center, scale

    def _unit(self, observations: Observations) -> tuple[float, float]:
        """Centre and scale that give the target's outcomes the mean and variance forecast by the sources there.

        A few outcomes are not enough to standardize by: of two nearly equal ones, one would become high and the
        other low. Nor do they tell how they compare with the rest of the space.
        """
        center, scale = _unit(observations.y)
        means, logs = [], []
        for source in self.sources:
            forecast = self._alone(source, observations)
            expected = float(forecast.loc.var() + np.mean(np.square(forecast.scale)))
            means.append(float(forecast.loc.mean()))
            logs.append(0.5 * log(max(expected, NARROWEST**2)))
        scale = scale / float(np.exp(np.mean(logs)))
        return center - scale * float(np.mean(means)), scale

    def _alone(self, source: SourceTask, observations: Observations) -> Forecast:
        """Forecast of a source alone at the target's points, standardized, without its missing columns."""
        data, own = source.data(observations.cube)
        center, scale = _unit(source.y)
        data = replace(data, y=source.y / scale - center / scale, noise_std=source.noise_std / scale)
        recipe = replace(self.recipe, samples=0)
        return recipe.fit(data, rng=np.random.default_rng(0)).posterior(observations.x[:, own], noise=True)


def _correlations(labels: tuple[str, ...], theta: Array, tasks: int) -> Array:
    """(T, T) correlations between tasks."""
    return task_correlations(theta[: len(labels)][[label == "angle" for label in labels]], tasks)[0]


def _unit(y: Array) -> tuple[float, float]:
    largest = float(np.abs(y).max(initial=0.0)) or 1.0
    return largest * float((y / largest).mean()) if len(y) else 0.0, spread(y) or 1.0  # their sum may overflow


@dataclass(frozen=True, eq=False)
class FittedTransfer(WrappedSurrogate):
    """The posterior of the target."""

    inner: FittedGaussianProcess
    known: int
    """Number of source outcomes, which come first."""

    sources: int
    center: float
    scale: float

    @property
    def log_evidence(self) -> float:
        """Log evidence of the target's outcomes given the sources."""
        rows = []
        for p in self.inner.processes:
            before = Process.from_data(p.kernel, p.theta, p.x[: self.known], p.y[: self.known], p.noise[: self.known])
            rows.append(p.log_marginal() - before.log_marginal())
        top, count = max(rows), len(self.inner.processes[0].y) - self.known
        mean = float(self.inner.weights @ np.exp(np.array(rows) - top))
        return top + log(mean) - count * log(self.scale * self.inner.spread)

    @property
    def correlations(self) -> Array:
        """(T,) correlations of the target with each task, itself first, averaged over components."""
        rows = [_correlations(p.kernel.labels, p.theta, self.sources + 1)[0] for p in self.inner.processes]
        return np.asarray(self.inner.weights @ np.array(rows))

    def posterior(self, x: Array, *, noise: Noise = False) -> Forecast:
        noise = noise if isinstance(noise, bool) else noise / self.scale
        return self._in_units(self.inner.posterior(_as_target(x), noise=noise))

    def posterior_with_gradient(self, x: Array) -> tuple[Forecast, Array, Array]:
        forecast, d_loc, d_scale = self.inner.posterior_with_gradient(_as_target(x))
        return self._in_units(forecast), self.scale * d_loc[..., :-1], self.scale * d_scale[..., :-1]

    def leave_one_out(self) -> Forecast:
        return self._in_units(self.inner.leave_one_out()[self.known :])

    def in_sample_mean(self, x: Array) -> Array:
        return np.asarray(self.center + self.scale * self.inner.in_sample_mean(x)[self.known :])

    def condition(self, x: Array, y: Array) -> "FittedTransfer":
        return replace(self, inner=self.inner.condition(_as_target(x), (y - self.center) / self.scale))

    def condition_on_mean(self, x: Array) -> "FittedTransfer":
        return replace(self, inner=self.inner.condition_on_mean(_as_target(x)))

    def condition_rows(self, x: Array, rows: Array) -> "FittedTransfer":
        """Each component conditioned on its own function values (S, n)."""
        return replace(self, inner=self.inner.condition_rows(_as_target(x), (rows - self.center) / self.scale))

    def _in_units(self, forecast: Forecast) -> Forecast:
        return replace(forecast, loc=self.center + self.scale * forecast.loc, scale=self.scale * forecast.scale)


def _as_target(x: Array) -> Array:
    return np.column_stack([x, np.zeros(len(x))])
