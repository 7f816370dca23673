import subprocess
import sys
import textwrap
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from calibo import CaliboWarning, Categorical, Float, InputError, Int, Optimizer, Strategy
from calibo.acquisition import LowerBound

SQUARE = {"x": Float(-5, 10), "y": Float(0, 15)}


def branin(x: float, y: float) -> float:
    bowl = (y - 5.1 / (4 * np.pi**2) * x**2 + 5 / np.pi * x - 6) ** 2
    return float(bowl + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x) + 10)


def run(optimizer: Optimizer, f, n: int) -> Optimizer:
    for _ in range(n):
        params = optimizer.ask()
        optimizer.tell(params, f(**params))
    return optimizer


# What it is for


@pytest.mark.parametrize("strategy", [None, "lcb", "pi", Strategy(acquisition=LowerBound("srinivas"))])
def test_it_finds_the_minimum_of_a_smooth_function(strategy):
    optimizer = run(Optimizer(SQUARE, strategy=strategy, seed=0), branin, 35)
    assert optimizer.best.value < 1.0  # of 35 random points the best is that low in one run of three
    assert branin(**optimizer.best.params) == optimizer.best.value


def test_it_beats_random_search_on_six_dimensions():
    def f(**p: float) -> float:
        return sum((v - 0.2 - 0.1 * i) ** 2 for i, v in enumerate(p.values()))

    space = {f"x{i}": Float(0, 1) for i in range(6)}
    best = run(Optimizer(space, seed=1), f, 40).best.value
    draws = np.random.default_rng(0).random((4000, 6))
    luck = ((draws - 0.2 - 0.1 * np.arange(6)) ** 2).sum(axis=1).min()
    assert best < luck  # better than a hundred times as many random points


def test_maximizing_is_minimizing_the_negated_function():
    low = run(Optimizer(SQUARE, seed=2), branin, 15)
    high = run(Optimizer(SQUARE, direction="maximize", seed=2), lambda **p: -branin(**p), 15)
    assert [t.params for t in low.trials] == [t.params for t in high.trials]
    assert high.best.value == -low.best.value
    a, b = low.forecast({"x": 1, "y": 1}), high.forecast({"x": 1, "y": 1})
    assert b.median == pytest.approx(-a.median)
    assert b.interval(0.8) == pytest.approx((-a.interval(0.8)[1], -a.interval(0.8)[0]))
    assert b.quantile(0.3) == pytest.approx(-a.quantile(0.7))


def test_mixed_spaces_are_searched():
    space = {
        "kind": Categorical(["u", "v", "w"]),
        "k": Int(1, 1000, log=True),
        "x": Float(0, 1),
        "s": Float(0, 1, step=0.25),
    }

    def f(kind: str, k: int, x: float, s: float) -> float:
        return {"u": 1.0, "v": 0.0, "w": 0.5}[kind] + abs(np.log(k / 20)) + (x - 0.3) ** 2 + abs(s - 0.75)

    best = run(Optimizer(space, seed=0), f, 45).best
    assert best.params["kind"] == "v"
    assert best.params["s"] == 0.75
    assert 17 <= best.params["k"] <= 23
    assert best.value < 0.2


# Noise, constraints and failures


def test_a_recommendation_is_the_best_median_not_the_luckiest_value():
    rng = np.random.default_rng(0)
    optimizer = Optimizer({"x": Float(0, 1)}, seed=0)
    for x in np.linspace(0, 1, 40):
        optimizer.tell({"x": x}, 4 * (x - 0.3) ** 2 + 0.3 * rng.standard_normal())
    lucky = {"x": 0.9}
    optimizer.tell(lucky, optimizer.best.value - 0.05)
    assert optimizer.best.params == lucky
    recommended = optimizer.recommend()
    assert abs(recommended.params["x"] - 0.3) < 0.15
    low, high = recommended.interval
    assert low < recommended.median < high


def test_an_interval_of_an_observation_is_wider_than_one_of_the_function():
    rng = np.random.default_rng(0)
    optimizer = Optimizer({"x": Float(0, 1)}, seed=0)
    for x in rng.random(40):
        optimizer.tell({"x": x}, x + 0.3 * rng.standard_normal())
    widths = [np.diff(optimizer.forecast({"x": 0.5}, noise=noise).interval(0.9))[0] for noise in (False, True)]
    assert widths[1] > 2 * widths[0]
    assert 0.6 < widths[1] < 1.6  # 2 * 1.645 * 0.3 = 0.99, and wider where it was surprised


