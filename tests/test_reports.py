"""The view for people: recorded from the third outcome on, honest, and without effect on decisions."""

from dataclasses import replace

import numpy as np
import optuna
import pytest

import calibo
from calibo import CalibratedSampler, Float, InputError, Optimizer, Strategy
from calibo.calibration import NoRecalibration, Record
from calibo.forecaster import Forecaster
from calibo.forecasts import CalibrationMap
from calibo.models import GaussianProcess, IntegratedProcess
from calibo.optuna.reader import read_study
from calibo.presets import get_strategy

SPACE = {"x": Float(0, 1), "y": Float(0, 1)}


def noisy(params, rng, std=0.3):
    return float(np.sin(7 * params["x"]) + params["y"] + std * rng.standard_normal())


def run(n, strategy=None, optimizer=None):
    optimizer = optimizer or Optimizer(SPACE, seed=0, strategy=strategy)
    rng = np.random.default_rng(0)
    for _ in range(n):
        params = optimizer.ask()
        optimizer.tell(params, noisy(params, rng))
    return optimizer


def test_a_report_never_changes_a_decision():
    reported, unreported = run(12), run(12, "default+unreported")
    assert [trial.params for trial in reported.trials] == [trial.params for trial in unreported.trials]
    assert [t.record is None for t in reported.trials] == [t.record is None for t in unreported.trials]


def test_reports_are_recorded_from_the_third_outcome_on(tmp_path):
    optimizer = Optimizer(SPACE, seed=0)
    optimizer.save(tmp_path / "run.jsonl")
    run(7, optimizer=optimizer)
    loaded = Optimizer.load(tmp_path / "run.jsonl")
    for history in (optimizer.trials, loaded.trials):
        assert [trial.report is None for trial in history] == [True] * 3 + [False] * 4
        assert [trial.record is None for trial in history] == [True] * 4 + [False] * 3
    both = [float(each.trials[-1].report.calibrated.quantile(0.2)) for each in (optimizer, loaded)]
    assert both[0] == both[1]
    assert np.isfinite(loaded.history()[0].report_scores).sum() == 4


def test_a_study_records_reports():
    study = optuna.create_study(sampler=CalibratedSampler(seed=0))
    study.optimize(lambda t: (t.suggest_float("x", -1, 1) - 0.2) ** 2 + t.suggest_float("y", 0, 1), 8)
    data = read_study(study)
    assert [report is None for report in data.reports] == [True] * 3 + [False] * 5
    again = [Record.through_storage(report) for report in data.reports[3:]]
    for first, second in zip(data.reports[3:], again, strict=True):
        assert float(first.calibrated.quantile(0.7)) == float(second.calibrated.quantile(0.7))
    audit = calibo.audit(study)
    assert [checked.trial for checked in audit.reports] == list(range(3, 8))
    assert not any(checked.replayed for checked in audit.reports)
    assert audit.head[1] == "reported"
    assert "too few to tell" in str(audit)


def test_a_stored_report_keeps_a_map_beside_its_quantiles():
    fitted = run(9)._fit().reporting
    forecast = fitted.forecast(np.array([[0.3, 0.6]]), noise=True)[0].raw
    map = CalibrationMap.shift_scale(0.4, 1.7)
    record = Record.from_forecast(forecast.calibrated(map), IntegratedProcess(), forecast)
    stored = record.to_json()
    assert "recalibrated" not in stored
    read = Record.from_json(stored)
    p = np.array([0.01, 0.2, 0.5, 0.9])
    width = float(np.subtract(*forecast.interval(0.9)[::-1]))
    for part in ("raw", "calibrated"):
        found, wanted = getattr(read, part).quantile(p), getattr(record, part).quantile(p)
        np.testing.assert_allclose(found, wanted, rtol=2e-2, atol=1e-3 * width)


def test_maps_follow_each_other():
    bent = CalibrationMap.through(np.array([-1.0, 0.0, 2.0]), np.array([-2.0, 0.5, 1.0]), 0.5, 2.0)
    line = CalibrationMap.shift_scale(0.3, 2.0)
    z = np.linspace(-5, 5, 41)
    np.testing.assert_allclose(bent.then(line)(z), line(bent(z)))
    np.testing.assert_allclose(CalibrationMap.shift_scale(1.0, 3.0).then(line)(z), line((z - 1.0) / 3.0))


def test_noise_is_learned_or_told():
    learned = run(30).recommend().noise
    assert 0.15 < learned < 0.6
    told, rng = Optimizer(SPACE, seed=0), np.random.default_rng(1)
    for _ in range(8):
        params = told.ask()
        told.tell(params, noisy(params, rng, 0.1), noise=0.1)
    assert told.recommend().noise == pytest.approx(0.1, rel=0.3)


def test_recalibration_is_that_of_both_views():
    never = Strategy().with_recalibration("never")
    assert never.recalibrator == never.report.recalibrator == NoRecalibration()
    assert get_strategy("plain", "always").report is None
    assert Strategy().with_recalibration("auto") == Strategy()


def test_prior_studies_have_no_report():
    first = run(6).history()[0]
    info = calibo.side_information.SideInformation((calibo.models.SourceTask("a", first.x, first.y, first.noise_std),))
    assert Strategy().with_side_information(info).report is None


@pytest.mark.parametrize("report", ["integrated", IntegratedProcess(), GaussianProcess])
def test_a_report_is_a_forecaster(report):
    with pytest.raises(InputError, match="`report` must be None or a Forecaster"):
        Strategy(report=report)


def test_another_report():
    strategy = replace(Strategy(), report=Forecaster(GaussianProcess(samples=5)))
    assert len(run(8, strategy).forecast({"x": 0.5, "y": 0.5}).loc) == 5


@pytest.mark.parametrize("arguments", [{"surrogate": 3}, {"score_source": None}, {"recalibrator": "gate"}])
def test_parts_of_a_forecaster(arguments):
    with pytest.raises(InputError, match=next(iter(arguments))):
        Forecaster(**arguments)
