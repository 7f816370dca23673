import numpy as np
import optuna
import pytest
from scipy import stats

from calibo import CaliboWarning, Categorical, Float, InputError, Int, Optimizer, Space


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ((0.0, 1.0), Float(0, 1)),
        ((0, 1.0), Float(0, 1)),
        ((0, 10), Int(0, 10)),
        ([1, 2, 4], Categorical([1, 2, 4])),
        (["a", "b"], Categorical(["a", "b"])),
        (optuna.distributions.FloatDistribution(1e-3, 1, log=True), Float(1e-3, 1, log=True)),
        (optuna.distributions.FloatDistribution(0, 1, step=0.25), Float(0, 1, step=0.25)),
        (optuna.distributions.IntDistribution(2, 8, step=2), Int(2, 8, step=2)),
        (optuna.distributions.CategoricalDistribution(["a", None]), Categorical(["a", None])),
        (stats.uniform(2.0, 3.0), Float(2, 5)),
        (stats.loguniform(1e-4, 1e-1), Float(1e-4, 1e-1, log=True)),
        (stats.randint(1, 5), Int(1, 4)),
    ],
    ids=range(12),
)
def test_what_is_unambiguous_is_taken(short, long):
    assert Space({"x": short})["x"] == long


@pytest.mark.parametrize("given", [(0, 1, 2), ("a", "b"), 5, "x", stats.norm(), None, (0,), {1, 2}], ids=range(8))
def test_anything_else_says_what_to_write(given):
    with pytest.raises(InputError, match=r"Write Float\(0, 1\)"):
        Space({"x": given})


def test_a_bad_range_names_its_parameter():
    with pytest.raises(InputError, match="`x`: `low` must not exceed"):
        Space({"x": (1.0, 0.0)})


def test_asked_values_are_rounded_and_forecast_as_rounded():
    space = {"temperature": Float(20, 90), "rate": Float(1e-5, 1e-1, log=True), "n": Int(1, 9)}
    optimizer = Optimizer(space, seed=0)
    for _ in range(8):
        params = optimizer.ask(digits=3)
        assert params["temperature"] == round(params["temperature"], 1)
        assert params["rate"] == float(f"{params['rate']:.3g}")
        optimizer.tell(params, (params["temperature"] - 61) ** 2 + params["n"])
    assert optimizer.trials[-1].record is not None, "the forecast is that of the rounded point"
    assert optimizer.ask(fixed={"temperature": 33.333333}, digits=2)["temperature"] == 33.333333
    with pytest.raises(InputError, match="`digits`"):
        optimizer.ask(digits=0)


def test_as_many_digits_as_the_model_would_notice():
    """Three at first; four where outcomes are exact and the model is sure, not where they are noisy."""

    def digits_of(asked):
        return len(f"{asked['x']:.10f}".rstrip("0")) - 2

    rng, used = np.random.default_rng(0), {}
    for noise in (0.0, 0.5):
        optimizer = Optimizer({"x": Float(0, 1)}, seed=0)
        used[noise] = []
        for _ in range(14):
            params = optimizer.ask(digits="auto")
            used[noise].append(digits_of(params))
            optimizer.tell(params, (7 * params["x"] - 2.3456) ** 2 + noise * rng.standard_normal())
    assert max(used[0.0][:4] + used[0.5][:4]) <= 3
    assert max(used[0.0]) >= 4
    assert max(used[0.5]) == 3


def test_a_rounded_point_is_not_one_tried_before():
    optimizer = Optimizer({"x": Float(0, 1)}, seed=0)
    for _ in range(12):
        params = optimizer.ask(digits="auto")
        optimizer.tell(params, abs(params["x"] - 0.5))
    assert len({trial.params["x"] for trial in optimizer.trials}) == 12


def test_a_point_repeated_because_of_few_digits_is_said():
    optimizer = Optimizer({"x": Float(0, 0.3)}, seed=0)
    for x in (0.0, 0.1, 0.2, 0.3, 0.15):
        optimizer.tell({"x": x}, abs(x - 0.1))
    with pytest.warns(CaliboWarning, match="a previous one is suggested again"):
        assert optimizer.ask(digits=1)["x"] in (0.0, 0.1, 0.2, 0.3)


def test_loops_do_not_round():
    params = Optimizer({"x": Float(0, 1)}, seed=1).ask()
    assert params["x"] != round(params["x"], 4)


def test_rounding_stays_within_the_bounds():
    assert Space({"x": Float(0.1234, 0.9876)}).rounded({"x": 0.98759}, 2) == [{"x": 0.9876}]
    assert Space({"x": Float(0, 1)}).rounded({"x": 0.98759}, 2) == [{"x": 0.99}]
    assert Space({"x": Float(20, 90)}).rounded({"x": 61.4862}, 3) == [{"x": 61.5}]
