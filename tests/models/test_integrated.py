from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from calibo import InputError
from calibo.cube import Axis
from calibo.gp.kernels import Matern32, Matern52
from calibo.models import GaussianProcess, IntegratedProcess
from calibo.models.integrated import (
    RATE,
    SHAPE,
    SHARES,
    VARIANCES,
    _Nodes,
    _Outcomes,
    integrate,
    representatives,
    student_rows,
)
from calibo.testing import check_surrogate
from calibo.transforms import IDENTITY

from ..conftest import observations
from .test_transforms_learned import skewed

ONE_SCALE = IntegratedProcess(scales=(("values", GaussianProcess()),))
CATEGORIES = (Axis(), Axis("categorical", cells=3), Axis("ordered", cells=5))


def fit(recipe, data):
    return recipe.fit(data, rng=np.random.default_rng(0))


def at_one_node(data, lengthscale=0.4, exact=0.1, coarsening=1e12):
    """A fit whose only unknowns are the mean, the variance and the noise."""
    kernel = Matern52().on((0, 1, 2))
    nodes = _Nodes(kernel, np.full((1, 3), np.log(lengthscale)), np.zeros(1))
    return integrate(nodes, data.x, (_Outcomes.of(data, IDENTITY, 0.0),), exact, coarsening, {})


def correlation(a, b, lengthscale=0.4):
    s = np.sqrt(5.0) * np.linalg.norm((a[:, None] - b[None]) / lengthscale, axis=2)
    return (1.0 + s + s**2 / 3.0) * np.exp(-s)


@pytest.mark.parametrize(
    "data",
    [
        skewed(12),
        observations(3),
        observations(9, axes=CATEGORIES),
        replace(observations(10), noise_std=np.full(10, 0.1)),
        replace(skewed(9), noise_std=np.where(np.arange(9) % 2, 0.05, np.nan)),
    ],
    ids=["skewed", "three", "categories", "told", "partly told"],
)
def test_it_keeps_the_contract_of_a_surrogate(data):
    check_surrogate(IntegratedProcess(nodes=12), data)


def test_the_evidence_is_that_of_a_multivariate_t():
    data = observations(8)
    fitted = at_one_node(data)
    t = (data.y - data.y.mean()) / data.y.std()
    shares = [1e-8, *SHARES]
    prior = np.log([0.1, *[0.9 / len(SHARES)] * len(SHARES)])
    R = correlation(data.x, data.x) + 1.0
    each = [stats.multivariate_t(shape=RATE / SHAPE * (R + r * np.eye(8)), df=2.0 * SHAPE).logpdf(t) for r in shares]
    assert fitted.log_evidence == pytest.approx(logsumexp(prior + each) - 8 * np.log(data.y.std()), rel=1e-9)


@pytest.mark.parametrize(("coarsening", "power"), [(1e12, 1.0), (8.0, 0.5)])
def test_predictions_are_those_of_a_mixture_of_t(coarsening, power):
    data, x = observations(8), np.random.default_rng(1).random((4, 3))
    center, spread = data.y.mean(), data.y.std()
    t = (data.y - center) / spread
    R, k = correlation(data.x, data.x) + 1.0, correlation(x, data.x) + 1.0
    shares, log_weights, parts = [1e-8, *SHARES], [], []
    for r in shares:
        M = R + r * np.eye(8)
        inverse = np.linalg.inv(M)
        size = (RATE + 0.5 * t @ inverse @ t) / (SHAPE + 4.0)
        log_weights.append(stats.multivariate_t(shape=RATE / SHAPE * M, df=2.0 * SHAPE).logpdf(t))
        parts.append((k @ inverse @ t, size * (2.0 - np.einsum("mn,nk,mk->m", k, inverse, k)), size * r))
    weights = np.exp(power * (log_weights - np.max(log_weights))) * np.array([0.1, *[0.9 / len(SHARES)] * len(SHARES)])
    weights /= weights.sum()
    for noise in (False, True):
        forecast = at_one_node(data, coarsening=coarsening).posterior(x, noise=noise)
        for z in (-1.5, 0.0, 2.0):
            y = forecast.median + z * 0.3 * spread
            scores = [(y - center) / spread - mean for mean, _, _ in parts]
            stds = [np.sqrt(np.maximum(var + noise * added, 1e-12)) for _, var, added in parts]
            wanted = sum(w * stats.t.cdf(s / std, df=9.0) for w, s, std in zip(weights, scores, stds, strict=True))
            np.testing.assert_allclose(forecast.cdf(y), wanted, atol=2e-3)  # five Gaussians for a t