def test_intervals_hold_what_they_promise():
    rng = np.random.default_rng(0)
    optimizer = Optimizer({"x": Float(0, 1), "y": Float(0, 1)}, seed=0)

    def f(x: float, y: float) -> float:
        return np.sin(6 * x) + y * x

    for x, y in rng.random((25, 2)):
        optimizer.tell({"x": x, "y": y}, f(x, y))
    points = rng.random((100, 2))
    inside = 0
    for x, y in points:
        low, high = optimizer.forecast({"x": x, "y": y}).interval(0.9)
        inside += low <= f(x, y) <= high
    assert inside >= 80  # binomial(100, 0.9): below 80 has probability 0.002


def test_known_noise_is_a_standard_deviation_in_the_units_of_the_value():
    quiet, loud = Optimizer({"x": Float(0, 1)}, seed=0), Optimizer({"x": Float(0, 1)}, seed=0)
    for x in np.linspace(0, 1, 12):
        quiet.tell({"x": x}, 100 * x, noise=0.0)
        loud.tell({"x": x}, 100 * x, noise=50.0)
    assert np.diff(quiet.forecast({"x": 0.5}).interval())[0] < 5
    assert np.diff(loud.forecast({"x": 0.5}).interval())[0] > 15


@pytest.mark.parametrize("how", ["failed", "nan", "inf", "-inf", "constraint"])
def test_bad_regions_are_avoided_and_never_stop_the_search(how):
    optimizer = Optimizer(SQUARE, seed=0)
    bad = []
    for i in range(30):
        params = optimizer.ask()
        if params["x"] > 2:
            bad.append(i)
            if how == "failed":
                optimizer.tell_failed(params)
            elif how == "constraint":
                optimizer.tell(params, -1e9, constraints=(params["x"] - 2,))
            else:
                optimizer.tell(params, float(how))
        else:
            optimizer.tell(params, branin(**params), constraints=(params["x"] - 2,) if how == "constraint" else ())
    assert sum(4 <= i < 16 for i in bad) <= 4  # random points would give 6.4; later there is little else to explore
    assert optimizer.best.params["x"] <= 2
    assert optimizer.best.value < 1.0  # the minimum at (-pi, 12.275) is feasible
    assert sum(not trial.feasible for trial in optimizer.trials) == len(bad)
    assert np.isfinite(optimizer.recommend().median)


def test_a_constraint_of_zero_is_kept_and_one_that_is_nan_is_not():
    optimizer = Optimizer({"x": Float(0, 1)}, seed=0)
    optimizer.tell({"x": 0.1}, 1.0, constraints=[0.0, -3])
    optimizer.tell({"x": 0.2}, 0.5, constraints=np.array([np.nan]))
    assert [trial.feasible for trial in optimizer.trials] == [True, False]
    assert optimizer.best.value == 1.0


def test_where_everything_failed_the_search_goes_on():
    optimizer = Optimizer({"x": Float(0, 1), "y": Float(0, 1)}, seed=0)
    asked = []
    for _ in range(15):
        asked.append(optimizer.ask())
        optimizer.tell_failed(asked[-1])
    assert len({tuple(params.values()) for params in asked}) == 15
    with pytest.raises(InputError, match="feasible"):
        _ = optimizer.best
    with pytest.raises(InputError, match="feasible"):
        optimizer.recommend()


# Asking


def test_asks_in_a_row_give_different_points_that_spread():
    optimizer = run(Optimizer(SQUARE, seed=0), branin, 12)
    batch = optimizer.ask(8)
    points = np.array([optimizer.space.to_cube(params) for params in batch])
    gaps = np.abs(points[:, None] - points[None]).max(axis=2) + np.eye(8)
    assert gaps.min() > 1e-3
    assert optimizer.pending == tuple(batch)
    for params in reversed(batch):
        optimizer.tell(params, branin(**params))
    assert optimizer.pending == ()


@pytest.mark.parametrize("seed", [2, 5, 6])
def test_asks_in_a_row_keep_apart_also_where_the_optimum_is_found(seed):
    optimizer = Optimizer({"x": Float(0, 1), "y": Float(0, 1)}, seed=seed)
    for _ in range(16):
        point = optimizer.ask()
        optimizer.tell(point, (point["x"] - 0.3) ** 2 + (point["y"] - 0.6) ** 2)
    points = np.array([[*point.values()] for point in optimizer.ask(4)])
    gaps = np.abs(points[:, None] - points).max(axis=2) + np.eye(4)
    assert gaps.min() > 1e-4


