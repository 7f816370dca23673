"""What a surrogate is: a recipe that is fitted to observations, and a fitted one that gives a posterior."""

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
"""False for the function itself, True for an observation; (n,) known standard deviations, NaN where they are not."""


class FittedSurrogate(ABC):
    """A posterior over the objective, everywhere in the cube. Three methods are needed, the others have defaults."""

    @abstractmethod
    def posterior(self, x: Array, *, noise: Noise = False) -> Forecast:
        """Of the function at each point (n, d), or with ``noise`` of an observation."""

    @abstractmethod
    def posterior_with_gradient(self, x: Array) -> tuple[Forecast, Array, Array]:
        """Of the function, with the derivatives (S, n, d) of loc and scale."""

    @abstractmethod
    def condition(self, x: Array, y: Array) -> Self:
        """Conditioned on further outcomes, with the same hyper-parameters."""

    def condition_on_mean(self, x: Array) -> Self:
        """Conditioned on its own mean at ``x``, row by row: as if what it expects had happened."""
        return self.condition(x, self.posterior(x).median)

    def in_sample_mean(self, x: Array) -> Array:
        """(n,) posterior mean at the observed points ``x``."""
        return np.asarray(self.posterior(x).median)

    def leave_one_out(self) -> Forecast:
        """Of each outcome, from the others."""
        raise FitError(f"{type(self).__name__} has no leave-one-out forecasts. Give it a method `leave_one_out`.")

    @property
    def log_evidence(self) -> float:
        """Log marginal likelihood of the outcomes, in their units."""
        raise FitError(f"{type(self).__name__} cannot be compared with others. Give it a property `log_evidence`.")

    @property
    def state(self) -> Mapping[str, Any]:
        """Values that can be stored as JSON, each named by all it depends on. They save the next fit work, no more."""
        return {}

    @property
    def models(self) -> Mapping[str, float]:
        """Weights of several models; empty where there is one."""
        return {}

    optimum: float | None = None
    """The least value, where the model knows it."""

    refuted: bool = False
    """Whether the outcomes contradict the optimum that the model was given."""


class Surrogate(ABC):
    """A recipe for a fitted surrogate: a registered frozen dataclass. Only ``fit`` is needed."""

    @abstractmethod
    def fit(self, observations: Observations, *, rng: np.random.Generator, previous: Any = None) -> FittedSurrogate:
        """``previous`` is the state of an earlier fit, or None; what of it belongs to other data is not used."""

    def refit(self, observations: Observations, fitted: Any) -> FittedSurrogate:
        """A short fit that starts from ``fitted``, of much the same data: for cross-validation, which takes many."""
        return self.fit(observations, rng=np.random.default_rng(0), previous=fitted.state)

    @property
    def transforms_outcomes(self) -> bool:
        """Whether its rows are Gaussian on another scale than that of the values."""
        return False

    needs_optimum: ClassVar[bool] = False
    """Whether it must be given a known optimum."""

    @property
    def lacks_optimum(self) -> bool:
        """Whether it needs a known optimum and has none yet."""
        return False

    def with_process(self, **parts: Any) -> "Surrogate":
        """The same model with other parts of its Gaussian process: kernel, transform, warped, samples."""
        raise InputError(
            f"A kernel or an outcome transform can be changed in one GaussianProcess, but the surrogate is a "
            f"{type(self).__name__}. Begin with 'plain' or 'papers-base', or put '+single' before."
        )

    def with_side_information(self, info: "SideInformation") -> "Surrogate":
        """The model that also uses prior studies and a known optimum: a choice between it and informed models."""
        return info.choose_beside(self)


@dataclass(frozen=True, eq=False)
class WrappedSurrogate(FittedSurrogate):
    """A fitted surrogate around another one, which does what the wrapper does not do itself."""

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
