import json
from dataclasses import replace

import numpy as np
import optuna
import pytest
from scipy.special import ndtr

import calibo
from calibo import CalibratedSampler, Float, Optimizer, Strategy
from calibo.arrays import unpack
from calibo.optuna.reader import read_study
from calibo.optuna.schema import FITS, TRIAL, fits_in, mark_interrupted
from calibo.parts import identity
from calibo.presets import get_strategy
from calibo.research import GPRecalibrator, RefittedLeaveOneOut, SigmaScaleRecalibrator
from calibo.scoring import calibration_error

optuna.logging.set_verbosity(optuna.logging.ERROR)
SPACE = {"x": Float(-5, 5), "y": Float(-5, 5)}


def styblinski(trial: optuna.Trial) -> float:
    x, y = trial.suggest_float("x", -5, 5), trial.suggest_float("y", -5, 5)
    return sum(t**4 - 16 * t * t + 5 * t for t in (x, y)) / 2


def studied(n: int = 14, direction: str = "minimize", sampler=None, sign: float = 1.0) -> optuna.Study:
    study = optuna.create_study(direction=direction, sampler=sampler or CalibratedSampler(seed=1))
    study.optimize(lambda trial: sign * styblinski(trial), n)
    return study


def told(audit: calibo.Audit) -> str:
    return " ".join(audit.sentences())


def test_every_suggestion_of_a_model_is_checked_against_its_outcome():
    study = studied(sampler=CalibratedSampler(seed=1, strategy="default+single"))
    audit = calibo.audit(study)
    assert [checked.trial for checked in audit.outcomes] == list(range(4, 14)), "the first trials were a design"
    assert not any(checked.replayed for checked in audit.outcomes)
    for checked in audit.outcomes:
        stored = study.trials[checked.trial].system_attrs[TRIAL]
        assert "strategy" not in stored, "it is the study's own"
        forecast = stored["forecast"]
        assert (forecast["format"], forecast["model"]) == (2, identity(get_strategy("default+single").surrogate))
        z = (study.trials[checked.trial].value - forecast["forecast"]["loc"][0]) / forecast["forecast"]["scale"][0]
        assert checked.record.raw.normal_score(checked.value) == pytest.approx(z)
    assert audit.raw.count == 10
    assert audit.raw.calibration_error == pytest.approx(calibration_error(audit.pits["raw"]))
    assert audit.raw.bias == pytest.approx(audit.pits["raw"].mean() - 0.5)


def test_a_stored_forecast_is_what_the_model_said_before_the_outcome():
    study = studied(12)
    record, report = read_study(study).records[-1], read_study(study).reports[-1]
    before = optuna.create_study(sampler=CalibratedSampler(seed=1))
    before.add_trials(study.trials[:-1])
    decided = read_study(before, "default+unreported")
    point = study.trials[-1].params
    believed = calibo.forecast(before, point, noise=True, strategy=decided.strategy)
    assert float(record.calibrated.quantile(0.3)) == pytest.approx(believed.quantile(0.3), rel=1e-5)
    shown = calibo.forecast(before, point, noise=True)
    level = ndtr(shown.map(-0.6))  # one of the stored quantiles
    assert float(report.calibrated.quantile(level)) == pytest.approx(shown.quantile(level), rel=1e-5)


def test_the_stream_survives_restart_and_gives_the_same_suggestion(tmp_path):
    storage = f"sqlite:///{tmp_path / 'a.db'}"
    study = optuna.create_study(storage=storage, study_name="s", sampler=CalibratedSampler(seed=3))
    study.optimize(styblinski, 15)
    again = optuna.load_study(storage=storage, study_name="s", sampler=CalibratedSampler(seed=3))
    here = study.ask()
    params = {name: here.suggest_float(name, -5, 5) for name in ("x", "y")}
    mark_interrupted(again, here)
    again.tell(here.number, state=optuna.trial.TrialState.FAIL)
    there = again.ask()
    assert {name: there.suggest_float(name, -5, 5) for name in ("x", "y")} == params
    scores = read_study(again).observations.scores
    assert np.isnan(scores).tolist() == [True] * 4 + [False] * 11


