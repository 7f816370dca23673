"""A bug in the objective does not burn the budget."""

import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import optuna
import pytest

from calibo import Float, InputError, ObjectiveError, StorageError, forecast, minimize, optimize
from calibo.cli import main
from calibo.loop import TrialLoop
from calibo.optuna.reader import read_study
from calibo.optuna.schema import read_settings

SPACE = {"x": Float(0, 1), "y": Float(0, 1)}

pytestmark = pytest.mark.filterwarnings("ignore:Trial:calibo.CaliboWarning")


def bowl(x, y):
    return (x - 0.3) ** 2 + (y - 0.6) ** 2


def typo(x, y):
    return bowl(x, y) + undefined_name  # noqa: F821


def attribute(x, y):
    return np.no_such_function(x)


def module(x, y):
    import no_such_module

    return no_such_module.f(x)


def arguments(x, y):
    return bowl(x)


@pytest.mark.parametrize("f", [typo, attribute, module, arguments])
def test_three_programming_errors_in_a_row_stop_the_run(f, tmp_path):
    with pytest.raises(ObjectiveError, match="failed in 3 trials in a row") as raised:
        minimize(f, SPACE, 20, seed=0, storage=f"{tmp_path}/s.db", progress=False)
    study = optuna.load_study(study_name=f.__name__, storage=f"sqlite:///{tmp_path}/s.db")
    assert [trial.state.name for trial in study.trials] == ["FAIL"] * 3
    assert Path(__file__).name in raised.value.frames
    assert raised.value.frames.count("return") <= 3
    assert isinstance(raised.value.__cause__, Exception)


def test_the_same_call_starts_again_once_the_bug_is_fixed(tmp_path):
    def tuned(x, y, broken=(True,)):
        if broken[0]:
            return undefined_name  # noqa: F821
        return bowl(x, y)

    storage, options = f"{tmp_path}/s.db", {"seed": 0, "progress": False}
    with pytest.raises(ObjectiveError):
        minimize(tuned, SPACE, 8, storage=storage, **options)
    fixed = minimize(lambda x, y: bowl(x, y), SPACE, 8, storage=storage, study_name="tuned", **options)
    untouched = minimize(bowl, SPACE, 8, **options)
    assert [t.params for t in fixed.study.trials[3:]] == [t.params for t in untouched.study.trials], (
        "no region is avoided"
    )
    assert read_settings(fixed.study).ignored == {0, 1, 2}
    assert len(read_study(fixed.study).trials) == 8
    assert forecast(fixed.study, {"x": 0.1, "y": 0.2}).interval(0.9) == forecast(
        untouched.study, {"x": 0.1, "y": 0.2}
    ).interval(0.9)


def test_any_exception_through_the_whole_design_stops_the_run():
    def f(x, y):
        raise ValueError("the file is missing")

    with pytest.raises(ObjectiveError, match=r"4 trials in a row.* ValueError: the file is missing"):
        minimize(f, SPACE, 30, seed=0, progress=False)


def test_a_forgotten_return_is_a_bug():
    def f(x, y):
        bowl(x, y)

    with pytest.raises(ObjectiveError, match=r"3 trials in a row.*it returned None"):
        minimize(f, SPACE, 30, seed=0, progress=False)


def test_failures_that_depend_on_the_point_do_not_stop_it():
    def half(x, y):
        if x > 0.5:
            raise ValueError("out of memory")
        return bowl(x, y)

    def partly(x, y):
        return float("nan") if x > 0.1 else bowl(x, y)

    for f in (half, partly):
        assert len(minimize(f, SPACE, 14, seed=0, progress=False).study.trials) == 14


def test_two_in_a_row_are_survived():
    calls = []

    def sometimes(x, y):
        calls.append(1)
        if len(calls) % 3:
            raise TypeError("no")
        return bowl(x, y)

    assert len(minimize(sometimes, SPACE, 12, seed=0, progress=False).study.trials) == 12


@pytest.mark.parametrize("catch", [NameError, (NameError,), (Exception,)])
def test_what_is_caught_never_stops_it(catch):
    assert len(minimize(typo, SPACE, 12, seed=0, progress=False, catch=catch).study.trials) == 12


@pytest.mark.parametrize("catch", [3, "NameError", [int]])
def test_catch_takes_exceptions(catch):
    with pytest.raises(InputError, match="`catch` must be exception classes"):
        minimize(bowl, SPACE, 3, catch=catch)


def test_threads_stop_too():
    with pytest.raises(ObjectiveError):
        minimize(typo, SPACE, 40, seed=0, n_jobs=3, progress=False)


def test_a_function_that_suggests_its_parameters():
    def define(trial):
        trial.suggest_float("x", 0, 1)
        return trial.no_such_method()

    with pytest.raises(ObjectiveError):
        optimize(define, None, 20, seed=0, progress=False)


