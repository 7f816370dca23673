"""Gate: a correction is applied only as far as it has been shown to help."""

from dataclasses import dataclass

import numpy as np

from calibo.cache import Cache
from calibo.calibration.batch import ShiftScaleRecalibrator
from calibo.calibration.maps import CalibrationMap, usable
from calibo.calibration.protocols import Recalibrator
from calibo.errors import InputError
from calibo.parts import identity, register
from calibo.types import Array

__all__ = ["Gate"]

STRENGTHS = np.linspace(0.0, 1.0, 5)
CAP = 5.0  # an outcome farther off counts as this in a test: one alone must not open the gate


@register("gate")
@dataclass(frozen=True)
class Gate:
    """A recalibrator around another, whose map it weakens towards the identity.

    Every outcome is a test of the map fitted to the outcomes before it: by how much would it have raised the log
    density of what came, had it been applied with this strength or that? The strengths are weighed like
    hypotheses, by their prior and those gains, and the map is applied with their mean.
    """

    recalibrator: Recalibrator = ShiftScaleRecalibrator()

    doubt: float = 0.25
    """Prior probability that no correction is the best; the other strengths share the rest."""

    window: int = 40
    """The latest outcomes that count as tests."""

    patience: float = 3.0
    """Tests after which half of what they suggest is let through."""

    def __post_init__(self) -> None:
        if not callable(getattr(self.recalibrator, "fit", None)):
            raise InputError(f"`recalibrator` must be a recalibrator with fit, but got {self.recalibrator!r}.")
        if not 0.0 < self.doubt < 1.0:
            raise InputError(f"`doubt` must lie between 0 and 1, but got {self.doubt!r}.")
        if not isinstance(self.window, int) or self.window < 1:
            raise InputError(f"`window` must be a whole number of at least 1, but got {self.window!r}.")
        if not 0.0 <= self.patience < np.inf:
            raise InputError(f"`patience` must be a number of at least 0, but got {self.patience!r}.")

    def fit(self, scores: Array, stream: Array | None = None) -> CalibrationMap:
        """Where the ``scores`` are not those of the stream, the map fitted to them is tested on the ``stream``."""
        map = self.recalibrator.fit(scores)
        if stream is None:
            gains, tests = self.gains(scores), max(len(usable(scores)) - 1, 0)
        else:
            gains, tests = _gained(map, stream, self.window), len(usable(stream))
        return map.weakened(self.strength(gains, min(tests, self.window)))

    def strength(self, gains: Array, tests: int) -> float:
        """The share of the correction that is let through, given what each strength has won in so many tests."""
        prior = np.full(len(STRENGTHS), (1.0 - self.doubt) / (len(STRENGTHS) - 1))
        prior[0] = self.doubt
        posterior = prior * np.exp(gains - gains.max())
        return float(STRENGTHS @ posterior / posterior.sum()) * (tests / (tests + self.patience) if tests else 0.0)

    def gains(self, scores: Array) -> Array:
        """(5,) log score that the correction would have won over the identity, by strength."""
        z = usable(scores)
        first = max(len(z) - self.window, 1)
        tests = np.clip(z[first:], -CAP, CAP)
        pairs = [_tested(self.recalibrator, z[:t], score) for t, score in enumerate(tests.tolist(), first)]
        after, slopes = np.array(pairs).reshape(-1, 2).T
        return _gains(tests, after, slopes)


def _gained(map: CalibrationMap, stream: Array, window: int) -> Array:
    """(5,) what one map would have won on the latest outcomes of a stream that it was not fitted to."""
    tests = np.clip(usable(stream)[-window:], -CAP, CAP)
    return _gains(tests, map(tests), map.slope(tests))


def _gains(tests: Array, after: Array, slopes: Array) -> Array:
    """(5,) log scores won over the identity, by strength."""
    mixed = tests + STRENGTHS[:, None] * (after - tests)
    densities = np.log(1.0 + STRENGTHS[:, None] * (slopes - 1.0))
    return np.asarray((0.5 * (tests - mixed) * (tests + mixed) + densities).sum(axis=1))


TESTED = Cache(4096)  # the next step tests the same maps again, and one more


def _tested(recalibrator: Recalibrator, past: Array, score: float) -> tuple[float, float]:
    """Where the map fitted to ``past`` sends a score, and its slope there."""
    key = identity(recalibrator), past.tobytes(), score
    found: tuple[float, float] | None = TESTED.get(key)
    if found is None:
        map = recalibrator.fit(past)
        found = float(map(score)), float(map.slope(score))
        TESTED.put(key, found)
    return found