def test_the_first_asks_spread_before_anything_is_known():
    batch = Optimizer({"x": Float(0, 1)}, seed=0).ask(8)
    slices = {int(8 * params["x"]) for params in batch}
    assert len(slices) >= 6


def test_the_same_seed_and_history_give_the_same_suggestion_in_a_fresh_process():
    script = textwrap.dedent(
        """
        from calibo import Categorical, Float, Int, Optimizer
        o = Optimizer({"x": Float(0, 1), "k": Int(1, 50), "c": Categorical("ab".split() + [None])}, seed=11)
        for _ in range(25):
            p = o.ask()
            o.tell_failed(p) if p["x"] > 0.9 else o.tell(p, (p["x"] - 0.3) ** 2 + p["k"] / 50)
        print(o.ask(3))
        """
    )
    printed = {
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    }
    assert len(printed) == 1
    assert printed.pop().count("x") == 3


def test_retold_history_gives_the_same_suggestion():
    first = run(Optimizer(SQUARE, seed=5), branin, 30)
    second = Optimizer(SQUARE, seed=5)
    for trial in first.trials:
        second.tell(trial.params, trial.value)
    for told, asked in zip(second.ask(2), first.ask(2), strict=True):
        # what was asked has a recorded forecast, what was told one made afterwards: the same up to rounding
        assert told == pytest.approx(asked, rel=1e-3)
    assert first.ask() != run(Optimizer(SQUARE, seed=6), branin, 30).ask()


@pytest.mark.parametrize("noise", [np.True_, 1])
def test_any_true_value_asks_for_a_noisy_measurement(noise):
    optimizer = run(Optimizer(SQUARE, seed=5), branin, 12)
    wanted = optimizer.forecast({"x": 1, "y": 2}, noise=True).interval(0.9)
    assert optimizer.forecast({"x": 1, "y": 2}, noise=noise).interval(0.9) == wanted


def test_looking_at_forecasts_changes_no_suggestion():
    looked, not_looked = (run(Optimizer(SQUARE, seed=5), branin, 20) for _ in range(2))
    looked.forecast({"x": 1, "y": 2})
    looked.recommend()
    assert looked.ask() == not_looked.ask()


def test_earlier_data_count_as_the_initial_design():
    optimizer = Optimizer(SQUARE, seed=0)
    rng = np.random.default_rng(0)
    for x, y in rng.random((30, 2)):
        params = {"x": 15 * x - 5, "y": 15 * y}
        optimizer.tell(params, branin(**params))
    before = optimizer.best.value
    run(optimizer, branin, 12)
    assert optimizer.best.value < min(before, 1.0)


def test_first_points_come_first_and_may_be_partial():
    optimizer = Optimizer(SQUARE, seed=0)
    optimizer.enqueue({"x": 1.0, "y": 2.0})
    optimizer.enqueue({"y": 3.0})
    assert optimizer.ask() == {"x": 1.0, "y": 2.0}
    second = optimizer.ask()
    assert second["y"] == 3.0
    assert -5 <= second["x"] <= 10
    assert optimizer.ask()["y"] != 3.0


def test_fixed_parameters_stay_and_the_others_are_optimized():
    optimizer = Optimizer(SQUARE, seed=0)
    for _ in range(20):
        params = optimizer.ask(fixed={"x": np.pi})
        assert params["x"] == np.pi
        optimizer.tell(params, branin(**params))
    assert optimizer.best.value < 0.41
    assert optimizer.ask(fixed={"x": 1.0, "y": 2.0}) == {"x": 1.0, "y": 2.0}


def test_a_canceled_point_is_no_longer_pending():
    optimizer = Optimizer(SQUARE, seed=0)
    params = optimizer.ask()
    optimizer.cancel(params)
    assert optimizer.pending == ()
    with pytest.raises(InputError, match="pending"):
        optimizer.cancel(params)


def test_a_point_told_as_it_was_rounded_is_no_longer_pending():
    space = {"x": Float(0, 100), "k": Int(0, 10**12), "c": Categorical(["a", "b"])}
    optimizer = Optimizer(space, seed=0)
    asked = optimizer.ask(3)
    optimizer.tell({**asked[1], "x": round(asked[1]["x"], 1)}, 1.0)
    assert optimizer.pending == (asked[0], asked[2])
    optimizer.tell({**asked[0], "k": asked[0]["k"] + 1}, 1.0)
    assert optimizer.pending == (asked[0], asked[2])
    optimizer.tell({**asked[2], "x": (asked[2]["x"] + 50) % 100}, 1.0)
    assert optimizer.pending == (asked[0], asked[2])


