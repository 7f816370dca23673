"""optimize, minimize, maximize and forecast, as a user calls them."""

import functools
import os
import signal
import subprocess
import sys
import time

import numpy as np
import optuna
import pytest

import calibo
from calibo import (
    CaliboWarning,
    Categorical,
    Float,
    InputError,
    Int,
    Interrupted,
    Optimizer,
    forecast,
    maximize,
    minimize,
    optimize,
)
from calibo.optuna.schema import NOISE, mark_interrupted, read_settings

SPACE = {"x": Float(-1, 1), "n": Int(1, 8), "c": Categorical(["a", "b"])}
quietly = functools.partial(optimize, progress=False)


def by_name(x, n, c):
    return x**2 + n + (c == "a")


def by_dict(params):
    return by_name(**params)


def params(result):
    return [trial.params for trial in result.study.trials]


def test_it_asks_what_the_optimizer_asks():
    result = quietly(by_name, SPACE, 12, seed=3)
    optimizer = Optimizer(SPACE, seed=3)
    for trial in result.study.trials:
        assert optimizer.ask() == trial.params
        optimizer.tell(trial.params, by_name(**trial.params))
    assert result.best_value == optimizer.best.value
    assert result.best_params == optimizer.best.params
    assert result.recommendation.median == pytest.approx(optimizer.recommend().median)


@pytest.mark.parametrize(
    "f",
    [
        by_name,
        by_dict,
        lambda p: by_name(**p),
        lambda **p: by_name(**p),
        functools.partial(by_dict),
        lambda *args: by_name(**args[0]),
        lambda params, verbose=False: by_name(**params),
    ],
)
def test_the_function_takes_a_dictionary_or_names(f):
    assert params(quietly(f, SPACE, 4, seed=0)) == params(quietly(by_name, SPACE, 4, seed=0))


def test_a_function_of_other_names_is_refused_before_it_is_called():
    with pytest.raises(InputError, match=r"by name, but it is \(a, b\)"):
        quietly(lambda a, b: 0.0, SPACE, 4)


def test_minimize_and_maximize_look_in_opposite_directions():
    space = {"x": Float(0, 1)}
    assert minimize(lambda x: x, space, 10, seed=0, progress=False).best_value < 0.05
    best = maximize(lambda x: x, space, 10, seed=0, progress=False)
    assert best.best_value > 0.95
    assert best.recommendation.interval[0] <= best.recommendation.median <= best.recommendation.interval[1]


def test_noise_is_stored_with_the_trial():
    result = quietly(lambda x: (x, 0.5), {"x": Float(0, 1)}, 3)
    assert [trial.user_attrs[NOISE] for trial in result.study.trials] == [0.5] * 3
    with pytest.warns(CaliboWarning, match="standard deviation"):
        result = quietly(lambda x: (x, -1.0), {"x": Float(0, 1)}, 1)
    assert result.best_value == result.best_params["x"], "the value counts, the noise does not"


def test_numbers_of_every_kind_are_values():
    for value in (1, True, np.float32(0.5), np.array(2.0), np.int64(3)):
        assert quietly(lambda x, value=value: value, {"x": Float(0, 1)}, 1).best_value == float(value)


@pytest.mark.parametrize("outcome", [None, "a lot", float("nan"), float("inf"), [1.0], (1.0, 2.0, 3.0)])
def test_what_is_no_number_fails_the_trial(outcome):
    outcomes = iter([outcome, 1.0, 2.0])
    with pytest.warns(CaliboWarning, match="Trial 0 failed"):
        result = quietly(lambda x: next(outcomes), {"x": Float(0, 1)}, 3)
    assert [trial.state.name for trial in result.study.trials] == ["FAIL", "COMPLETE", "COMPLETE"]


def test_an_exception_fails_its_trial_and_the_run_goes_on():
    def sometimes(x):
        if x > 0.5:
            raise OSError("the oven is cold")
        return x

    with pytest.warns(CaliboWarning, match="OSError: the oven is cold"):
        result = quietly(sometimes, {"x": Float(0, 1)}, 8, seed=0)
    failed = [trial for trial in result.study.trials if trial.state.name == "FAIL"]
    assert 0 < len(failed) < 8
    assert "the oven is cold" in failed[0].user_attrs["calibo:error"]
    assert result.best_value <= 0.5


