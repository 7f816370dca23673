"""Gaussian processes conditioned on outcomes, on the scale on which these are Gaussian: what a surrogate believes."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import log
from typing import Any

import numpy as np

from calibo.forecasts import Forecast
from calibo.gp.process import Process
from calibo.surrogate.marginal import MOST_NOISE
from calibo.transforms import IDENTITY, Transform
from calibo.types import Array

__all__ = ["FittedGaussianProcess"]

LEAST_NOISE = 1e-6  # of an imagined outcome, in squared spreads: keeps the root apart from rounding


@dataclass(frozen=True, eq=False)
class FittedGaussianProcess:
    """One process a setting of the hyper-parameters: rows of one mixture."""

    processes: tuple[Process, ...]
    weights: Array

    center: float
    spread: float
    """Transformed outcomes are center + spread times what the processes know."""

    state: Mapping[str, Any]

    transform: Transform = IDENTITY

    log_jacobian: float = 0.0
    """Sum of the logarithms of the transform's slopes at the outcomes."""

    thetas: Array = field(default_factory=lambda: np.empty((1, 0)))
    """(rows, k) hyper-parameters of each process, then the parameters of the transform."""

    @property
    def log_evidence(self) -> float:
        rows = np.array([p.log_marginal() for p in self.processes])
        top = float(rows.max())
        jacobian = self.log_jacobian - len(self.processes[0].y) * log(self.spread)
        return top + log(float(self.weights @ np.exp(rows - top))) + jacobian

    @property
    def models(self) -> Mapping[str, float]:
        return {}

    def predict(self, x: Array, noise_std: Array | None = None) -> Forecast:
        rows = [
            (self._noise(p, mean, noise_std), mean, variance)
            for p in self.processes
            for mean, variance in [p.predict(x)]
        ]
        return self._forecast([mean for _, mean, _ in rows], [noise + variance for noise, _, variance in rows])

    def _noise(self, process: Process, mean: Array, noise_std: Array | None) -> Array | float:
        """The variance of the noise of observations where the function is ``mean``, on the processes' scale."""
        if noise_std is None:
            return process.typical_noise
        slope = np.exp(self.transform.log_slope(self.transform.inverse(self.center + self.spread * mean)))
        with np.errstate(over="ignore"):
            known = np.square(np.minimum(noise_std * slope / self.spread, MOST_NOISE))
        return np.where(np.isnan(known), process.typical_noise, known)

    def latent(self, x: Array) -> Forecast:
        means, variances = zip(*[p.predict(x) for p in self.processes], strict=True)
        return self._forecast(means, variances)

    def latent_with_gradient(self, x: Array) -> tuple[Forecast, Array, Array]:
        means, variances, d_means, d_variances = zip(*[p.predict_with_gradient(x) for p in self.processes], strict=True)
        forecast = self._forecast(means, variances)
        # d sqrt(v) = dv / (2 sqrt(v)), with sqrt(v) = scale / spread
        d_scale = np.array(d_variances) * (0.5 * self.spread * (self.spread / forecast.scale))[..., None]
        return forecast, self.spread * np.array(d_means), d_scale

    def leave_one_out(self) -> Forecast:
        means, variances = zip(*[p.leave_one_out() for p in self.processes], strict=True)
        return self._forecast(means, variances)

    def one_step_ahead(self) -> Forecast:
        means, variances = zip(*[p.one_step_ahead() for p in self.processes], strict=True)
        return self._forecast(means, variances)

    def smoothed(self) -> Array:
        rows = np.stack([p.smoothed() for p in self.processes])
        return self.transform.inverse(np.asarray(self.center + self.spread * (self.weights @ rows)))

    def given(self, x: Array, y: Array) -> "FittedGaussianProcess":
        told, unknown = (self.transform(y) - self.center) / self.spread, np.full(len(x), np.nan)
        return replace(self, processes=tuple(p.given(x, told, unknown) for p in self.processes))

    def believing(self, x: Array) -> "FittedGaussianProcess":
        noises = [np.full(len(x), max(p.typical_noise, LEAST_NOISE)) for p in self.processes]
        pairs = zip(self.processes, noises, strict=True)
        return replace(self, processes=tuple(p.given(x, p.predict(x)[0], noise) for p, noise in pairs))

    def imagining(self, x: Array, rows: Array) -> "FittedGaussianProcess":
        """Each row conditioned on its own values (S, n) of the function, on the scale of its forecast."""
        told, noise = (rows - self.center) / self.spread, np.full(len(x), LEAST_NOISE)
        pairs = zip(self.processes, told, strict=True)
        return replace(self, processes=tuple(p.given(x, row, noise) for p, row in pairs))

    def shortened(self, factor: float) -> "FittedGaussianProcess":
        """The same outcomes under lengthscales divided by ``factor``."""
        processes = []
        for p in self.processes:
            short = np.append([label == "lengthscale" for label in p.kernel.labels], [False, False])
            theta = p.theta - log(factor) * short
            processes.append(Process.condition(p.kernel, theta, p.x, p.y, p.noise))
        return replace(self, processes=tuple(processes))

    def _forecast(self, means: Any, variances: Any) -> Forecast:
        loc = self.center + self.spread * np.array(means)
        scale = self.spread * np.sqrt(variances)
        return Forecast(loc, scale, self.weights, (self.transform,) * len(self.processes))
