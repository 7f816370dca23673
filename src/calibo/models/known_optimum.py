"""A known optimal value f*: f = f* + g^2 / 2, where g is a Gaussian process [OPT20].

| symbol | meaning |
|---|---|
| f* | the minimum of the function, in the units of the outcomes |
| g | root of twice the distance to it: g = sqrt(2 (y - f*)); negative for outcomes below f* due to noise |
| m, s | mean and standard deviation of g |

The moments of f follow from those of g, by linearization at m or exactly:

    linear: f* + m^2 / 2,          |m| s                      [OPT20, Eq. 5 and 6, with sigma for its square]
    exact:  f* + (m^2 + s^2) / 2,  s sqrt(m^2 + s^2 / 2)

If m is 0, so is the linear sigma, whatever s is: an unexplored point would seem certain and optimal. The exact one
avoids this. Both are floored.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from calibo.arrays import Array
from calibo.cube import Cube
from calibo.errors import InputError
from calibo.forecasts import Forecast
from calibo.models.base import Noise, Surrogate, WrappedSurrogate
from calibo.models.gaussian_process import FittedGaussianProcess, GaussianProcess
from calibo.models.transfer import FittedTransfer, SourceTask, Transfer
from calibo.observations import Observations
from calibo.optimum import Optimum, span
from calibo.parts import Cache, identity, register
from calibo.transforms import IDENTITY

if TYPE_CHECKING:
    from calibo.side_information import SideInformation

FLOOR = 1e-6  # in units: the slope of the root is clipped at smaller distances
LEAST = 1e-6  # minimum standard deviation of a component, in units
OFFSETS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # candidates for best outcome - f* of a source, relative to its span

Moments = Literal["linear", "exact"]


@register("known-optimum")
@dataclass(frozen=True)
class KnownOptimum(Surrogate):
    """A model of functions whose optimal value is known."""

    optimum: Optimum | None = None
    """None until it is given as side information."""

    recipe: GaussianProcess | Transfer = field(default_factory=GaussianProcess)
    """Model of the root, without an outcome transform. The optimal value of a source task is learned from its data."""

    moments: Moments = "exact"

    def __post_init__(self) -> None:
        if self.moments not in ("linear", "exact"):
            raise InputError(f"`moments` must be 'linear' or 'exact', but got {self.moments!r}.")
        process = self.recipe.recipe if isinstance(self.recipe, Transfer) else self.recipe
        if not isinstance(process, GaussianProcess) or process.transform != GaussianProcess().transform:
            scale = f" with {type(process.transform).__name__}" if isinstance(process, GaussianProcess) else ""
            raise InputError(
                "`recipe` must be one GaussianProcess without an outcome transform, but got a "
                f"{type(process).__name__}{scale}. "
                "Start with 'plain', or add '+single' before it."
            )

    needs_optimum: ClassVar[bool] = True

    @property
    def lacks_optimum(self) -> bool:
        return self.optimum is None

    def with_process(self, **parts: Any) -> Surrogate:
        raise InputError("A kernel or outcome transform must come before 'root', but comes after it. Swap them.")

    def with_side_information(self, info: "SideInformation") -> Surrogate:
        return replace(info, optimum=None).choose_beside(replace(self, optimum=info.optimum or self.optimum))

    def fit(
        self, observations: Observations, *, rng: np.random.Generator, previous: Mapping[str, Any] | None = None
    ) -> "FittedKnownOptimum":
        model, root, roots = self._transform(observations)
        return self._fitted(model.fit(roots, rng=rng, previous=previous), root, observations)

    def refit(self, observations: Observations, fitted: "FittedKnownOptimum") -> "FittedKnownOptimum":
        model, root, roots = self._transform(observations)
        inner: Any = fitted.inner
        return self._fitted(model.refit(roots, inner), root, observations)

    def _fitted(self, inner: Any, root: "Root", observations: Observations) -> "FittedKnownOptimum":
        given = None if self.optimum is None else self.optimum.value
        return FittedKnownOptimum(inner, self.moments, root, observations.y, given)

    def _transform(self, observations: Observations) -> tuple[GaussianProcess | Transfer, "Root", Observations]:
        if self.optimum is None:
            raise InputError("`known_optimum` must be given for KnownOptimum, but is missing. Pass it.")
        root = Root.of(self._least(self.optimum, observations), observations.y)
        recipe = self.recipe
        if isinstance(recipe, Transfer):
            recipe = replace(
                recipe, sources=tuple(_of_roots(source, recipe.recipe, observations.cube) for source in recipe.sources)
            )
        noise = observations.noise_std
        if not np.isnan(noise).all():
            fitted = self._plain().fit(observations, rng=np.random.default_rng(0))
            function = fitted.in_sample_mean(observations.x)
            noise = root.noise(function, noise)
        return recipe, root, replace(observations, y=root(observations.y), noise_std=noise)

    def _least(self, optimum: Optimum, observations: Observations) -> float:
        """The optimal value consistent with the outcomes. Unknown noise is estimated by a GP without the optimum."""
        y, noise = observations.y, observations.noise_std
        if optimum.is_refuted_by(y, noise) and np.isnan(noise).any():
            noise = np.where(np.isnan(noise), noise_of(self._plain(), observations), noise)
        return optimum.feasible_value(y, noise)

    def _plain(self) -> GaussianProcess:
        """The Gaussian process of the untransformed outcomes."""
        process = self.recipe.recipe if isinstance(self.recipe, Transfer) else self.recipe
        return replace(process, samples=0)


def noise_of(recipe: GaussianProcess, observations: Observations) -> float:
    """The noise standard deviation inferred by a Gaussian process."""
    fitted = recipe.fit(observations, rng=np.random.default_rng(0))
    seen = observations.x[:1]
    total, function = (float(fitted.posterior(seen, noise=noise).scale[0, 0]) for noise in (True, False))
    return total * float(np.sqrt(max(1.0 - (function / total) ** 2, 0.0)))


def _of_roots(source: SourceTask, process: GaussianProcess, cube: Cube) -> SourceTask:
    """The source task with root-transformed outcomes, at its maximum-evidence optimal value."""
    root = _root_of(replace(source, key=""), process, cube)  # without a key, its points are part of the identity, too
    noise = root.noise(source.y, source.noise_std)
    return replace(source, y=root(source.y), noise_std=noise, key=source.key and f"{source.key}-{root.optimum!r}")


ROOTS = Cache(64)  # of source tasks


def _root_of(source: SourceTask, process: GaussianProcess, cube: Cube) -> "Root":
    key = identity((source, process, cube))
    if (known := ROOTS.get(key)) is None:
        known = _fitted_root(source, process, cube)
        ROOTS.put(key, known)
    return known  # type: ignore[no-any-return]


def _fitted_root(source: SourceTask, process: GaussianProcess, cube: Cube) -> "Root":
    data, _ = source.data(cube)
    highest, recipe = -np.inf, replace(process, samples=0)
    for offset in OFFSETS:
        least = Optimum(float(source.y.min()) - offset * span(source.y))
        fitted = KnownOptimum(least, recipe).fit(data, rng=np.random.default_rng(0))
        if fitted.log_evidence > highest:
            highest, root = fitted.log_evidence, fitted.root
    return root


@dataclass(frozen=True)
class Root:
    """The signed root of twice the distance to the optimal value: noise may carry outcomes below it."""

    optimum: float
    unit: float
    """The median distance of the outcomes."""

    @classmethod
    def of(cls, optimum: float, y: Array) -> "Root":
        unit = float(np.median(y)) - optimum
        return cls(optimum, unit if unit > 0.0 else 1.0)

    def __call__(self, y: Array) -> Array:
        distance = y - self.optimum
        return np.asarray(np.sign(distance) * np.sqrt(2.0 * np.abs(distance)))

    def noise(self, y: Array, noise_std: Array) -> Array:
        """Noise of the roots at function values ``y``: noise / g, with y - f* at least one standard deviation.

        ``y`` are not the outcomes: those low by chance would seem uncertain, and the fit would be biased upwards.
        """
        distance = np.maximum(y - self.optimum, noise_std)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(noise_std == 0.0, 0.0, noise_std / np.sqrt(2.0 * distance))

    def log_slope(self, y: Array) -> Array:
        """dg/dy = 1 / g"""
        return np.asarray(-np.log(np.maximum(np.abs(self(y)), np.sqrt(2.0 * FLOOR * self.unit))))


@dataclass(frozen=True, eq=False)
class FittedKnownOptimum(WrappedSurrogate):
    """The posterior of the function, component by component."""

    inner: FittedGaussianProcess | FittedTransfer
    moments: Moments
    root: Root
    y: Array
    """The outcomes."""

    given: float | None = None
    """The optimal value given by the user; if the outcomes refute it, the root uses one below them."""

    @property
    def log_evidence(self) -> float:
        return self.inner.log_evidence + float(self.root.log_slope(self.y).sum())

    @property
    def optimum(self) -> float:  # type: ignore[override]
        """The optimal value consistent with the outcomes."""
        return self.root.optimum

    @property
    def refuted(self) -> bool:  # type: ignore[override]
        return self.given is not None and self.root.optimum != self.given

    def posterior(self, x: Array, *, noise: Noise = False) -> Forecast:
        if not isinstance(noise, bool):
            noise = self.root.noise(self.posterior(x).at_normal_score(0.0), noise)
        return self._squared(self.inner.posterior(x, noise=noise))[0]

    def posterior_with_gradient(self, x: Array) -> tuple[Forecast, Array, Array]:
        root, d_m, d_s = self.inner.posterior_with_gradient(x)
        forecast, (loc_by_m, loc_by_s, scale_by_m, scale_by_s) = self._squared(root)
        d_loc = loc_by_m[..., None] * d_m + loc_by_s[..., None] * d_s
        return forecast, d_loc, scale_by_m[..., None] * d_m + scale_by_s[..., None] * d_s

    def leave_one_out(self) -> Forecast:
        return self._squared(self.inner.leave_one_out())[0]

    def in_sample_mean(self, x: Array) -> Array:
        return np.asarray(self.optimum + 0.5 * np.square(self.inner.in_sample_mean(x)))

    def condition(self, x: Array, y: Array) -> "FittedKnownOptimum":
        return replace(self, inner=self.inner.condition(x, self.root(y)))

    def condition_on_mean(self, x: Array) -> "FittedKnownOptimum":
        """Conditioned on the mean of f; with exact moments it exceeds the squared mean of the root."""
        if self.moments == "linear":
            return replace(self, inner=self.inner.condition_on_mean(x))
        before = self.inner.posterior(x)
        left = self.inner.condition_rows(x, before.loc).posterior(x).scale
        gone = np.maximum(np.square(before.scale) - np.square(left), 0.0)
        raised = np.where(before.loc < 0.0, -1.0, 1.0) * np.sqrt(np.square(before.loc) + gone)
        return replace(self, inner=self.inner.condition_rows(x, raised))

    def _squared(self, root: Forecast) -> tuple[Forecast, tuple[Array, Array, Array, Array]]:
        """The forecast of f, and the derivatives of its loc and scale w.r.t. the root's."""
        m, s = root.loc, root.scale
        if self.moments == "linear":
            mean, spread = 0.5 * np.square(m), np.abs(m) * s
            by_m, by_s, mean_by_s = np.sign(m) * s, np.abs(m), np.zeros_like(m)
        else:
            whole = np.sqrt(np.square(m) + 0.5 * np.square(s))
            mean, spread, mean_by_s = 0.5 * (np.square(m) + np.square(s)), s * whole, s
            by_m, by_s = m * s / whole, whole + 0.5 * np.square(s) / whole
        least = LEAST * self.root.unit
        moving = spread > least
        forecast = Forecast(self.optimum + mean, np.maximum(spread, least), root.weights, (IDENTITY,) * len(m))
        return forecast, (m, mean_by_s, by_m * moving, by_s * moving)
