"""Strategies by name: presets, and parts by which they are changed."""

from dataclasses import replace

import numpy as np
import pytest

from calibo import Float, InputError, Optimizer, Strategy
from calibo.acquisition import KnownAcquisition
from calibo.gp.kernels import Periodic
from calibo.models import GaussianProcess, KnownOptimum
from calibo.optimum import Optimum
from calibo.parts import identity
from calibo.presets import PARTS, PRESETS, get_strategy, label
from calibo.research import Bagged, LearnedBoxCox
from calibo.side_information import SideInformation

from .conftest import observations


def bases(part):
    """The presets that a part can change."""
    for name in PRESETS:
        try:
            yield f"{name}+{part}", get_strategy(f"{name}+{part}")
        except InputError:
            assert name not in ("plain", "papers-base"), "a part must be able to change a plain strategy"


@pytest.mark.parametrize("part", PARTS)
def test_every_part_makes_a_strategy_that_proposes(part):
    made = dict(bases(part))
    assert any(strategy != PRESETS[name.split("+")[0]] for name, strategy in made.items()), "a part changes something"
    data = observations(9, d=2)
    strategy = made[f"plain+{part}"]
    if isinstance(strategy.surrogate, KnownOptimum) or isinstance(strategy.acquisition, KnownAcquisition):
        strategy = strategy.with_side_information(SideInformation(optimum=Optimum(float(data.y.min()) - 0.1)))
    proposal = strategy.propose(data, seed=0)
    assert proposal.record is not None
    assert np.all((proposal.x >= 0.0) & (proposal.x <= 1.0))


def test_parts_are_applied_in_order():
    made = get_strategy("plain+boxcox+periodic+bagged")
    assert made.surrogate == Bagged(GaussianProcess(Periodic(), transform=LearnedBoxCox()))
    assert made == replace(PRESETS["plain"], surrogate=made.surrogate)


def test_a_kernel_needs_one_process():
    with pytest.raises(InputError, match=r"the surrogate is a ModelChoice\. Start with 'plain'"):
        get_strategy("default+linear")
    assert isinstance(get_strategy("default+single+linear").surrogate, GaussianProcess)


@pytest.mark.parametrize("wrong", ["none", "plain+none", 3, "plain+"])
def test_other_names_are_told(wrong):
    with pytest.raises(InputError, match="`strategy` must be a Strategy or one of"):
        get_strategy(wrong)


def test_a_changed_preset_keeps_its_name(tmp_path):
    optimizer = Optimizer({"x": Float(0, 1)}, strategy="plain+bagged", seed=0)
    optimizer.save(tmp_path / "run.jsonl")
    assert Optimizer.load(tmp_path / "run.jsonl").strategy == get_strategy("plain+bagged")


def test_a_preset_is_called_by_its_name_and_any_other_strategy_by_its_identity():
    assert label(PRESETS["plain"]) == "plain"
    assert label(Strategy()) == label(get_strategy("plain+choice+gate+reported+decide-noise")) == "default"
    assert label(Strategy(design="random")) == f"custom {identity(Strategy(design='random'))}"


@pytest.mark.parametrize("design", ["sobol", "latin", "random"])
def test_a_run_begins_with_its_design(design):
    from calibo.design import design_points

    strategy = Strategy(initial=4, design=design)
    data = observations(0, d=2)
    expected = design_points(design, 2, 4, 0, 4, 7)
    for n in range(4):
        proposal = strategy.propose(replace(data, pending=expected[:n]), seed=7)
        np.testing.assert_array_equal(proposal.x, expected[n])


def test_a_design_needs_a_name():
    with pytest.raises(InputError, match="`design` must be one of"):
        Strategy(design="grid")
