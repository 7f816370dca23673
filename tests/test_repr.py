"""What a notebook shows of a value fits into a line."""

import pytest

import calibo
from calibo import Float, Optimizer, minimize

SPACE = {"x": Float(0, 1), "y": Float(0, 1)}


def bowl(x, y):
    return (x - 0.3) ** 2 + (y - 0.6) ** 2


@pytest.fixture(scope="module")
def result():
    return minimize(bowl, SPACE, 12, seed=0, progress=False)


def test_values_are_shown_in_a_line(result):
    shown = [
        repr(result),
        repr(calibo.audit(result)),
        repr(calibo.forecast(result.study, {"x": 0.2, "y": 0.1})),
        repr(calibo.learned_warps(result, draws=8, chains=2)),
    ]
    assert [text.partition("(")[0] for text in shown] == ["Result", "Audit", "Forecast", "LearnedWarps"]
    assert max(map(len, shown)) < 120
    assert "12 trials" in shown[0]
    assert f"best_value={result.best_value:.6g}" in shown[0]
    assert "9 outcomes" in shown[1]
    assert "90 % interval=(" in shown[2]


@pytest.mark.filterwarnings("ignore:Trial:calibo.CaliboWarning")
def test_nothing_is_needed_to_be_shown():
    failed = minimize(lambda x: float("nan"), {"x": Float(0, 1)}, 2, progress=False)
    assert "no feasible trial" in repr(failed)
    assert repr(calibo.audit(Optimizer(SPACE))) == "Audit('optimizer', 0 outcomes)"