def test_a_queued_point_that_contradicts_what_is_fixed_waits(tmp_path):
    optimizer = Optimizer(SQUARE, seed=0)
    optimizer.save(tmp_path / "run.jsonl")
    optimizer.enqueue({"x": 1.0})
    optimizer.enqueue({"y": 7.0})
    assert optimizer.ask(fixed={"x": 4.0}) == {"x": 4.0, "y": 7.0}
    again = Optimizer.load(tmp_path / "run.jsonl")
    assert again.pending == optimizer.pending
    assert again.ask() == optimizer.ask()
    assert optimizer.pending[-1]["x"] == 1.0


def test_history_cannot_be_changed_from_outside():
    optimizer = Optimizer(SQUARE, seed=0)
    params = optimizer.ask()
    optimizer.tell(params, 1.0)
    for view in (optimizer.best, optimizer.trials[0], optimizer.recommend()):
        view.params["x"] = 99.0
    params["x"] = 98.0
    assert -5 <= optimizer.best.params["x"] <= 10


# Hard cases


def test_a_constant_objective_keeps_exploring():
    optimizer = run(Optimizer(SQUARE, seed=0), lambda **_: 3.0, 20)
    points = np.array([optimizer.space.to_cube(trial.params) for trial in optimizer.trials])
    assert len(np.unique(points.round(6), axis=0)) == 20
    assert points.std(axis=0).min() > 0.15
    assert optimizer.forecast({"x": 0, "y": 0}).median == pytest.approx(3.0)


@pytest.mark.parametrize("scale", [1.0, 1e150, 1e300, 1e-300, 1e-310])
def test_an_objective_constant_up_to_rounding_keeps_exploring(scale):
    optimizer = Optimizer({"k": Int(0, 59)}, seed=0)
    for i in range(40):
        optimizer.tell(optimizer.ask(), scale * ((0.1 + 0.2) if i % 2 else 0.3))
    assert len({trial.params["k"] for trial in optimizer.trials}) == 40


def test_the_first_outcome_that_differs_is_believed():
    optimizer = Optimizer(SQUARE, seed=0, strategy="default+unreported")
    rng = np.random.default_rng(0)
    for x, y in rng.random((52, 2)):
        optimizer.tell({"x": 15 * x - 5, "y": 15 * y}, 1.0)
    special = {"x": 1.0, "y": 1.0}
    optimizer.tell(special, 0.0)
    assert optimizer.recommend().params == special
    assert optimizer.forecast(special).median < 0.1


def test_the_first_outcome_that_differs_may_be_noise():
    optimizer = Optimizer(SQUARE, seed=0)
    for x, y in np.random.default_rng(0).random((52, 2)):
        optimizer.tell({"x": 15 * x - 5, "y": 15 * y}, 1.0)
    special = {"x": 1.0, "y": 1.0}
    optimizer.tell(special, 0.0)
    low, high = optimizer.forecast(special).interval(0.9)
    assert low < 0.1
    assert high > 0.9
    assert optimizer.recommend().params == special


