"""First forecasts are widened as earlier runs have taught, for the model that they were runs of."""

import numpy as np
import pytest

from calibo import Float, Optimizer
from calibo.calibration import Experience, Gate, NoRecalibration, Prequential, experience_of
from calibo.forecaster import Forecaster
from calibo.forecasts import CalibrationMap
from calibo.models import GaussianProcess, IntegratedProcess
from calibo.observations import Observations
from calibo.space import Space
from calibo.strategy import REPORT


def outcomes(n: int) -> Observations:
    cube = Space({"a": Float(0, 1), "b": Float(0, 1)}).cube
    x = np.random.default_rng(0).random((n, 2))
    y = np.sin(7 * x[:, 0]) + x[:, 1] ** 2
    return Observations(cube, x, y, np.full(n, np.nan), np.ones(n, dtype=bool), np.empty((0, 2)))


def test_a_width_applies_from_its_number_of_outcomes_on():
    experience = Experience(((3, 2.0), (5, 1.5), (8, 1.0)))
    widths = [1.0 / experience.map(n).left for n in (0, 2, 3, 4, 5, 7, 8, 100)]
    assert widths == pytest.approx([1, 1, 2, 2, 1.5, 1.5, 1, 1])
    assert experience.map(9).is_identity
    scores = np.array([np.nan, np.nan, np.nan, 3.0, -2.0, 3.0, 1.5, 1.5, 1.0])
    np.testing.assert_allclose(experience.corrected(scores), [np.nan, np.nan, np.nan, 1.5, -1, 2, 1, 1, 1])


def test_the_shipped_table_belongs_to_the_reported_model():
    widths = dict(experience_of(REPORT.surrogate).widths)
    assert widths[3] > 1.5
    assert all(1.0 <= width < 5.0 for width in widths.values())
    assert experience_of(IntegratedProcess(nodes=24)) == experience_of(GaussianProcess()) == Experience()


def test_first_forecasts_are_wider_by_the_table():
    data = outcomes(3)
    with_table, without = (
        Forecaster(REPORT.surrogate, Prequential(first=3), recalibrator).fit(data, rng=np.random.default_rng(0))
        for recalibrator in (Gate(), NoRecalibration())
    )
    width = dict(experience_of(REPORT.surrogate).widths)[3]
    corrected, raw = (each.forecast(np.array([[0.3, 0.7]])) for each in (with_table, without))
    np.testing.assert_allclose(corrected.at_normal_score(1.0), raw.at_normal_score(width), rtol=1e-9)
    assert with_table.map.left == pytest.approx(1.0 / width)
    assert without.map.is_identity


def test_the_run_corrects_what_is_left():
    data = outcomes(12)
    scores = np.full(12, np.nan)
    scores[3:] = 3.0 * np.random.default_rng(1).standard_normal(9)
    known = Observations(data.cube, data.x, data.y, data.noise_std, data.feasible, data.pending, scores=scores)
    fitted = REPORT.fit(known, rng=np.random.default_rng(0))
    gate = Gate().fit(experience_of(REPORT.surrogate).corrected(scores))
    last = experience_of(REPORT.surrogate).map(12)
    np.testing.assert_allclose(fitted.map(np.array([-2.0, 0.5])), gate(last(np.array([-2.0, 0.5]))), rtol=1e-12)


def test_never_recalibrated_means_without_the_table():
    optimizer = Optimizer({"a": Float(0, 1)}, seed=0, recalibrate="never")
    for a in (0.1, 0.5, 0.9):
        optimizer.tell({"a": a}, a * a)
    assert optimizer.forecast({"a": 0.3}).map.is_identity


@pytest.mark.parametrize(
    "map",
    [
        CalibrationMap.shift_scale(0.3, 1.4),
        CalibrationMap.through(np.array([-1.0, 0.5]), np.array([-2.0, 0.4]), 0.5, 2.0),
    ],
)
def test_a_map_after_a_line(map):
    line, z = CalibrationMap.shift_scale(-0.2, 1.7), np.linspace(-4, 4, 41)
    np.testing.assert_allclose(map.after(line)(z), map(line(z)), atol=1e-12)
    np.testing.assert_allclose(map.after(line).slope(z + 1e-9), map.slope(line(z + 1e-9)) * line.left, rtol=1e-9)
