"""Learned warps: what is drawn, said and shown of them."""

from pathlib import Path

import numpy as np
import optuna
import pytest

from calibo import Categorical, Float, InputError, Int, Optimizer, learned_warps
from calibo.cli import main
from calibo.diagnostics.learned import POSITIONS

SPACE = {"rate": Float(0, 2), "kind": Categorical(["a", "b"]), "layers": Int(1, 9), "fixed": Float(0, 1, warp=None)}


def objective(rate, kind, layers, fixed):
    return np.sin(8.0 * (rate / 2) ** 0.3) + 0.2 * (kind == "a") + (layers / 9) ** 4 + 0.1 * fixed


def told(n):
    optimizer, rng = Optimizer(SPACE, seed=0), np.random.default_rng(0)
    for _ in range(n):
        params = optimizer.space.from_cube(optimizer.space.cube.snap(rng.random((1, 4)))[0])
        optimizer.tell(params, objective(**params))
    return optimizer


@pytest.fixture(scope="module")
def found():
    return learned_warps(told(30), draws=24, chains=3)


def test_warps_are_bijections_of_the_axes_that_may_be_bent(found):
    assert list(found.parameters) == ["rate", "layers"]
    assert list(found.values) == [7, 15, 30]
    assert found.values[30].shape == (24, 2, len(POSITIONS))
    np.testing.assert_allclose(found.values[30][..., [0, -1]], np.tile([0.0, 1.0], (24, 2, 1)), atol=1e-12)
    assert np.all(np.diff(found.values[30], axis=2) >= 0.0)
    for name in found.parameters:
        low, high = found.band(name, 0.99)
        assert np.all((low <= found.mean(name) + 1e-9) & (found.mean(name) <= high + 1e-9))
    assert found.effective > 3
    assert found.reduction >= 1.0 - 0.2
    assert found.seconds > 0


def test_what_was_learned_is_said(found):
    assert found.shape("rate") == "low"
    assert found.sentences()[0] == "rate: the objective varies most at the low end, as on a log scale."


def test_the_figure_has_a_panel_a_parameter_and_the_units_of_the_user(found):
    figure = found.figure()
    assert [note.text for note in figure.layout.annotations] == ["rate", "layers"]
    assert list(figure.layout.xaxis.ticktext) == ["0", "1", "2"]
    assert sum(trace.name == "mean, 30 outcomes" for trace in figure.data) == 2


def test_of_a_study_of_any_sampler(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study = optuna.create_study(
        study_name="s", storage="sqlite:///s.db", sampler=optuna.samplers.RandomSampler(seed=0), direction="maximize"
    )
    study.optimize(lambda t: -((t.suggest_float("x", 0, 1) ** 4) + t.suggest_int("n", 1, 5)), n_trials=9)
    assert main(["plot", "warps", "s", "--storage", "sqlite:///s.db", "--samples", "16"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("x: the objective varies ")
    assert "16 draws in" in shown
    assert "Learned warps of s</h1>" in Path("warps.html").read_text()
    assert main(["plot", "warps", "s", "--storage", "sqlite:///s.db", "--samples", "0"]) == 2


def test_too_little_is_told():
    with pytest.raises(InputError, match=r"at least 4 successful outcomes .* but it has 3 and 2"):
        learned_warps(told(3))
    optimizer = Optimizer({"kind": Categorical(["a", "b"])})
    for kind in "abab":
        optimizer.tell({"kind": kind}, 1.0)
    with pytest.raises(InputError, match="but it has 4 and 0"):
        learned_warps(optimizer)
    with pytest.raises(InputError, match="`sizes` must lie between 4 and 6"):
        learned_warps(told(6), sizes=[3])
    with pytest.raises(InputError, match="`source` must be"):
        learned_warps(3)