def test_a_study_of_another_sampler_is_replayed():
    study = studied(12, sampler=optuna.samplers.RandomSampler(seed=0))
    audit = calibo.audit(study)
    assert [checked.trial for checked in audit.outcomes] == list(range(4, 12))
    assert all(checked.replayed for checked in audit.outcomes)
    assert "9 of them made afterwards" in audit.title
    assert [checked.trial for checked in audit.reports] == list(range(3, 12))
    assert str(audit).count("%") > 10


def test_an_imported_trial_is_replayed_and_then_remembered():
    study = studied(8)
    foreign = optuna.create_study(sampler=CalibratedSampler(seed=1))
    for trial in study.trials:
        foreign.add_trial(
            optuna.trial.create_trial(params=trial.params, distributions=trial.distributions, value=trial.value)
        )
    foreign.optimize(styblinski, 3)
    history = read_study(foreign)
    assert len(history.fits["evidence"]) == 4, "trials 4 to 7, once"
    assert [record is None for record in history.records] == [True] * 8 + [False] * 3


def altered(study: optuna.Study, **changes) -> optuna.Study:
    """The study with something else stored as the proposal of its last trial."""
    *others, last = study.trials
    attributes = {TRIAL: {**last.system_attrs[TRIAL], **changes}}
    other = optuna.create_study(sampler=CalibratedSampler(seed=1))
    other.add_trials(others)
    other.add_trial(
        optuna.trial.create_trial(
            params=last.params, distributions=last.distributions, value=last.value, system_attrs=attributes
        )
    )
    return other


def test_a_forecast_of_another_point_or_model_does_not_count():
    study = studied(9)
    assert read_study(altered(study)).records[-1] is not None
    stored = study.trials[-1].system_attrs[TRIAL]
    assert read_study(altered(study, params={**stored["params"], "x": 4.5})).records[-1] is None
    theirs = altered(study, forecast={**stored["forecast"], "model": "somebody else's"})
    history = read_study(theirs)
    assert history.records[-1] is not None
    assert np.isnan(history.observations.scores[-1])
    for garbage in ("forecast", 7, [], {"format": 1}, {"format": "x", "raw": None}):
        damaged = altered(study, forecast=garbage)
        assert read_study(damaged).records[-1] is None
        assert calibo.audit(damaged).outcomes[-1].replayed


def test_an_audit_does_not_depend_on_the_direction():
    low = calibo.audit(studied(10))
    high = calibo.audit(studied(10, "maximize", sign=-1.0))
    np.testing.assert_allclose(low.pits["calibrated"], high.pits["calibrated"], atol=1e-6)
    assert told(low) == told(high)


def test_an_optimizer_is_audited_too_and_its_journal_keeps_the_forecasts(tmp_path):
    optimizer = Optimizer(SPACE, seed=0)
    optimizer.save(tmp_path / "run.jsonl")
    for _ in range(10):
        params = optimizer.ask()
        optimizer.tell(params, params["x"] ** 2 + params["y"])
    loaded = Optimizer.load(tmp_path / "run.jsonl")
    optimizer.save(tmp_path / "copy.jsonl")
    copied = Optimizer.load(tmp_path / "copy.jsonl")
    first = calibo.audit(optimizer)
    assert len(first.outcomes) == 6
    assert not any(checked.replayed for checked in first.outcomes)
    for other in (loaded, copied):
        np.testing.assert_allclose(calibo.audit(other).pits["raw"], first.pits["raw"], rtol=1e-9)
    assert loaded.ask() == copied.ask() == optimizer.ask()


