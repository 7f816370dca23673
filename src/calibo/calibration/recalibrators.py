"""The default recalibrator: a shift and a scale, behind a gate that applies them only as far as they have helped."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from calibo.arrays import Array
from calibo.calibration.base import Recalibrator
from calibo.errors import InputError
from calibo.forecasts import CalibrationMap, usable_scores
from calibo.parts import Cache, identity, register

NARROWEST, WIDEST = 0.01, 100.0  # factors of a forecast's width: beyond, there is nothing left to correct


@register("shift-scale")
@dataclass(frozen=True)
class ShiftScaleRecalibrator(Recalibrator):
    """z' = (z - b) / c: a bias and a width, the two numbers that a handful of outcomes can tell.

    Scores are taken for Normal(b, c^2) with a conjugate prior around b = 0, c = 1 (normal-inverse-gamma), of
    which this is the posterior mean of b and of c^2.
    """

    shift_prior: float = 4.0
    """Scores that b = 0 counts for; infinite for no shift."""

    scale_prior: float = 8.0
    """Scores that c = 1 counts for; infinite for no scaling."""

    memory: float = 0.95
    """Weight of a score relative to that of the next one: models grow better, and old errors fade."""

    cap: float = 4.0
    """Scores beyond count as this: one outcome must not decide everything."""

    def __post_init__(self) -> None:
        _require("shift_prior", self.shift_prior, self.shift_prior > 0.0, "a positive number")
        _require("scale_prior", self.scale_prior, self.scale_prior > 0.0, "a positive number")
        _require("memory", self.memory, 0.0 < self.memory <= 1.0, "a number in (0, 1]")
        _require("cap", self.cap, self.cap > 0.0, "a positive number")

    def fit(self, scores: Array) -> CalibrationMap:
        z = np.clip(usable_scores(scores), -self.cap, self.cap)
        weights = self.memory ** np.arange(len(z) - 1, -1, -1.0)
        count, total = float(weights.sum()), float(weights @ z)
        shift = total / (count + self.shift_prior)
        # sum w (z - b)^2 + n_b b^2 = sum w z^2 - b sum w z; written as a difference from 1, so that infinity means 1
        excess = float(weights @ np.square(z)) - shift * total - count
        variance = 1.0 + excess / (count + self.scale_prior)
        return CalibrationMap.shift_scale(shift, float(np.clip(np.sqrt(max(variance, 0.0)), NARROWEST, WIDEST)))


def _require(name: str, value: float, holds: bool, wanted: str) -> None:
    if not holds:  # NaN holds nothing
        raise InputError(f"`{name}` must be {wanted}, but got {value!r}.")


STRENGTHS = np.linspace(0.0, 1.0, 5)
CAP = 5.0  # an outcome farther off counts as this in a test: one alone must not open the gate


@register("gate")
@dataclass(frozen=True)
class Gate(Recalibrator):
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
        if not isinstance(self.recalibrator, Recalibrator):
            raise InputError(f"`recalibrator` must be a Recalibrator, but got {self.recalibrator!r}.")
        if not 0.0 < self.doubt < 1.0:
            raise InputError(f"`doubt` must lie between 0 and 1, but got {self.doubt!r}.")
        if not isinstance(self.window, int) or self.window < 1:
            raise InputError(f"`window` must be a whole number of at least 1, but got {self.window!r}.")
        if not 0.0 <= self.patience < np.inf:
            raise InputError(f"`patience` must be a number of at least 0, but got {self.patience!r}.")

    @classmethod
    def around(cls, recalibrator: Recalibrator) -> "Gate":
        """A gate around a recalibrator that corrects: the one given, if it does."""
        gate = recalibrator if isinstance(recalibrator, cls) else cls(recalibrator)
        return gate if gate.recalibrator.corrects else replace(gate, recalibrator=ShiftScaleRecalibrator())

    def fit(self, scores: Array) -> CalibrationMap:
        tests = max(len(usable_scores(scores)) - 1, 0)
        return self.recalibrator.fit(scores).shrink(self.strength(self.gains(scores), min(tests, self.window)))

    def fit_and_test(self, scores: Array, prequential: Callable[[], Array] | None) -> CalibrationMap:
        if prequential is None:
            return self.fit(scores)
        map, tests = self.recalibrator.fit(scores), usable_scores(prequential())
        return map.shrink(self.strength(_gains_of(map, tests[-self.window :]), min(len(tests), self.window)))

    def strength(self, gains: Array, tests: int) -> float:
        """The share of the correction that is let through, given what each strength has won in so many tests."""
        prior = np.full(len(STRENGTHS), (1.0 - self.doubt) / (len(STRENGTHS) - 1))
        prior[0] = self.doubt
        posterior = prior * np.exp(gains - gains.max())
        return float(STRENGTHS @ posterior / posterior.sum()) * (tests / (tests + self.patience) if tests else 0.0)

    def gains(self, scores: Array) -> Array:
        """(5,) log score that the correction would have won over the identity, by strength."""
        z = usable_scores(scores)
        first = max(len(z) - self.window, 1)
        tests = np.clip(z[first:], -CAP, CAP)
        pairs = [_tested(self.recalibrator, z[:t], score) for t, score in enumerate(tests.tolist(), first)]
        after, slopes = np.array(pairs).reshape(-1, 2).T
        return _gains(tests, after, slopes)


def _gains_of(map: CalibrationMap, tests: Array) -> Array:
    """(5,) what one map would have won on outcomes that it was not fitted to."""
    tests = np.clip(tests, -CAP, CAP)
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
