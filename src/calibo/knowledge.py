"""What is known beforehand enters a strategy: earlier tasks, and the least value.

As further models, of which those that forecast well are used, so that a task that misleads or a wrong value costs
little. Where parts of the strategy wait for the least value, they get it instead.
"""

from dataclasses import replace
from typing import Any

from calibo.acquisition import Aimed, BoundedImprovement, Improvement, KnownAcquisition
from calibo.optimum import Optimum
from calibo.strategy import Strategy
from calibo.surrogate import GaussianProcess, KnownOptimum, ModelChoice, Source, Surrogate, Transfer, Untransformed

__all__ = ["BOTH", "EARLIER", "KNOWN", "knowing"]

ALONE, EARLIER, KNOWN = "this study alone", "earlier studies", "the known optimum"  # what the models know
BOTH = f"{EARLIER} and {KNOWN}"
INFORMED = 2  # evaluations before the first model, where there is something to begin with


def knowing(strategy: Strategy, sources: tuple[Source, ...] = (), optimum: Optimum | None = None) -> Strategy:
    """The strategy that also learns from earlier tasks, preferred while little is known, and knows the least value.

    What it knew before of either it goes on to know.
    """
    usual = strategy.acquisition
    if isinstance(usual, Aimed):
        optimum, usual = optimum or usual.optimum, usual.otherwise
    changes = _told(strategy, optimum) if usual is strategy.acquisition and optimum is not None else {}
    aim = None if changes else optimum
    surrogate = changes.get("surrogate", strategy.surrogate)
    choice = surrogate if isinstance(surrogate, ModelChoice) else ModelChoice(((ALONE, surrogate),))
    recipes = {name: recipe for name, recipe in choice.recipes if name not in (EARLIER, KNOWN, BOTH)}
    earlier = dict(choice.recipes).get(EARLIER)
    sources = sources or (earlier.sources if isinstance(earlier, Transfer) else ())
    further = _models(recipes.get(ALONE), sources, None if aim is None or aim.bound else aim)
    if further:
        first = {name: model for name, model in further.items() if name == EARLIER}
        changes["surrogate"] = replace(choice, recipes=tuple({**first, **recipes, **further}.items()))
    if aim is not None:
        plain = isinstance(usual, BoundedImprovement) or (isinstance(usual, Improvement) and usual.plain)
        usual = BoundedImprovement(aim) if plain else usual
        changes["acquisition"] = usual if aim.bound else Aimed(aim, usual)
    if sources and strategy.initial is None:
        changes["initial"] = INFORMED
    return replace(strategy, **changes)


def _told(strategy: Strategy, optimum: Optimum) -> dict[str, Any]:
    """The parts that need the least value, with it."""
    parts: dict[str, Any] = {"surrogate": strategy.surrogate, "acquisition": strategy.acquisition}
    waiting = {name: part for name, part in parts.items() if isinstance(part, KnownOptimum | KnownAcquisition)}
    return {name: replace(part, optimum=optimum) for name, part in waiting.items()}


def _models(alone: Surrogate | None, sources: tuple[Source, ...], optimum: Optimum | None) -> dict[str, Surrogate]:
    """By name, the models that know more than the one that stands ``alone``."""
    like = replace(alone if isinstance(alone, GaussianProcess) else GaussianProcess(), transform=Untransformed())
    models: dict[str, Surrogate] = {}
    if sources:
        models[EARLIER] = Transfer(sources, like)
    if optimum is not None:
        models[KNOWN] = KnownOptimum(optimum, like)
        if sources:
            models[BOTH] = KnownOptimum(optimum, Transfer(sources, like))
    return models