def test_a_forecast_is_not_that_of_a_rounded_point():
    optimizer = Optimizer(SPACE, seed=0)
    for _ in range(6):
        params = {name: round(value, 2) for name, value in optimizer.ask().items()}
        optimizer.tell(params, params["x"] ** 2 + params["y"])
    assert all(trial.record is None for trial in optimizer.trials)
    assert all(checked.replayed for checked in calibo.audit(optimizer).outcomes)


def test_recorded_quantiles_of_a_bent_forecast_agree_with_its_map():
    strategy = Strategy(score_source=RefittedLeaveOneOut(), recalibrator=GPRecalibrator())
    optimizer = Optimizer(SPACE, seed=0, strategy=strategy)
    for _ in range(8):
        params = optimizer.ask()
        optimizer.tell(params, np.sin(params["x"]) + 0.1 * params["y"] ** 2)
    stored = optimizer.trials[-1].record.to_json()
    assert set(stored["forecast"]) == {"loc", "scale"}
    assert len(unpack(stored["recalibrated"]["quantiles"])) == 39
    json.dumps(stored, allow_nan=False)


def test_words_say_what_the_numbers_say():
    class Fixed:
        def __init__(self, study, scores):
            self.base = calibo.audit(study)
            outcomes = []
            for checked, score in zip(self.base.outcomes, scores, strict=True):
                y = float(checked.record.raw.at_normal_score(score))
                outcomes.append(type(checked)(checked.trial, y, checked.record, False))
            self.audit = calibo.Audit("made up", tuple(outcomes))

    study = studied(44, sampler=CalibratedSampler(seed=0, recalibrate="never"))
    n = len(calibo.audit(study).outcomes)
    rng = np.random.default_rng(0)
    worse = Fixed(study, np.abs(rng.standard_normal(n)) + 0.5).audit
    assert "worse than forecast in 100 % (91 to 100 %) of 40 trials: the model was too optimistic" in told(worse)
    better = Fixed(study, -np.abs(rng.standard_normal(n))).audit
    assert "the model was too pessimistic" in told(better)
    narrow = Fixed(study, 4.0 * np.where(np.arange(n) % 2, 1.0, -1.0)).audit
    assert "covered 0 % (0 to 9 %) of the outcomes: too narrow" in told(narrow)
    right = Fixed(study, np.linspace(-1.9, 1.9, n)).audit
    assert "consistent with 50 %" in told(right)
    assert "consistent with 90 %" in told(right)
    assert "left its last forecast unchanged" in told(right)
    assert right.raw.log_score == pytest.approx(right.calibrated.log_score)


def test_a_study_that_has_nothing_to_check_says_so():
    for study in (optuna.create_study(), studied(2)):
        audit = calibo.audit(study)
        assert audit.outcomes == ()
        assert "No forecasts to check yet" in str(audit)


def test_figures_show_both_kinds_of_forecasts():
    pytest.importorskip("plotly")
    audit = calibo.audit(studied(20))
    diagram, histogram = audit.reliability_diagram(), audit.pit_histogram()
    assert {"raw", "calibrated"} <= {trace.name for trace in diagram.data}
    shares = next(trace for trace in diagram.data if trace.name == "raw").y
    assert shares[-1] == 1.0
    assert np.all(np.diff(shares) >= 0)
    assert sum(next(trace for trace in histogram.data if trace.name == "raw").y) == len(audit.outcomes)


def test_recalibrated_outcomes_are_those_of_the_recorded_map():
    optimizer = Optimizer(
        SPACE, seed=0, strategy=replace(get_strategy("plain+gate"), recalibrator=SigmaScaleRecalibrator())
    )
    for _ in range(12):
        params = optimizer.ask()
        optimizer.tell(params, np.sin(3 * params["x"]) + params["y"] ** 2)
    audit = calibo.audit(optimizer)
    for checked, raw, bent in zip(audit.outcomes, *audit.pits.values(), strict=True):
        widened = checked.record.calibrated.mean_and_std[1] / checked.record.raw.mean_and_std[1]
        assert bent == pytest.approx(ndtr(checked.record.raw.normal_score(checked.value) / widened))
        assert (raw - 0.5) * (bent - 0.5) >= 0


