"""Columns: Optuna distributions, and their encoding in the unit cube."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial

from calibo.arrays import Array
from calibo.cube import Axis, Cube, Warp
from calibo.errors import InputError
from calibo.optuna.internals import contains
from calibo.space import Categorical, Float, Int, Parameter, Space


@dataclass(frozen=True, eq=False)
class Columns:
    """Optuna distributions, and their encoding in the unit cube."""

    distributions: Mapping[str, BaseDistribution]

    warps: Mapping[str, Warp | None] = field(default_factory=dict)
    """How an axis may be warped, if not "auto"."""

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        pairs = self.distributions.items()
        return {name: _parameter(name, distribution, self.warps.get(name, "auto")) for name, distribution in pairs}

    @cached_property
    def cube(self) -> Cube:
        return _cube(tuple(parameter.axis for parameter in self.parameters.values()))

    def encode(self, params: Mapping[str, Any]) -> Array | None:
        """The point (d,), NaN in columns missing from ``params``; None if a value is out of bounds."""
        try:
            return self._positions(params)
        except (InputError, ValueError):
            return None

    def point(self, params: Mapping[str, Any]) -> Array:
        """Like ``encode``, but raises if ``params`` are not valid."""
        if not isinstance(params, Mapping):
            raise InputError(f"`params` must be a dictionary of {list(self.parameters)}, but got {params!r}.")
        for name, value in params.items():
            if name not in self.distributions:
                raise InputError(f"`params` must name only {list(self.parameters)}, but got {name!r}.")
            if self.encode({name: value}) is None:
                known = self.distributions[name]
                wanted = f"be one of {known.choices}" if isinstance(known, CategoricalDistribution) else _bounds(known)
                raise InputError(f"`{name}` must {wanted}, but got {value!r}.")
        return self._positions(params)

    def decode(self, x: Array) -> dict[str, Any]:
        """The parameters at ``x`` (d,), without those that are NaN."""
        pairs = zip(self.parameters, x, strict=True)
        return {name: self._value(name, float(position)) for name, position in pairs if not np.isnan(position)}

    def _positions(self, params: Mapping[str, Any]) -> Array:
        places = [self._position(name, params[name]) if name in params else np.nan for name in self.parameters]
        return np.array(places, dtype=float)

    def _position(self, name: str, value: Any) -> float:
        distribution = self.distributions[name]
        if isinstance(distribution, CategoricalDistribution):
            value = int(distribution.to_internal_repr(value))
        return self.parameters[name].encode(value)

    def _value(self, name: str, position: float) -> Any:
        distribution, value = self.distributions[name], self.parameters[name].decode(position)
        if isinstance(distribution, CategoricalDistribution) and isinstance(value, int):
            return distribution.choices[value]
        if isinstance(value, float) and isinstance(distribution, IntDistribution | FloatDistribution):
            return _stepped(distribution, value)
        return value


def _parameter(name: str, distribution: BaseDistribution, warp: Warp | None) -> Parameter:
    if isinstance(distribution, CategoricalDistribution):
        return _categorical(len(distribution.choices))
    if not isinstance(distribution, FloatDistribution | IntDistribution):
        raise InputError(f"`{name}` must be a float, an int or a categorical, but got {distribution!r}.")
    kind = Float if isinstance(distribution, FloatDistribution) else Int
    return _numeric(kind, distribution.low, distribution.high, distribution.log, distribution.step, warp)


# cached, because they are the same for every trial


@lru_cache(maxsize=256)
def _numeric(kind: type[Float | Int], low: Any, high: Any, log: bool, step: Any, warp: Warp | None) -> Parameter:
    try:
        return kind(low, high, log, step, warp)
    except InputError:  # too many values for a grid: continuous, and rounded when decoded
        return Float(low, high, log, warp=warp)


@lru_cache(maxsize=256)
def _categorical(count: int) -> Categorical:
    return Categorical(range(count))  # choices may be any objects


@lru_cache(maxsize=64)
def _cube(axes: tuple[Axis, ...]) -> Cube:
    return Cube(axes)


def _bounds(distribution: Any) -> str:
    return f"lie in [{distribution.low}, {distribution.high}]"


def _stepped(distribution: FloatDistribution | IntDistribution, value: float) -> float:
    """A value of a continuous column, rounded to the steps of its distribution."""
    low, high, step = distribution.low, distribution.high, distribution.step
    if step is not None and not (isinstance(distribution, FloatDistribution) and contains(distribution, value)):
        value = low + round((value - low) / step) * step
    return min(max(int(value) if isinstance(distribution, IntDistribution) else value, low), high)


def to_distributions(space: Space) -> dict[str, BaseDistribution]:
    """The parameters of a space as Optuna distributions."""
    return {name: _distribution(name, parameter) for name, parameter in space.items()}


def _distribution(name: str, parameter: Parameter) -> BaseDistribution:
    if isinstance(parameter, Float):
        return FloatDistribution(parameter.low, parameter.high, log=parameter.log, step=parameter.step)
    if isinstance(parameter, Int):
        return IntDistribution(parameter.low, parameter.high, log=parameter.log, step=parameter.step)
    if len(set(parameter.choices)) < len(parameter.choices):
        raise InputError(
            f"`{name}` must have distinct choices for Optuna, but got {parameter.choices!r}, some of which are "
            "equal in Python. Write them as strings."
        )
    return CategoricalDistribution(parameter.choices)


def distributions(trials: Iterable[FrozenTrial], space: Space | None = None) -> dict[str, BaseDistribution]:
    """The distribution of every non-constant parameter of finished trials, in order of appearance.

    It is that of a declared ``space``, else the latest one.
    """
    latest: dict[str, BaseDistribution] = {}
    for trial in trials:
        if trial.state.is_finished():
            latest.update(trial.distributions)
    declared = {} if space is None else to_distributions(space)
    latest |= {name: declared[name] for name in latest if type(declared.get(name)) is type(latest[name])}
    return {name: distribution for name, distribution in latest.items() if not distribution.single()}
