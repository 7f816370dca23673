"""A study whose space turned out too narrow goes on in a wider one."""

import json

import numpy as np
import optuna
import pytest

import calibo
from calibo import Categorical, Float, InputError, Int
from calibo.cli.main import main
from calibo.optuna.reader import read_study
from calibo.optuna.schema import read_settings

NARROW = {"x": Float(0, 1), "n": Int(1, 4), "kind": Categorical(["a", "b"])}
WIDE = {"x": Float(-1, 2), "n": Int(0, 8), "kind": Categorical(["a", "b"])}


def f(params):
    return (params["x"] - 1.7) ** 2 + params.get("n", 0) + len(params.get("kind", ""))


@pytest.fixture
def storage(tmp_path):
    return f"sqlite:///{tmp_path}/study.db"


def run(space, storage, n, name="paint"):
    return calibo.minimize(f, space, n, seed=0, storage=storage, study_name=name, progress=False)


def test_wider_bounds_apply_to_the_study_itself(storage):
    result = run(NARROW, storage, 9)
    best, expected = result.best_value, calibo.forecast(result, {**result.best_params, "x": 0.4})
    study = calibo.widen(result.study, WIDE)
    assert study is result.study
    beyond = calibo.forecast(study, {**result.best_params, "x": 1.5})  # before any trial there
    assert beyond.interval(0.9)[1] - beyond.interval(0.9)[0] > 0.0
    assert calibo.forecast(study, {**result.best_params, "x": 0.4}).median == pytest.approx(expected.median, abs=0.5)
    after = run(WIDE, storage, 16)
    assert after.best_value < best - 0.2
    assert after.best_params["x"] > 1.2
    assert len(calibo.audit(after).outcomes) >= 11


def test_the_narrow_space_is_refused_afterwards(storage):
    calibo.widen(run(NARROW, storage, 3).study, WIDE)
    with pytest.raises(InputError, match=r"differs in \['x', 'n'\].*calibo.widen"):
        run(NARROW, storage, 4)


def test_a_constant_may_become_a_parameter(storage):
    result = run({**NARROW, "x": Float(1, 1)}, storage, 6)
    study = calibo.widen(result.study, NARROW)
    assert np.isfinite(calibo.forecast(study, {"x": 0.5, "n": 1, "kind": "a"}).median)
    assert min(trial.params["x"] for trial in run(NARROW, storage, 9).trials) < 1.0


def test_new_choices_and_parameters_copy_the_study_with_its_forecasts(storage):
    study = run(NARROW, storage, 12).study
    calibo.amend(study, 3, 77.0)
    calibo.drop(study, 4)
    other = {**WIDE, "kind": Categorical(["new", "b", "a"]), "rate": Float(1e-3, 1, log=True)}
    made = calibo.widen(study, other, fill={"rate": 0.1})
    assert made.study_name == "paint-2"
    assert len(study.trials) == 12, "the study itself is as it was"
    assert len(made.trials) == 11
    assert {trial.params["rate"] for trial in made.trials} == {0.1}
    assert 77.0 in [trial.value for trial in made.trials]
    assert read_settings(made).seed == read_settings(study).seed
    before, after = (read_study(each).records for each in (study, made))
    assert sum(record is not None for record in after) == sum(record is not None for record in before) > 3
    scores = [calibo.audit(each).raw.calibration_error for each in (study, made)]
    assert scores[0] == pytest.approx(scores[1])
    trial = made.ask(calibo.optuna.columns.to_distributions(calibo.Space(other)))
    assert set(trial.params) == set(other)
    result = calibo.minimize(f, other, 14, seed=0, storage=storage, study_name="paint-2", progress=False)
    assert len({trial.params["rate"] for trial in result.trials}) > 2


def test_a_copy_may_have_a_name(storage):
    study = run(NARROW, storage, 3).study
    wider = {**NARROW, "kind": Categorical(["a", "b", "c"])}
    assert calibo.widen(study, wider, name="other").study_name == "other"
    with pytest.raises(InputError, match="`name` must be new"):
        calibo.widen(study, wider, name="other")