def test_a_parameter_that_was_not_foreseen_leaves_the_forecast_to_a_replay():
    def objective(trial: optuna.Trial) -> float:
        w = trial.suggest_float("w", 0, 1) if trial.number % 2 else 0.0  # no gate explains it
        return 100 * trial.suggest_float("x", 0, 1) + w

    study = optuna.create_study(sampler=CalibratedSampler(seed=0))
    study.optimize(objective, 14)
    history = read_study(study)
    for trial, record in zip(history.trials, history.records, strict=True):
        assert (record is None) == ("w" in trial.params or trial.number < 4), trial.number


def test_a_given_value_keeps_its_forecast():
    def objective(trial: optuna.Trial) -> float:
        return np.log(trial.suggest_float("r", 1e-5, 1, log=True)) ** 2 + trial.suggest_float("y", 0, 1)

    study = optuna.create_study(sampler=CalibratedSampler(seed=0))
    for value in np.random.default_rng(0).random(8):
        study.enqueue_trial({"r": 10 ** (-5 * value)})  # one wholly given never asks the sampler
    study.optimize(objective, 8)
    assert [record is None for record in read_study(study).records] == [True] * 4 + [False] * 4
    optimizer = Optimizer(SPACE, seed=0)
    for x in range(6):
        optimizer.enqueue({"x": x - 2.5, "y": x / 2})
        params = optimizer.ask()
        optimizer.tell(params, params["x"] ** 2)
    assert [trial.record is None for trial in optimizer.trials] == [True] * 4 + [False] * 2


@pytest.mark.parametrize("value", [0.0, 1.0, 1e14, 1e20, 1e300])
def test_a_constant_study_has_nothing_to_check(value):
    study = optuna.create_study(sampler=CalibratedSampler(seed=0))
    study.optimize(lambda trial: value + 0 * trial.suggest_float("x", 0, 1), 12)
    assert "No forecasts to check yet" in told(calibo.audit(study))


def test_an_outcome_as_forecast_is_neither_better_nor_worse():
    study = optuna.create_study(sampler=CalibratedSampler(seed=0))
    study.optimize(lambda trial: float(trial.suggest_float("x", 0, 1) > 0.95) + 1e6, 16)
    audit = calibo.audit(study)
    assert len(audit.outcomes) > 5
    assert "too pessimistic" not in told(audit)


def test_a_replay_says_what_would_have_been_done():
    text = told(calibo.audit(studied(20, sampler=optuna.samplers.RandomSampler(seed=0))))
    assert "calibo would have" in text
    assert "at the time" not in text
    assert "calibo would have" not in told(calibo.audit(studied(10)))


@pytest.mark.parametrize("strategy", [get_strategy("papers"), get_strategy("papers", "auto")], ids=["always", "gated"])
def test_a_replay_learns_from_the_evidence_of_the_strategy(strategy):
    study = studied(12, sampler=optuna.samplers.RandomSampler(seed=0))
    audit = calibo.audit(study, strategy=strategy)
    earlier = optuna.create_study()
    earlier.add_trials(study.trials[:-1])
    believed = calibo.forecast(earlier, study.trials[-1].params, noise=True, strategy=strategy)
    record = audit.outcomes[-1].record
    assert float(record.calibrated.quantile(0.05)) == pytest.approx(believed.quantile(0.05), rel=1e-3)