def test_where_nothing_succeeded_the_result_says_so():
    with pytest.warns(CaliboWarning, match="failed"):
        result = quietly(lambda x: float("nan"), {"x": Float(0, 1)}, 2)
    with pytest.raises(InputError, match="none yet"):
        result.best_params  # noqa: B018
    with pytest.raises(InputError, match="none yet"):
        result.recommendation  # noqa: B018


def test_the_same_call_again_goes_on_where_the_last_one_stopped(tmp_path):
    call = functools.partial(quietly, by_name, SPACE, seed=1, storage=tmp_path / "s.db")
    assert len(call(5).study.trials) == 5
    resumed = call(12)
    assert resumed.study.study_name == "by_name"
    assert params(resumed) == params(quietly(by_name, SPACE, 12, seed=1))
    assert len(call(12).study.trials) == 12, "what is complete is left alone"


def test_a_resumed_study_keeps_its_seed(tmp_path):
    begun = quietly(by_name, SPACE, 3, storage=tmp_path / "s.db")
    seed = begun.study.user_attrs["calibo:seed"]
    resumed = quietly(by_name, SPACE, 9, storage=tmp_path / "s.db")
    assert params(resumed) == params(quietly(by_name, SPACE, 9, seed=seed))


def test_a_study_of_another_space_is_refused_and_left_alone(tmp_path):
    quietly(by_name, SPACE, 3, storage=tmp_path / "s.db", study_name="s")
    other = {**SPACE, "n": Int(1, 9)}
    with pytest.raises(InputError, match=r"differs in \['n'\]"):
        quietly(by_name, other, 5, storage=tmp_path / "s.db", study_name="s")
    assert len(quietly(by_name, SPACE, 3, storage=tmp_path / "s.db", study_name="s").study.trials) == 3