@pytest.mark.parametrize(
    ("space", "fill", "told"),
    [
        ({**NARROW, "x": Float(0.1, 1)}, {}, "`x` must allow every value"),
        ({**NARROW, "n": Float(1, 4)}, {}, "`n` must allow every value"),
        ({**NARROW, "n": Int(0, 4, step=2)}, {}, "`n` must allow every value"),
        ({**NARROW, "kind": Categorical(["a"])}, {}, "`kind` must allow every value"),
        ({"x": Float(0, 1)}, {}, r"lacks \['n', 'kind'\]"),
        ({**NARROW, "new": Int(1, 3)}, {}, r"the new parameters \['new'\]"),
        ({**NARROW, "new": Int(1, 3)}, {"new": 7}, "`new` must be one of"),
        (WIDE, {"x": 0.5}, "`fill` must"),
    ],
)
def test_a_space_that_is_not_wider_is_refused(storage, space, fill, told):
    study = run(NARROW, storage, 2).study
    with pytest.raises(InputError, match=told):
        calibo.widen(study, space, fill=fill)
    assert read_settings(study).space == calibo.Space(NARROW)


def test_a_study_without_a_declared_space_is_refused():
    study = optuna.create_study(study_name="free")
    with pytest.raises(InputError, match="'free' has none"):
        calibo.widen(study, WIDE)


def test_the_message_about_bounds_names_a_command_that_works(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = '[parameters.x]\ntype = "float"\nlow = 0\nhigh = {}\n'
    (tmp_path / "s.toml").write_text(text.format(1))
    (tmp_path / "wide.toml").write_text(text.format(3))
    assert main(["ask", "paint", "--space", "s.toml"]) == 0
    assert main(["tell", "paint", "1.5", "--at", "x=2"]) == 2
    assert "Widen the bounds to use it: in a study with `calibo widen`" in capsys.readouterr().err
    assert main(["widen", "paint", "--space", "wide.toml"]) == 0
    assert "paint: x changed." in capsys.readouterr().out
    assert main(["tell", "paint", "1.5", "--at", "x=2"]) == 0
    capsys.readouterr()
    (tmp_path / "more.toml").write_text(text.format(3) + "[parameters.y]\nchoices = [1, 2]\n")
    assert main(["widen", "paint", "--space", "more.toml", "--fill", "y=1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"study": "paint-2", "changed": ["y"], "copied": True}


def test_the_study_object_searches_the_wider_space_at_once(storage):
    study = calibo.widen(run({"x": Float(0, 1)}, storage, 8, name="line").study, {"x": Float(0, 2)})
    assert study.sampler.space == calibo.Space({"x": Float(0, 2)})
    assert study.ask(calibo.optuna.columns.to_distributions(study.sampler.space)).params["x"] > 1.0


def test_a_copy_keeps_the_sampler_and_what_was_enqueued(storage):
    study = run(NARROW, storage, 5).study
    study.enqueue_trial({"x": 0.123})
    study.ask(calibo.optuna.columns.to_distributions(calibo.Space(NARROW)))
    study.enqueue_trial({"x": 0.321})
    made = calibo.widen(study, {**NARROW, "kind": Categorical(["a", "b", "c"])})
    assert isinstance(made.sampler, calibo.CalibratedSampler)
    assert made.sampler.requested == study.sampler.requested
    assert [trial.state.name for trial in made.trials] == ["COMPLETE"] * 5 + ["WAITING"]
    assert made.trials[-1].system_attrs["fixed_params"] == {"x": 0.321}


def test_the_warp_is_that_of_the_wider_space(storage):
    study = run({**NARROW, "x": Float(0, 1, warp="log")}, storage, 2).study
    assert read_settings(study).warps == {"x": "log"}
    assert read_settings(calibo.widen(study, WIDE)).warps == {"x": "auto"}
