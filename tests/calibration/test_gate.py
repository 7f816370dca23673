from dataclasses import dataclass, replace

import numpy as np
import pytest

from calibo import Strategy
from calibo.calibration import Gate, NoRecalibration, NoScores, Prequential, Recalibrator, ShiftScaleRecalibrator
from calibo.forecasts import CalibrationMap
from calibo.parts import register
from calibo.presets import PRESETS, get_strategy
from calibo.research import EmpiricalRecalibrator, GPRecalibrator, RefittedLeaveOneOut

from ..conftest import observations


def strengths(n: int, shift: float, scale: float) -> float:
    return float(np.mean([Gate().fit(np.random.default_rng(s).normal(shift, scale, n)).strength for s in range(40)]))


def test_it_opens_as_the_evidence_grows():
    few, some, many = (strengths(n, 1.0, 1.5) for n in (3, 8, 40))
    assert few < some < many
    assert many > 0.85


def test_it_stays_nearly_shut_where_there_is_nothing_to_correct():
    assert strengths(40, 0.0, 1.0) < 0.45
    assert strengths(2, 0.0, 1.0) < 0.6


def test_it_shuts_on_a_correction_that_hurts():
    @register("wrong")
    @dataclass(frozen=True)
    class Wrong(Recalibrator):
        def fit(self, scores):
            return CalibrationMap.shift_scale(-1.0, 1.0)

    z = np.random.default_rng(0).normal(0.5, 1.0, 30)
    assert Gate(Wrong()).fit(z).strength < 0.02


def test_its_gains_are_prequential_log_scores():
    z = np.random.default_rng(0).normal(0.5, 1.3, 12)
    inner = ShiftScaleRecalibrator()
    expected = sum(float(inner.fit(z[:t]).log_gain(z[t])) for t in range(1, 12))
    gains = Gate(inner).gains(z)
    assert gains[0] == 0.0
    assert gains[-1] == pytest.approx(expected)
    assert Gate(inner, window=3).gains(z)[-1] == pytest.approx(
        sum(float(inner.fit(z[:t]).log_gain(z[t])) for t in range(9, 12))
    )


def test_one_wild_outcome_does_not_open_it():
    z = np.random.default_rng(3).standard_normal(20)
    z[10] = 1e5
    assert Gate().fit(z).strength < 0.9


def test_modes_of_recalibration():
    assert isinstance(Strategy().with_recalibration("never").recalibrator, NoRecalibration)
    assert isinstance(Strategy().with_recalibration("never").score_source, NoScores)
    assert Strategy().with_recalibration("always").recalibrator == ShiftScaleRecalibrator()
    assert Strategy().with_recalibration("auto") == Strategy()
    plain = PRESETS["plain"].with_recalibration("always")
    assert (plain.score_source, plain.recalibrator) == (Prequential(), ShiftScaleRecalibrator())
    papers = get_strategy("papers", "auto")
    assert isinstance(papers.score_source, RefittedLeaveOneOut)
    assert isinstance(papers.recalibrator, Gate)
    assert papers.with_recalibration("always") == PRESETS["papers"]
    cautious = Strategy(recalibrator=Gate(doubt=0.9, window=7))
    assert cautious.with_recalibration("auto") == cautious
    custom = Strategy(recalibrator=EmpiricalRecalibrator(3.0)).with_recalibration("auto")
    assert custom.recalibrator == Gate(EmpiricalRecalibrator(3.0))
    assert Gate(GPRecalibrator()) != Gate()


def test_where_scores_are_not_the_streams_the_stream_judges():
    rng = np.random.default_rng(0)
    optimistic = rng.normal(0.0, 0.4, 30)  # leave-one-out says: too wide
    stream = rng.normal(1.0, 1.5, 30)  # what happened says: too narrow
    inner = ShiftScaleRecalibrator()
    assert Gate(inner).fit(optimistic).strength > 0.8
    assert Gate(inner).fit_and_test(optimistic, lambda: stream).strength < 0.01
    assert Gate(inner).fit_and_test(stream, lambda: rng.normal(1.0, 1.5, 30)).strength > 0.8
    assert Gate(inner).fit_and_test(optimistic, lambda: np.empty(0)).strength == 0.0, (
        "where nothing was tested, nothing is let through"
    )
    assert Gate(inner).fit(np.array([3.0])).strength == 0.0


def test_a_gated_strategy_is_judged_by_the_stream():
    strategy = Strategy(score_source=RefittedLeaveOneOut(), recalibrator=Gate())
    data = observations(20)
    wrong = replace(data, scores=np.where(np.arange(20) < 4, np.nan, 4.0 * (-1.0) ** np.arange(20)))
    right = replace(data, scores=np.where(np.arange(20) < 4, np.nan, 0.05 * (-1.0) ** np.arange(20)))
    rng = np.random.default_rng(0)
    maps = [strategy.fit(each, rng=rng).map for each in (wrong, right)]
    assert maps[0].strength != maps[1].strength
