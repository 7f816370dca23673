"""First forecasts are widened as earlier runs have taught, for the model that they were runs of."""

import numpy as np
import pytest

from calibo import Float, Optimizer
from calibo.calibration import Experience, Gate, NoRecalibration, Prequential, experience_of
from calibo.forecaster import Forecaster
from calibo.forecasts import CalibrationMap
from calibo.models import GaussianProcess, IntegratedProcess
from calibo.models.integrated import LIMIT
from calibo.observations import Observations
from calibo.parts import identity
from calibo.space import Space
from calibo.strategy import REPORT


def outcomes(n: int) -> Observations:
    cube = Space({"a": Float(0, 1), "b": Float(0, 1)}).cube
    x = np.random.default_rng(0).random((n, 2))
    y = np.sin(7 * x[:, 0]) + x[:, 1] ** 2
    return Observations(cube, x, y, np.full(n, np.nan), np.ones(n, dtype=bool), np.empty((0, 2)))


def test_a_width_applies_from_its_number_of_outcomes_on():
    experience = Experience(((3, 2.0), (5, 1.5), (8, 1.0)), ((4, 0.5),))
    widths = [1.0 / experience.map(n).left for n in (0, 2, 3, 4, 5, 7, 8, 100)]
    assert widths == pytest.approx([1, 1, 2, 2, 1.5, 1.5, 1, 1])
    assert experience.map(9).is_identity
    scores = np.array([np.nan, np.nan, np.nan, 3.0, -2.0, 3.0, 1.5, 1.5, 1.0])
    np.testing.assert_allclose(experience.corrected(scores), [np.nan, np.nan, np.nan, 1.5, -1, 2, 1, 1, 1])
    assert [1.0 / experience.map_of_recommended(n).left for n in (3, 4, 50)] == pytest.approx([1, 0.5, 0.5])


def test_the_shipped_table_belongs_to_the_reported_model():
    found = experience_of(identity(REPORT.surrogate))
    for widths in (dict(found.outcomes), dict(found.recommended)):
        assert min(widths) == 3
        assert all(0.5 <= width < 3.0 for width in widths.values())
        assert widths[LIMIT + 1] == 1.0, "it is the table of another model"
    assert (
        experience_of(identity(IntegratedProcess(nodes=24)))
        == experience_of(identity(GaussianProcess()))
        == Experience()
    )


@pytest.mark.parametrize("n", [3, 12])
def test_forecasts_start_from_the_table(n):
    data = outcomes(n)
    with_table, without = (
        Forecaster(REPORT.surrogate, Prequential(first=3), recalibrator).fit(data, rng=np.random.default_rng(0))
        for recalibrator in (Gate(), NoRecalibration())
    )
    x, experience = np.array([[0.3, 0.7]]), experience_of(identity(REPORT.surrogate))
    width = [width for first, width in experience.recommended if first <= n][-1]
    raw = without.forecast(x)
    corrected = with_table.forecast_if_recommended(x)
    np.testing.assert_allclose(corrected.at_normal_score(1.0), raw.at_normal_score(width), rtol=1e-9)
    assert without.forecast_if_recommended(x).map.is_identity
    if n == 3:  # no outcome of the run has a score yet
        width = dict(experience.outcomes)[3]
        assert with_table.map.left == pytest.approx(1.0 / width)
        np.testing.assert_allclose(with_table.forecast(x).at_normal_score(1.0), raw.at_normal_score(width), rtol=1e-9)


def test_without_a_table_a_recommendation_is_corrected_by_the_run():
    data = outcomes(12)
    scores = np.full(12, np.nan)
    scores[3:] = 3.0 * np.random.default_rng(1).standard_normal(9)
    known = Observations(data.cube, data.x, data.y, data.noise_std, data.feasible, data.pending, scores=scores)
    fitted = Forecaster(IntegratedProcess(nodes=24)).fit(known, rng=np.random.default_rng(0))
    assert not fitted.map.is_identity
    assert fitted.forecast_if_recommended(data.x[:1]).map is fitted.map


def test_the_run_corrects_what_is_left():
    data = outcomes(12)
    scores = np.full(12, np.nan)
    scores[3:] = 3.0 * np.random.default_rng(1).standard_normal(9)
    known = Observations(data.cube, data.x, data.y, data.noise_std, data.feasible, data.pending, scores=scores)
    fitted = REPORT.fit(known, rng=np.random.default_rng(0))
    gate = Gate().fit(experience_of(identity(REPORT.surrogate)).corrected(scores))
    last = experience_of(identity(REPORT.surrogate)).map(12)
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
