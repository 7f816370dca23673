"""Side information: prior studies and a known optimum, passed to every part of a strategy.

A part takes it in its method `with_side_information`. A surrogate becomes a choice between itself and models with side
information. Those that forecast well are used, so a misleading task or a wrong value costs little. If a part requires
the optimum, only that part gets it.
"""

from dataclasses import dataclass, replace

from calibo.acquisition import Acquisition, BoundedImprovement, GuardedRegret
from calibo.models import GaussianProcess, KnownOptimum, ModelChoice, SourceTask, Surrogate, Transfer
from calibo.optimum import Optimum
from calibo.transforms import Untransformed

ALONE, PRIOR_STUDIES, KNOWN = "this study alone", "earlier studies", "the known optimum"  # names of models, stored
BOTH = f"{PRIOR_STUDIES} and {KNOWN}"


@dataclass(frozen=True)
class SideInformation:
    """Prior studies and the known optimum of a study."""

    sources: tuple[SourceTask, ...] = ()
    optimum: Optimum | None = None

    only_where_needed: bool = False
    """Whether only parts that require the optimum get it."""

    def choose_beside(self, model: Surrogate) -> Surrogate:
        """A choice between a model and models with side information; the model itself if there is none."""
        choice = self.add_to(ModelChoice(((ALONE, model),)))
        return choice if len(choice.recipes) > 1 else model

    def add_to(self, choice: ModelChoice) -> ModelChoice:
        """The choice with models of this and earlier side information added; that of prior studies comes first."""
        before = dict(choice.recipes)
        usual = {name: model for name, model in before.items() if name not in (PRIOR_STUDIES, KNOWN, BOTH)}
        sources = self.sources or getattr(before.get(PRIOR_STUDIES), "sources", ())
        optimum = None if self.only_where_needed else self.optimum or getattr(before.get(KNOWN), "optimum", None)
        informed = _models(usual.get(ALONE), sources, None if optimum is None or optimum.bound else optimum)
        first = {name: model for name, model in informed.items() if name == PRIOR_STUDIES}
        return replace(choice, recipes=tuple({**first, **usual, **informed}.items())) if informed else choice

    def aim(self, acquisition: Acquisition) -> Acquisition:
        """The acquisition function that targets the optimum if it is within reach."""
        if self.optimum is None or self.only_where_needed:
            return acquisition
        otherwise = BoundedImprovement(self.optimum) if acquisition.may_be_bounded else acquisition
        return otherwise if self.optimum.bound else GuardedRegret(self.optimum, otherwise)


def _models(alone: Surrogate | None, sources: tuple[SourceTask, ...], optimum: Optimum | None) -> dict[str, Surrogate]:
    """The models with side information, by name; ``alone`` is the one without."""
    process = replace(alone if isinstance(alone, GaussianProcess) else GaussianProcess(), transform=Untransformed())
    models: dict[str, Surrogate] = {}
    if sources:
        models[PRIOR_STUDIES] = Transfer(sources, process)
    if optimum is not None:
        models[KNOWN] = KnownOptimum(optimum, process)
        if sources:
            models[BOTH] = KnownOptimum(optimum, Transfer(sources, process))
    return models