def test_damaged_attributes_never_stop_a_suggestion():
    study = studied(9)
    forecast = study.trials[-1].system_attrs[TRIAL]["forecast"]
    for damaged in (
        {**forecast, "strength": 10**400},
        {**forecast, "forecast": {"loc": [10**400], "scale": [1]}},
        {**forecast, "forecast": {"loc": 0.0, "scale": 1.0, "quantiles": [10**400] * 39}},
        {**forecast, "forecast": {"loc": [0.0], "scale": [1.0], "transforms": [{"part": "os"}]}},
    ):
        assert read_study(altered(study, forecast=damaged)).records[-1] is None
    *others, last = study.trials
    keys = [key for trial in others for key in fits_in(trial).get("surrogate", {})]
    for garbage in ("abc", None, [1.0], [float("nan")] * 4, {}, True):
        for part in ("surrogate", "evidence", "feasibility", "other"):
            attributes = {FITS: {part: dict.fromkeys(keys, garbage)}}
            other = optuna.create_study(sampler=CalibratedSampler(seed=1))
            other.add_trials(others)
            kind = {"params": last.params, "distributions": last.distributions, "value": last.value}
            other.add_trial(optuna.trial.create_trial(**kind, system_attrs=attributes))
            other.optimize(styblinski, 1)
            assert other.trials[-1].state == optuna.trial.TrialState.COMPLETE


def test_one_wild_outcome_can_be_told():
    optimizer = Optimizer(SPACE, seed=0)
    for i in range(8):
        params = optimizer.ask()
        optimizer.tell(params, params["x"] if i < 7 else 1e200)
    assert len(max(str(calibo.audit(optimizer)).splitlines(), key=len)) < 300


def test_results_are_audited_and_other_things_get_a_sentence():
    result = calibo.minimize(lambda x, y: x**2 + y, SPACE, 8, seed=0, progress=False)
    assert len(calibo.audit(result).outcomes) == 4
    for wrong in (None, "study", 3):
        with pytest.raises(calibo.InputError, match="`source` must"):
            calibo.audit(wrong)


@pytest.mark.parametrize("mode", ["auto", "always", "never"])
def test_a_journal_knows_how_forecasts_are_corrected(mode, tmp_path):
    optimizer = Optimizer(SPACE, seed=0, strategy="lcb", recalibrate=mode)
    optimizer.save(tmp_path / "run.jsonl")
    assert Optimizer.load(tmp_path / "run.jsonl").strategy == optimizer.strategy
    assert Optimizer.load(tmp_path / "run.jsonl", strategy="ei", recalibrate="never").strategy == get_strategy(
        "ei", "never"
    )


def test_the_table_shows_each_kind_of_forecast_in_its_column():
    optimizer = Optimizer(SPACE, seed=0, recalibrate="always")
    for i in range(14):
        params = optimizer.ask()
        optimizer.tell(params, np.sin(3 * params["x"]) * 10.0 ** (i % 4))
    audit = calibo.audit(optimizer)
    assert audit.raw.coverage != audit.calibrated.coverage
    rows = {row[0]: row[1:] for row in audit.table()}
    assert audit.head == ("", "reported", "raw", "calibrated", "ideal")
    for level in audit.raw.coverage:
        shares = [scores.coverage[level] for scores in (audit.reported, audit.raw, audit.calibrated)]
        assert rows[f"coverage of the {100 * level:.0f} % interval"][:3] == tuple(f"{100 * p:.0f} %" for p in shares)


def test_which_model_was_believed_is_recorded_and_told():
    def steep(trial: optuna.Trial) -> float:
        x, y = trial.suggest_float("x", -4.5, 4.5), trial.suggest_float("y", -4.5, 4.5)
        return (1.5 - x + x * y) ** 2 + (2.25 - x + x * y**2) ** 2 + (2.625 - x + x * y**3) ** 2

    study = optuna.create_study(sampler=CalibratedSampler(seed=0))
    study.optimize(steep, 14)
    record = read_study(study).records[-1]
    assert set(record.models) <= {"values", "log values", "powers of values"}
    assert record.models["log values"] > 0.9
    assert "The model of log values has had the highest weight since trial" in told(calibo.audit(study))
    assert "The model of" not in told(calibo.audit(studied(8, sampler=CalibratedSampler(seed=0, strategy="plain"))))
