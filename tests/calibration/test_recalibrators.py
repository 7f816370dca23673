import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import isotonic_regression
from scipy.special import ndtr

from calibo import InputError
from calibo.calibration import Gate, NoRecalibration, ShiftScaleRecalibrator
from calibo.research import (
    EmpiricalRecalibrator,
    GPRecalibrator,
    MLPRecalibrator,
    OnlineRecalibrator,
    SigmaScaleRecalibrator,
)
from calibo.scoring import calibration_error
from calibo.testing import check_map, check_recalibrator

QUICK = [
    NoRecalibration(),
    EmpiricalRecalibrator(),
    EmpiricalRecalibrator(0.0),
    SigmaScaleRecalibrator(),
    ShiftScaleRecalibrator(),
    ShiftScaleRecalibrator(1e-9, 1e-9, 1.0, 100.0),
    OnlineRecalibrator(),
    OnlineRecalibrator(eta=5.0, start="zero"),
    Gate(),
    Gate(OnlineRecalibrator()),
]
SLOW = [GPRecalibrator(), MLPRecalibrator(), SigmaScaleRecalibrator(GPRecalibrator())]
ANY = arrays(
    float, st.integers(0, 40), elements=st.one_of(st.floats(-40, 40), st.sampled_from([np.inf, -np.inf, np.nan, 0.0]))
)


@pytest.mark.parametrize("recalibrator", QUICK)
@given(ANY)
def test_whatever_the_scores_the_map_keeps_its_contract(recalibrator, scores):
    check_map(recalibrator.fit(scores))


@pytest.mark.parametrize("recalibrator", SLOW)
@given(ANY)
@settings(max_examples=8)
def test_whatever_the_scores_the_regressed_map_keeps_its_contract(recalibrator, scores):
    check_map(recalibrator.fit(scores))


@pytest.mark.parametrize("recalibrator", QUICK + SLOW)
def test_a_recalibrator_keeps_its_contract(recalibrator):
    check_recalibrator(recalibrator)


@pytest.mark.parametrize("recalibrator", QUICK[1:] + SLOW)
def test_nothing_known_changes_nothing(recalibrator):
    map, z = recalibrator.fit(np.full(5, np.nan)), np.linspace(-3.0, 3.0, 7)
    np.testing.assert_allclose(map(z), z, atol=1e-9)


FAULTS = {
    "wide": (0.0, 2.0),
    "narrow": (0.0, 0.5),
    "shifted": (0.8, 1.0),
    "both": (-0.5, 1.5),
}


@pytest.mark.parametrize(
    "recalibrator",
    [
        EmpiricalRecalibrator(),
        GPRecalibrator(),
        MLPRecalibrator(),
        ShiftScaleRecalibrator(memory=1.0),
        OnlineRecalibrator(eta=0.01),
    ],
)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_known_fault_is_repaired(recalibrator, fault):
    shift, scale = FAULTS[fault]
    rng = np.random.default_rng(0)
    past, future = shift + scale * rng.standard_normal((2, 600))
    before, after = (
        calibration_error(ndtr(map(future))) for map in (NoRecalibration().fit(past), recalibrator.fit(past))
    )
    # of 600 outcomes the sampling error alone is about 0.5 sqrt(2 / 600) = 0.03
    assert after < 0.045
    assert after < 0.6 * before


def test_sigma_scale_finds_the_width_and_leaves_the_mean():
    z = 2.0 * np.random.default_rng(0).standard_normal(2000)
    # a smooth regressor of probabilities cannot follow the steep ends of C, and finds a little less
    for recalibrator, least in ((SigmaScaleRecalibrator(), 1.9), (SigmaScaleRecalibrator(GPRecalibrator()), 1.6)):
        map = recalibrator.fit(z)
        assert float(map(0.0)) == 0.0
        assert least < 1.0 / map.left < 2.1
    # a constant shift is no width: sum a b = sum (b + s) b = sum b^2 over symmetric levels
    assert SigmaScaleRecalibrator().fit(z / 2.0 + 3.0).left == pytest.approx(1.0, rel=0.06)


def test_shift_scale_is_the_conjugate_posterior():
    z = np.random.default_rng(1).normal(0.7, 1.6, 9)
    map = ShiftScaleRecalibrator(3.0, 5.0, 1.0, 100.0).fit(z)
    shift = z.sum() / (9 + 3)
    variance = (5.0 + ((z - shift) ** 2).sum() + 3.0 * shift**2) / (9 + 5)
    np.testing.assert_allclose([map.left, map.intercept], [variance**-0.5, -shift * variance**-0.5], rtol=1e-12)