def test_a_study_made_with_optuna_alone_can_be_continued_in_its_own_space(tmp_path):
    url = f"sqlite:///{tmp_path}/s.db"
    study = optuna.create_study(study_name="s", storage=url, sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
    with pytest.raises(InputError, match="differs in"):
        quietly(lambda x: x, {"x": Float(0, 2)}, 5, storage=url, study_name="s")
    assert len(quietly(lambda x: x, {"x": Float(0, 1)}, 5, storage=url, study_name="s").study.trials) == 5


def test_the_space_is_kept_with_the_study(tmp_path):
    space = {f"a rather long name of a parameter, number {j}": Float(0, 1, step=0.25) for j in range(40)}
    result = quietly(lambda params: sum(params.values()), space, 1, storage=tmp_path / "s.db", study_name="s")
    assert dict(read_settings(result.study).space) == space


def test_threads_share_the_budget():
    result = quietly(by_name, SPACE, 14, n_jobs=4, seed=0)
    assert 14 <= len(result.study.trials) <= 17


def test_a_timeout_ends_the_run():
    def slow(x):
        time.sleep(0.05)
        return x

    start = time.monotonic()
    result = quietly(slow, {"x": Float(0, 1)}, None, timeout=0.3)
    assert time.monotonic() - start < 5
    assert 1 <= len(result.study.trials) <= 7


def test_callbacks_are_called_and_may_stop_the_run():
    seen = []

    def enough(study, trial):
        seen.append(trial.number)
        if len(seen) == 3:
            study.stop()

    assert len(quietly(by_name, SPACE, 10, callbacks=[enough]).study.trials) == 3


def test_without_a_space_the_function_declares_it_itself():
    def objective(trial):
        if trial.suggest_categorical("kind", ["a", "b"]) == "a":
            return trial.suggest_float("u", 0, 1)
        return 1 + trial.suggest_float("v", 0, 1)

    result = quietly(objective, None, 15, seed=0)
    assert result.best_params["kind"] == "a"
    point = forecast(result.study, {"kind": "b", "v": 0.5})
    assert 0.5 < point.median < 2.5


def test_pruning_is_left_to_optuna():
    def objective(trial):
        if trial.suggest_float("x", 0, 1) > 0.3:
            raise optuna.TrialPruned
        return 1.0

    result = quietly(objective, None, 8, seed=0)
    assert {trial.state.name for trial in result.study.trials} == {"COMPLETE", "PRUNED"}


def test_forecasts_are_those_of_the_optimizer():
    result = quietly(by_name, SPACE, 12, seed=3)
    optimizer = Optimizer(SPACE)
    for trial in result.study.trials:
        optimizer.tell(trial.params, trial.value)
    point = {"x": 0.1, "n": 4, "c": "b"}
    for noise in (False, True):
        ours, theirs = forecast(result.study, point, noise=noise), optimizer.forecast(point, noise=noise)
        # scores of stored reports are interpolated, those of replayed ones are exact: the maps differ a little
        np.testing.assert_allclose(ours.raw.interval(0.8), theirs.raw.interval(0.8))
        np.testing.assert_allclose(ours.interval(0.8), theirs.interval(0.8), rtol=1e-3)


@pytest.mark.parametrize(
    ("point", "words"),
    [
        ({"x": 0.1, "n": 4}, r"`params` must contain \['c'\]"),
        ({"x": 9.0, "n": 4, "c": "a"}, "`x` must lie in"),
        ({"x": 0.1, "n": 4, "c": "z"}, "`c` must be one of"),
        ({"x": 0.1, "n": 4, "c": "a", "q": 1}, "must name only"),
        (3, "must be a dictionary"),
    ],
)
def test_a_forecast_of_a_bad_point_says_what_is_wrong(point, words):
    study = quietly(by_name, SPACE, 5, seed=3).study
    with pytest.raises(InputError, match=words):
        forecast(study, point)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_trials": 0}, "`n_trials`"),
        ({"n_trials": 2.5}, "`n_trials`"),
        ({"n_trials": None}, "`n_trials`"),
        ({"n_trials": True}, "`n_trials`"),
        ({"timeout": -1}, "`timeout`"),
        ({"n_jobs": 0}, "`n_jobs`"),
        ({"direction": "up"}, "`direction`"),
        ({"strategy": "best"}, "`strategy`"),
        ({"seed": -3}, "`seed`"),
        ({"f": 3}, "`f` must be a function"),
        ({"space": {}}, "`parameters`"),
        ({"study_name": 3}, "`study_name`"),
    ],
)
def test_bad_arguments_are_named(options, words):
    with pytest.raises(InputError, match=words):
        quietly(**{"f": by_name, "space": SPACE, "n_trials": 2, **options})


SCRIPT = """
import sys, time
from calibo import Float, Interrupted, optimize
def f(x):
    print("evaluating", flush=True)
    time.sleep(30 if len(sys.argv) > 2 else 0)
    return x
try:
    optimize(f, {"x": Float(0, 1)}, 6 if len(sys.argv) > 2 else 3, storage=sys.argv[1], seed=0, progress=False)
except Interrupted as stop:
    print("stopped with", len(stop.result.study.trials), stop.result.best_value)
"""


