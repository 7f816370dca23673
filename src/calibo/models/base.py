"""Base classes of surrogates: a model to be fitted to observations, and a fitted one that gives a posterior."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from calibo.arrays import Array
from calibo.errors import FitError, InputError
from calibo.forecasts import Forecast
from calibo.observations import Observations

if TYPE_CHECKING:
    from calibo.side_information import SideInformation

Noise = bool | Array
"""False for the latent function, True for an observation; (n,) known standard deviations, NaN where unknown."""


class FittedSurrogate(ABC):
    """A posterior over the objective on the unit cube. Three methods are abstract, the others have defaults."""

    @abstractmethod
    def posterior(self, x: Array, *, noise: Noise = False) -> Forecast:
        """Posterior of the function at each point (n, d), or with ``noise`` of an observation."""

    @abstractmethod
    def posterior_with_gradient(self, x: Array) -> tuple[Forecast, Array, Array]:
        """Posterior of the function, with the derivatives (S, n, d) of loc and scale."""

    @abstractmethod
    def condition(self, x: Array, y: Array) -> Self:
        """Conditioned on further outcomes, with the same hyperparameters."""

    def condition_on_mean(self, x: Array) -> Self:
        """Conditioned on its own mean at ``x``, row by row: fantasies at the posterior mean ("kriging believer")."""
        return self.condition(x, self.posterior(x).median)

    def in_sample_mean(self, x: Array) -> Array:
        """(n,) posterior mean at the observed points ``x``; after conditioning, points added may follow."""
        return np.asarray(self.posterior(x).median)

    def leave_one_out(self) -> Forecast:
        """Forecast of each outcome from the others."""
        raise FitError(f"{type(self).__name__} has no leave-one-out forecasts. Implement `leave_one_out`.")

    @property
    def log_evidence(self) -> float:
        """Log marginal likelihood of the outcomes, in their units."""
        raise FitError(f"{type(self).__name__} cannot be used in model choice. Implement `log_evidence`.")

    @property
    def state(self) -> Mapping[str, Any]:
        """JSON-serializable values, each keyed by all it depends on. They only speed up the next fit."""
        return {}

    @property
    def models(self) -> Mapping[str, float]:
        """Weights of several models; empty for a single one."""
        return {}

    optimum: float | None = None
    """The optimal value, if the model was given one."""

    refuted: bool = False
    """Whether the outcomes contradict the optimum that the model was given."""


class Surrogate(ABC):
    """A model to be fitted: a registered frozen dataclass. Only ``fit`` is abstract."""

    @abstractmethod
    def fit(self, observations: Observations, *, rng: np.random.Generator, previous: Any = None) -> FittedSurrogate:
        """``previous`` is the state of an earlier fit, or None; entries for other data are ignored."""

    def refit(self, observations: Observations, fitted: Any) -> FittedSurrogate:
        """A quick fit warm-started from ``fitted``, a fit to similar data; used for cross-validation."""
        return self.fit(observations, rng=np.random.default_rng(0), previous=fitted.state)

    @property
    def transforms_outcomes(self) -> bool:
        """Whether its forecasts are Gaussian on a transformed scale."""
        return False

    needs_optimum: ClassVar[bool] = False
    """Whether it requires a known optimum."""

    @property
    def lacks_optimum(self) -> bool:
        """Whether it requires a known optimum and has none yet."""
        return False

    def with_process(self, **parts: Any) -> "Surrogate":
        """The same model with fields of its Gaussian process replaced: kernel, transform, warped, samples."""
        raise InputError(
            f"The kernel or outcome transform can only be changed in a single GaussianProcess, but the surrogate is a "
            f"{type(self).__name__}. Start with 'plain' or 'papers-base', or add '+single' before it."
        )

    def with_side_information(self, info: "SideInformation") -> "Surrogate":
        """The model with prior studies and a known optimum: a choice between itself and models that use them."""
        return info.choose_beside(self)


@dataclass(frozen=True, eq=False)
class WrappedSurrogate(FittedSurrogate):
    """A fitted surrogate around another one, to which it delegates by default."""

    inner: Any

    def condition(self, x: Array, y: Array) -> Self:
        return replace(self, inner=self.inner.condition(x, y))

    def condition_on_mean(self, x: Array) -> Self:
        return replace(self, inner=self.inner.condition_on_mean(x))

    def in_sample_mean(self, x: Array) -> Array:
        return np.asarray(self.inner.in_sample_mean(x))

    def leave_one_out(self) -> Forecast:
        return self.inner.leave_one_out()  # type: ignore[no-any-return]

    @property
    def log_evidence(self) -> float:
        return float(self.inner.log_evidence)

    @property
    def state(self) -> Mapping[str, Any]:
        return self.inner.state  # type: ignore[no-any-return]

    @property
    def models(self) -> Mapping[str, float]:
        return self.inner.models  # type: ignore[no-any-return]
