"""Records: what was forecast of an outcome before it was known, in a form that can be stored with it.

A forecast at one point is stored by its mean and standard deviation where it is Normal, else by 39 quantiles. It
comes back as a Normal and a map through those quantiles.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from math import hypot, inf, isfinite, isnan, sqrt
from typing import Any, Literal, get_args

import numpy as np
from scipy.special import ndtri

from calibo.calibration.maps import CalibrationMap
from calibo.forecasts import Forecast
from calibo.surrogate import Surrogate
from calibo.transforms import IDENTITY
from calibo.types import Array

__all__ = ["Aim", "Recalibrated", "Record", "model_name", "stream"]

Aim = Literal["regret", "out of reach", "another model", "wrong"]
"""What decided where the optimum is known: the expected regret, or not, because it seemed out of reach of the point
with the least, because a model that does not know it forecast better, or because it was surpassed."""

FORMAT = 1
SCORES = np.linspace(-3.8, 3.8, 39)  # of the stored quantiles: evenly spaced, so that the tails are known, too


@dataclass(frozen=True, eq=False)
class Recalibrated:
    """A forecast of one outcome, bent by a map."""

    raw: Forecast
    map: CalibrationMap

    stored: Mapping[str, Any] | None = None
    """The JSON it came from: stored again it is the same."""

    @property
    def is_normal(self) -> bool:
        return len(self.raw.loc) == 1 and self.raw.transforms == (IDENTITY,) and self.map.is_line

    def score(self, y: float) -> float:
        """The normal score of the outcome: standard normal if the recalibrated forecast is right."""
        if self.is_normal:  # by far the most, and a study has hundreds of them
            raw = (y - float(self.raw.loc[0, 0])) / float(self.raw.scale[0, 0])
            return self.map.intercept + self.map.left * raw
        return float(self.map(self.raw.score(np.array([y])))[0])

    def at_score(self, q: Array | float) -> Array:
        """The outcomes at scores ``q``, of their shape."""
        return np.asarray(self.raw.at_score(self.map.inverse(np.asarray(q, dtype=float)[..., None])))[..., 0]

    def quantile(self, p: Array | float) -> Array:
        """The outcomes that are not exceeded with probability ``p``, of its shape."""
        return self.at_score(ndtri(p))

    def log_density(self, y: float) -> float:
        """Of the outcome ``y``."""
        there = np.array([y])
        return float((self.raw.log_density(there) + self.map.log_gain(self.raw.score(there)))[0])

    def as_json(self) -> dict[str, Any]:
        if self.stored is not None:
            return dict(self.stored)
        if self.is_normal:
            loc, scale = float(self.raw.loc[0, 0]), float(self.raw.scale[0, 0])
            return {"loc": loc + scale * float(self.map.inverse(0.0)), "scale": scale / self.map.left}
        return {"quantiles": self.at_score(SCORES).tolist()}

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> "Recalibrated":
        """From JSON; raises ValueError, KeyError or TypeError where it cannot be understood."""
        if "quantiles" not in stored:
            loc, scale = float(stored["loc"]), float(stored["scale"])
            if not (isfinite(loc) and isfinite(scale) and scale > 0.0):
                raise ValueError("a forecast must be finite")
            return cls(Forecast.normal(np.array([loc]), np.array([scale])), CalibrationMap(), stored)
        quantiles = np.array(stored["quantiles"], dtype=float)
        if quantiles.shape != SCORES.shape or not np.all(np.isfinite(quantiles)) or np.any(np.diff(quantiles) < 0.0):
            raise ValueError("39 quantiles must increase")
        loc, scale = quantiles[19], 0.5 * float(np.ptp(quantiles[[14, 24]])) or 1.0  # between the scores -1 and 1
        through = CalibrationMap.through((quantiles - loc) / scale, SCORES)
        # beyond the outermost quantiles as between the last two
        left, right = float(through.slopes[1]), float(through.slopes[-2])
        tails = CalibrationMap(through.knots, through.values, left, right)
        return cls(Forecast.normal(np.array([loc]), np.array([scale])), tails, stored)


@dataclass(frozen=True, eq=False)
class Record:
    """What was forecast for one evaluation, from finished evaluations alone."""

    raw: Recalibrated
    """Before the correction; outcomes are minimised."""

    recalibrated: Recalibrated

    model: str
    """Names the surrogate that made it."""

    finished: int
    """Outcomes that it knew."""

    strength: float | None = None
    """The share of the correction that a gate let through."""

    noise: float | None = None
    """The standard deviation of the noise that is part of a Normal forecast."""

    models: Mapping[str, float] = field(default_factory=dict)
    """How much each of several models was believed; empty where there is one."""

    aim: Aim | None = None

    @classmethod
    def made(
        cls,
        forecast: Forecast,
        map: CalibrationMap,
        surrogate: Surrogate,
        finished: int,
        latent: Forecast | None = None,
        models: Mapping[str, float] | None = None,
    ) -> "Record | None":
        """Of a ``forecast`` (1,) of an observation, and one of the function; None where it is beyond all numbers."""
        raw, recalibrated = Recalibrated(forecast, CalibrationMap()), Recalibrated(forecast, map)
        with np.errstate(over="ignore"):
            if not np.all(np.isfinite([part.at_score(SCORES[[0, -1]]) for part in (raw, recalibrated)])):
                return None
        noise = None
        if latent is not None and raw.is_normal:
            total, known = float(forecast.scale[0, 0]), float(latent.scale[0, 0])
            noise = total * sqrt(max(1.0 - (known / total) ** 2, 0.0))
        return cls(raw, recalibrated, model_name(surrogate), finished, map.strength, noise, models or {})

    def told(self, noise: float) -> "Record":
        """The same for an outcome whose own noise is known, where that can be exchanged for what was assumed."""
        if isnan(noise) or self.noise is None or not (self.raw.is_normal and self.recalibrated.is_normal):
            return self
        (loc, scale), (median, width) = (part.as_json().values() for part in (self.raw, self.recalibrated))
        other = hypot(scale * sqrt(max(1.0 - (self.noise / scale) ** 2, 0.0)), noise)
        if not 0.0 < other < inf:
            return self
        shift, factor = (median - loc) / scale, width / scale
        raw, recalibrated = (
            Recalibrated(Forecast.normal(np.array([mean]), np.array([deviation])), CalibrationMap())
            for mean, deviation in ((loc, other), (loc + shift * other, factor * other))
        )
        return replace(self, raw=raw, recalibrated=recalibrated, noise=noise)

    def as_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "model": self.model,
            "finished": self.finished,
            "raw": self.raw.as_json(),
            "recalibrated": self.recalibrated.as_json(),
            "strength": self.strength,
            "noise": self.noise,
            "models": dict(self.models),
            "aim": self.aim,
        }

    @classmethod
    def of(cls, stored: Any) -> "Record | None":
        """From JSON; None where there is nothing, or nothing that can be understood."""
        try:
            if stored["format"] != FORMAT:
                return None
            raw, recalibrated = (Recalibrated.of(stored[part]) for part in ("raw", "recalibrated"))
            strength, noise = (None if stored[part] is None else float(stored[part]) for part in ("strength", "noise"))
            models = {str(name): float(weight) for name, weight in stored["models"].items()}
            aim = stored.get("aim") if stored.get("aim") in get_args(Aim) else None
            return cls(raw, recalibrated, str(stored["model"]), int(stored["finished"]), strength, noise, models, aim)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            return None


def stream(records: Sequence[Record | None], y: Array, noise_std: Array, surrogate: Surrogate) -> Array:
    """(n,) raw scores of outcomes under the recorded forecasts of this surrogate; NaN where there is none."""
    model = model_name(surrogate)
    scores = np.full(len(y), np.nan)
    for i, record in enumerate(records):
        if record is not None and record.model == model:
            scores[i] = record.told(float(noise_std[i])).raw.score(float(y[i]))
    return scores


def model_name(surrogate: Surrogate) -> str:
    """Tells one recipe from another; a lambda among its parts has another name in every process."""
    return f"{type(surrogate).__name__}-{blake2b(repr(surrogate).encode(), digest_size=6).hexdigest()}"
