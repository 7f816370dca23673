from dataclasses import dataclass, replace

import numpy as np
import pytest

from calibo import InputError, Strategy
from calibo.calibration import NoRecalibration, NoScores
from calibo.models import FittedSurrogate, GaussianProcess, ModelChoice, Surrogate
from calibo.parts import register
from calibo.research import Bagged
from calibo.testing import check_surrogate
from calibo.transforms import LearnedAsinh

from ..conftest import Counting, observations
from .test_transforms_learned import skewed

RNG = np.random.default_rng(0)


def fit(choice, data, previous=None):
    return choice.fit(data, rng=np.random.default_rng(0), previous=previous)


@pytest.mark.parametrize("mode", ["hard", "mixture"])
def test_a_choice_keeps_the_contract_of_a_surrogate(mode):
    check_surrogate(ModelChoice(mode=mode), skewed())
    check_surrogate(ModelChoice(mode=mode), observations())


@pytest.mark.parametrize("evidence_weight", [0.0, 0.5, 1.0])
def test_the_model_that_fits_is_believed(evidence_weight):
    wide = replace(skewed(25), y=np.exp(2.0 * np.log(skewed(25).y + 5.0)))
    chosen = fit(ModelChoice(evidence_weight=evidence_weight), wide)
    assert chosen.models["log values"] > 0.95
    assert chosen.names == ("log values",)
    # a Gaussian sample speaks for no transform, and not much against one that can be straight
    gaussian = replace(observations(25), y=np.random.default_rng(3).standard_normal(25))
    assert fit(ModelChoice(evidence_weight=evidence_weight), gaussian).models["values"] > 0.5


def test_a_mixture_has_the_rows_of_all_that_are_believed():
    data = observations(14)
    mixed = fit(ModelChoice(mode="mixture"), data)
    forecast = mixed.posterior(data.x[:3], noise=True)
    assert len(forecast.loc) == len(mixed.names)
    np.testing.assert_allclose(forecast.weights, mixed.weights)
    assert sum(mixed.models.values()) == pytest.approx(1.0)
    y = np.array([0.3, 0.5, 1.0])
    each = np.stack([member.posterior(data.x[:3], noise=True).cdf(y) for member in mixed.members])
    np.testing.assert_allclose(forecast.cdf(y), mixed.weights @ each, rtol=1e-9)


def test_weights_are_evidence_and_stream():
    data, choice = skewed(12), ModelChoice(evidence_weight=0.3, memory=0.9)
    chosen = fit(choice, data)
    total = []
    for _, recipe in choice.recipes:
        stream = []
        for j in range(4, 12):
            before = recipe.fit(data.head(j), rng=RNG)
            stream.append(float(before.posterior(data.x[[j]], noise=True).log_density(data.y[[j]])[0]))
        total.append((recipe.fit(data, rng=RNG).log_evidence, stream))
    evidence, streams = np.array([e for e, _ in total]), np.array([s for _, s in total])
    behind = np.minimum(streams.max(axis=0) - streams, 5.0) @ 0.9 ** np.arange(7, -1, -1.0)
    logits = 0.3 * evidence - 0.7 * behind - np.array([0.0, 2.0, 2.0])
    np.testing.assert_allclose(
        list(chosen.models.values()), np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum(), rtol=1e-6
    )


def test_the_stream_of_every_model_is_computed_once():
    counting = Counting(calls=([],))
    choice = ModelChoice((("counting", counting), ("log values", GaussianProcess(transform=LearnedAsinh()))))
    first = fit(choice, skewed(10))
    assert counting.calls[0] == [10, *range(4, 10)]
    counting.calls[0].clear()
    again = fit(choice, skewed(10), first.state)
    assert counting.calls[0] == [10]
    assert again.models == first.models
    for garbage in (None, "x", [1.0], {}, [1.0, "x"]):
        damaged = dict.fromkeys(first.state, garbage)
        assert fit(choice, skewed(10), damaged).models == pytest.approx(first.models)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"recipes": ()}, "recipes"),
        ({"recipes": (("a", GaussianProcess()), ("a", GaussianProcess()))}, "recipes"),
        ({"mode": "soft"}, "mode"),
        ({"evidence_weight": 2.0}, "evidence_weight"),
        ({"memory": 0.0}, "memory"),
        ({"handicap": np.inf}, "handicap"),
    ],
)
def test_bad_settings_get_a_sentence(arguments, named):
    with pytest.raises(InputError, match=f"`{named}` must"):
        ModelChoice(**arguments)


@register("listing")
@dataclass(frozen=True)
class Listing(GaussianProcess):
    """Of somebody else, with a state that is no mapping."""

    def fit(self, observations, *, rng, previous=None):
        return replace(super().fit(observations, rng=rng), fits=["a fit"])


@register("forgetful")
@dataclass(frozen=True)
class Forgetful(GaussianProcess):
    """Of somebody else, without a state."""

    def fit(self, observations, *, rng, previous=None):
        return replace(super().fit(observations, rng=rng), fits={})


def test_the_contract_asks_for_the_state_that_a_choice_needs():
    with pytest.raises(AssertionError, match="a state must be a mapping of names to values"):
        check_surrogate(Listing(), skewed(9))
    check_surrogate(Forgetful(), skewed(9))
    choice = ModelChoice((("values", GaussianProcess()), ("theirs", Forgetful())))
    fitted = choice.fit(skewed(9), rng=np.random.default_rng(0))
    assert fitted.state
    assert not any(name.startswith("theirs/") for name in fitted.state)


@dataclass(frozen=True, eq=False)
class FittedMinimal(FittedSurrogate):
    """The three methods that are needed, and what a choice compares."""

    inner: FittedSurrogate
    log_evidence: float = 0.0

    def posterior(self, x, *, noise=False):
        return self.inner.posterior(x, noise=noise)

    def posterior_with_gradient(self, x):
        return self.inner.posterior_with_gradient(x)

    def condition(self, x, y):
        return replace(self, inner=self.inner.condition(x, y))


@register("minimal")
@dataclass(frozen=True)
class Minimal(Surrogate):
    def fit(self, observations, *, rng, previous=None):
        return FittedMinimal(GaussianProcess().fit(observations, rng=rng))


@pytest.mark.parametrize(
    "surrogate",
    [
        Minimal(),
        Bagged(Minimal()),
        ModelChoice((("a", GaussianProcess()), ("b", Minimal())), mode="mixture", handicap=0.0),
    ],
)
def test_three_methods_are_enough(surrogate):
    data = replace(observations(9), pending=np.full((2, 3), 0.4))
    proposal = Strategy(surrogate=surrogate, score_source=NoScores(), recalibrator=NoRecalibration()).propose(
        data, seed=0
    )
    assert np.all((proposal.x >= 0.0) & (proposal.x <= 1.0))
