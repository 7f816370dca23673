"""The default recalibrator: a shift and a scale, behind a gate that weights them by their prequential gain."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from calibo.arrays import Array
from calibo.calibration.base import Recalibrator
from calibo.errors import InputError
from calibo.forecasts import CalibrationMap, usable_scores
from calibo.parts import Cache, identity, register

NARROWEST, WIDEST = 0.01, 100.0  # limits of the factor on a forecast's width


@register("shift-scale")
@dataclass(frozen=True)
class ShiftScaleRecalibrator(Recalibrator):
    """z' = (z - b) / c: a bias and a width, two parameters that a handful of outcomes can identify.

    Scores are modelled as Normal(b, c^2) with a conjugate (normal-inverse-gamma) prior around b = 0, c = 1. The map
    uses the posterior means of b and c^2.
    """

    shift_prior: float = 4.0
    """Pseudo-count of the prior at b = 0; infinite for no shift."""

    scale_prior: float = 8.0
    """Pseudo-count of the prior at c = 1; infinite for no scaling."""

    memory: float = 0.95
    """Discount factor of older scores: models improve, so old errors matter less."""

    cap: float = 4.0
    """Scores are clipped to +-cap, so that no single outcome dominates."""

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
    if not holds:  # also false for NaN
        raise InputError(f"`{name}` must be {wanted}, but got {value!r}.")


STRENGTHS = np.linspace(0.0, 1.0, 5)
CAP = 5.0  # test scores are clipped here, so that a single outcome cannot open the gate


@register("gate")
@dataclass(frozen=True)
class Gate(Recalibrator):
    """A recalibrator that wraps another and shrinks its map towards the identity.

    Every outcome tests the map fitted to the outcomes before it: the gain of a strength is the increase in log density
    had the map been applied with it. The map is applied with the posterior mean strength, given the prior and the
    gains.
    """

    recalibrator: Recalibrator = ShiftScaleRecalibrator()

    doubt: float = 0.25
    """Prior probability of strength 0, no correction; the others share the rest equally."""

    window: int = 40
    """Number of most recent outcomes used as tests."""

    patience: float = 3.0
    """Number of tests after which half of the suggested strength is applied."""

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
        """A gate around ``recalibrator``, or around the default one if it corrects nothing."""
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
        """The strength to apply, given the gains of each strength and the number of tests."""
        prior = np.full(len(STRENGTHS), (1.0 - self.doubt) / (len(STRENGTHS) - 1))
        prior[0] = self.doubt
        posterior = prior * np.exp(gains - gains.max())
        return float(STRENGTHS @ posterior / posterior.sum()) * (tests / (tests + self.patience) if tests else 0.0)

    def gains(self, scores: Array) -> Array:
        """(5,) gain in log score over the identity, by strength."""
        z = usable_scores(scores)
        first = max(len(z) - self.window, 1)
        tests = np.clip(z[first:], -CAP, CAP)
        pairs = [_test_map(self.recalibrator, z[:t], score) for t, score in enumerate(tests.tolist(), first)]
        after, slopes = np.array(pairs).reshape(-1, 2).T
        return _gains(tests, after, slopes)


def _gains_of(map: CalibrationMap, tests: Array) -> Array:
    """(5,) gains of one map on outcomes that it was not fitted to."""
    tests = np.clip(tests, -CAP, CAP)
    return _gains(tests, map(tests), map.slope(tests))


def _gains(tests: Array, after: Array, slopes: Array) -> Array:
    """(5,) gain in log score over the identity, by strength, from scores, mapped scores and slopes."""
    mixed = tests + STRENGTHS[:, None] * (after - tests)
    densities = np.log(1.0 + STRENGTHS[:, None] * (slopes - 1.0))
    return np.asarray((0.5 * (tests - mixed) * (tests + mixed) + densities).sum(axis=1))


TEST_CACHE = Cache(4096)  # the next step repeats these tests and adds one


def _test_map(recalibrator: Recalibrator, past: Array, score: float) -> tuple[float, float]:
    """The map fitted to ``past``: its value and slope at a score."""
    key = identity(recalibrator), past.tobytes(), score
    found: tuple[float, float] | None = TEST_CACHE.get(key)
    if found is None:
        map = recalibrator.fit(past)
        found = float(map(score)), float(map.slope(score))
        TEST_CACHE.put(key, found)
    return found
