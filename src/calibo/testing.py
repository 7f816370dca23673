"""Contract checks for parts, built-in and custom.

Each check raises AssertionError with the reason; call it from the tests of a custom part.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from calibo.acquisition import Acquisition, Criterion, ForecastLandscape, Landscape
from calibo.arrays import Array, Flags
from calibo.calibration import FittedModel, Recalibrator, ScoreSource
from calibo.cube import Cube
from calibo.forecasts import CalibrationMap, Forecast
from calibo.gp.kernels import Kernel
from calibo.gp.linalg import pairs
from calibo.models import FittedSurrogate, Surrogate
from calibo.observations import Observations
from calibo.parts import build, identity, spec
from calibo.priors import HyperPriors, joint_prior
from calibo.transforms import LearnedTransform

STEP = 1e-6  # step of central differences: their error is about STEP^2 + 1e-16 / STEP
ROUNDING = 1e-12  # rounding error of sums of a few floats
LAST_DIGITS = 64 * np.finfo(float).eps  # relative difference of two equivalent computations
LEVELS = np.array([1e-6, 0.01, 0.25, 0.5, 0.75, 0.99, 1.0 - 1e-6])


def check_forecast(forecast: Forecast) -> None:
    """Shapes agree, weights sum to one, quantiles increase and invert the CDF, derivatives are right."""
    rows, n = forecast.loc.shape
    assert forecast.scale.shape == (rows, n), "loc and scale must have the same shape"
    assert len(forecast.weights) == len(forecast.transforms) == rows, "one weight and one transform per row"
    assert np.all(np.isfinite([forecast.loc, forecast.scale])), "loc and scale must be finite"
    assert np.all(forecast.scale > 0), "scale must be positive"
    assert np.all(forecast.weights > 0), "weights must be positive"
    assert abs(forecast.weights.sum() - 1.0) < 1e-9, "weights must sum to 1"
    quantiles = forecast.quantile(np.broadcast_to(LEVELS[:, None], (len(LEVELS), n)))
    steps = np.diff(quantiles, axis=0) + ROUNDING * np.abs(quantiles[1:])
    assert np.all(steps >= 0), "quantiles must not decrease with the level"
    np.testing.assert_allclose(forecast.cdf(quantiles), LEVELS[:, None] * np.ones(n), atol=1e-7)
    _check_score_partials(forecast.raw, forecast.raw.quantile(0.3))


def check_map(map: CalibrationMap) -> None:
    """The map is finite and increasing on the whole line, and its inverse and slope are right."""
    z = np.unique(np.concatenate([np.linspace(-60.0, 60.0, 2001), map.knots]))
    value = map(z)
    assert np.all(np.isfinite(value)), "a map must be finite at finite scores"
    assert np.all(np.diff(value) >= -ROUNDING * (1.0 + np.abs(value[1:]))), "a map must not decrease"
    assert min(map.left, map.right) > 0, "a map must increase outside its knots"
    assert np.all(map.slope(z) >= 0), "slopes must not be negative"
    if np.all(map.slopes > 1e-9):
        np.testing.assert_allclose(map.inverse(value), z, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(map.negate()(-z), -value, rtol=1e-12, atol=1e-12)


def check_part(part: Any) -> None:
    """A part rebuilt from its stored spec has the same identity."""
    stored = json.loads(json.dumps(spec(part)))
    assert identity(build(stored)) == identity(part), "a part must have the same identity when rebuilt from its spec"


def check_kernel(kernel: Kernel, columns: tuple[int, ...] = (0, 2), priors: HyperPriors | None = None) -> None:
    """The covariance is symmetric, positive semi-definite and consistent, and its derivatives are right."""
    check_part(kernel)
    rng = np.random.default_rng(0)
    covariance, x, z = kernel.on(columns), rng.random((7, 4)), rng.random((5, 4))
    theta = joint_prior(priors or HyperPriors(), covariance.labels).center[:-2] + 0.1
    rows, others, diagonal = pairs(len(x))
    geometry = covariance.geometry(x, rows, others)
    k, pullback = covariance.pairwise(theta, geometry)
    K, _ = covariance.cross(theta, x)(x)
    np.testing.assert_allclose(K, K.T, atol=1e-12, err_msg="a covariance must be symmetric")
    np.testing.assert_allclose(k, K[rows, others], rtol=1e-8, atol=1e-12, err_msg="pairs must agree with cross")
    np.testing.assert_allclose(covariance.diagonal(theta, x)[0], k[diagonal], rtol=1e-8, atol=1e-12)
    smallest = float(np.linalg.eigvalsh(K).min())
    assert smallest > -1e-9 * len(x) * float(np.abs(K).max()), "a covariance must be positive semi-definite"
    W = rng.standard_normal(len(k))
    for i, step in enumerate(STEP * np.eye(len(theta))):
        up, down = (float(W @ covariance.pairwise(theta + s * step, geometry)[0]) for s in (1.0, -1.0))
        np.testing.assert_allclose(pullback(W)[i], (up - down) / (2.0 * STEP), rtol=1e-5, atol=1e-6)
    W = rng.standard_normal((len(z), len(x)))
    cross = covariance.cross(theta, x)
    gradient, by_x = cross(z)[1](W), covariance.diagonal(theta, z)[1]
    for j in columns:
        step = np.zeros(z.shape[1])
        step[j] = STEP
        slope = (W * (cross(z + step)[0] - cross(z - step)[0])).sum(axis=1) / (2.0 * STEP)
        np.testing.assert_allclose(gradient[:, j], slope, rtol=1e-5, atol=1e-6)
        change = covariance.diagonal(theta, z + step)[0] - covariance.diagonal(theta, z - step)[0]
        np.testing.assert_allclose(by_x[:, j], change / (2.0 * STEP), rtol=1e-5, atol=1e-6)


def check_transform(learned: LearnedTransform) -> None:
    """The transform increases, and its inverse, slope and derivatives are right."""
    check_part(learned)
    y = np.array([3.0, 3.2, 3.9, 4.4, 5.0, 7.0, 11.0])
    phi = np.array([prior.center for prior in learned.priors]) + 0.05
    T = learned.at(phi, y)
    assert np.all(np.diff(T(y)) > 0), "a transform must increase"
    np.testing.assert_allclose(T.inverse(T(y)), y, rtol=1e-9)
    step = STEP * (y[-1] - y[0])
    np.testing.assert_allclose(np.exp(T.log_slope(y)), (T(y + step) - T(y - step)) / (2.0 * step), rtol=1e-5)
    d_t, d_slope = learned.partials(phi, y)
    for i, move in enumerate(STEP * np.eye(len(phi))):
        up, down = learned.at(phi + move, y), learned.at(phi - move, y)
        np.testing.assert_allclose(d_t[i], (up(y) - down(y)) / (2.0 * STEP), rtol=1e-5, atol=1e-7)
        slope = (up.log_slope(y) - down.log_slope(y)) / (2.0 * STEP)
        np.testing.assert_allclose(d_slope[i], slope, rtol=1e-5, atol=1e-7)


def check_score_source(source: ScoreSource, surrogate: Surrogate, observations: Observations) -> None:
    """One score per outcome, finite or NaN, deterministic."""
    check_part(source)
    fitted = surrogate.fit(observations, rng=np.random.default_rng(0))
    found = [source.scores(FittedModel(surrogate, fitted, observations, np.random.default_rng(1))) for _ in range(2)]
    scores = found[0].scores
    assert scores.shape == (len(observations),), "one score per outcome"
    assert not np.any(np.isinf(scores)), "a score must be finite, or NaN if there is none"
    np.testing.assert_array_equal(found[1].scores, scores, "the same data must give the same scores")
    json.dumps(dict(found[0].state), allow_nan=False)


def check_recalibrator(recalibrator: Recalibrator) -> None:
    """Any scores give a valid map, deterministically; their order may matter, and NaN scores are ignored."""
    check_part(recalibrator)
    rng = np.random.default_rng(0)
    normal = rng.normal(0.4, 1.5, 25)
    awkward = [[], [0.3], [2.0] * 6, [np.inf, -np.inf, 1.0], [-np.inf] * 3, [1e9, 0.0, -1e9]]
    for scores in (*(np.array(each, dtype=float) for each in awkward), normal, 1e-9 * normal):
        check_map(recalibrator.fit(scores))
    z = np.linspace(-3.0, 3.0, 13)
    first = recalibrator.fit(normal)(z)
    np.testing.assert_array_equal(recalibrator.fit(normal)(z), first, "the same scores must give the same map")
    gaps = np.insert(normal, [0, 7, 25], np.nan)
    np.testing.assert_allclose(recalibrator.fit(gaps)(z), first, rtol=1e-9, err_msg="NaN scores must be ignored")


def check_surrogate(surrogate: Surrogate, observations: Observations) -> FittedSurrogate:
    """A fit forecasts everywhere, its gradients are right, and a cached state does not change it."""
    fitted = surrogate.fit(observations, rng=np.random.default_rng(0))
    rng, d = np.random.default_rng(1), observations.x.shape[1]
    x = observations.cube.snap(rng.random((7, d)))
    for forecast in (fitted.posterior(x, noise=True), fitted.posterior(x)):
        check_forecast(forecast)
    wider = fitted.posterior(x, noise=True).scale >= fitted.posterior(x).scale
    assert np.all(wider), "an observation must not be more certain than the function"
    assert fitted.in_sample_mean(observations.x).shape == (len(observations),), "one mean per observation"
    assert isinstance(fitted.state, Mapping), "a state must be a mapping of names to values"
    stored = json.loads(json.dumps(dict(fitted.state), allow_nan=False))
    again = surrogate.fit(observations, rng=np.random.default_rng(0), previous=stored)
    np.testing.assert_array_equal(again.posterior(x).loc, fitted.posterior(x).loc, "the state must not change the fit")
    _check_input_gradient(fitted, x, ~observations.cube.categorical)
    _check_conditioning(fitted, x[:2])
    check_forecast(surrogate.refit(observations.head(len(observations) - 1), fitted).posterior(x, noise=True))
    return fitted


def check_acquisition(
    acquisition: Acquisition, observations: Observations, fitted: FittedSurrogate, map: CalibrationMap
) -> None:
    """A landscape is finite and consistent, and its derivatives and those of its criterion are right."""
    landscape = acquisition.prepare(observations, fitted, map)
    assert landscape.scale in ("log", "gain", "bound"), "scale must say how feasibility enters"
    x = observations.cube.snap(np.random.default_rng(2).random((9, observations.x.shape[1])))
    _check_gradient(landscape, observations.cube, x)
    if isinstance(landscape, ForecastLandscape):
        _check_criterion(landscape.criterion, fitted.posterior(x))


def _check_gradient(landscape: Landscape, cube: Cube, x: Array) -> None:
    value, gradient = landscape.value_and_gradient(x)
    assert np.all(np.isfinite(value)), "a landscape must be finite"
    assert np.all(np.isfinite(gradient)), "the gradient of a landscape must be finite"
    np.testing.assert_allclose(landscape.value(x), value, rtol=1e-8, atol=1e-300)
    assert landscape.screen(x).shape == value.shape
    for j in np.flatnonzero(cube.free & ~cube.categorical):
        step = np.zeros(x.shape[1])
        step[j] = STEP
        slope = (landscape.value(x + step) - landscape.value(x - step)) / (2.0 * STEP)
        np.testing.assert_allclose(gradient[:, j], slope, rtol=1e-3, atol=1e-4 * float(np.abs(slope).max()) + 1e-9)


def _check_criterion(criterion: Criterion, forecast: Forecast) -> None:
    value, by_loc, by_scale = criterion.partials(forecast)
    assert np.all(np.isfinite(value)), "a criterion must be finite"
    np.testing.assert_allclose(criterion.value(forecast), value, rtol=1e-10, atol=1e-300)
    for name, derivative in (("loc", by_loc), ("scale", by_scale)):
        for s in range(len(forecast.loc)):
            up, down, gap = _moved(forecast, name, s)
            slope = (criterion.value(up) - criterion.value(down)) / gap
            rounding = float((LAST_DIGITS * np.abs(value) / gap).max())  # dominates in rows of negligible weight
            np.testing.assert_allclose(
                derivative[s], slope, rtol=1e-4, atol=1e-5 * float(np.abs(slope).max()) + rounding + 1e-12
            )


def _moved(forecast: Forecast, name: str, row: int) -> tuple[Forecast, Forecast, Array]:
    """The forecast with one row of loc or scale perturbed up and down, and the difference."""
    step = np.zeros_like(forecast.loc)
    step[row] = STEP * forecast.scale[row]
    sides = []
    for sign in (1.0, -1.0):
        fields = {"loc": forecast.loc, "scale": forecast.scale}
        fields[name] = fields[name] + sign * step
        sides.append(Forecast(fields["loc"], fields["scale"], forecast.weights, forecast.transforms))
    return sides[0], sides[1], 2.0 * step[row]


def _check_score_partials(forecast: Forecast, y: Array) -> None:
    score, by_loc, by_scale, by_y = forecast.normal_score_partials(y)
    np.testing.assert_allclose(score, forecast.normal_score(y), rtol=1e-12)
    for name, derivative in (("loc", by_loc), ("scale", by_scale)):
        for s in range(len(forecast.loc)):
            up, down, gap = _moved(forecast, name, s)
            np.testing.assert_allclose(
                derivative[s] * gap, up.normal_score(y) - down.normal_score(y), rtol=1e-4, atol=1e-11
            )
    step = STEP / by_y
    np.testing.assert_allclose(forecast.normal_score(y + step) - forecast.normal_score(y - step), 2.0 * STEP, rtol=1e-4)


def _check_input_gradient(fitted: FittedSurrogate, x: Array, numeric: Flags) -> None:
    forecast, d_loc, d_scale = fitted.posterior_with_gradient(x)
    np.testing.assert_allclose(forecast.loc, fitted.posterior(x).loc, rtol=1e-9, atol=1e-12)
    for j in np.flatnonzero(numeric):
        step = np.zeros(x.shape[1])
        step[j] = STEP
        up, down = fitted.posterior(x + step), fitted.posterior(x - step)
        size = float(np.abs(forecast.scale).max())
        np.testing.assert_allclose(d_loc[..., j], (up.loc - down.loc) / (2 * STEP), rtol=1e-4, atol=1e-4 * size)
        np.testing.assert_allclose(d_scale[..., j], (up.scale - down.scale) / (2 * STEP), rtol=1e-4, atol=1e-4 * size)


def _check_conditioning(fitted: FittedSurrogate, x: Array) -> None:
    before = fitted.posterior(x)
    after = fitted.condition_on_mean(x).posterior(x)
    np.testing.assert_allclose(after.loc, before.loc, rtol=1e-6, atol=1e-6 * float(before.scale.max()))
    assert np.all(after.scale <= before.scale * (1 + 1e-6)), "another outcome must not increase the uncertainty"
    high = before.at_normal_score(3.0)
    assert np.all(fitted.condition(x, high).posterior(x).loc > before.loc), (
        "a high outcome must raise the forecast there"
    )