def test_infinite_priors_hold_a_part_still():
    z = np.random.default_rng(0).normal(1.0, 2.0, 50)
    assert ShiftScaleRecalibrator(scale_prior=np.inf).fit(z).left == 1.0
    still = ShiftScaleRecalibrator(shift_prior=np.inf).fit(z)
    assert still.intercept == 0.0
    assert still.left < 0.7
    assert EmpiricalRecalibrator(np.inf).fit(z).is_identity


def test_old_scores_fade():
    rng = np.random.default_rng(0)
    z = np.concatenate([rng.normal(3.0, 1.0, 60), rng.normal(0.0, 1.0, 60)])
    assert -ShiftScaleRecalibrator(memory=1.0).fit(z).intercept > 0.5
    assert abs(ShiftScaleRecalibrator(memory=0.9).fit(z).intercept) < 0.35


def test_one_wild_outcome_decides_nothing():
    z = np.append(np.random.default_rng(0).standard_normal(20), 1e6)
    map = ShiftScaleRecalibrator().fit(z)
    assert map.left > 0.6
    assert abs(map.intercept) < 0.6


@pytest.mark.parametrize(
    "recalibrator", [EmpiricalRecalibrator(), ShiftScaleRecalibrator(), SigmaScaleRecalibrator(), Gate()]
)
def test_mirrored_outcomes_give_the_mirrored_map(recalibrator):
    z = np.random.default_rng(0).normal(0.4, 1.7, 25)
    points = np.linspace(-3.0, 3.0, 11)
    np.testing.assert_allclose(recalibrator.fit(-z)(points), recalibrator.fit(z).negate()(points), atol=1e-5)


def test_the_empirical_map_is_the_smoothed_distribution():
    z = np.array([-2.5, -0.5, 0.0, 0.0, 1.1, 2.2])
    map = EmpiricalRecalibrator(2.0).fit(z)
    knots, counts = np.array([-2.5, 0.0, 2.2]), np.array([0.5, 3.0, 5.5])
    np.testing.assert_allclose(ndtr(map(knots)), (2.0 * ndtr(knots) + counts) / 8.0, atol=1e-6)
    assert map(50.0) - map(40.0) == pytest.approx(10.0), "beyond the data the tails are Gaussian"


def test_few_outcomes_change_little_wherever_they_are():
    z = np.linspace(-2.0, 2.0, 9)
    for wild in (3.0, -4.0, np.inf):
        assert np.abs(EmpiricalRecalibrator().fit(np.array([wild]))(z) - z).max() < 0.6
        assert np.abs(EmpiricalRecalibrator().fit(np.array([wild]))(z[2:7]) - z[2:7]).max() < 0.16


def test_an_empirical_map_has_few_knots_however_many_the_scores():
    z = np.random.default_rng(0).normal(0.5, 2.0, 3000)
    assert len(EmpiricalRecalibrator().fit(z).knots) <= 60
    assert EmpiricalRecalibrator(0.0).fit(np.tile([0.3, 0.3 + 1e-7, 0.3 - 1e-7], 15)).slopes.max() < 100


def test_one_outlier_does_not_make_everything_wide():
    z = np.random.default_rng(0).standard_normal(10)
    assert 1.0 / SigmaScaleRecalibrator().fit(np.append(z, np.inf)).left < 2.5


def test_a_regressed_map_is_increasing_and_pinned():
    z = np.random.default_rng(0).normal(0.0, 3.0, 30)
    map = GPRecalibrator().fit(z)
    np.testing.assert_allclose(map.values, isotonic_regression(map.values).x, atol=1e-12)
    assert ndtr(map(-30.0)) < 1e-6
    assert ndtr(map(30.0)) > 1 - 1e-6


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: EmpiricalRecalibrator(-1.0), "prior"),
        (lambda: ShiftScaleRecalibrator(0.0), "shift_prior"),
        (lambda: ShiftScaleRecalibrator(scale_prior=np.nan), "scale_prior"),
        (lambda: ShiftScaleRecalibrator(memory=1.5), "memory"),
        (lambda: ShiftScaleRecalibrator(cap=0.0), "cap"),
        (lambda: OnlineRecalibrator(eta=0.0), "eta"),
        (lambda: OnlineRecalibrator(levels=0), "levels"),
        (lambda: Gate(doubt=1.0), "doubt"),
        (lambda: Gate(window=0), "window"),
    ],
)
def test_bad_settings_get_a_sentence(make, named):
    with pytest.raises(InputError, match=f"`{named}` must"):
        make()