def test_on_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "train.py"
    file.write_text("def f(trial):\n    x = trial.suggest_float('x', 0, 1)\n    return y\n")
    words = ["run", "train.py:f", "--trials", "6", "--seed", "0"]
    assert main(words) == 2
    err = capsys.readouterr().err
    assert err.count("return y") == 1, "the frames are shown once"
    assert "line 3" in err
    assert "NameError" in err
    assert main([*words, "--keep-going"]) == 0
    file.write_text("def f(trial):\n    return trial.suggest_float('x', 0, 1)\n")
    warnings.simplefilter("ignore")
    assert main([*words[:3], "12", *words[4:]]) == 0
    assert "Best measured" in capsys.readouterr().out


def test_a_success_in_another_thread_does_not_clear_the_failures_that_stopped_the_run():
    def half_broken(trial):
        x = trial.suggest_float("x", 0, 1)
        if trial.number:
            return undefined_name  # noqa: F821
        for _ in range(1000):  # ends after the others have failed
            if sum(other.state.name == "FAIL" for other in trial.study.get_trials(deepcopy=False)) >= 3:
                break
            time.sleep(0.01)
        return x

    study = []
    with pytest.raises(ObjectiveError, match="failed in 3 trials in a row"):
        optimize(half_broken, None, 20, n_jobs=2, callbacks=[lambda s, _: study.append(s)], progress=False, seed=0)
    assert read_settings(study[0]).ignored == {1, 2, 3}
    assert study[0].trials[0].state.name == "COMPLETE"


def test_a_bug_does_not_hide_a_value_that_could_not_be_stored(monkeypatch):
    def buggy(x, y):
        return undefined_name  # noqa: F821

    monkeypatch.setattr(TrialLoop, "_rescue", lambda self: "Trial 7 returned 1.5, which is not stored. Note it down.")
    with pytest.raises(StorageError, match=r"Trial 7 returned 1\.5, which is not stored"):
        minimize(buggy, SPACE, 20, seed=0, progress=False)


def test_a_storage_that_breaks_after_the_bug_is_a_storage_error(monkeypatch):
    def full(*_):
        raise optuna.exceptions.StorageInternalError("disk full")

    monkeypatch.setattr("calibo.loop.store_ignored", full)
    with pytest.raises(StorageError, match="disk full"):
        minimize(typo, SPACE, 20, seed=0, progress=False)


def test_the_stored_reason_of_a_failure_has_no_password():
    def connect(x, y):
        raise ConnectionError("no server at mysql://me:secret@host/db")

    result = minimize(connect, SPACE, 2, seed=0, catch=ConnectionError, progress=False)
    reasons = [trial.user_attrs["calibo:error"] for trial in result.study.trials]
    assert reasons == ["ConnectionError: no server at mysql://me:***@host/db"] * 2


def test_failures_with_others_between_are_not_in_a_row():
    calls = []

    def f(trial):
        calls.append(trial.suggest_float("x", 0, 1))
        if len(calls) > 4 and len(calls) % 3 == 0:
            return undefined_name  # noqa: F821
        if len(calls) > 4 and len(calls) % 3 == 1:
            raise optuna.TrialPruned
        return float("nan") if len(calls) > 4 else calls[-1]

    optimize(f, None, 20, seed=0, progress=False)
    assert len(calls) == 20


class Objective:
    def __call__(self, x, y):
        return bowl(x, y) + undefined_name  # noqa: F821


def test_a_bug_of_a_callable_object_is_found():
    with pytest.raises(ObjectiveError, match="in 3 trials") as raised:
        minimize(Objective(), SPACE, 20, seed=0, study_name="object", progress=False)
    assert Path(__file__).name in raised.value.frames


def test_a_callable_object_without_a_file_works():
    code = "import calibo\nclass F:\n  def __call__(self, x): return x\n"
    code += "print(calibo.minimize(F(), {'x': (0.0, 1.0)}, 2, progress=False).best_value)"
    assert float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout) >= 0


def test_a_bug_in_a_module_beside_it_is_found(tmp_path, monkeypatch):
    (tmp_path / "helper_of_objective.py").write_text("def g(x):\n    return undefined_name\n")
    monkeypatch.syspath_prepend(tmp_path)
    calls = []

    def f(x, y):
        import helper_of_objective

        calls.append(x)
        return helper_of_objective.g(x) if len(calls) > 5 else bowl(x, y)

    with pytest.raises(ObjectiveError, match="in 3 trials") as raised:
        minimize(f, SPACE, 20, seed=0, progress=False)
    assert len(calls) == 8
    assert "helper_of_objective.py" in raised.value.frames


def test_a_short_run_in_which_everything_raises_is_an_error(tmp_path):
    def f(x, y):
        raise ValueError("no data")

    for n_trials in (1, 2):
        with pytest.raises(ObjectiveError, match="no data"):
            minimize(f, SPACE, n_trials, seed=0, storage=tmp_path / "s.db", progress=False)
    assert minimize(f, SPACE, 2, seed=0, catch=ValueError, progress=False).trials[1].state.name == "FAIL"
