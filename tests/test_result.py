import pytest

import calibo
from calibo import CaliboWarning, Float, Int


@pytest.fixture(scope="module")
def result():
    return calibo.minimize(lambda x: (x - 0.3) ** 2, {"x": Float(0, 1)}, 6, seed=0, progress=False)


def test_a_result_has_trials_a_figure_and_a_table(result):
    assert len(result.trials) == 6
    values, best = (list(trace.y) for trace in result.plot().data)
    assert best == [min(values[: i + 1]) for i in range(6)]
    assert f"{result.best_value:.6g}" in result._repr_html_()
    assert "<td>calibrated</td>" in calibo.audit(result)._repr_html_()
    assert "90 % interval" in result.recommendation._repr_html_()
    assert "90 % interval" in calibo.forecast(result, {"x": 0.5})._repr_html_()
    assert "<p>x: the objective varies" in calibo.learned_warps(result, draws=4, chains=2)._repr_html_()
    assert result.plot().layout.xaxis.dtick == 1, "no tick at 4.5"
    assert len(repr(result.recommendation)) < 130


def test_a_frame_has_a_row_per_trial(result):
    pytest.importorskip("pandas")
    frame = result.to_dataframe()
    assert list(frame.columns) == ["trial", "state", "value", "x"]
    assert frame["value"].min() == result.best_value


def test_dropped_trials_are_not_drawn():
    found = calibo.minimize(lambda x: x, {"x": Float(0, 1)}, 5, seed=0, progress=False)
    calibo.drop(found.study, 2)
    assert 2 not in found.plot().data[0].x


def test_an_exhausted_space_ends_the_run():
    calls = []

    def f(a, b):
        calls.append((a, b))
        return a + len(b)

    with pytest.warns(CaliboWarning, match="No configuration was found that has not been tried"):
        result = calibo.minimize(f, {"a": Int(0, 3), "b": ["x", "yy"]}, 30, seed=0, progress=False)
    assert len(calls) == len(set(calls)) == 8
    assert result.best_params == {"a": 0, "b": "x"}


def test_a_given_value_without_new_configurations_does_not_end_the_run(tmp_path):
    arguments = {"storage": f"{tmp_path}/a.db", "seed": 0, "progress": False}
    space = {"a": Int(0, 3), "b": ["x", "yy"]}

    def f(a, b):
        return a + len(b)

    result = calibo.minimize(f, space, 1, **arguments)
    for _ in range(3):
        result.study.enqueue_trial({"a": 0})
    with pytest.warns(CaliboWarning, match="a previous one is suggested again"):
        result = calibo.minimize(f, space, 6, **arguments)
    assert len(result.trials) == 6


def test_a_space_that_may_grow_is_not_exhausted():
    def f(trial):
        trial.suggest_categorical("arm", ["a", "b"])
        if trial.number < 2:
            raise ValueError("cold")
        return trial.suggest_float("rate", 0, 1)

    with pytest.warns(CaliboWarning):
        result = calibo.optimize(f, None, 9, seed=0, progress=False)
    assert len(result.trials) == 9
