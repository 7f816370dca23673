"""Contracts: what every forecast, map, surrogate and acquisition must keep, for ours and for yours.

Each check raises AssertionError with what failed; call it from a test of your own implementation.
"""

import json
from collections.abc import Mapping

import numpy as np

from calibo.acquisition import Acquisition, Criterion, ForecastLandscape, Landscape
from calibo.calibration import CalibrationMap, Recalibrator
from calibo.cube import Cube
from calibo.forecasts import Forecast
from calibo.observations import Observations
from calibo.parts import build, identity, spec
from calibo.surrogate import FittedSurrogate, Surrogate
from calibo.types import Array, Flags

__all__ = ["check_acquisition", "check_forecast", "check_map", "check_recalibrator", "check_surrogate"]

STEP = 1e-6  # of central differences: their error is about STEP^2 + 1e-16 / STEP
ROUNDING = 1e-12  # what sums of a few floats may lose
LAST_DIGITS = 64 * np.finfo(float).eps  # of a value, between two that are computed alike
LEVELS = np.array([1e-6, 0.01, 0.25, 0.5, 0.75, 0.99, 1.0 - 1e-6])


def check_forecast(forecast: Forecast) -> None:
    """Shapes agree, weights sum to one, quantiles increase and invert the CDF, derivatives are right."""
    rows, n = forecast.loc.shape
    assert forecast.scale.shape == (rows, n), "loc and scale must have the same shape"
    assert len(forecast.weights) == len(forecast.transforms) == rows, "one weight and one transform a row"
    assert np.all(np.isfinite([forecast.loc, forecast.scale])), "loc and scale must be finite"
    assert np.all(forecast.scale > 0), "scale must be positive"
    assert np.all(forecast.weights > 0), "weights must be positive"
    assert abs(forecast.weights.sum() - 1.0) < 1e-9, "weights must sum to 1"
    quantiles = forecast.quantile(np.broadcast_to(LEVELS[:, None], (len(LEVELS), n)))
    steps = np.diff(quantiles, axis=0) + ROUNDING * np.abs(quantiles[1:])
    assert np.all(steps >= 0), "quantiles must not decrease with the level"
    np.testing.assert_allclose(forecast.cdf(quantiles), LEVELS[:, None] * np.ones(n), atol=1e-7)
    _check_score_partials(forecast, forecast.quantile(0.3))