def test_known_noise_makes_a_repetition_worthwhile():
    optimizer = Optimizer({"k": Int(0, 4)}, seed=0)
    rng = np.random.default_rng(0)
    for i in range(15):
        optimizer.tell({"k": i % 5}, i % 5 + rng.standard_normal(), noise=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert optimizer.ask()["k"] <= 2
    function, observation = (np.diff(optimizer.forecast({"k": 1}, noise=n).interval())[0] for n in (False, True))
    assert observation > 1.5 * function
    assert observation > 3.0  # 2 * 1.645 standard deviations of noise alone are 3.29


@pytest.mark.parametrize("noise", [0.0, 1e-9])
@pytest.mark.parametrize("space", [{"x": Float(0, 1)}, {"x": Int(0, 9)}])
def test_batches_of_measurements_without_noise_are_asked(space, noise):
    optimizer = Optimizer(space, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CaliboWarning)  # the finite space is exhausted, then duplicated
        for _ in range(8):
            for params in optimizer.ask(4):
                optimizer.tell(params, (params["x"] - 0.3) ** 2, noise=noise)
    assert optimizer.best.value < 0.1


def test_absurd_known_noise_says_nothing_and_breaks_nothing():
    optimizer = Optimizer({"x": Float(0, 1)}, seed=0)
    for i in range(8):
        optimizer.tell(optimizer.ask(), float(i), noise=1e200 if i % 2 else None)
    assert 0 <= optimizer.ask()["x"] <= 1


def test_every_point_of_a_finite_space_is_tried_even_if_all_fail():
    optimizer = Optimizer({"k": Int(0, 99)}, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(100):
            optimizer.tell_failed(optimizer.ask())
    assert len({trial.params["k"] for trial in optimizer.trials}) == 100


def test_asks_in_a_row_keep_apart_even_if_all_failed():
    optimizer = Optimizer(SQUARE, seed=0)
    for _ in range(15):
        optimizer.tell_failed(optimizer.ask())
    points = np.array([optimizer.space.to_cube(params) for params in optimizer.ask(5)])
    gaps = np.abs(points[:, None] - points[None]).max(axis=2) + np.eye(5)
    assert gaps.min() > 0.05


def test_a_large_finite_space_avoids_what_was_tried():
    optimizer = Optimizer({"a": Int(0, 99), "b": Int(0, 49)}, seed=0)
    run(optimizer, lambda a, b: (a - 50) ** 2 + (b - 25) ** 2, 60)
    assert len({tuple(trial.params.values()) for trial in optimizer.trials}) == 60
    assert optimizer.best.value == 0


@pytest.mark.parametrize("n", [0, 1, 2])
def test_few_data_give_a_suggestion(n):
    optimizer = Optimizer(SQUARE, seed=0, strategy=Strategy(initial=0))
    for i in range(n):
        optimizer.tell({"x": i, "y": 2 * i}, float(i))
    params = optimizer.ask()
    assert -5 <= params["x"] <= 10
    assert params not in [trial.params for trial in optimizer.trials]


def test_duplicated_points_do_no_harm():
    optimizer = Optimizer(SQUARE, seed=0)
    for i in range(20):
        optimizer.tell({"x": 1.0, "y": 1.0}, 5.0 + 0.01 * (i % 2))
    optimizer.tell({"x": 2.0, "y": 2.0}, 1.0)
    params = optimizer.ask()
    assert np.isfinite(list(params.values())).all()


def test_values_of_1e300_and_1e_minus_300_live_together():
    optimizer = Optimizer(SQUARE, seed=0)
    values = [1e300, 1e-300, -1e300, 5.0, 1.7e308, -1.7e308, 0.0]
    for i, value in enumerate(values):
        optimizer.tell({"x": i, "y": 2 * i}, value)
    assert np.isfinite(list(optimizer.ask().values())).all()
    assert np.isfinite(optimizer.forecast({"x": 0, "y": 0}).median)
    assert optimizer.best.value == -1.7e308


def test_a_parameter_of_one_value_is_carried_along():
    space = {"x": Float(0, 1), "one": Int(7, 7), "name": Categorical(["only"]), "c": Float(2.5, 2.5)}
    optimizer = run(Optimizer(space, seed=0), lambda x, **_: (x - 0.4) ** 2, 14)
    assert {(t.params["one"], t.params["name"], t.params["c"]) for t in optimizer.trials} == {(7, "only", 2.5)}
    assert optimizer.best.value < 1e-3


def test_a_space_of_one_point_is_asked_again_with_a_warning():
    optimizer = Optimizer({"a": Int(1, 1)}, seed=0)
    first = optimizer.ask()
    optimizer.tell(first, 1.0)
    with pytest.warns(CaliboWarning, match="No configuration"):
        assert optimizer.ask() == first


def test_thirty_dimensions_are_searched():
    space = {f"x{i}": Float(0, 1) for i in range(30)}
    optimizer = run(Optimizer(space, seed=0), lambda **p: sum((v - 0.3) ** 2 for v in p.values()), 40)
    initial = min(trial.value for trial in optimizer.trials[:10])
    assert optimizer.best.value < 0.7 * initial


def test_three_categories_are_tried_once_each_then_repeated_with_a_warning():
    optimizer = Optimizer({"c": Categorical(["a", "b", "c"])}, seed=0)
    asked = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            asked.append(optimizer.ask()["c"])
            optimizer.tell({"c": asked[-1]}, float(ord(asked[-1])))
    assert sorted(asked) == ["a", "b", "c"]
    with pytest.warns(CaliboWarning, match="No configuration"):
        again = optimizer.ask()
    assert again["c"] in "abc"


def test_an_exhausted_space_where_all_failed_is_repeated_with_a_warning():
    optimizer = Optimizer({"c": Categorical(["a", "b"])}, seed=0)
    for choice in "ab":
        optimizer.tell_failed({"c": choice})
    with pytest.warns(CaliboWarning, match="No configuration"):
        optimizer.ask()


def test_a_finite_space_is_exhausted_without_repetition():
    space = {"k": Int(0, 4), "c": Categorical(["a", "b"]), "s": Float(0, 1, step=0.5)}
    optimizer = run(Optimizer(space, seed=0), lambda k, c, s: k + (c == "a") + s, 30)
    assert len({tuple(trial.params.values()) for trial in optimizer.trials}) == 30


@pytest.mark.parametrize(
    "value", ["1.0", None, 1 + 2j, np.complex128(1), [1.0, 2.0], b"1", object(), np.array([1.0, 2.0])]
)
def test_a_value_that_is_no_number_is_refused_and_nothing_is_lost(value):
    optimizer = Optimizer(SQUARE, seed=0)
    params = optimizer.ask()
    with pytest.raises(InputError, match="`value` must be a number"):
        optimizer.tell(params, value)
    assert optimizer.pending == (params,)
    optimizer.tell(params, 1.0)


@pytest.mark.parametrize("value", [1, 1.0, True, np.float32(1), np.int64(1), np.array(1.0), Fraction(1), Decimal(1)])
def test_numbers_of_any_type_are_taken(value):
    optimizer = Optimizer(SQUARE, seed=0)
    optimizer.tell(optimizer.ask(), value)
    assert optimizer.best.value == 1.0
    assert type(optimizer.best.value) is float


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: Optimizer(SQUARE, direction="down"), "direction"),
        (lambda: Optimizer(SQUARE, seed=-1), "seed"),
        (lambda: Optimizer(SQUARE, seed=1.5), "seed"),
        (lambda: Optimizer(SQUARE, strategy="best"), "strategy"),
        (lambda: Optimizer({"x": 3}), "`x` must be a Float"),
        (lambda: Optimizer(None), "dictionary"),
        (lambda: Optimizer(SQUARE, strategy=[]), "strategy"),
        (lambda: Strategy(initial="3"), "initial"),
        (lambda: Optimizer(SQUARE).ask(True), "`n`"),
        (lambda: Optimizer(SQUARE).ask(0), "`n`"),
        (lambda: Optimizer(SQUARE).ask(fixed={"z": 1}), "'z'"),
        (lambda: Optimizer(SQUARE).ask(fixed={"x": 99}), "`x` must lie"),
        (lambda: Optimizer(SQUARE).enqueue({"x": 99}), "`x` must lie"),
        (lambda: Optimizer(SQUARE).enqueue([1, 2]), "dictionary"),
        (lambda: Optimizer(SQUARE).tell({"x": 1}, 1.0), "missing"),
        (lambda: Optimizer(SQUARE).tell({"x": 1, "y": 99}, 1.0), "`y` must lie"),
        (lambda: Optimizer(SQUARE).tell({"x": 1, "y": 1}, 1.0, noise=-1), "`noise`"),
        (lambda: Optimizer(SQUARE).tell({"x": 1, "y": 1}, 1.0, noise=float("nan")), "`noise`"),
        (lambda: Optimizer(SQUARE).tell({"x": 1, "y": 1}, 1.0, constraints=3.0), "`constraints`"),
        (lambda: Optimizer(SQUARE).tell({"x": 1, "y": 1}, 1.0, constraints=["a"]), "`constraints`"),
        (lambda: Optimizer(SQUARE).tell({"x": 1, "y": 1}, 1.0, constraints=np.array(0.5)), "`constraints`"),
        (lambda: Optimizer(SQUARE).forecast({"x": 1, "y": 1}), "feasible"),
    ],
)
def test_bad_calls_say_what_to_do(act, message):
    with pytest.raises(InputError, match=message):
        act()


@pytest.mark.parametrize("ask", [lambda f: f.interval(1.0), lambda f: f.quantile(0.0), lambda f: f.interval(-1)])
def test_bad_levels_are_refused(ask):
    optimizer = Optimizer(SQUARE, seed=0)
    optimizer.tell(optimizer.ask(), 1.0)
    with pytest.raises(InputError, match="between 0 and 1"):
        ask(optimizer.forecast({"x": 0, "y": 0}))
