import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import norm

from calibo.scoring import LEVELS, calibration_error, calibration_score, coverage, normal_crps, score_normal


@pytest.mark.parametrize(("loc", "scale", "y"), [(0.0, 1.0, 0.3), (2.0, 0.5, -1.0), (-1.0, 3.0, 4.0)])
def test_the_crps_of_a_normal_is_the_integral_that_defines_it(loc, scale, y):
    below = quad(lambda t: ndtr((t - loc) / scale) ** 2, -60, y)[0]
    above = quad(lambda t: ndtr(-(t - loc) / scale) ** 2, y, 60)[0]
    crps = normal_crps(np.array([loc]), np.array([scale]), np.array([y]))
    np.testing.assert_allclose(crps, below + above, atol=1e-7)


def test_calibrated_forecasts_score_as_chance_has_it():
    rng = np.random.default_rng(0)
    n = 4000
    scale = rng.uniform(0.5, 2.0, n)
    y = scale * rng.standard_normal(n)
    scores = score_normal(np.zeros(n), scale, y)
    # Dvoretzky, Kiefer, Wolfowitz: no share is off by more, but with probability 1e-6
    assert scores.calibration_error < np.sqrt(np.log(2e6) / (2 * n))
    for level, share in scores.coverage.items():
        assert abs(share - level) < 5 * np.sqrt(level * (1 - level) / n)
    assert abs(scores.bias) < 5 / np.sqrt(12 * n)
    assert scores.log_score == pytest.approx(norm.logpdf(y, 0, scale).mean())
    assert scores.sharpness == pytest.approx(scale.mean())


def test_a_bias_and_too_narrow_forecasts_are_seen():
    rng = np.random.default_rng(1)
    y = rng.standard_normal(2000)
    worse = score_normal(np.full(2000, -1.0), np.ones(2000), y)
    assert worse.bias > 0.2
    narrow = score_normal(np.zeros(2000), np.full(2000, 0.5), y)
    assert narrow.coverage[0.9] < 0.65
    assert abs(narrow.bias) < 0.05


def test_the_score_and_the_error_by_hand():
    pits = np.array([0.1, 0.5, 0.5, 0.9])
    levels = np.array([0.25, 0.5, 0.75])
    assert calibration_score(pits, levels) == pytest.approx(0.0 + 0.25**2 + 0.0)
    assert calibration_error(pits, levels) == pytest.approx(0.25 / np.sqrt(3))
    assert coverage(pits, 0.8) == 1.0
    assert coverage(pits, 0.5) == 0.5
    assert len(LEVELS) == 19


def test_without_forecasts_there_are_no_scores():
    empty = np.empty(0)
    assert score_normal(empty, empty, empty).count == 0
    assert np.isnan(score_normal(empty, empty, empty).calibration_error)
