"""Learning from earlier tasks."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from calibo import InputError
from calibo.cube import Axis
from calibo.gp.process import Process
from calibo.models import GaussianProcess, ModelChoice, SourceTask, Transfer
from calibo.models.gaussian_process import FITS
from calibo.testing import check_surrogate
from calibo.transforms import LearnedAsinh

from ..conftest import observations
from .test_gaussian_process import MIXED


def source(n=25, seed=5, change=lambda x, y: y, axes=None, lacking=()):
    data = observations(n, seed=seed, axes=axes)
    x = data.x.copy()
    x[:, list(lacking)] = np.nan
    return SourceTask("earlier", x, np.asarray(change(data.x, data.y), dtype=float), np.full(n, np.nan))


def fit(recipe, data, previous=None):
    FITS.clear()
    return recipe.fit(data, rng=np.random.default_rng(0), previous=previous)


@pytest.mark.parametrize(
    "recipe",
    [GaussianProcess(), GaussianProcess(warped=True), GaussianProcess(samples=3)],
    ids=["likeliest", "warped", "sampled"],
)
def test_a_transfer_keeps_the_contract_of_a_surrogate(recipe):
    check_surrogate(Transfer((source(12),), recipe), observations(9))


def test_mixed_spaces_and_columns_that_a_source_lacks():
    recipe = Transfer((source(12, axes=MIXED, lacking=(0,)), source(8, seed=6, axes=MIXED)))
    check_surrogate(recipe, observations(9, axes=MIXED))


def test_a_task_that_is_alike_helps_whatever_its_unit():
    target, other = observations(6), observations(60, seed=9)
    alike = Transfer((source(30, change=lambda x, y: 1e3 * y - 7.0),))
    alone, joint = fit(GaussianProcess(), target), fit(alike, target)
    densities = [fitted.posterior(other.x, noise=True).log_density(other.y).mean() for fitted in (alone, joint)]
    assert densities[1] > densities[0] + 1.0
    assert joint.correlations[0] == pytest.approx(1.0)
    assert joint.correlations[1] > 0.8


def test_a_task_that_is_opposite_helps_as_well_and_one_of_noise_is_left_alone():
    target, other = observations(12), observations(60, seed=9)
    alone = fit(GaussianProcess(), target)
    opposite = fit(Transfer((source(30, change=lambda x, y: -y),)), target)
    assert opposite.correlations[1] < -0.5
    noise = np.random.default_rng(0).standard_normal(30)
    random = fit(Transfer((source(30, change=lambda x, y: noise),)), target)
    densities = [
        fitted.posterior(other.x, noise=True).log_density(other.y).mean() for fitted in (alone, opposite, random)
    ]
    assert densities[1] > densities[0]
    assert densities[2] > densities[0] - 0.5


def test_the_evidence_is_that_of_the_target_given_the_sources():
    """By the chain rule: each outcome of the target given the sources and the outcomes before it."""
    target = observations(7)
    fitted = fit(Transfer((source(10),)), target)
    process, ahead = fitted.inner.processes[0], 0.0
    for j in range(7):
        n = 10 + j
        before = Process.from_data(process.kernel, process.theta, process.x[:n], process.y[:n], process.noise[:n])
        mean, variance = before.posterior(process.x[[n]])
        scale = np.sqrt(variance[0] + process.noise[n])
        ahead += stats.norm.logpdf(process.y[n], mean[0], scale) - np.log(fitted.scale * fitted.inner.spread)
    assert fitted.log_evidence == pytest.approx(ahead, rel=1e-6)


def test_the_noise_of_the_target_is_its_own():
    target = replace(observations(10), noise_std=np.full(10, 0.5))
    alone, joint = fit(GaussianProcess(), target), fit(Transfer((source(30),)), target)
    x = np.full((1, 3), 0.4)
    for fitted in (alone, joint):
        extra = np.sqrt(fitted.posterior(x, noise=True).scale[0] ** 2 - fitted.posterior(x).scale[0] ** 2)
        np.testing.assert_allclose(extra, 0.5, rtol=1e-6)


def test_the_order_of_categories_does_not_matter_to_a_source_that_lacks_them():
    axes = (Axis(), Axis("categorical", 3))
    target = observations(10, axes=axes)
    turned = replace(target, x=np.column_stack([target.x[:, 0], 1.0 - target.x[:, 1]]))
    recipe = Transfer((source(15, axes=axes, lacking=(1,)),))
    evidences = [fit(recipe, data).log_evidence for data in (target, turned)]
    assert evidences[0] == pytest.approx(evidences[1], rel=1e-6)


def test_fits_stay_until_the_target_has_grown():
    """By its own schedule, whatever the sources are; one chain for them, and one for all."""
    data, recipe = observations(23), Transfer((source(40),), GaussianProcess(samples=2))
    states = []
    for n in (20, 21, 22, 23):
        states.append(set(fit(recipe, data.head(n)).state))
    assert states[0] == states[1] != states[2] == states[3]


def test_every_task_has_its_own_warp():
    def bent(x, y):
        return np.sin(8.0 * x[:, 0] ** 0.3) + 0.1 * x[:, 1]

    target = observations(30)
    target = replace(target, y=np.sin(8.0 * target.x[:, 0]) + 0.1 * target.x[:, 1])
    fitted = fit(Transfer((source(40, change=bent),), GaussianProcess(warped=True)), target)
    theta = fitted.inner.processes[0].theta
    alpha = np.exp(theta[:6].reshape(2, 3))[:, 0]
    beta = np.exp(theta[6:12].reshape(2, 3))[:, 0]
    # the source's low end is stretched beside the target's
    assert (beta / alpha)[1] > 2.0 * (beta / alpha)[0]


def test_models_choose_whether_to_learn_from_others():
    noise = np.random.default_rng(0).standard_normal(20)
    choice = ModelChoice(
        (("alone", GaussianProcess()), ("earlier", Transfer((source(20, change=lambda x, y: noise),))))
    )
    assert fit(choice, observations(12)).names == ("alone",)
    alike = ModelChoice((("alone", GaussianProcess()), ("earlier", Transfer((source(30),)))))
    assert fit(alike, observations(12)).names == ("earlier",)


def test_recipes_are_told_apart_by_their_sources():
    one, same, other = source(), source(), source(seed=6)
    assert one == same
    assert Transfer((one,)) == Transfer((same,)) != Transfer((other,))
    assert len({Transfer((one,)), Transfer((same,)), Transfer((other,))}) == 2


def test_what_cannot_be_learned_from_is_told():
    with pytest.raises(InputError, match="must have outcomes that differ"):
        SourceTask("flat", np.zeros((3, 1)), np.ones(3), np.full(3, np.nan))
    with pytest.raises(InputError, match="`sources` must hold at least one"):
        Transfer(())
    with pytest.raises(InputError, match="tasks have no common one"):
        Transfer((source(),), GaussianProcess(transform=LearnedAsinh()))
