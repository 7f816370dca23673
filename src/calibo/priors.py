"""Hyperparameter priors: Normal with bounds, on the scale on which each is fitted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from math import log

import numpy as np

from calibo.arrays import Array, read_only
from calibo.errors import InputError
from calibo.parts import register


@register("normal")
@dataclass(frozen=True)
class NormalPrior:
    """A Normal prior of one hyperparameter, on the log scale if it is positive."""

    center: float
    std: float = float("inf")
    """Infinite for a flat prior, i.e. maximum likelihood."""

    low: float = -float("inf")
    high: float = float("inf")


@dataclass(frozen=True, eq=False)
class JointPrior:
    """Independent Normal priors of all entries of theta."""

    center: Array
    precision: Array
    bounds: tuple[tuple[float, float], ...]

    @classmethod
    def of(cls, priors: Sequence[NormalPrior]) -> "JointPrior":
        return cls(
            read_only(np.array([prior.center for prior in priors])),
            read_only(np.array([prior.std**-2.0 for prior in priors])),
            tuple((prior.low, prior.high) for prior in priors),
        )

    def part(self, entries: slice) -> "JointPrior":
        """The prior of some of the entries."""
        return JointPrior(self.center[entries], self.precision[entries], self.bounds[entries])

    def log_density(self, theta: Array) -> tuple[float, Array]:
        """Log density up to a constant, and its gradient."""
        gap = self.precision * (theta - self.center)
        return -0.5 * float(gap @ (theta - self.center)), -gap


@register("priors", stored_as={"missing": "place", "extra": "more"})
@dataclass(frozen=True)
class HyperPriors:
    """Priors for standardized outcomes in the unit cube; chosen in docs/results/choices.md."""

    lengthscale: NormalPrior = NormalPrior(log(0.15), 1.0, log(1e-3), log(1e3))
    """Centred on exp(center) sqrt(d): distances in the cube grow as the square root of the dimension [HVA24]."""

    amplitude: NormalPrior = NormalPrior(0.0, 1.0, log(1e-3), log(1e3))
    noise: NormalPrior = NormalPrior(log(1e-5), 3.0, log(1e-8), log(1.0))
    mean: NormalPrior = NormalPrior(0.0, 1.0)
    decay: NormalPrior = NormalPrior(0.0, 1.0, log(1e-2), log(1e3))
    angle: NormalPrior = NormalPrior(-log(2.0), 1.0, -6.0, 6.0)
    """Logits of the angles between tasks: centred on a correlation of a half, with all correlations possible."""

    excess: NormalPrior = NormalPrior(log(1e-2), 3.0, log(1e-8), log(10.0))
    """Noise variance of source tasks in excess of the target's."""

    missing: NormalPrior = NormalPrior(0.0, 1.0, -6.0, 6.0)
    """Logit of the value imputed for a task's missing column."""

    period: NormalPrior = NormalPrior(log(0.5), 0.5, log(0.05), log(10.0))

    extra: tuple[tuple[str, NormalPrior], ...] = ()
    """For hyperparameters of custom kernels, by label."""

    def __post_init__(self) -> None:
        # a list would not be hashable
        object.__setattr__(self, "extra", tuple((label, prior) for label, prior in self.extra))


KERNEL = ("lengthscale", "amplitude", "decay", "angle", "excess", "missing", "period")
"""Hyperparameter labels of built-in kernels; warps have the priors of their axes."""


@lru_cache(maxsize=64)
def joint_prior(
    priors: HyperPriors,
    labels: tuple[str, ...],
    width: int | None = None,
    more: tuple[NormalPrior, ...] = (),
    shapes: tuple[NormalPrior, ...] = (),
) -> JointPrior:
    """Joint prior of a kernel's hyperparameters by ``labels``, then noise, mean and ``more``.

    ``width`` is the maximum number of active numeric columns; ``shapes`` are the priors of warps.
    """
    wide = width or max(labels.count("lengthscale"), 1)
    scaled = replace(priors.lengthscale, center=priors.lengthscale.center + 0.5 * log(wide))
    known = {field.name: getattr(priors, field.name) for field in fields(priors) if field.name in KERNEL}
    known |= {**dict(priors.extra), "lengthscale": scaled}
    rest = iter(shapes)
    found = [next(rest) if label == "shape" else _prior_of(known, label) for label in labels]
    return JointPrior.of([*found, priors.noise, priors.mean, *more])


def _prior_of(priors: Mapping[str, NormalPrior], label: str) -> NormalPrior:
    if label not in priors:
        raise InputError(
            f"`priors` must have a prior of {label!r}, a hyperparameter of the kernel, but has those of "
            f"{list(priors)}. Pass `HyperPriors(extra=(({label!r}, NormalPrior(center, std)),))`."
        )
    return priors[label]


FLAT = HyperPriors(
    lengthscale=NormalPrior(log(0.2), low=log(1e-2), high=log(1e2)),
    amplitude=NormalPrior(0.0, low=log(1e-3), high=log(1e3)),
    noise=NormalPrior(log(1e-4), low=log(1e-8), high=log(1.0)),
    mean=NormalPrior(0.0),
    decay=NormalPrior(0.0, low=log(1e-2), high=log(1e2)),
    period=NormalPrior(log(0.5), low=log(0.05), high=log(10.0)),
    angle=NormalPrior(-log(2.0), low=-6.0, high=6.0),
    excess=NormalPrior(log(1e-4), low=log(1e-8), high=log(10.0)),
    missing=NormalPrior(0.0, low=-6.0, high=6.0),
)
"""Bounds only: maximum likelihood."""