def test_ctrl_c_keeps_what_is_finished_and_blames_no_point(tmp_path):
    path = str(tmp_path / "s.db")
    subprocess.run([sys.executable, "-c", SCRIPT, path], check=True, capture_output=True)
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, path, "slow"], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "evaluating\n"
    os.kill(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    assert out.startswith("stopped with 4")
    resumed = quietly(lambda x: x, {"x": Float(0, 1)}, 6, storage=path, study_name="f")
    values = [trial.params["x"] for trial in resumed.study.trials]
    assert len(values) == 7, "the one that was stopped does not count"
    assert values[3] == values[4], "and its point is the next again"


def test_an_interrupt_carries_the_result():
    def stops(x):
        raise KeyboardInterrupt

    with pytest.raises(Interrupted) as caught:
        quietly(stops, {"x": Float(0, 1)}, 5)
    assert len(caught.value.result.study.trials) == 1


def test_trials_that_were_set_aside_do_not_count(tmp_path):
    result = quietly(by_name, SPACE, 3, storage=tmp_path / "s.db")
    trial = result.study.ask()
    mark_interrupted(result.study, trial)
    result.study.tell(trial, state=optuna.trial.TrialState.FAIL)
    assert len(quietly(by_name, SPACE, 5, storage=tmp_path / "s.db").study.trials) == 6


def test_the_progress_bar_goes_to_stderr(capsys):
    optimize(by_name, SPACE, 3, seed=0)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "3/3" in shown.err
    assert "best" in shown.err


def test_a_function_without_a_name_needs_a_name_for_its_study(tmp_path):
    with pytest.raises(InputError, match="`study_name` must be given"):
        quietly(lambda x: x, {"x": Float(0, 1)}, 1, storage=tmp_path / "s.db")
    assert not (tmp_path / "s.db").exists()


def test_choices_that_optuna_cannot_tell_apart_are_refused():
    with pytest.raises(InputError, match="Write them as strings"):
        quietly(lambda c: 0.0, {"c": Categorical([True, 1, "1"])}, 1)


def test_a_space_of_one_point_has_a_best_value():
    result = quietly(lambda n: 4.0, {"n": Int(3, 3)}, 2)
    assert (result.best_value, result.best_params) == (4.0, {"n": 3})


def test_a_forecast_takes_parameters_that_have_one_value():
    study = quietly(lambda x, k: x, {"x": Float(0, 1), "k": Int(3, 3)}, 5, seed=0).study
    assert forecast(study, {"x": 0.5, "k": 3}).median == pytest.approx(0.5, abs=0.2)
    with pytest.raises(InputError, match="must name only"):
        forecast(study, {"x": 0.5, "k": 4})


def test_the_best_value_counts_whatever_the_range_is_now():
    study = quietly(lambda t: t.suggest_float("x", -1, 1), None, 6, seed=0).study
    study.optimize(lambda t: 5 + t.suggest_float("x", 0.5, 1), n_trials=2)
    assert calibo.Result(study).best_value == study.best_value < 1


def test_an_error_of_ours_inside_the_function_fails_its_trial_only():
    def nests(x):
        return quietly(lambda y: y, {}, 1).best_value if x > 0.5 else x

    with pytest.warns(CaliboWarning, match="failed"):
        result = quietly(nests, {"x": Float(0, 1)}, 6, seed=0)
    assert len(result.study.trials) == 6


def test_a_function_that_exits_fails_its_trial():
    with pytest.warns(CaliboWarning, match="SystemExit"):
        result = quietly(lambda x: sys.exit(3) if x > 0.5 else x, {"x": Float(0, 1)}, 5, seed=0)
    assert len(result.study.trials) == 5


def test_a_trial_ended_by_somebody_else_costs_no_value(tmp_path):
    def ended(trial):
        x = trial.suggest_float("x", 0, 1)
        if trial.number == 1:
            trial.study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
        return x + 7

    with pytest.warns(CaliboWarning, match="Another process finished a trial"):
        trials = quietly(ended, None, 5, seed=0, storage=tmp_path / "s.db", study_name="s").study.trials
    assert trials[2].value == trials[1].params["x"] + 7
    assert len(trials) == 5, "the run goes on"


MOMENTS = """
import os, signal, sys, threading, time
from calibo import Float, Interrupted, optimize
values = []
def f(x):
    if not values:
        threading.Timer(float(sys.argv[2]), lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    values.append(x)
    return x
try:
    optimize(f, {"x": Float(0, 1)}, 100_000, storage=sys.argv[1], progress=False)
except Interrupted as stop:
    stored = {t.value for t in stop.result.study.trials}
    print("stopped", sum(value not in stored for value in values))
"""


@pytest.mark.slow
def test_ctrl_c_at_any_moment_stops_cleanly_and_loses_nothing(tmp_path):
    for moment in range(8):
        words = [sys.executable, "-c", MOMENTS, str(tmp_path / f"{moment}.db"), str(0.037 * moment)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
        assert done.stdout == "stopped 0\n", done.stderr


def test_optuna_is_as_talkative_afterwards_as_before():
    optuna.logging.set_verbosity(optuna.logging.INFO)
    quietly(by_name, SPACE, 1)
    assert optuna.logging.get_verbosity() == optuna.logging.INFO
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def test_what_needs_optuna_is_found_in_the_package():
    assert calibo.optimize is optimize
    with pytest.raises(AttributeError, match="nonsense"):
        calibo.nonsense  # noqa: B018