def check_map(map: CalibrationMap) -> None:
    """Finite, increasing on the whole line, inverted by its inverse, with the slope it claims."""
    z = np.unique(np.concatenate([np.linspace(-60.0, 60.0, 2001), map.knots]))
    value = map(z)
    assert np.all(np.isfinite(value)), "a map must be finite at finite scores"
    assert np.all(np.diff(value) >= -ROUNDING * (1.0 + np.abs(value[1:]))), "a map must not decrease"
    assert min(map.left, map.right) > 0, "a map must increase outside its knots"
    assert np.all(map.slope(z) >= 0), "slopes must not be negative"
    if np.all(map.slopes > 1e-9):
        np.testing.assert_allclose(map.inverse(value), z, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(map.mirrored()(-z), -value, rtol=1e-12, atol=1e-12)


def check_recalibrator(recalibrator: Recalibrator) -> None:
    """Whatever the scores, there is a map, the same each time; order may matter, NaN may not."""
    assert identity(recalibrator) == identity(build(spec(recalibrator))), "a gate remembers what it tested by its spec"
    rng = np.random.default_rng(0)
    normal = rng.normal(0.4, 1.5, 25)
    awkward = [[], [0.3], [2.0] * 6, [np.inf, -np.inf, 1.0], [-np.inf] * 3, [1e9, 0.0, -1e9]]
    for scores in (*(np.array(each, dtype=float) for each in awkward), normal, 1e-9 * normal):
        check_map(recalibrator.fit(scores))
    z = np.linspace(-3.0, 3.0, 13)
    first = recalibrator.fit(normal)(z)
    np.testing.assert_array_equal(recalibrator.fit(normal)(z), first, "the same scores must give the same map")
    gaps = np.insert(normal, [0, 7, 25], np.nan)
    np.testing.assert_allclose(recalibrator.fit(gaps)(z), first, rtol=1e-9, err_msg="NaN is no score")


def check_surrogate(surrogate: Surrogate, observations: Observations) -> FittedSurrogate:
    """A fit forecasts everywhere, has the gradients it claims, and is the same with and without its state."""
    fitted = surrogate.fit(observations, rng=np.random.default_rng(0))
    rng, d = np.random.default_rng(1), observations.x.shape[1]
    x = observations.cube.snap(rng.random((7, d)))
    for forecast in (fitted.predict(x), fitted.latent(x), fitted.leave_one_out()):
        check_forecast(forecast)
    assert np.isfinite(fitted.log_evidence), "the log evidence must be finite"
    assert np.all(fitted.predict(x).scale >= fitted.latent(x).scale), "an observation is no surer than the function"
    assert fitted.smoothed().shape == (len(observations),), "one smoothed value an observation"
    assert isinstance(fitted.state, Mapping), "a state is a mapping of names to values"
    stored = json.loads(json.dumps(dict(fitted.state), allow_nan=False))
    again = surrogate.fit(observations, rng=np.random.default_rng(0), previous=stored)
    np.testing.assert_array_equal(again.latent(x).loc, fitted.latent(x).loc, "the state must change nothing")
    _check_input_gradient(fitted, x, ~observations.cube.categorical)
    _check_conditioning(fitted, x[:2])
    check_forecast(fitted.one_step_ahead())
    check_forecast(surrogate.refit(observations.head(len(observations) - 1), fitted).predict(x))
    return fitted


def check_acquisition(
    acquisition: Acquisition, observations: Observations, fitted: FittedSurrogate, map: CalibrationMap
) -> None:
    """A landscape is finite, agrees with itself, and has the derivatives it claims; so has its criterion."""
    landscape = acquisition.prepare(observations, fitted, map)
    assert landscape.scale in ("log", "gain", "bound"), "scale must say how feasibility enters"
    x = observations.cube.snap(np.random.default_rng(2).random((9, observations.x.shape[1])))
    _check_gradient(landscape, observations.cube, x)
    if isinstance(landscape, ForecastLandscape):
        _check_criterion(landscape.criterion, fitted.latent(x))


def _check_gradient(landscape: Landscape, cube: Cube, x: Array) -> None:
    value, gradient = landscape.value_and_gradient(x)
    assert np.all(np.isfinite(value)), "a landscape must be finite"
    assert np.all(np.isfinite(gradient)), "the gradient of a landscape must be finite"
    np.testing.assert_allclose(landscape.value(x), value, rtol=1e-8, atol=1e-300)
    assert landscape.screened(x).shape == value.shape
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
            rounding = float(
                (LAST_DIGITS * np.abs(value) / gap).max()
            )  # of a row that hardly counts nothing else is left
            np.testing.assert_allclose(
                derivative[s], slope, rtol=1e-4, atol=1e-5 * float(np.abs(slope).max()) + rounding + 1e-12
            )


def _moved(forecast: Forecast, name: str, row: int) -> tuple[Forecast, Forecast, Array]:
    """The forecast with one row of loc or scale a little higher, a little lower, and by how much."""
    step = np.zeros_like(forecast.loc)
    step[row] = STEP * forecast.scale[row]
    sides = []
    for sign in (1.0, -1.0):
        fields = {"loc": forecast.loc, "scale": forecast.scale}
        fields[name] = fields[name] + sign * step
        sides.append(Forecast(fields["loc"], fields["scale"], forecast.weights, forecast.transforms))
    return sides[0], sides[1], 2.0 * step[row]


def _check_score_partials(forecast: Forecast, y: Array) -> None:
    score, by_loc, by_scale, by_y = forecast.score_partials(y)
    np.testing.assert_allclose(score, forecast.score(y), rtol=1e-12)
    for name, derivative in (("loc", by_loc), ("scale", by_scale)):
        for s in range(len(forecast.loc)):
            up, down, gap = _moved(forecast, name, s)
            np.testing.assert_allclose(derivative[s] * gap, up.score(y) - down.score(y), rtol=1e-4, atol=1e-11)
    step = STEP / by_y
    np.testing.assert_allclose(forecast.score(y + step) - forecast.score(y - step), 2.0 * STEP, rtol=1e-4)


def _check_input_gradient(fitted: FittedSurrogate, x: Array, numeric: Flags) -> None:
    forecast, d_loc, d_scale = fitted.latent_with_gradient(x)
    np.testing.assert_allclose(forecast.loc, fitted.latent(x).loc, rtol=1e-9, atol=1e-12)
    for j in np.flatnonzero(numeric):
        step = np.zeros(x.shape[1])
        step[j] = STEP
        up, down = fitted.latent(x + step), fitted.latent(x - step)
        size = float(np.abs(forecast.scale).max())
        np.testing.assert_allclose(d_loc[..., j], (up.loc - down.loc) / (2 * STEP), rtol=1e-4, atol=1e-4 * size)
        np.testing.assert_allclose(d_scale[..., j], (up.scale - down.scale) / (2 * STEP), rtol=1e-4, atol=1e-4 * size)


def _check_conditioning(fitted: FittedSurrogate, x: Array) -> None:
    before = fitted.latent(x)
    believing = fitted.believing(x).latent(x)
    np.testing.assert_allclose(believing.loc, before.loc, rtol=1e-6, atol=1e-6 * float(before.scale.max()))
    assert np.all(believing.scale <= before.scale * (1 + 1e-6)), "an outcome more leaves no less certainty"
    high = before.at_score(3.0)
    assert np.all(fitted.given(x, high).latent(x).loc > before.loc), "a high outcome must raise the forecast there"
