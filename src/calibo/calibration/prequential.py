"""Prequential scoring: stored forecasts made before their outcomes were observed, and the scores of the outcomes.

A forecast read from storage is represented by 39 quantiles, or by mean and standard deviation if it is Normal. Mixtures
with few components are stored by component, and the quantiles are recomputed. Larger ones are stored by quantiles, to
at least six digits. If the map is linear, the calibrated forecast is recomputed from the raw one and the map.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import hypot, inf, isfinite, isnan, sqrt
from typing import Any, ClassVar, get_args

import numpy as np

from calibo.arrays import Array, pack, read_only, unpack
from calibo.calibration.aliases import ALIASES
from calibo.calibration.base import FittedModel, ScoredOutcomes, ScoreSource, held_out_scores
from calibo.errors import InputError
from calibo.forecasts import CalibrationMap, Forecast
from calibo.models.base import Surrogate
from calibo.optimum import Aim
from calibo.parts import Cache, build, identity, register, spec
from calibo.transforms import IDENTITY

FORMAT = 2
SCORES = np.linspace(-3.8, 3.8, 39)  # of the stored quantiles: evenly spaced, to cover the tails
MIDDLE, BELOW, ABOVE = 19, 14, 24  # indices of the scores 0, -1 and 1
MOST_ROWS = 8  # components of a forecast stored by component: more take more space than quantiles
SHOWN = 4  # digits of weights shown to users
DIGITS = 6  # of a stored map
TOLERANCE = 1e-8  # of the scores of stored quantiles
WIDEST = 1e38  # quantile in half-widths, as float32


@dataclass(frozen=True, eq=False)
class Record:
    """The forecast of one evaluation, from finished evaluations only; for minimization."""

    raw: Forecast
    """Before calibration."""

    calibrated: Forecast

    model: str
    """The identity of the surrogate."""

    strength: float | None = None
    """The strength at which a gate applied the correction."""

    noise: float | None = None
    """Noise standard deviation included in the forecast: how much repeated outcomes would vary."""

    models: Mapping[str, float] = field(default_factory=dict)
    """Weights of several models; empty for a single one."""

    aim: Aim | None = None

    stored: Mapping[str, Any] | None = None
    """The JSON it was read from, returned unchanged when stored again."""

    @classmethod
    def from_forecast(
        cls,
        forecast: Forecast,
        surrogate: Surrogate,
        latent: Forecast | None = None,
        models: Mapping[str, float] | None = None,
    ) -> "Record | None":
        """From a calibrated ``forecast`` of an observation, and the ``latent`` one; None if not finite."""
        raw = forecast.raw
        with np.errstate(over="ignore"):
            if not np.all(np.isfinite([each.at_normal_score(SCORES[[0, -1]]) for each in (raw, forecast)])):
                return None
        noise = None if latent is None else float(noise_between(raw, latent.raw))
        return cls(raw, forecast, identity(surrogate), forecast.map.strength, noise, models or {})

    def with_noise(self, noise: float) -> "Record":
        """The record with the outcome's known noise in place of the assumed one, for Normal forecasts."""
        if isnan(noise) or self.noise is None or not (self.raw.is_normal and self.calibrated.is_normal):
            return self
        loc, scale, median, width = map(float, (*self.raw.mean_and_std, *self.calibrated.mean_and_std))
        other = hypot(scale * sqrt(max(1.0 - (self.noise / scale) ** 2, 0.0)), noise)
        if not 0.0 < other < inf:
            return self
        shift, factor = (median - loc) / scale, width / scale
        raw, calibrated = _normal(loc, other), _normal(loc + shift * other, factor * other)
        return replace(self, raw=raw, calibrated=calibrated, noise=noise, stored=None)

    def to_json(self) -> dict[str, Any]:
        """Omits what can be recomputed."""
        if self.stored is not None:
            return dict(self.stored)
        map = self.calibrated.map
        by_rows = len(self.raw.loc) <= MOST_ROWS
        follows = map.is_line
        known = {
            "format": FORMAT,
            "model": self.model,
            "forecast": _rows(self.raw) if by_rows else _quantiles(self.raw),
            "map": {"left": _short(map.left), "intercept": _short(map.intercept)}
            if follows and not map.is_identity
            else None,
            "recalibrated": None if follows else _quantiles(self.calibrated),
            "strength": None if self.strength is None else round(self.strength, SHOWN),
            "noise": None if self.noise is None else _short(self.noise),
            "models": {n: share for n, weight in self.models.items() if (share := round(weight, SHOWN))} or None,
            "aim": self.aim,
        }
        return {key: value for key, value in known.items() if value is not None}

    @classmethod
    def from_json(cls, stored: Any) -> "Record | None":
        """None if missing or malformed."""
        try:
            raw, calibrated = _forecasts_of_format_1(stored) if stored["format"] == 1 else _forecasts(stored)
            strength, noise = (
                None if stored.get(part) is None else float(stored[part]) for part in ("strength", "noise")
            )
            models = {str(name): float(weight) for name, weight in (stored.get("models") or {}).items()}
            aim = stored.get("aim") if stored.get("aim") in get_args(Aim) else None
            model = ALIASES.get(str(stored["model"]), str(stored["model"]))
            return cls(raw, calibrated, model, strength, noise, models, aim, stored)
        except (ArithmeticError, AttributeError, InputError, LookupError, TypeError, ValueError):
            return None

    @classmethod
    def through_storage(cls, record: "Record | None") -> "Record | None":
        """The record after a round trip, so that results do not depend on whether it was stored."""
        return None if record is None else cls.from_json(record.to_json())