def test_few_outcomes_have_one_scale():
    for n, scales in ((5, 1), (6, 3)):
        data = observations(n)
        fitted = fit(IntegratedProcess(nodes=4), replace(data, y=10.0 ** (3.0 * data.y)))
        assert len({id(row) for row in fitted.posterior(data.x[:1]).transforms}) <= scales
        assert len(fitted.outcomes) == scales


def test_told_noise_fixes_the_variance():
    std = np.random.default_rng(5).uniform(0.05, 0.6, 8)
    data = replace(observations(8), noise_std=std)
    x = np.random.default_rng(1).random((4, 3))
    t, w = (data.y - data.y.mean()) / data.y.std(), np.square(std / data.y.std())
    R, k = correlation(data.x, data.x) + 1.0, correlation(x, data.x) + 1.0
    prior = -SHAPE * np.log(VARIANCES) - RATE / VARIANCES
    log_weights, means, variances = [], [], []
    for A in VARIANCES:
        K = A * R + np.diag(w)
        log_weights.append(stats.multivariate_normal(cov=K).logpdf(t))
        means.append(A * k @ np.linalg.solve(K, t))
        variances.append(2.0 * A - A * A * np.einsum("mn,nm->m", k, np.linalg.solve(K, k.T)))
    weights = np.exp(prior + log_weights - np.max(log_weights))
    weights /= weights.sum()
    fitted = at_one_node(data)
    forecast = fitted.posterior(x)
    mean = data.y.mean() + data.y.std() * weights @ means
    np.testing.assert_allclose(forecast.weights @ forecast.loc, mean, rtol=1e-6)
    np.testing.assert_allclose(
        forecast.weights @ forecast.scale**2, data.y.var() * weights @ np.array(variances), rtol=1e-6
    )
    evidence = logsumexp(prior - logsumexp(prior) + log_weights) - 8 * np.log(data.y.std())
    assert fitted.log_evidence == pytest.approx(evidence, rel=1e-9)
    observed = fitted.posterior(x, noise=np.full(4, 0.3))
    np.testing.assert_allclose(observed.scale, np.hypot(forecast.scale, 0.3), rtol=1e-9)
    typical = fitted.posterior(x, noise=True)
    np.testing.assert_allclose(typical.scale, np.hypot(forecast.scale, np.sqrt(np.median(std**2))), rtol=1e-9)


@pytest.mark.parametrize("freedom", [3.0, 4.0, 9.0, 29.0, 31.0, 99.0])
def test_a_few_gaussians_are_close_to_a_student_t(freedom):
    factors, weights = student_rows(freedom)
    p = np.array([0.005, 0.05, 0.25, 0.5, 0.9, 0.95, 0.99])
    y = stats.t.ppf(p, freedom)
    np.testing.assert_allclose(weights @ stats.norm.cdf(y / factors[:, None]), p, atol=0.007 if freedom < 4 else 0.004)
    assert len(student_rows(100.0)[0]) == 1


def test_more_nodes_change_little():
    data = observations(14, d=2)
    x = np.random.default_rng(3).random((30, 2))
    few, many = (fit(IntegratedProcess(nodes=k), data).posterior(x) for k in (48, 512))
    width = np.subtract(*many.interval(0.9)[::-1])
    assert np.abs(few.median - many.median).max() < 0.35 * width.max()
    ratio = np.subtract(*few.interval(0.9)[::-1]) / width
    assert 0.8 < np.median(ratio) < 1.25


