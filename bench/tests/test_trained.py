"""Models trained for real, whose best value is known or bounded."""

import hashlib
import sys
from dataclasses import replace

import numpy as np
import pytest

from calibo import InputError
from calibo_bench.problems import cartpole as balancing
from calibo_bench.problems import xgboost as boosting
from calibo_bench.problems.suites import problems_of


def test_the_networks_follow_the_gradient():
    """The first step of Adam goes down by the rate along every axis; which way, differences tell."""
    rng = np.random.default_rng(0)
    network, x = balancing.Network(4, 2, 1e-4, rng), rng.standard_normal((5, 4))
    goal = rng.standard_normal((5, 2))

    def loss():
        return 0.5 * float(np.square(network(x) - goal).sum())

    slopes = np.empty_like(network.flat)
    for i in range(len(slopes)):
        network.flat[i] += 1e-6
        high = loss()
        network.flat[i] -= 2e-6
        slopes[i] = (high - loss()) / 2e-6
        network.flat[i] += 1e-6
    before = network.flat.copy()
    network.descend(x, network(x) - goal)
    np.testing.assert_allclose(network.slope, slopes, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(network.flat - before, -1e-4 * np.sign(slopes), rtol=1e-3, atol=1e-9)


@pytest.mark.oracle
def test_a_pole_is_balanced_longer_by_whoever_learns(monkeypatch):
    monkeypatch.setattr(balancing, "EPISODES", 150)
    monkeypatch.setattr(balancing, "COUNTED", 20)
    good, nothing = (
        np.mean([balancing.mean_reward(0.95, rate, rate, np.random.default_rng(seed)) for seed in range(3)])
        for rate in (0.005, 1e-9)
    )
    assert 9.0 < nothing < 40.0, "chance lasts some twenty steps"
    assert 2.0 * nothing < good <= 200.0


@pytest.mark.oracle
def test_every_evaluation_of_the_pole_is_another_one(monkeypatch):
    monkeypatch.setattr(balancing, "EPISODES", 5)
    monkeypatch.setattr(balancing, "COUNTED", 5)
    (problem,) = problems_of("a2c-cartpole")
    instance = problem.at(0)
    params = {"discount": 0.95, "actor_rate": 0.001, "critic_rate": 0.001}
    values = [instance.evaluate(params, np.random.default_rng(seed)) for seed in (0, 1, 0)]
    assert values[0] == values[2] != values[1]
    assert values[0][0] == values[0][1] < 0.0
    assert instance.least() == -200.0


def pixels():
    rng = np.random.default_rng(0)
    x = rng.uniform(0.0, 255.0, (600, 3))
    y = (x[:, 0] > x[:, 1]).astype(float)
    return x[:300], y[:300], x[300:], y[300:]


DEEP = {"min_child_weight": 1, "colsample_bytree": 1.0, "max_depth": 8, "subsample": 1.0, "alpha": 0.0, "gamma": 0.0}


@pytest.mark.oracle
def test_boosting_learns_and_parameters_matter():
    good = boosting.error_rate(pixels(), DEEP)
    assert good < 10.0
    assert good == boosting.error_rate(pixels(), DEEP)
    assert boosting.error_rate(pixels(), {**DEEP, "gamma": 10.0, "alpha": 10.0, "min_child_weight": 20}) > good


def test_the_pixels_are_those_that_are_known(tmp_path, monkeypatch):
    boosting.pixels.cache_clear()
    monkeypatch.setenv("CALIBO_DATA", str(tmp_path))
    with pytest.raises(InputError, match=r"there is no .*skin_nonskin.npz.* UCI Machine Learning Repository"):
        boosting.pixels()
    data = np.random.default_rng(0).integers(1, 3, size=(200, 4)).astype(np.uint8)
    (tmp_path / "skin").mkdir()
    np.savez(tmp_path / "skin" / "skin_nonskin.npz", data=data)
    with pytest.raises(InputError, match="must have the sha256"):
        boosting.pixels()
    monkeypatch.setattr(boosting, "SKIN", replace(boosting.SKIN, digest=hashlib.sha256(data.tobytes()).hexdigest()))
    x, y, held_out, truth = boosting.pixels()
    assert x.shape == (30, 3)
    assert held_out.shape == (170, 3)
    assert y.sum() + truth.sum() == (data[:, 3] == 1).sum()
    boosting.pixels.cache_clear()


@pytest.mark.parametrize(
    ("package", "use"),
    [("xgboost", lambda: boosting.error_rate(pixels(), DEEP)), ("gymnasium", lambda: balancing._environment())],
)
def test_what_is_not_installed_is_told(package, use, monkeypatch):
    balancing._environment.cache_clear()
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=r"pip install calibo-bench\[papers\]"):
        use()
