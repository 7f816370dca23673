"""Bad input gets a sentence, not a TypeError from inside."""

import optuna
import pytest

import calibo
from calibo import CaliboWarning, Float, InputError, ObjectiveError, Optimizer, minimize
from calibo.cli import main

SPACE = {"x": Float(0, 1)}


@pytest.fixture(scope="module")
def result():
    return minimize(lambda x: x, SPACE, 6, seed=0, progress=False)


@pytest.mark.parametrize("callbacks", [5, [3], "stop"])
def test_callbacks_must_be_functions(callbacks):
    with pytest.raises(InputError, match="`callbacks` must be a list of functions"):
        minimize(lambda x: x, SPACE, 3, callbacks=callbacks)


@pytest.mark.parametrize("source", [5, None, "study"])
def test_a_forecast_needs_a_study(source):
    with pytest.raises(InputError, match="`study` must be an Optuna study, a Result or an Optimizer"):
        calibo.forecast(source, {"x": 0.5})


def test_a_forecast_takes_a_study_a_result_or_an_optimizer(result):
    optimizer = Optimizer(SPACE, seed=0)
    for trial in result.study.trials:
        optimizer.tell(trial.params, trial.value)
    found = [calibo.forecast(source, {"x": 0.5}).median for source in (result, result.study, optimizer)]
    assert found[0] == found[1] == pytest.approx(found[2], rel=1e-6)
    with pytest.raises(InputError, match="`strategy` must not be given for an Optimizer"):
        calibo.forecast(optimizer, {"x": 0.5}, strategy="plain")


@pytest.mark.parametrize("level", ["a", None, 0.0, 1.0, float("nan")])
def test_levels_are_numbers(result, level):
    forecast = calibo.forecast(result, {"x": 0.5})
    with pytest.raises(InputError, match="`level` must be a number between 0 and 1"):
        forecast.interval(level)
    with pytest.raises(InputError, match="`p` must lie between 0 and 1"):
        forecast.quantile(level)


def test_a_message_within_a_message_has_one_full_stop():
    assert str(InputError("The space cannot be read: `x` must be a number.. Mend it..")) == (
        "The space cannot be read: `x` must be a number. Mend it."
    )
    assert str(InputError("one of 1, 2, ..., 9, and ...")) == "one of 1, 2, ..., 9, and ..."


def test_an_empty_storage_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    optuna.storages.RDBStorage("sqlite:///calibo.db")
    for words in (["audit", "paint"], ["audit"], ["tell", "paint", "3"]):
        assert main(words) == 2
        assert "There are no studies in 'calibo.db' yet" in capsys.readouterr().err


def by_annotation(x: dict):
    return sum(x.values())


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x["a"],  # mentions a parameter
        lambda params: sum(params.values()),
        lambda *args: sum(args[0].values()),
        by_annotation,
        lambda a: a,
    ],
)
def test_a_function_of_a_dictionary_gets_no_warning(f):
    minimize(f, {"a": (0.0, 1.0)}, 2, progress=False)  # a warning would be an error


def test_a_function_of_another_name_is_warned_about_before_the_first_trial():
    def f(x):
        raise AssertionError("the warning, an error here, comes first")

    with pytest.raises(CaliboWarning, match=r"gets a dictionary of \['a'\] as `x`"):
        minimize(f, {"a": (0.0, 1.0)}, 5, progress=False)


def test_warnings_point_at_the_line_of_the_user():
    def f(a):
        raise ValueError("cold") if a < 0.5 else ValueError("hot")

    with pytest.warns(CaliboWarning, match="Trial .* failed") as caught, pytest.raises(ObjectiveError):
        minimize(f, {"a": (0.0, 1.0)}, 5, progress=False)
    assert {warning.filename for warning in caught} == {__file__}
    with pytest.warns(CaliboWarning, match="Trial .* failed") as caught, pytest.raises(ObjectiveError):
        minimize(f, {"a": (0.0, 1.0)}, 5, progress=False, n_jobs=2)
    assert {warning.filename for warning in caught} <= {__file__, "calibo"}, "no line of ours"
