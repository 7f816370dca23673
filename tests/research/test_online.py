"""The guarantees of CAL24 Sec. 4 and App. G, and where they end."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

from calibo import Float
from calibo.observations import Observations
from calibo.presets import PRESETS
from calibo.research import OnlineRecalibrator
from calibo.space import Space

PITS = st.lists(st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.5, 1.0])), min_size=1, max_size=60)
ETA = st.floats(0.01, 10)
START = st.sampled_from(["identity", "zero"])


def bound(recalibrator: OnlineRecalibrator, count: int) -> float:
    eta = recalibrator.eta
    return (max(1.0, eta) if recalibrator.start == "identity" else 1.0 + eta) / (eta * count)


def assert_guaranteed(recalibrator: OnlineRecalibrator, pits: np.ndarray) -> None:
    states = recalibrator.states(pits)
    below = pits[:, None] <= states[:-1]
    assert np.all(np.abs(below.mean(axis=0) - recalibrator.p) <= bound(recalibrator, len(pits)) + 1e-9)
    low, high = -recalibrator.eta * (1 - recalibrator.p), 1 + recalibrator.eta * recalibrator.p
    assert np.all((states >= low - 1e-9) & (states <= high + 1e-9))


@given(PITS, ETA, START)
def test_coverage_of_every_level_is_bounded_for_any_sequence(pits, eta, start):
    assert_guaranteed(OnlineRecalibrator(eta, start=start), np.array(pits))


@given(
    ETA,
    START,
    st.integers(0, 8),
    st.lists(st.sampled_from(["just above", "just below", "far", "alternate"]), min_size=1, max_size=50),
)
def test_coverage_is_bounded_against_an_adversary_who_sees_the_state(eta, start, level, moves):
    recalibrator = OnlineRecalibrator(eta, levels=9, start=start)
    pits: list[float] = []
    for t, move in enumerate(moves):
        q = float(recalibrator.states(np.array(pits))[-1][level])
        above, below = min(np.nextafter(q, np.inf), 1.0), q
        choices = {"just above": above, "just below": below, "far": 1.0 if q < 0.5 else 0.0}
        pits.append(float(np.clip(choices.get(move, above if t % 2 else below), 0.0, 1.0)))
    assert_guaranteed(recalibrator, np.array(pits))


def test_raw_states_may_cross_and_the_published_map_does_not():
    recalibrator = OnlineRecalibrator(eta=1.0, levels=9)
    q = recalibrator.states(np.array([0.45]))[-1]
    assert q[3] == pytest.approx(0.8)
    assert q[4] == pytest.approx(0.0)
    assert np.all(recalibrator.fit(ndtri(np.array([0.45]))).slopes > 0)


@given(PITS, ETA)
def test_sorting_keeps_the_coverage_averaged_over_levels(pits, eta):
    states = OnlineRecalibrator(eta).states(np.array(pits))[:-1]
    raw, in_order = (np.array(pits)[:, None] <= q for q in (states, np.sort(states, axis=1)))
    np.testing.assert_array_equal(raw.sum(axis=1), in_order.sum(axis=1))


@given(st.lists(st.floats(-4, 4), max_size=40), ETA)
def test_the_published_map_reads_quantiles_off_at_the_sorted_states(scores, eta):
    recalibrator = OnlineRecalibrator(eta)
    z = np.array(scores)
    inverse = recalibrator.fit(z).inverse(ndtri(recalibrator.p))
    if not len(z):
        np.testing.assert_allclose(inverse, ndtri(recalibrator.p))
        return
    from scipy.special import ndtr

    wanted = np.clip(np.sort(recalibrator.states(ndtr(z))[-1]), 0.25 / 40, 1 - 0.25 / 40)
    np.testing.assert_allclose(ndtr(inverse), wanted, atol=1e-4)


@pytest.mark.parametrize(("start", "first"), [("identity", 34), ("zero", 35)])
def test_the_bound_says_nothing_before_a_number_of_outcomes(start, first):
    recalibrator = OnlineRecalibrator(start=start)
    assert recalibrator.bound(0) == recalibrator.bound(first - 1) == 1.0
    assert bound(recalibrator, first) == recalibrator.bound(first) < 1.0
    assert OnlineRecalibrator(2.0).bound(10) == pytest.approx(0.1)


def test_the_preset_is_gradient_descent_on_leave_one_out_scores():
    cube = Space({"a": Float(0, 1), "b": Float(0, 1)}).cube
    rng = np.random.default_rng(0)
    x = rng.random((9, 2))
    y = np.sin(5 * x[:, 0]) + x[:, 1]
    data = Observations(cube, x, y, np.full(9, np.nan), np.ones(9, dtype=bool), np.empty((0, 2)))
    strategy = PRESETS["papers-online"]
    fitted = strategy.fit(data, rng=np.random.default_rng(0))
    q = np.zeros(39)
    p = np.arange(1, 40) / 40
    for i in range(9):
        others = strategy.surrogate.refit(data.take(np.arange(9) != i), fitted.fitted)
        u = ndtr(others.posterior(x[[i]], noise=True).normal_score(y[[i]]))[0]
        gradient = np.where(u <= q, 1.0, 0.0) - p
        q = q - 0.3 * gradient
    published = np.clip(np.sort(q), 0.25 / 40, 1 - 0.25 / 40)
    np.testing.assert_allclose(ndtr(fitted.map.inverse(ndtri(p))), published, atol=1e-3)
