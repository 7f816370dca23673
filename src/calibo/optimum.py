"""A known optimum: the optimal value, or a bound on it, given in advance."""

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from calibo.arrays import Array
from calibo.errors import InputError, require_number
from calibo.observations import LARGEST
from calibo.parts import register

TOLERANCE = 1e-3  # relative to the distance from a good one of the first outcomes to the optimum
FIRST = 10  # outcomes used for that, so that the tolerance does not shrink as the search converges
GOOD = 0.25  # quantile of the good one: three quarters may be outliers
MARGIN = 0.05  # relative to the span: how far below the best outcome a refuted value is replaced
FAR = 10.0  # times the median distance from the best: beyond are outliers
SIGMAS = 3.0  # standard deviations of noise by which an outcome may lie below the optimal value


Aim = Literal["regret", "out of reach", "another model", "wrong"]
"""Whether a suggestion used the known optimum. "regret": yes, by expected regret. Otherwise no, because the optimum
was out of reach of that point, another model forecast better, or the outcomes refute it."""


@register("optimum")
@dataclass(frozen=True)
class Optimum:
    """The optimal value, or a lower bound on it; in the units of the outcomes, for minimization."""

    value: float

    bound: bool = False
    """True if the value is a bound that may not be attained."""

    tolerance: float | None = None
    """Values within it count as optimal; by default a thousandth of the distance from a good one of the first ten
    outcomes to the optimum."""

    def __post_init__(self) -> None:
        require_number("known_optimum", self.value, "a finite number")
        object.__setattr__(self, "value", float(np.clip(float(self.value), -LARGEST, LARGEST)))
        if not isinstance(self.bound, bool):
            raise InputError(f"`optimum_is_bound` must be True or False, but got {self.bound!r}.")
        if self.tolerance is not None:
            require_number("optimum_tolerance", self.tolerance, "a number of at least 0", least=0.0)
            object.__setattr__(self, "tolerance", float(self.tolerance))

    @classmethod
    def from_arguments(
        cls, value: float | None, bound: bool = False, tolerance: float | None = None
    ) -> "Optimum | None":
        """None if ``value`` is None."""
        if value is not None:
            return cls(value, bound, tolerance)
        for name, extra in (("optimum_is_bound", bound or None), ("optimum_tolerance", tolerance)):
            if extra is not None:
                raise InputError(f"`{name}` must come with `known_optimum`, but that is missing. Pass both.")
        return None

    @classmethod
    def from_json(cls, stored: Any) -> "Optimum | None":
        """None if malformed."""
        try:
            return cls(stored["value"], stored.get("bound", False), stored.get("tolerance"))
        except (AttributeError, InputError, LookupError, TypeError):
            return None

    @property
    def arguments(self) -> dict[str, Any]:
        """The equivalent keyword arguments."""
        return {"known_optimum": self.value, "optimum_is_bound": self.bound, "optimum_tolerance": self.tolerance}

    def with_sign(self, sign: float) -> "Optimum":
        """The optimum of the outcomes times ``sign``, 1 or -1."""
        return replace(self, value=sign * self.value)

    def tolerance_for(self, y: Array) -> float:
        """The tolerance for outcomes ``y``, in order of arrival."""
        if self.tolerance is not None or not len(y):
            return self.tolerance or 0.0
        first = np.sort(y[:FIRST])
        good = first[min(max(int(GOOD * (len(first) - 1)), 1), len(first) - 1)]
        return TOLERANCE * (float(good) - min(self.value, float(first[0])))

    def is_refuted_by(self, y: Array, noise_std: Array | None = None) -> bool:
        """Whether an outcome is so far below the value that it must be wrong, allowing for known noise."""
        return bool(np.any(self._excess(y, noise_std) > 0.0))

    def _excess(self, y: Array, noise_std: Array | None) -> Array:
        """(n,) how far each outcome lies below the lowest consistent value."""
        noise = 0.0 if noise_std is None else SIGMAS * np.nan_to_num(noise_std, nan=0.0)
        return np.asarray(self.value - self.tolerance_for(y) - noise - y)

    def feasible_value(self, y: Array, noise_std: Array | None = None) -> float:
        """The value, or, if the outcomes refute it, one slightly below the best outcome."""
        if not self.is_refuted_by(y, noise_std):
            return self.value
        best = float(y.min())
        return best - MARGIN * (span(y) or abs(best) or 1.0)

    def counterexample(self, y: Array, noise_std: Array) -> float | None:
        """The outcome that refutes the value most clearly; None if there is none."""
        excess = self._excess(y, noise_std)
        return float(y[np.argmax(excess)]) if np.any(excess > 0.0) else None

    def refutation(self, witness: float, y: Array, sign: float) -> str:
        """The warning about a wrong value; ``sign`` restores the user's direction."""
        return (
            f"The outcome {sign * witness:.6g} is better than the known optimum {sign * self.value:.6g} by more than "
            f"the tolerance {self.tolerance_for(y):.3g}. Unless this is noise, the search ignores the optimum from now "
            "on. Correct `known_optimum`, or, if outcomes are noisy, pass their noise or a larger `optimum_tolerance`."
        )

    def is_reached_by(self, y: Array) -> bool:
        """Whether the best outcome is within the tolerance; the default tolerance needs ten outcomes."""
        if not len(y) or (self.tolerance is None and len(y) < FIRST and float(y.min()) != self.value):
            return False
        return float(y.min()) <= self.value + self.tolerance_for(y)


def span(y: Array) -> float:
    """The range of outcomes, robust to up to half of them being outliers."""
    if not len(y):
        return 0.0
    best = float(y.min())
    return min(float(y.max()) - best, FAR * (float(np.median(y)) - best) or np.inf)
