import threading

import numpy as np
import optuna
import pytest

import calibo
from calibo.cli.main import main
from calibo.errors import InputError
from calibo.optuna.reader import read_study
from calibo.optuna.schema import CORRECTION, mark_interrupted, read_corrections, store_ignored
from calibo.optuna.trials import current_trials
from calibo.study import Result


@pytest.fixture
def study(tmp_path):
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    made = optuna.create_study(
        study_name="paint", storage=f"sqlite:///{tmp_path}/study.db", sampler=calibo.CalibratedSampler(seed=0)
    )
    made.optimize(lambda trial: (trial.suggest_float("x", 0, 1) - 0.3) ** 2, n_trials=8)
    return made


def test_a_dropped_trial_informs_nothing(study):
    best = study.best_trial.number
    calibo.drop(study, best)
    assert Result(study).best_value > study.best_value, "Optuna still shows it"
    assert Result(study).recommendation.params != study.best_params
    assert len(current_trials(study)) == 7
    assert calibo.audit(study).outcomes
    assert best not in [checked.trial for checked in calibo.audit(study).outcomes]


def test_an_amended_value_is_used_and_may_be_amended_again(study):
    before = calibo.forecast(study, {"x": 0.9}).median
    at = min(study.trials, key=lambda trial: abs(trial.params["x"] - 0.9)).number
    calibo.amend(study, at, 5.0)
    assert calibo.forecast(study, {"x": 0.9}).median != before
    calibo.amend(study, at, -1.0)
    assert Result(study).best_value == -1.0
    calibo.drop(study, at)
    calibo.amend(study, at, -2.0)
    assert Result(study).best_value == -2.0, "amending brings a dropped trial back"
    assert [change.was for change in read_corrections(study)][-2:] == ["-1.0", "dropped"]


def test_a_dropped_trial_is_evaluated_anew(tmp_path):
    def f(x):
        return (x - 0.3) ** 2

    arguments = {"storage": f"sqlite:///{tmp_path}/a.db", "progress": False, "seed": 0}
    result = calibo.minimize(f, {"x": calibo.Float(0, 1)}, 6, **arguments)
    calibo.drop(result.study, 0, 1)
    result = calibo.minimize(f, {"x": calibo.Float(0, 1)}, 6, **arguments)
    assert len(result.study.trials) == 8


def test_a_failed_trial_can_be_given_its_value():
    study = optuna.create_study()
    study.add_trial(
        optuna.create_trial(
            state=optuna.trial.TrialState.FAIL,
            params={"x": 0.5},
            distributions={"x": optuna.distributions.FloatDistribution(0, 1)},
        )
    )
    calibo.amend(study, 0, 0.25)
    assert Result(study).best_value == 0.25


@pytest.mark.parametrize("number", [99, -1, "a", True])
def test_only_finished_trials_can_be_corrected(study, number):
    with pytest.raises(InputError, match="`trial` must be a finished trial"):
        calibo.drop(study, number)


def test_values_must_be_finite(study):
    with pytest.raises(InputError, match="`value` must be a finite number"):
        calibo.amend(study, 0, float("nan"))


def test_damaged_corrections_are_ignored(study):
    for i, damaged in enumerate([5, {"trial": "x"}, {"trial": 1, "value": "a"}]):
        study._storage.set_study_system_attr(study._study_id, f"{CORRECTION}{i}", damaged)
    assert len(current_trials(study)) == 8


def test_commands_correct_and_show_the_trace(study, tmp_path, capsys):
    where = ["--storage", f"{tmp_path}/study.db"]
    assert main(["drop", "paint", "1", "2", *where]) == 0
    assert main(["amend", "paint", "3", "-1.5", *where]) == 0
    assert "Optuna cannot change finished trials" in capsys.readouterr().out
    assert main(["show", "paint", *where]) == 0
    shown = capsys.readouterr().out
    assert "amended to -1.5" in shown
    assert "Best measured  -1.5" in shown
    assert "was dropped" in shown
    assert main(["drop", "paint", "77", *where]) == 2


def test_a_dropped_point_may_be_chosen_again_at_once(study, monkeypatch):
    best = study.best_trial
    calibo.drop(study, best.number)
    made = []
    propose = calibo.CalibratedSampler._propose
    monkeypatch.setattr(calibo.CalibratedSampler, "_propose", lambda *a: made.append(1) or propose(*a))
    study.sampler = calibo.CalibratedSampler(seed=0)
    trial = study.ask()
    assert abs(trial.suggest_float("x", 0, 1) - best.params["x"]) < 0.05, "otherwise this tests nothing"
    assert len(made) == 1, "a dropped trial is not another worker's choice"


def test_corrections_of_two_programs_are_all_kept(study, tmp_path):
    others = [optuna.load_study(study_name="paint", storage=f"sqlite:///{tmp_path}/study.db") for _ in range(2)]
    threads = [
        threading.Thread(target=lambda s, n: [calibo.drop(s, n), calibo.drop(s, n + 1)], args=(other, 2 * i))
        for i, other in enumerate(others)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(change.trial for change in read_corrections(study)) == [0, 1, 2, 3]


def test_numpy_numbers_are_numbers(study):
    calibo.drop(study, np.int64(3))
    calibo.amend(study, np.int64(4), np.float32(0.5))
    assert [change.value for change in read_corrections(study)] == [None, 0.5]
    with pytest.raises(InputError, match="`value` must be a finite number"):
        calibo.amend(study, 3, 10**400)


def test_an_amended_trial_counts_even_if_a_bug_had_spoiled_it(study, tmp_path, monkeypatch, capsys):
    made = optuna.create_study(study_name="other", storage=study._storage)
    for _ in range(3):
        made.tell(made.ask({"x": optuna.distributions.FloatDistribution(0, 1)}), state=optuna.trial.TrialState.FAIL)
    store_ignored(made, [0, 1, 2])
    assert repr(Result(made)) == "Result(study='other', 0 trials and 3 ignored, no feasible trial)"
    calibo.amend(made, 0, 0.25)
    assert len(read_study(made).trials) == 1
    assert "1 trial and 2 ignored, best_value=0.25" in repr(Result(made))
    calibo.drop(made, 1, 2)
    assert "1 trial, " in repr(Result(made))
    where = ["--storage", f"{tmp_path}/study.db"]
    assert main(["show", "other", "--csv", f"{tmp_path}/a.csv", *where]) == 0
    assert (tmp_path / "a.csv").read_text().splitlines()[1].startswith("0,complete,0.25,")


def test_a_result_is_taken_and_anything_else_refused(study):
    calibo.drop(Result(study), 1)
    assert [change.trial for change in read_corrections(study)] == [1]
    with pytest.raises(InputError, match="must not be dropped yet, but 1 is"):
        calibo.drop(study, 1)
    with pytest.raises(InputError, match="there are none"):
        calibo.drop(study)
    for wrong in (5, None, calibo.Optimizer({"x": (0.0, 1.0)})):
        with pytest.raises(InputError, match="`study` must be an Optuna study or a Result"):
            calibo.amend(wrong, 1, 2.0)


def test_a_canceled_ask_has_no_value_to_amend(study):
    trial = study.ask()
    mark_interrupted(study, trial)
    study.tell(trial, state=optuna.trial.TrialState.FAIL)
    with pytest.raises(InputError, match="was canceled"):
        calibo.amend(study, trial.number, 1.0)
