"""A known optimum: the least value, or a bound on it, before anything is evaluated."""

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from calibo.arrays import Array
from calibo.errors import InputError, require_number
from calibo.observations import LARGEST
from calibo.parts import register

TOLERANCE = 1e-3  # of the distance of a good one of the first outcomes
FIRST = 10  # outcomes by which that is judged, so that it does not shrink as the search comes nearer
GOOD = 0.25  # share of them that are better: three quarters may be outliers
MARGIN = 0.05  # of their span, by which a value that was wrong is put below the best outcome
FAR = 10.0  # times as far from the best as the median: what lies beyond are outliers
SIGMAS = 3.0  # of its noise by which an outcome may lie below the least value


Aim = Literal["regret", "out of reach", "another model", "wrong"]
"""What a suggestion aimed at where the optimum is known. "regret": at the optimum, by expected regret. Otherwise not,
because it seemed out of reach of that point, another model forecast better, or the outcomes refute it."""


@register("optimum")
@dataclass(frozen=True)
class Optimum:
    """The least value, or a bound below which no value lies; in the unit of the outcomes, to be minimised."""

    value: float

    bound: bool = False
    """True where it may be that no point reaches it."""

    tolerance: float | None = None
    """Values so near to it are as good as it; if not given, a thousandth of how far a good one of the first ten
    outcomes is away."""

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
        """None where there is none."""
        if value is not None:
            return cls(value, bound, tolerance)
        for name, extra in (("optimum_is_bound", bound or None), ("optimum_tolerance", tolerance)):
            if extra is not None:
                raise InputError(f"`{name}` must come with `known_optimum`, but that is not given.")
        return None

    @classmethod
    def from_json(cls, stored: Any) -> "Optimum | None":
        """None where it cannot be understood."""
        try:
            return cls(stored["value"], stored.get("bound", False), stored.get("tolerance"))
        except (AttributeError, InputError, LookupError, TypeError):
            return None

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments from which it is given."""
        return {"known_optimum": self.value, "optimum_is_bound": self.bound, "optimum_tolerance": self.tolerance}

    def with_sign(self, sign: float) -> "Optimum":
        """Of the outcomes times ``sign``, which is 1 or -1."""
        return replace(self, value=sign * self.value)

    def tolerance_for(self, y: Array) -> float:
        """The tolerance among outcomes ``y``, in the order of arrival."""
        if self.tolerance is not None or not len(y):
            return self.tolerance or 0.0
        first = np.sort(y[:FIRST])
        good = first[min(max(int(GOOD * (len(first) - 1)), 1), len(first) - 1)]
        return TOLERANCE * (float(good) - min(self.value, float(first[0])))

    def is_refuted_by(self, y: Array, noise_std: Array | None = None) -> bool:
        """Whether an outcome lies so far below that the value must be wrong; noise of known size is no proof."""
        return bool(np.any(self._excess(y, noise_std) > 0.0))

    def _excess(self, y: Array, noise_std: Array | None) -> Array:
        """(n,) by how much each outcome lies below what may still be."""
        noise = 0.0 if noise_std is None else SIGMAS * np.nan_to_num(noise_std, nan=0.0)
        return np.asarray(self.value - self.tolerance_for(y) - noise - y)

    def feasible_value(self, y: Array, noise_std: Array | None = None) -> float:
        """The value as far as the outcomes allow: where one has surpassed it, it is put somewhat below the best."""
        if not self.is_refuted_by(y, noise_std):
            return self.value
        best = float(y.min())
        return best - MARGIN * (span(y) or abs(best) or 1.0)

    def counterexample(self, y: Array, noise_std: Array) -> float | None:
        """The outcome that shows most clearly that the value is wrong; None where there is none."""
        excess = self._excess(y, noise_std)
        return float(y[np.argmax(excess)]) if np.any(excess > 0.0) else None

    def refutation(self, witness: float, y: Array, sign: float) -> str:
        """What to say of a wrong value; ``sign`` leads back to the user's direction."""
        return (
            f"The outcome {sign * witness:.6g} is better than the known optimum {sign * self.value:.6g} by more than "
            f"the tolerance {self.tolerance_for(y):.3g}. Unless that is noise, the search goes on without the optimum. "
            "Correct `known_optimum`, or where outcomes are noisy tell their noise or a larger `optimum_tolerance`."
        )

    def is_reached_by(self, y: Array) -> bool:
        """Whether the best of the outcomes is as good as the value, or better; a few do not tell what is near."""
        if not len(y) or (self.tolerance is None and len(y) < FIRST and float(y.min()) != self.value):
            return False
        return float(y.min()) <= self.value + self.tolerance_for(y)


def span(y: Array) -> float:
    """The range of outcomes, of which up to half may be far off."""
    if not len(y):
        return 0.0
    best = float(y.min())
    return min(float(y.max()) - best, FAR * (float(np.median(y)) - best) or np.inf)
