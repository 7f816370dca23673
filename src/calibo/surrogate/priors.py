"""Beliefs about the hyper-parameters of a Gaussian process."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from math import log

from calibo.errors import InputError
from calibo.gp.likelihood import Belief, Prior
from calibo.parts import register

__all__ = ["FLAT", "Priors"]


@register("priors")
@dataclass(frozen=True)
class Priors:
    """Beliefs about hyper-parameters of standardized outcomes in the unit cube; chosen in docs/results/choices.md."""

    lengthscale: Belief = Belief(log(0.15), 1.0, log(1e-3), log(1e3))
    """Centred on exp(center) sqrt(d): distances in the cube grow with the root of the dimension [HVA24]."""

    amplitude: Belief = Belief(0.0, 1.0, log(1e-3), log(1e3))
    noise: Belief = Belief(log(1e-5), 3.0, log(1e-8), log(1.0))
    mean: Belief = Belief(0.0, 1.0)
    decay: Belief = Belief(0.0, 1.0, log(1e-2), log(1e3))
    angle: Belief = Belief(-log(2.0), 1.0, -6.0, 6.0)
    """Logits of the angles between tasks: a correlation of a half is expected, and any is possible."""

    excess: Belief = Belief(log(1e-2), 3.0, log(1e-8), log(10.0))
    """The variance of the noise that other tasks have beyond that of the target."""

    place: Belief = Belief(0.0, 1.0, -6.0, 6.0)
    """The logit of where a task had a column that it lacks."""

    period: Belief = Belief(log(0.5), 0.5, log(0.05), log(10.0))

    more: tuple[tuple[str, Belief], ...] = ()
    """About hyper-parameters of kernels of your own, by their labels."""

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
        known = {field.name: getattr(self, field.name) for field in fields(self) if field.name in KERNEL}
        known |= {**dict(self.more), "lengthscale": scaled}
        rest = iter(shapes)
        beliefs = [next(rest) if label == "shape" else _known(known, label) for label in labels]
        return Prior.of([*beliefs, self.noise, self.mean, *more])


KERNEL = ("lengthscale", "amplitude", "decay", "angle", "excess", "place", "period")
"""Labels of the hyper-parameters of our kernels; shapes of warps have the beliefs of their axes."""


def _known(beliefs: Mapping[str, Belief], label: str) -> Belief:
    if label not in beliefs:
        raise InputError(
            f"`priors` must have a prior of {label!r}, a hyper-parameter of the kernel, but has those of "
            f"{list(beliefs)}. Give `Priors(more=(({label!r}, Belief(center, std)),))`."
        )
    return beliefs[label]


FLAT = Priors(
    lengthscale=Belief(log(0.2), low=log(1e-2), high=log(1e2)),
    amplitude=Belief(0.0, low=log(1e-3), high=log(1e3)),
    noise=Belief(log(1e-4), low=log(1e-8), high=log(1.0)),
    mean=Belief(0.0),
    decay=Belief(0.0, low=log(1e-2), high=log(1e2)),
    period=Belief(log(0.5), low=log(0.05), high=log(10.0)),
    angle=Belief(-log(2.0), low=-6.0, high=6.0),
    excess=Belief(log(1e-4), low=log(1e-8), high=log(10.0)),
    place=Belief(0.0, low=-6.0, high=6.0),
)
"""No beliefs, only bounds: maximum likelihood."""