def noise_between(observed: Forecast, function: Forecast) -> Array:
    """The standard deviation of the noise by which forecasts of an observation and of the function differ.

    From the half-widths between the normal scores -1 and 1, the standard deviation of a Normal.
    """
    wide, narrow = (0.5 * np.diff(each.at_normal_score(_ends(each)), axis=0)[0] for each in (observed, function))
    wide = np.maximum(wide, 1e-300)
    return np.asarray(wide * np.sqrt(np.maximum(1.0 - np.square(np.minimum(narrow / wide, 1.0)), 0.0)))


def _ends(forecast: Forecast) -> Array:
    return np.array([-1.0, 1.0]).reshape(2, *[1] * (forecast.loc.ndim - 1))


def recorded_scores(records: Sequence[Record | None], y: Array, noise_std: Array, surrogate: Surrogate) -> Array:
    """(n,) raw normal scores of outcomes under the recorded forecasts of this surrogate; NaN where not recorded."""
    model = identity(surrogate)
    scores = np.full(len(y), np.nan)
    for i, record in enumerate(records):
        if record is not None and record.model == model:
            scores[i] = record.with_noise(float(noise_std[i])).raw.normal_score(float(y[i]))
    return scores


def _normal(loc: float, scale: float) -> Forecast:
    """A Normal at one point, read-only because records are cached."""
    if not (isfinite(loc) and isfinite(scale) and scale > 0.0):
        raise ValueError("a forecast must be finite")
    return Forecast(read_only(np.array([loc])), read_only(np.array([scale])))


def through_quantiles(quantiles: Array) -> Forecast:
    """The forecast at one point with these 39 quantiles; raises ValueError if they are invalid."""
    if quantiles.shape != SCORES.shape or not np.all(np.isfinite(quantiles)) or np.any(np.diff(quantiles) < 0.0):
        raise ValueError("39 quantiles must increase")
    loc, scale = quantiles[MIDDLE], 0.5 * float(np.ptp(quantiles[[BELOW, ABOVE]])) or 1.0
    through = CalibrationMap.through((quantiles - loc) / scale, SCORES)
    # extrapolates with the slopes of the outermost pieces
    left, right = float(through.slopes[1]), float(through.slopes[-2])
    return _normal(loc, scale).calibrated(
        CalibrationMap(read_only(through.knots), read_only(through.values), left, right)
    )


def _as_stored(forecast: Forecast) -> Forecast:
    """The forecast as a Normal, or as an interpolation of its quantiles."""
    if forecast.is_normal:
        loc, scale = forecast.mean_and_std
        return _normal(float(loc), float(scale))
    return through_quantiles(forecast.at_normal_score(SCORES))


def _rows(forecast: Forecast) -> dict[str, Any]:
    rows: dict[str, Any] = {"loc": forecast.loc.tolist(), "scale": forecast.scale.tolist()}
    if len(forecast.loc) > 1:
        rows["weights"] = forecast.weights.tolist()
    if any(transform != IDENTITY for transform in forecast.transforms):
        rows["transforms"] = spec(forecast.transforms)
    return rows


