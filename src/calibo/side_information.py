"""Side information: prior studies and a known optimum, offered to every part of a strategy.

A part takes it by its method `with_side_information`. A model gets informed models beside it, of which those that
forecast well are used, so that a misleading task or a wrong value costs little. A part that needs the optimum gets it
instead; then no other part does.
"""

from dataclasses import dataclass, replace

from calibo.acquisition import Acquisition, Aimed, BoundedImprovement
from calibo.models import GaussianProcess, KnownOptimum, ModelChoice, SourceTask, Surrogate, Transfer
from calibo.optimum import Optimum
from calibo.transforms import Untransformed

ALONE, PRIOR_STUDIES, KNOWN = "this study alone", "earlier studies", "the known optimum"  # names of models, stored
BOTH = f"{PRIOR_STUDIES} and {KNOWN}"


@dataclass(frozen=True)
class SideInformation:
    """What is known beyond the outcomes of a study."""

    sources: tuple[SourceTask, ...] = ()
    optimum: Optimum | None = None

    only_where_needed: bool = False
    """Whether the optimum is for parts that need it alone."""

    def choose_beside(self, model: Surrogate) -> Surrogate:
        """A choice between a model and informed ones; the model itself where there is nothing to know."""
        choice = self.add_to(ModelChoice(((ALONE, model),)))
        return choice if len(choice.recipes) > 1 else model

    def add_to(self, choice: ModelChoice) -> ModelChoice:
        """The choice with informed models, also by what it was told before; the model of prior studies comes first."""
        before = dict(choice.recipes)
        usual = {name: model for name, model in before.items() if name not in (PRIOR_STUDIES, KNOWN, BOTH)}
        sources = self.sources or getattr(before.get(PRIOR_STUDIES), "sources", ())
        optimum = None if self.only_where_needed else self.optimum or getattr(before.get(KNOWN), "optimum", None)
        informed = _models(usual.get(ALONE), sources, None if optimum is None or optimum.bound else optimum)
        first = {name: model for name, model in informed.items() if name == PRIOR_STUDIES}
        return replace(choice, recipes=tuple({**first, **usual, **informed}.items())) if informed else choice

    def aim(self, acquisition: Acquisition) -> Acquisition:
        """The acquisition that goes for the optimum where it is within reach."""
        if self.optimum is None or self.only_where_needed:
            return acquisition
        otherwise = BoundedImprovement(self.optimum) if acquisition.may_be_bounded else acquisition
        return otherwise if self.optimum.bound else Aimed(self.optimum, otherwise)


def _models(alone: Surrogate | None, sources: tuple[SourceTask, ...], optimum: Optimum | None) -> dict[str, Surrogate]:
    """The models that know more than the one that stands ``alone``, by name."""
    process = replace(alone if isinstance(alone, GaussianProcess) else GaussianProcess(), transform=Untransformed())
    models: dict[str, Surrogate] = {}
    if sources:
        models[PRIOR_STUDIES] = Transfer(sources, process)
    if optimum is not None:
        models[KNOWN] = KnownOptimum(optimum, process)
        if sources:
            models[BOTH] = KnownOptimum(optimum, Transfer(sources, process))
    return models
