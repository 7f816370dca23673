from dataclasses import replace

import numpy as np
import pytest

from calibo import InputError
from calibo.acquisition import ExpectedImprovement, LogExpectedImprovement, LowerBound
from calibo.calibration import NoRecalibration, Prequential
from calibo.cube import Axis
from calibo.feasibility import WeightedLandscape
from calibo.forecasts import CalibrationMap
from calibo.models import ModelChoice
from calibo.observations import Observations
from calibo.presets import PRESETS, get_strategy
from calibo.research import OnlineRecalibrator
from calibo.strategy import Strategy
from calibo.testing import check_forecast, check_map

from .conftest import observations


def with_failures(data: Observations) -> Observations:
    feasible = data.x[:, 0] < 0.6
    return Observations(data.cube, data.x, np.where(feasible, data.y, np.nan), data.noise_std, feasible, data.pending)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_proposes_a_point_and_its_forecast(name, data):
    proposal = PRESETS[name].propose(data, seed=0)
    assert proposal.x.shape == (3,)
    assert np.all((proposal.x >= 0) & (proposal.x <= 1))
    fitted = PRESETS[name].fit(data, rng=np.random.default_rng(0))
    check_map(fitted.map)
    check_forecast(fitted.forecast(proposal.x[None], noise=True))
    assert fitted.map.is_identity == isinstance(PRESETS[name].recalibrator, NoRecalibration)
    assert proposal.record.calibrated.map.is_identity or not fitted.map.is_identity


def test_a_proposal_is_a_function_of_data_and_random_numbers(data):
    first = Strategy().propose(data, seed=4)
    again = Strategy().propose(data, seed=4, previous=first.state)
    np.testing.assert_array_equal(first.x, again.x)


@pytest.mark.parametrize(("noise", "same"), [(0.0, "never"), (0.3, "always")])
def test_decisions_read_calibrated_forecasts_until_outcomes_are_known_to_be_exact(noise, same):
    rng = np.random.default_rng(3)
    smooth = observations(30, d=2)
    y = np.sin(6.0 * smooth.x[:, 0]) + (smooth.x[:, 1] - 0.5) ** 2 + noise * rng.standard_normal(30)
    scores = np.where(np.arange(30) < 5, np.nan, 1.0 + 2.0 * rng.standard_normal(30))  # a bias and a width to correct
    data = replace(smooth, y=y, scores=scores)
    found = {mode: Strategy(decide=mode).propose(data, seed=0) for mode in ("noise", "always", "never")}
    assert np.any(found["always"].x != found["never"].x)
    np.testing.assert_array_equal(found["noise"].x, found[same].x)
    assert not found["noise"].record.calibrated.map.is_identity, "forecasts are calibrated either way"


def test_three_outcomes_cannot_show_that_they_are_exact():
    data = observations(3, d=2)
    assert Strategy().fit(data, rng=np.random.default_rng(0))._decides_calibrated


@pytest.mark.parametrize(("noise", "exact"), [(0.3, False), (0.0, True)])
def test_noise_is_measured_on_the_scale_of_the_model(noise, exact):
    """Over orders of magnitude the noise at good points is nothing beside the spread of the values."""
    smooth, rng = observations(30, d=2), np.random.default_rng(7)
    y = 10.0 ** (6.0 * np.square(smooth.x - 0.4).sum(axis=1)) * np.exp(noise * rng.standard_normal(30))
    fitted = Strategy().fit(replace(smooth, y=y), rng=np.random.default_rng(0))
    assert fitted.fitted.names[0] != "values"
    assert fitted._decides_calibrated != exact
    assert fitted._is_noisy != exact


def test_an_unknown_rule_of_decisions_is_refused():
    with pytest.raises(InputError, match="`decide` must be one of"):
        Strategy(decide="sometimes")


@pytest.mark.parametrize("acquisition", [ExpectedImprovement(), LogExpectedImprovement(), LowerBound()])
@pytest.mark.parametrize("failing", [False, True])
def test_the_gradient_of_the_objective_matches_finite_differences(acquisition, failing):
    data = observations(25, d=2)
    data = with_failures(data) if failing else data
    belief = Strategy(acquisition=acquisition).fit(data, rng=np.random.default_rng(0))
    landscape = acquisition.prepare(data.valid(), belief.fitted, CalibrationMap())
    objective = WeightedLandscape(landscape, belief.feasibility, 1.0)
    x = np.random.default_rng(1).uniform(0.1, 0.9, (12, 2))
    value, gradient = objective.value_and_gradient(x)
    np.testing.assert_allclose(value, objective.value(x), rtol=1e-8, atol=1e-300)
    for j in range(2):
        step = 1e-6 * np.eye(2)[j]
        slope = (objective.value(x + step) - objective.value(x - step)) / 2e-6
        np.testing.assert_allclose(gradient[:, j], slope, rtol=2e-4, atol=1e-4 * np.abs(slope).max())


