"""The guarantees of CAL24 Sec. 4 and App. G, and where they end."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import ndtri

from calibo.research import LeaderRecalibrator, OnlineRecalibrator

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


def loss(q: float, p: float, start: float, eta: float, pits: np.ndarray) -> float:
    return (q - start) ** 2 / (2 * eta) + float(((q - pits) * ((pits <= q) - p)).sum())


@pytest.mark.parametrize("start", ["identity", "zero"])
@pytest.mark.parametrize("eta", [0.01, 0.3, 5.0])
def test_the_leader_minimises_its_loss(start, eta):
    pits = np.random.default_rng(0).random(13)
    recalibrator = LeaderRecalibrator(eta, levels=7, start=start)
    found = recalibrator.leader(pits)
    for p, q in zip(recalibrator.p, found, strict=True):
        origin = p if start == "identity" else 0.0
        # the loss is convex: a bounded search around finds nothing lower
        best = minimize_scalar(
            loss, bounds=(-60, 60), args=(p, origin, eta, pits), method="bounded", options={"xatol": 1e-10}
        )
        assert loss(q, p, origin, eta, pits) <= best.fun + 1e-9


@given(PITS, ETA, START)
def test_the_leader_increases_with_the_level(pits, eta, start):
    assert np.all(np.diff(LeaderRecalibrator(eta, start=start).leader(np.array(pits))) >= -1e-9)


@given(PITS)
def test_the_leader_tends_to_the_lower_empirical_quantile(pits):
    recalibrator = LeaderRecalibrator(eta=1e9, levels=10)  # N p is whole at no level, where the minimum would be flat
    wanted = [p for p in recalibrator.p if abs(len(pits) * p - round(len(pits) * p)) > 1e-6]
    found = [q for p, q in zip(recalibrator.p, recalibrator.leader(np.array(pits)), strict=True) if p in wanted]
    np.testing.assert_allclose(found, np.quantile(pits, wanted, method="inverted_cdf"), atol=1e-6)


def test_the_leader_has_no_guarantee_against_an_adversary():
    recalibrator, pits = LeaderRecalibrator(eta=0.1, levels=1), []
    below = 0
    for _ in range(60):
        q = float(recalibrator.leader(np.array(pits))[0])
        pits.append(min(np.nextafter(q, np.inf) + 1e-9, 1.0))
        below += pits[-1] <= q
    assert below / 60 < 0.1, "half of them should lie below the median"
