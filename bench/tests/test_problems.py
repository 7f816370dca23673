"""Textbook functions have the minimum they claim, and variants are what they say."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest

from calibo import InputError, Int
from calibo_bench.problems import mnist as training
from calibo_bench.problems import tables
from calibo_bench.problems.functions import FAMILIES, FUNCTIONS, function
from calibo_bench.problems.lda import TOPICS
from calibo_bench.problems.source_tasks import RELATIONS, after
from calibo_bench.problems.suites import KINDS, SUITES, problems_of
from calibo_bench.problems.synthetic import (
    axis_warp,
    cropped,
    drawn,
    heavy_tailed,
    heteroscedastic,
    integers,
    noisy,
    plain,
    warped,
)
from calibo_bench.problems.tables import TABLES, looked_up, table

NAMES = [*FUNCTIONS, *(f"{family}{d}" for family in FAMILIES for d in (2, 5))]


def test_there_are_about_thirty_functions():
    assert len(FUNCTIONS) + len(FAMILIES) >= 30


@pytest.mark.parametrize("name", NAMES)
def test_the_minimum_is_where_it_is_said_to_be_and_nothing_is_below(name):
    made = function(name)
    tolerance = 1e-7 * max(1.0, abs(made.minimum))
    assert abs(made(made.minimizer) - made.minimum) < tolerance
    assert np.all(made.low <= made.minimizer)
    assert np.all(made.minimizer <= made.high)
    rng = np.random.default_rng(0)
    anywhere = rng.uniform(made.low, made.high, (1000, made.d))
    near = np.clip(
        made.minimizer + 1e-3 * (made.high - made.low) * rng.standard_normal((500, made.d)), made.low, made.high
    )
    assert min(made(x) for x in np.concatenate([anywhere, near])) >= made.minimum - tolerance


@pytest.mark.parametrize(
    ("name", "x", "value"),  # worked out by hand from the definitions
    [
        ("booth", [0, 0], 74.0),
        ("beale", [0, 0], 14.203125),
        ("goldstein_price", [0, 0], 600.0),
        ("camel3", [1, 1], 2 - 1.05 + 1 / 6 + 2),
        ("colville", [0, 0, 0, 0], 42.0),
        ("rosenbrock3", [0, 0, 0], 2.0),
        ("styblinski2", [1, 1], -10.0),
        ("rastrigin2", [0.5, 0.5], 40.5),
        ("sphere3", [1, 2, 3], 14.0),
        ("zakharov2", [1, 1], 2 + 1.5**2 + 1.5**4),
        ("dixon_price2", [1, 1], 2.0),
        ("different_powers3", [0.5, 0.5, 0.5], 0.25 + 0.125 + 0.0625),
        ("gsobol2", [0, 0], 2.0 * (2.5 / 1.5)),
        ("alpine2", [1, 1], 2 * (np.sin(1) + 0.1)),
        ("forrester", [0.5], np.sin(2.0)),
    ],
)
def test_functions_have_their_textbook_values(name, x, value):
    assert function(name)(np.array(x, dtype=float)) == pytest.approx(value)


@pytest.mark.parametrize("name", ["nothing", "ackley", "ackley0", "branin2", "michalewicz3", "rosenbrock1"])
def test_functions_that_do_not_exist_are_named(name):
    with pytest.raises(InputError):
        function(name)


@pytest.mark.parametrize("name", [name for names in KINDS.values() for name in names])
def test_a_cropped_box_holds_the_minimizer_off_its_centre_and_edges(name):
    made, places = function(name), []
    for seed in range(20):
        instance = cropped(name).at(seed)
        bounds = np.array([(p.low, p.high) for p in instance.space.values()])
        assert np.all(bounds[:, 0] >= made.low - 1e-9)
        assert np.all(bounds[:, 1] <= made.high + 1e-9)
        place = (made.minimizer - bounds[:, 0]) / (bounds[:, 1] - bounds[:, 0])
        assert np.all((place > 0.2 - 1e-9) & (place < 0.8 + 1e-9))
        places.append(place)
        here = dict(zip(instance.space, made.minimizer.tolist(), strict=True))
        assert instance.value(here) == pytest.approx(made.minimum, abs=1e-6)
    assert np.ptp(places, axis=0).min() > 0.02, "another seed, another place"


def test_a_minimum_on_the_boundary_cannot_be_cropped():
    with pytest.raises(InputError, match="boundary"):
        cropped("eggholder").at(0)


def test_the_same_seed_makes_the_same_instance():
    for make in (cropped, lambda name: warped(cropped(name))):
        first, again, other = (make("branin").at(seed) for seed in (3, 3, 4))
        point = {name: parameter.decode(0.3) for name, parameter in first.space.items()}
        assert first.value(point) == again.value(point)
        assert dict(first.space) == dict(again.space)
        centre = {name: parameter.decode(0.3) for name, parameter in other.space.items()}
        assert first.value(point) != other.value(centre)


def spread_of(instance, at, n=4000):
    point = {name: parameter.decode(at) for name, parameter in instance.space.items()}
    draws = [np.subtract(*instance.evaluate(point, np.random.default_rng([7, i]))) for i in range(n)]
    return -np.array(draws)


def test_noise_has_the_size_it_claims():
    base = cropped("branin")
    drawn = spread_of(noisy(base).at(0), 0.5)
    scale = 0.1 * base.at(0).range
    assert abs(drawn.mean()) < 4 * scale / np.sqrt(len(drawn))
    assert drawn.std() == pytest.approx(scale, rel=4 / np.sqrt(2 * len(drawn)))


def test_heteroscedastic_noise_grows_along_the_first_axis():
    instance = heteroscedastic(cropped("branin")).at(0)
    assert spread_of(instance, 0.0, 50).std() == 0.0
    ratio = spread_of(instance, 1.0).std() / spread_of(instance, 0.5).std()
    assert ratio == pytest.approx(2.0, rel=0.1)


def test_heavy_tails_are_heavy():
    drawn = spread_of(heavy_tailed(cropped("branin")).at(0), 0.5)
    scale = 0.05 * cropped("branin").at(0).range
    assert 0.001 < (np.abs(drawn) > 15 * scale).mean() < 0.01  # of a Normal: none; P(|t_2| > 15) = 0.0044
    assert np.median(np.abs(drawn)) == pytest.approx(0.8165 * scale, rel=0.1)


def test_a_warp_moves_points_along_each_axis_and_keeps_the_minimum():
    inner, outer = cropped("branin").at(1), warped(cropped("branin")).at(1)
    grid = np.linspace(0, 1, 41)
    least = min(outer.value({"x0": a, "x1": b}) for a in grid for b in grid)
    assert least >= inner.minimum
    assert least - inner.minimum < 0.05 * inner.range
    ends = {"x0": 0.0, "x1": 1.0}
    corner = {"x0": inner.space["x0"].low, "x1": inner.space["x1"].high}
    assert outer.value(ends) == pytest.approx(inner.value(corner))


def test_every_second_axis_becomes_whole_numbers():
    instance = integers(cropped("hartmann3")).at(0)
    assert [isinstance(parameter, Int) for parameter in instance.space.values()] == [True, False, True]
    assert instance.value({"x0": 14, "x1": 1.0, "x2": 0}) > instance.minimum


def test_ranges_are_positive_and_from_the_minimum_to_the_median():
    instance = plain("sphere2").at(0)
    u = np.random.default_rng(0).uniform(-5.12, 5.12, (4000, 2))
    assert instance.range == pytest.approx(np.median((u**2).sum(axis=1)), rel=0.05)


def test_every_suite_can_be_made():
    for name, suite in SUITES.items():
        assert problems_of(name) == suite
        assert len({problem.name for problem in suite}) == len(suite)
    (made,) = problems_of("levy3-cropped-heavy_tailed-warped")
    assert made.name == "levy3-cropped-heavy_tailed-warped"
    assert len(made.at(0).space) == 3
    for name in ("nothing", "levy3-strange", "eggholder-cropped", "dixon_price0"):
        with pytest.raises(InputError, match="--suite"):
            problems_of(name)


def a_table(tmp_path, monkeypatch, digest=None):
    folder = tmp_path / "hpo_tables"
    folder.mkdir()
    text = "C,alpha,epsilon,error,time_s\n" + "".join(
        f"{c},{a},{e},{c * 1.0 + 10 * a - e},1\n" for c in (1, 10, 100) for a in (0.1, 0.2) for e in (0.5, 5)
    )
    (folder / "svm_on_grid.csv").write_text(text)
    monkeypatch.setenv("CALIBO_DATA", str(tmp_path))
    known = hashlib.sha256(text.encode()).hexdigest() if digest is None else digest
    entry = tables._Table("svm_on_grid.csv", known, "somebody", "error", ("C", "alpha", "epsilon"))
    monkeypatch.setattr(tables, "TABLES", {**TABLES, "svm": entry})
    tables._instance.cache_clear()


def test_a_grid_is_looked_up(tmp_path, monkeypatch):
    a_table(tmp_path, monkeypatch)
    instance = table("svm").at(0)
    assert [parameter.axis.cells for parameter in instance.space.values()] == [3, 2, 2]
    assert instance.value({"C": 2, "alpha": 1, "epsilon": 0}) == 100 + 2 - 0.5
    assert instance.minimum == 1 + 1 - 5
    assert instance.noise is None


def test_tables_that_are_missing_or_changed_are_told(tmp_path, monkeypatch):
    monkeypatch.delenv("CALIBO_DATA", raising=False)
    tables._instance.cache_clear()
    with pytest.raises(InputError, match=r"CALIBO_DATA must name a directory with hpo_tables/lda_on_grid\.csv.*HPOlib"):
        table("lda").at(0)
    monkeypatch.setenv("CALIBO_DATA", str(tmp_path))
    with pytest.raises(InputError, match="there is no"):
        table("lda").at(0)
    a_table(tmp_path, monkeypatch, digest="0" * 64)
    with pytest.raises(InputError, match="must have the sha256"):
        table("svm").at(0)
    with pytest.raises(InputError, match="must be one of"):
        table("nothing")


def test_repeated_outcomes_are_noise():
    outcomes = np.array([[[1.0, 3.0], [5.0, 5.0]], [[0.0, 2.0], [7.0, 9.0]]])
    instance = looked_up({"a": [1, 2], "b": ["x", "y"]}, outcomes)
    assert instance.value({"a": 0, "b": "x"}) == 2.0
    assert instance.minimum == 1.0
    seen = {instance.evaluate({"a": 1, "b": "y"}, np.random.default_rng(i))[1] for i in range(20)}
    assert seen == {7.0, 9.0}


def test_a_drawn_function_has_the_minimum_it_claims_and_is_bent_as_told():
    inner = drawn(2, 0.25)
    instance, bent = inner.at(3), warped(inner).at(3)
    points = np.random.default_rng(0).random((400, 2))
    values = np.array([instance.value({"x0": u, "x1": v}) for u, v in points])
    assert values.min() > instance.minimum - 1e-9
    assert values.min() < instance.minimum + 0.3
    assert 0.3 < values.std() < 3.0, "of variance 1 over many draws"
    bend = axis_warp(inner, 3)
    for u, v in points[:5]:
        x, y = bend(np.array([u, v]))
        assert bent.value({"x0": u, "x1": v}) == pytest.approx(instance.value({"x0": x, "x1": y}))
    assert drawn(2, 0.25).at(4).value({"x0": 0.5, "x1": 0.5}) != instance.value({"x0": 0.5, "x1": 0.5})


@pytest.mark.parametrize("kind", RELATIONS)
def test_an_earlier_task_is_what_its_name_says(kind):
    problem = after(cropped("branin"), kind)
    instance = problem.at(1)
    (source,) = instance.source_tasks()
    assert instance.source_tasks()[0] is source, "it is run once"
    assert problem.name == f"branin-cropped-after_{kind}"
    assert problems_of(problem.name)[0].name == problem.name
    assert source.x.shape == (30, 2)
    inner = 0.05 + 0.9 * np.random.default_rng(0).random((100, 2))
    params, value = [instance.space.from_cube(x) for x in inner], RELATIONS[kind](instance, 1)
    here, there = (np.array([f(p) for p in params]) for f in (instance.value, value))
    if kind != "random":  # which depends on the last digit
        np.testing.assert_allclose(source.y, [value(instance.space.from_cube(x)) for x in source.x], rtol=1e-6)
    correlation = np.corrcoef(here, there)[0, 1]
    if kind == "alike":
        assert correlation > 0.95
    elif kind == "negated":
        np.testing.assert_allclose(there, -here)
    else:
        assert abs(correlation) < 0.5


def test_an_earlier_task_comes_last_in_a_name():
    with pytest.raises(InputError):
        problems_of("branin-after_alike-warped")


def test_a_grid_must_be_whole(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,y\n1,1,5\n1,2,6\n2,1,7\n")
    with pytest.raises(InputError, match=r"must have every point of its grid, but lacks 1"):
        tables.grid(tmp_path / "t.csv", ("a", "b"), "y")


def test_topics_are_looked_up():
    few, many, after_few = (problem.at(0) for problem in TOPICS)
    assert [parameter.axis.cells for parameter in many.space.values()] == [6, 6, 5]
    assert many.minimum < few.minimum, "more documents, fewer surprises"
    (source,) = after_few.source_tasks()
    assert source.y.min() <= few.minimum + 0.1 * few.range
    assert after_few.value({"kappa": 0, "tau": 0, "batch": 0}) == many.value({"kappa": 0, "tau": 0, "batch": 0})


def digits(n=300, classes=10, pixels=16):
    """Images that a linear model can tell apart."""
    rng = np.random.default_rng(0)
    centers, y = rng.random((classes, pixels)), rng.integers(classes, size=n)
    x = np.clip(centers[y] + 0.05 * rng.standard_normal((n, pixels)), 0, 1).astype(np.float32)
    return training.Digits(x[:200], y[:200], x[200:], y[200:])


def test_softmax_regression_learns_and_says_when_it_diverged():
    data = digits()
    good = training.error_rate(data, rate=1.0, penalty=1e-6, batch=20, epochs=50)
    assert good < 5.0
    assert good == training.error_rate(data, rate=1.0, penalty=1e-6, batch=20, epochs=50)
    assert training.error_rate(data, rate=1e-4, penalty=1e-6, batch=200, epochs=1) > good
    assert training.error_rate(data, rate=5.0, penalty=1.0, batch=20, epochs=50) >= 50.0
    assert training.error_rate(data, rate=1e3, penalty=1.0, batch=20, epochs=50) == 90.0


def test_softmax_regression_follows_the_gradient():
    """One step of the whole batch from zero weights, against the gradient by differences."""
    data, rate = digits(), 0.1
    x, labels = data.x.astype(float), np.eye(10)[data.y]

    def loss(weights):
        logits = x @ weights
        return float(np.mean(np.log(np.exp(logits).sum(axis=1)) - (logits * labels).sum(axis=1)))

    weights = np.zeros((16, 10))
    step = np.zeros_like(weights)
    for place in np.ndindex(weights.shape):
        h = np.zeros_like(weights)
        h[place] = 1e-5
        step[place] = -rate * (loss(h) - loss(-h)) / 2e-5
    expected = 100.0 * np.mean(np.argmax(data.held_out @ step + _bias(labels, rate), axis=1) != data.truth)
    assert training.error_rate(data, rate, 0.0, batch=200, epochs=1) == pytest.approx(expected, abs=1.1)


def _bias(labels, rate):
    return rate * (labels.mean(axis=0) - 0.1)


def test_images_are_read_from_the_data_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("CALIBO_DATA", str(tmp_path))
    for read in (training.mnist, training.usps):
        read.cache_clear()
        with pytest.raises(InputError, match=r"there is no .*npz"):
            read()
    rng = np.random.default_rng(0)
    (tmp_path / "mnist").mkdir()
    (tmp_path / "usps").mkdir()
    images, labels = rng.integers(256, size=(20_000, 2, 2), dtype=np.uint8), rng.integers(10, size=20_000)
    np.savez(tmp_path / "mnist" / "mnist.npz", x_train=images, y_train=labels.astype(np.uint8))
    grey = rng.integers(-1000, 1001, size=(7291, 2, 2)).astype(np.int16)
    parts = {"x_train": grey, "y_train": labels[:7291], "x_test": grey[:2007], "y_test": labels[:2007]}
    np.savez(tmp_path / "usps" / "usps.npz", **parts)
    with pytest.raises(InputError, match=r"The arrays of .* must have the sha256 .* Put it there with `numpy.savez`"):
        training.mnist()
    for name, arrays in (("MNIST", (images, labels.astype(np.uint8))), ("USPS", parts.values())):
        content = b"".join(np.asarray(array).tobytes() for array in arrays)
        known = replace(getattr(training, name), digest=hashlib.sha256(content).hexdigest())
        monkeypatch.setattr(training, name, known)
    many, few = training.mnist(), training.usps()
    assert many.x.shape == many.held_out.shape == (10_000, 4)
    assert few.x.shape == (6_000, 4)
    assert len(few.truth) == 1_291 + 2_007
    for images in (many.x, few.x, few.held_out):
        assert images.min() >= 0.0
        assert images.max() <= 1.0
    training.mnist.cache_clear()
    training.usps.cache_clear()
