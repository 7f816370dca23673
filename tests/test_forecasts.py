import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from calibo.forecasts import CalibrationMap, Forecast
from calibo.testing import check_forecast
from calibo.transforms import IDENTITY, Asinh

MIXTURE = Forecast(
    np.array([[0.0, 1.0, -3.0], [2.0, 1.5, 40.0], [-1.0, 1.0, 0.0]]),
    np.array([[1.0, 0.1, 2.0], [0.5, 0.2, 1e-3], [3.0, 0.1, 1.0]]),
    np.array([0.5, 0.3, 0.2]),
    (IDENTITY, IDENTITY, IDENTITY),
)
MIXED = Forecast(MIXTURE.loc / 10, MIXTURE.scale, MIXTURE.weights, (IDENTITY, Asinh(), Asinh(1.0, 0.1)))


@pytest.mark.parametrize("forecast", [Forecast.normal(np.arange(3.0), np.ones(3)), MIXTURE, MIXED])
def test_a_forecast_keeps_its_contract(forecast):
    check_forecast(forecast)


def test_one_row_is_a_normal():
    forecast = Forecast.normal(np.array([1.0, -2.0]), np.array([2.0, 0.5]))
    oracle = stats.norm([1.0, -2.0], [2.0, 0.5])
    y = np.array([0.3, -1.9])
    np.testing.assert_allclose(forecast.cdf(y), oracle.cdf(y), rtol=1e-12)
    np.testing.assert_allclose(forecast.quantile(0.05), oracle.ppf(0.05), rtol=1e-12)
    np.testing.assert_allclose(forecast.interval(0.9), oracle.interval(0.9), rtol=1e-12)
    np.testing.assert_allclose(forecast.median, [1.0, -2.0])


def test_one_number_counts_for_every_point():
    forecast = Forecast.normal(np.array([1.0, -2.0]), np.array([2.0, 0.5]))
    np.testing.assert_allclose(forecast.cdf(0.5), forecast.cdf(np.array([0.5, 0.5])))
    np.testing.assert_allclose(forecast.log_density(0.5), forecast.log_density(np.array([0.5, 0.5])))
    np.testing.assert_allclose(MIXTURE.cdf(0.5), MIXTURE.cdf(np.full(3, 0.5)))


def test_a_forecast_at_one_point_is_true_and_has_no_length():
    assert MIXTURE[0]
    with pytest.raises(TypeError, match="no length"):
        len(MIXTURE[0])


def test_a_negated_map_keeps_its_strength():
    bent = CalibrationMap.shift_scale(0.5, 2.0).shrink(0.25)
    assert MIXTURE.calibrated(bent).negate().map.strength == 0.25


def test_a_mixture_has_the_mean_of_its_rows_cdfs():
    y = np.linspace(-5.0, 45.0, 300)[:, None] * np.ones(3)
    rows = [w * stats.norm.cdf(y, m, s) for w, m, s in zip(MIXTURE.weights, MIXTURE.loc, MIXTURE.scale, strict=True)]
    np.testing.assert_allclose(MIXTURE.cdf(y), sum(rows), rtol=1e-10, atol=1e-300)


def test_equal_rows_are_one_row():
    twice = Forecast(np.ones((2, 1)), np.full((2, 1), 3.0), np.array([0.25, 0.75]), (IDENTITY, IDENTITY))
    y = np.array([[-100.0], [0.0], [50.0]])
    np.testing.assert_allclose(twice.normal_score(y), (y - 1.0) / 3.0, rtol=1e-9)


@given(st.floats(-1e5, 1e5))
def test_scores_do_not_saturate(y):
    score = MIXTURE.normal_score(np.full(3, y))
    assert np.all(np.isfinite(score))
    # between rows far apart the CDF is flat and y is not determined: compare on the scale of scores
    np.testing.assert_allclose(MIXTURE.normal_score(MIXTURE.at_normal_score(score)), score, rtol=1e-9, atol=1e-9)


def test_quantiles_are_found_where_newton_alone_would_go_in_circles():
    forecast = Forecast(
        np.array([[-0.9404843281619284], [-0.9580903293269061], [-3.461304462751892], [-4.93977948757542], [-2.866]]),
        np.array([[0.15416600486970425], [0.0016360513340037339], [0.0012539760846827222], [0.6233274712], [2.615]]),
        np.array(
            [0.4687724155174713, 0.06286724480838135, 0.049813564173476946, 0.4177086994941118, 0.0008380760065586]
        ),
        (IDENTITY,) * 5,
    )
    q = np.linspace(-6, 6, 20001)[:, None]
    np.testing.assert_allclose(forecast.normal_score(forecast.at_normal_score(q)), q, atol=1e-9)


def test_quantiles_of_random_mixtures_invert_their_scores():
    rng = np.random.default_rng(0)
    for _ in range(20):
        S, n = int(rng.integers(2, 7)), 500
        transforms = tuple(IDENTITY if rng.random() < 0.5 else Asinh(rng.normal(), rng.exponential()) for _ in range(S))
        forecast = Forecast(
            rng.normal(size=(S, n)), 10 ** rng.uniform(-3, 1, (S, n)), rng.dirichlet(np.ones(S) / 2) + 1e-9, transforms
        )
        q = rng.normal(size=n) * 2
        np.testing.assert_allclose(forecast.normal_score(forecast.at_normal_score(q)), q, atol=1e-8)


def test_an_infinite_outcome_has_an_infinite_score():
    assert np.all(MIXTURE.normal_score(np.full(3, np.inf)) == np.inf)
    assert np.all(MIXTURE.normal_score(np.full(3, -np.inf)) == -np.inf)


def test_a_broken_forecast_is_found():
    with pytest.raises(AssertionError, match="positive"):
        check_forecast(Forecast.normal(np.zeros(2), np.array([1.0, 0.0])))
    with pytest.raises(AssertionError, match="finite"):
        check_forecast(Forecast.normal(np.array([np.nan]), np.ones(1)))


@pytest.mark.parametrize("z", [-50.0, -200.0, 300.0, -1e5, 1e7])
def test_derivatives_of_a_mixture_keep_their_digits_far_away(z):
    rows = (0.0, 0.5, 0.2)
    weights = np.array([0.2, 0.3, 0.5])
    forecast = Forecast(np.array(rows)[:, None], np.array([[1.0], [1.2], [0.9]]), weights, (IDENTITY,) * 3)
    with mpmath.workdps(60):
        scores = [(mpmath.mpf(z) - l) / s for l, s in zip(rows, (1.0, 1.2, 0.9), strict=True)]
        far = min(scores, key=lambda score: -score if z < 0 else score)  # the row that dominates the tail
        dominating = [float(score == far) for score in scores]
    _, by_loc, _, _ = forecast.normal_score_partials(np.array([z]))
    shares = -by_loc[:, 0] * np.array([1.0, 1.2, 0.9])
    np.testing.assert_allclose(shares, dominating, atol=0.05)
