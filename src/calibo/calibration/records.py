"""Records: what was forecast of an outcome before it was known, in a form that can be stored with it.

A stored forecast is known by 39 of its quantiles, or by mean and standard deviation where it is Normal. Where its few
rows say the same in fewer numbers, they are stored instead, and the quantiles follow from them; of a forecast of many
rows the quantiles are stored, to six digits at least. The recalibrated forecast follows from the raw one and the map,
where that is a line.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import hypot, inf, isfinite, isnan, sqrt
from typing import Any, Literal, get_args

import numpy as np
from scipy.special import ndtri

from calibo.calibration.aliases import ALIASES
from calibo.calibration.maps import CalibrationMap
from calibo.errors import InputError
from calibo.forecasts import Forecast
from calibo.packing import packed, unpacked
from calibo.parts import build, identity, spec
from calibo.surrogate import Surrogate
from calibo.transforms import IDENTITY
from calibo.types import Array, read_only

__all__ = ["Aim", "Recalibrated", "Record", "stream"]

Aim = Literal["regret", "out of reach", "another model", "wrong"]
"""What decided where the optimum is known: the expected regret, or not, because it seemed out of reach of the point
with the least, because a model that does not know it forecast better, or because it was surpassed."""

FORMAT = 2
SCORES = np.linspace(-3.8, 3.8, 39)  # of the stored quantiles: evenly spaced, so that the tails are known, too
MIDDLE, BELOW, ABOVE = 19, 14, 24  # the scores 0, -1 and 1 among them
MOST_ROWS = 8  # of a forecast that is stored by its rows: more take more room than quantiles
SHOWN = 4  # digits of shares that a person is told
DIGITS = 6  # of a stored map


@dataclass(frozen=True, eq=False)
class Recalibrated:
    """A forecast of one outcome, bent by a map."""

    raw: Forecast
    map: CalibrationMap = field(default_factory=CalibrationMap)

    @classmethod
    def normal(cls, loc: float, scale: float) -> "Recalibrated":
        """Raises ValueError where these are no numbers of a Normal."""
        if not (isfinite(loc) and isfinite(scale) and scale > 0.0):
            raise ValueError("a forecast must be finite")
        return cls(_normal(loc, scale))

    @classmethod
    def through(cls, quantiles: Array) -> "Recalibrated":
        """The forecast with these 39 quantiles; raises ValueError where they are none."""
        if quantiles.shape != SCORES.shape or not np.all(np.isfinite(quantiles)) or np.any(np.diff(quantiles) < 0.0):
            raise ValueError("39 quantiles must increase")
        loc, scale = quantiles[MIDDLE], 0.5 * float(np.ptp(quantiles[[BELOW, ABOVE]])) or 1.0
        through = CalibrationMap.through((quantiles - loc) / scale, SCORES)
        # beyond the outermost quantiles as between the last two
        left, right = float(through.slopes[1]), float(through.slopes[-2])
        tails = CalibrationMap(read_only(through.knots), read_only(through.values), left, right)
        return cls(_normal(loc, scale), tails)

    @property
    def is_normal(self) -> bool:
        return len(self.raw.loc) == 1 and self.raw.transforms == (IDENTITY,) and self.map.is_line

    @property
    def mean_and_deviation(self) -> tuple[float, float]:
        """Of a Normal."""
        loc, scale = float(self.raw.loc[0, 0]), float(self.raw.scale[0, 0])
        return loc + scale * float(self.map.inverse(0.0)), scale / self.map.left

    def read_off(self) -> "Recalibrated":
        """As it comes back from a storage: a Normal, or known by its quantiles."""
        if self.is_normal:
            return Recalibrated.normal(*self.mean_and_deviation)
        return Recalibrated.through(self.at_score(SCORES))

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


@dataclass(frozen=True, eq=False)
class Record:
    """What was forecast for one evaluation, from finished evaluations alone."""

    raw: Recalibrated
    """Before the correction; outcomes are minimised."""

    recalibrated: Recalibrated

    model: str
    """The identity of the surrogate that made it."""

    strength: float | None = None
    """The share of the correction that a gate let through."""

    noise: float | None = None
    """The standard deviation of the noise that is part of a Normal forecast."""

    models: Mapping[str, float] = field(default_factory=dict)
    """How much each of several models was believed, those that were; empty where there is one."""

    aim: Aim | None = None

    stored: Mapping[str, Any] | None = None
    """The JSON it came from: stored again it is the same."""

    @classmethod
    def made(
        cls,
        forecast: Forecast,
        map: CalibrationMap,
        surrogate: Surrogate,
        latent: Forecast | None = None,
        models: Mapping[str, float] | None = None,
    ) -> "Record | None":
        """Of a ``forecast`` (1,) of an observation, and one of the function; None where it is beyond all numbers."""
        raw, recalibrated = Recalibrated(forecast), Recalibrated(forecast, map)
        with np.errstate(over="ignore"):
            if not np.all(np.isfinite([part.at_score(SCORES[[0, -1]]) for part in (raw, recalibrated)])):
                return None
        noise = None
        if latent is not None and raw.is_normal:
            total, known = float(forecast.scale[0, 0]), float(latent.scale[0, 0])
            noise = total * sqrt(max(1.0 - (known / total) ** 2, 0.0))
        return cls(raw, recalibrated, identity(surrogate), map.strength, noise, models or {})

    def told(self, noise: float) -> "Record":
        """The same for an outcome whose own noise is known, where that can be exchanged for what was assumed."""
        if isnan(noise) or self.noise is None or not (self.raw.is_normal and self.recalibrated.is_normal):
            return self
        (loc, scale), (median, width) = self.raw.mean_and_deviation, self.recalibrated.mean_and_deviation
        other = hypot(scale * sqrt(max(1.0 - (self.noise / scale) ** 2, 0.0)), noise)
        if not 0.0 < other < inf:
            return self
        shift, factor = (median - loc) / scale, width / scale
        raw, recalibrated = Recalibrated.normal(loc, other), Recalibrated.normal(loc + shift * other, factor * other)
        return replace(self, raw=raw, recalibrated=recalibrated, noise=noise, stored=None)

    def as_json(self) -> dict[str, Any]:
        """Only what does not follow from the rest."""
        if self.stored is not None:
            return dict(self.stored)
        map = self.recalibrated.map
        by_rows = len(self.raw.raw.loc) <= MOST_ROWS
        follows = by_rows and map.is_line
        known = {
            "format": FORMAT,
            "model": self.model,
            "forecast": _rows(self.raw.raw) if by_rows else _quantiles(self.raw),
            "map": {"left": _short(map.left), "intercept": _short(map.intercept)}
            if follows and not map.is_identity
            else None,
            "recalibrated": None if follows else _quantiles(self.recalibrated),
            "strength": None if self.strength is None else round(self.strength, SHOWN),
            "noise": self.noise,
            "models": {n: share for n, weight in self.models.items() if (share := round(weight, SHOWN))} or None,
            "aim": self.aim,
        }
        return {key: value for key, value in known.items() if value is not None}

    @classmethod
    def of(cls, stored: Any) -> "Record | None":
        """From JSON; None where there is nothing, or nothing that can be understood."""
        try:
            parts = _parts_of_first_format(stored) if stored["format"] == 1 else _parts_of(stored)
            strength, noise = (
                None if stored.get(part) is None else float(stored[part]) for part in ("strength", "noise")
            )
            models = {str(name): float(weight) for name, weight in (stored.get("models") or {}).items()}
            aim = stored.get("aim") if stored.get("aim") in get_args(Aim) else None
            model = ALIASES.get(str(stored["model"]), str(stored["model"]))
            return cls(*parts, model, strength, noise, models, aim, stored)
        except (ArithmeticError, AttributeError, InputError, LookupError, TypeError, ValueError):
            return None


def _normal(loc: float, scale: float) -> Forecast:
    """A process keeps what it has read: nobody may change it."""
    return Forecast.normal(read_only(np.array([loc])), read_only(np.array([scale])))


def _rows(forecast: Forecast) -> dict[str, Any]:
    """Of a forecast (1,): its rows as they are."""
    rows: dict[str, Any] = {"loc": forecast.loc[:, 0].tolist(), "scale": forecast.scale[:, 0].tolist()}
    if len(forecast.loc) > 1:
        rows["weights"] = forecast.weights.tolist()
    if any(transform != IDENTITY for transform in forecast.transforms):
        rows["transforms"] = spec(forecast.transforms)
    return rows


def _quantiles(forecast: Recalibrated) -> dict[str, Any]:
    quantiles = forecast.at_score(SCORES)
    loc, scale = float(quantiles[MIDDLE]), 0.5 * float(np.ptp(quantiles[[BELOW, ABOVE]])) or 1.0
    # in half-widths of the forecast, of which four bytes keep seven digits
    return {"loc": loc, "scale": scale, "quantiles": packed(((quantiles - loc) / scale).tolist(), "f4")}


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def _parts_of(stored: Mapping[str, Any]) -> tuple[Recalibrated, Recalibrated]:
    """The raw and the recalibrated forecast."""
    if "quantiles" in stored["forecast"]:
        return _through(stored["forecast"]), _through(stored["recalibrated"])
    exact = _forecast(stored["forecast"])
    raw = Recalibrated(exact).read_off()
    if "recalibrated" in stored:
        return raw, _through(stored["recalibrated"])
    if "map" not in stored:
        return raw, raw
    left, intercept = float(stored["map"]["left"]), float(stored["map"]["intercept"])
    if not (0.0 < left < inf and isfinite(intercept)):
        raise ValueError("a map must increase")
    return raw, Recalibrated(exact, CalibrationMap(left=left, right=left, intercept=intercept)).read_off()


def _forecast(stored: Mapping[str, Any]) -> Forecast:
    loc, scale = (np.array(stored[part], dtype=float)[:, None] for part in ("loc", "scale"))
    weights = np.array(stored.get("weights", [1.0]), dtype=float)
    transforms = build(stored["transforms"]) if "transforms" in stored else (IDENTITY,) * len(loc)
    numbers = np.all(np.isfinite(loc)) and np.all(np.isfinite(scale)) and np.all(scale > 0.0) and np.all(weights > 0.0)
    if not numbers or not len(loc) == len(scale) == len(weights) == len(transforms) > 0:
        raise ValueError("rows must be finite, and one weight and one transform each")
    return Forecast(loc, scale, weights, transforms)


def _through(stored: Mapping[str, Any]) -> Recalibrated:
    standard = np.array(unpacked(stored["quantiles"]), dtype=float)
    return Recalibrated.through(float(stored["loc"]) + float(stored["scale"]) * standard)


def _parts_of_first_format(stored: Mapping[str, Any]) -> tuple[Recalibrated, Recalibrated]:
    """Each forecast by itself, a Normal or 39 quantiles."""
    raw, recalibrated = (
        Recalibrated.through(np.array(part["quantiles"], dtype=float))
        if "quantiles" in part
        else Recalibrated.normal(float(part["loc"]), float(part["scale"]))
        for part in (stored["raw"], stored["recalibrated"])
    )
    return raw, recalibrated


def stream(records: Sequence[Record | None], y: Array, noise_std: Array, surrogate: Surrogate) -> Array:
    """(n,) raw scores of outcomes under the recorded forecasts of this surrogate; NaN where there is none."""
    model = identity(surrogate)
    scores = np.full(len(y), np.nan)
    for i, record in enumerate(records):
        if record is not None and record.model == model:
            scores[i] = record.told(float(noise_std[i])).raw.score(float(y[i]))
    return scores