@pytest.mark.parametrize(("shift", "factor"), [(0.0, 1e-6), (1e4, 1.0), (-3.0, 1e8)])
def test_forecasts_follow_the_units_of_outcomes(shift, factor):
    data = observations(7)
    x = np.random.default_rng(3).random((5, 3))
    plain = np.array(fit(ONE_SCALE, data).posterior(x, noise=True).interval(0.9))
    moved = fit(ONE_SCALE, replace(data, y=shift + factor * data.y)).posterior(x, noise=True)
    np.testing.assert_allclose((np.array(moved.interval(0.9)) - shift) / factor, plain, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize(
    "y",
    [[1.0], [2.0, 2.0, 2.0], [0.0, 1e300, -1e300], [1e-300, 2e-300, 3e-300], [1.0, 1.0, 1.0 + 1e-13], [5, -3.5, 11]],
)
def test_no_outcomes_break_it(y):
    data = replace(observations(len(y)), y=np.array(y, dtype=float))
    forecast = fit(IntegratedProcess(nodes=8), data).posterior(np.random.default_rng(0).random((3, 3)), noise=True)
    low, high = forecast.interval(0.9)
    assert np.all(np.isfinite([low, high, forecast.median]))
    assert np.all(low <= forecast.median)
    assert np.all(forecast.median <= high)


def test_repeated_points_tell_the_noise():
    rng = np.random.default_rng(0)
    x = np.repeat(rng.random((3, 3)), 4, axis=0)
    data = replace(observations(12), x=x, y=np.repeat([0.0, 1.0, 2.0], 4) + 0.2 * rng.standard_normal(12))
    fitted = fit(ONE_SCALE, data)
    latent, observed = fitted.posterior(x[:1]), fitted.posterior(x[:1], noise=True)
    low, high = observed.interval(0.683)
    assert 0.12 < 0.5 * float(high[0] - low[0]) < 0.4
    assert float(np.subtract(*latent.interval(0.683)[::-1])[0]) < float(high[0] - low[0])


def test_representatives_have_the_right_shares():
    weights = np.random.default_rng(0).random(1000) ** 8
    order, kept = representatives(weights)
    assert len(order) <= 64
    assert kept.sum() == pytest.approx(1.0)
    for half in (order < 500, order >= 500):
        share = weights[:500].sum() if half[0] else weights[500:].sum()
        assert kept[half].sum() == pytest.approx(share / weights.sum(), abs=1 / 64)


def test_five_noisy_outcomes_leave_wide_intervals():
    """Where a MAP fit is certain of noise-free outcomes, and holds the truth almost never."""
    held = {GaussianProcess: 0, IntegratedProcess: 0}
    for seed in range(30):
        rng = np.random.default_rng(seed)
        x = rng.random((5, 2))
        truth = np.sin(7 * x[:, 0]) * np.cos(4 * x[:, 1]) + 0.5 * np.square(x).sum(axis=1)
        data = replace(observations(5, d=2), x=x, y=truth + 0.2 * rng.standard_normal(5))
        for kind in held:
            forecast = fit(kind(), data).posterior(x)
            best = int(np.argmin(forecast.median))
            low, high = (float(end[best]) for end in forecast.interval(0.9))
            held[kind] += low <= truth[best] <= high
    assert held[IntegratedProcess] >= 24
    assert held[GaussianProcess] <= 15


def test_many_outcomes_have_few_nodes():
    used = [1 + fit(ONE_SCALE, observations(n)).components.node.max() for n in (60, 140)]
    assert used[0] <= 21
    assert used[1] <= 6


def test_very_many_outcomes_have_map_estimates():
    forecast = fit(ONE_SCALE, observations(151)).posterior(observations(4, seed=1).x)
    assert len(forecast.loc) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        {"scales": ()},
        {"scales": (("a", GaussianProcess()), ("a", GaussianProcess()))},
        {"scales": (("a", GaussianProcess(warped=True)),)},
        {"scales": (("a", GaussianProcess()), ("b", GaussianProcess(Matern32())))},
        {"nodes": 1},
        {"nodes": 2.5},
        {"exact": 0.0},
        {"handicap": -1.0},
    ],
)
def test_bad_arguments(arguments):
    with pytest.raises(InputError, match=next(iter(arguments))):
        IntegratedProcess(**arguments)