def _quantiles(forecast: Forecast) -> dict[str, Any]:
    quantiles = forecast.at_normal_score(SCORES, TOLERANCE)
    loc, scale = float(quantiles[MIDDLE]), 0.5 * float(np.ptp(quantiles[[BELOW, ABOVE]])) or 1.0
    # in half-widths of the forecast; float32 keeps seven digits
    standard = np.clip((quantiles - loc) / scale, -WIDEST, WIDEST)
    return {"loc": loc, "scale": scale, "quantiles": pack(standard.tolist(), "f4")}


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def _forecasts(stored: Mapping[str, Any]) -> tuple[Forecast, Forecast]:
    """The raw and the calibrated forecast."""
    by_quantiles = "quantiles" in stored["forecast"]
    exact = _from_quantiles(stored["forecast"]) if by_quantiles else _from_rows(stored["forecast"])
    raw = exact if by_quantiles else _as_stored(exact)
    if "recalibrated" in stored:
        return raw, _from_quantiles(stored["recalibrated"])
    if "map" not in stored:
        return raw, raw
    left, intercept = float(stored["map"]["left"]), float(stored["map"]["intercept"])
    if not (0.0 < left < inf and isfinite(intercept)):
        raise ValueError("a map must increase")
    line = CalibrationMap(left=left, right=left, intercept=intercept)
    return raw, raw.calibrated(raw.map.then(line)) if by_quantiles else _as_stored(exact.calibrated(line))


def _from_rows(stored: Mapping[str, Any]) -> Forecast:
    loc, scale = (np.array(stored[part], dtype=float) for part in ("loc", "scale"))
    weights = np.array(stored.get("weights", [1.0]), dtype=float)
    transforms = build(stored["transforms"]) if "transforms" in stored else (IDENTITY,) * len(loc)
    numbers = np.all(np.isfinite(loc)) and np.all(np.isfinite(scale)) and np.all(scale > 0.0) and np.all(weights > 0.0)
    if not numbers or not len(loc) == len(scale) == len(weights) == len(transforms) > 0:
        raise ValueError("components must be finite, with one weight and one transform each")
    return Forecast(loc, scale, weights, transforms)


def _from_quantiles(stored: Mapping[str, Any]) -> Forecast:
    standard = np.array(unpack(stored["quantiles"]), dtype=float)
    return through_quantiles(float(stored["loc"]) + float(stored["scale"]) * standard)


def _forecasts_of_format_1(stored: Mapping[str, Any]) -> tuple[Forecast, Forecast]:
    """Raw and calibrated forecast separately, each a Normal or 39 quantiles."""
    raw, calibrated = (
        through_quantiles(np.array(part["quantiles"], dtype=float))
        if "quantiles" in part
        else _normal(float(part["loc"]), float(part["scale"]))
        for part in (stored["raw"], stored["recalibrated"])
    )
    return raw, calibrated


REPLAYED = Cache(20_000)  # scores by digest, for studies that cannot store them


@register("stream")
@dataclass(frozen=True)
class Prequential(ScoreSource):
    """The forecasts actually made, CAL24 Eq. (7): the only ones at points chosen by the acquisition.

    An outcome without a recorded forecast of this model is scored by replay: the surrogate is fitted to the outcomes
    before it. The ``first`` few outcomes, by default as many as in an initial design, are not scored.
    """

    first: int | None = None

    is_prequential: ClassVar[bool] = True

    def scores(self, model: FittedModel) -> ScoredOutcomes:
        observations, n = model.observations, len(model.observations)
        scores = np.full(n, np.nan) if observations.scores is None else observations.scores.copy()
        missing = np.flatnonzero(np.isnan(scores) & (np.arange(n) >= observations.first_scorable(self.first)))
        if not len(missing):
            return ScoredOutcomes(scores)
        digests = observations.digests(identity(model.surrogate))
        state: dict[str, float] = {}
        fits = model.fitted.state
        for j in missing:
            score = model.previous.get(digests[j], REPLAYED.get(digests[j]))
            if not isinstance(score, float) or not isfinite(score):
                before = model.surrogate.fit(observations.head(int(j)), rng=model.rng, previous=fits)
                fits = before.state  # warm start of the next fit
                score = float(held_out_scores(before, observations, np.arange(n) == j)[0])
                REPLAYED.put(digests[j], score)
            scores[j] = state[digests[j]] = score
        return ScoredOutcomes(scores, state)