def test_a_point_held_whole_may_lie_near_a_pending_one():
    near = np.array([0.4, 0.7])
    waiting = replace(observations(25, d=2), pending=near[None] + 1e-6)
    proposal = Strategy().propose(waiting, seed=0, fixed=near)
    np.testing.assert_array_equal(proposal.x, near)
    assert not proposal.repeated
    assert Strategy().propose(replace(waiting, pending=near[None]), seed=0, fixed=near).repeated


@pytest.mark.parametrize("acquisition", [ExpectedImprovement(), LogExpectedImprovement(), LowerBound()])
def test_proposals_avoid_the_region_of_failures(acquisition):
    data = with_failures(observations(40, d=2))
    # the minimum lies at x_0 = 0.75, among the failures: only they keep the search away from there
    data = replace(data, y=np.where(data.feasible, (data.x[:, 0] - 0.75) ** 2, np.nan))
    strategy = Strategy(acquisition=acquisition)
    places = [strategy.propose(data, seed=s).x[0] for s in range(5)]
    heedless = [strategy.propose(data.valid(), seed=s).x[0] for s in range(5)]
    assert max(places) < 0.68 < min(heedless)


def test_pending_points_move_the_next_proposal_away(data):
    first = Strategy().propose(data, seed=0).x
    waiting = Observations(data.cube, data.x, data.y, data.noise_std, data.feasible, first[None])
    proposal = Strategy().propose(waiting, seed=0)
    assert np.abs(proposal.x - first).max() > 0.01
    alone = Strategy().fit(data, rng=np.random.default_rng(0)).make_records(proposal.x)[0]
    assert proposal.record.to_json() == alone.to_json(), "the forecast must know finished evaluations only"


def test_a_tried_configuration_is_proposed_again_only_under_noise():
    axes = (Axis("ordered", 5),)
    x = (np.arange(5)[:, None] + 0.5) / 5
    clean = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    nothing = np.empty((0, 1))
    cube = observations(2, axes=axes).cube
    some = Observations(cube, x[:4], clean[:4], np.full(4, np.nan), np.ones(4, dtype=bool), nothing)
    assert Strategy().propose(some, seed=0).x[0] == x[4, 0]
    every = Observations(cube, x, clean, np.full(5, np.nan), np.ones(5, dtype=bool), nothing)
    assert Strategy().propose(every, seed=0).repeated
    noise = np.random.default_rng(0).standard_normal(60)
    many = Observations(
        cube, np.tile(x, (12, 1)), np.tile(clean, 12) + noise, np.full(60, np.nan), np.ones(60, dtype=bool), nothing
    )
    proposal = Strategy().propose(many, seed=0)
    assert not proposal.repeated
    assert proposal.x[0] <= x[1, 0]


@pytest.mark.parametrize("name", ["default", "ei", "pi", "lcb"])
def test_the_units_of_the_outcomes_do_not_matter(name, data):
    large = PRESETS[name].propose(data, seed=0).x
    small = PRESETS[name].propose(replace(data, y=5.0 + 1e-7 * data.y), seed=0).x
    np.testing.assert_allclose(small, large, atol=2e-3)


def test_the_initial_design_grows_with_the_dimension():
    sizes = [Strategy().initial_size(observations(2, d=d).cube) for d in (1, 3, 30)]
    assert sizes == sorted(sizes)
    assert Strategy(initial=7).initial_size(observations(2).cube) == 7


def test_a_strategy_has_a_name_or_is_one():
    assert get_strategy(None) == PRESETS["default"]
    assert get_strategy("lcb") == PRESETS["lcb"]
    mixed = get_strategy("plain+choice+online")
    assert mixed == replace(
        PRESETS["plain"], surrogate=ModelChoice(), score_source=Prequential(), recalibrator=OnlineRecalibrator()
    )
    with pytest.raises(InputError, match="online"):
        get_strategy("plain+nothing")
    assert get_strategy(Strategy(initial=3)).initial == 3
    with pytest.raises(InputError, match="lcb"):
        get_strategy("wrong")
