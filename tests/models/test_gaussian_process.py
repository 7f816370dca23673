import json

import numpy as np
import pytest

from calibo.cube import Axis
from calibo.gp.kernels import RBF, Hamming, Linear, Matern32, Periodic
from calibo.models import GaussianProcess
from calibo.models.gaussian_process import FITS, anchor, scheduled_size
from calibo.observations import Observations
from calibo.priors import FLAT
from calibo.testing import check_surrogate

from ..conftest import observations

MIXED = (Axis(), Axis("categorical", 3), Axis("ordered", 6), Axis("ordered", 1))


def fit(data: Observations, recipe: GaussianProcess | None = None, previous=None):
    FITS.clear()  # every fit here is one of a fresh process
    return (recipe or GaussianProcess()).fit(data, rng=np.random.default_rng(0), previous=previous)


@pytest.mark.parametrize(
    "recipe",
    [
        GaussianProcess(),
        GaussianProcess(RBF(), FLAT),
        GaussianProcess(Matern32()),
        GaussianProcess(Linear()),
        GaussianProcess(Periodic()),
        GaussianProcess(growth=0.0),
    ],
    ids=lambda recipe: f"{type(recipe.kernel).__name__}, growth {recipe.growth}",
)
def test_a_gaussian_process_keeps_its_contract(recipe, data):
    check_surrogate(recipe, data)


@pytest.mark.parametrize("axes", [MIXED, (Axis("categorical", 3), Axis("categorical", 2)), (Axis("ordered", 1),)])
def test_it_keeps_its_contract_on_other_cubes(axes):
    check_surrogate(GaussianProcess(), observations(12, axes=axes))


def test_the_kernel_covers_the_columns_that_vary():
    kernel = GaussianProcess().covariance(observations(3, axes=MIXED).cube)
    assert kernel.kernel.first.columns == (0, 2)
    assert kernel.kernel.second == Hamming().on((1,))


def test_forecasts_are_in_the_units_of_the_outcomes(data):
    x = np.random.default_rng(3).random((5, 3))
    moved = Observations(data.cube, data.x, 1000 + 50 * data.y, data.noise_std, data.feasible, data.pending)
    one, other = fit(data), fit(moved)
    np.testing.assert_allclose(other.posterior(x).loc, 1000 + 50 * one.posterior(x).loc, rtol=1e-6)
    np.testing.assert_allclose(other.posterior(x, noise=True).scale, 50 * one.posterior(x, noise=True).scale, rtol=1e-4)
    assert other.log_evidence == pytest.approx(one.log_evidence - len(data) * np.log(50), abs=1e-3)


def test_known_noise_is_believed():
    rng = np.random.default_rng(0)
    base = observations(40, d=1)
    noisy = base.y + 0.5 * rng.standard_normal(40)
    known = Observations(base.cube, base.x, noisy, np.full(40, 0.5), base.feasible, base.pending)
    told = Observations(base.cube, base.x, noisy, np.full(40, 1e-9), base.feasible, base.pending)
    error = [np.abs(fit(data).in_sample_mean(base.x) - base.y).mean() for data in (known, told)]
    assert error[0] < 0.6 * error[1]
    np.testing.assert_allclose(fit(told).in_sample_mean(base.x), noisy, atol=1e-3)


def test_unknown_noise_is_inferred():
    rng = np.random.default_rng(0)
    base = observations(60, d=1)
    noisy = Observations(
        base.cube, base.x, base.y + 0.3 * rng.standard_normal(60), base.noise_std, base.feasible, base.pending
    )
    fitted = fit(noisy)
    x = np.array([[0.5]])
    noise = np.sqrt(fitted.posterior(x, noise=True).scale ** 2 - fitted.posterior(x).scale ** 2)
    assert 0.2 < noise[0, 0] < 0.45


def test_hyper_parameters_depend_on_the_data_alone(data):
    large = observations(45)
    state = None
    for n in range(2, 46):
        state = fit(large.head(n), previous=state).state
    assert state == fit(large).state


def test_the_state_is_small_and_storable():
    state = fit(observations(40)).state
    stored = json.loads(json.dumps(state))
    assert len(stored) <= 2
    changed = {key: [value + 0.1 for value in theta] for key, theta in stored.items()}
    assert fit(observations(40), previous=stored).state == state
    assert fit(observations(40), previous=changed).state != state, "a stored fit must be used"


def test_a_state_of_other_data_or_of_another_recipe_is_not_used():
    data = observations(40)
    wrong = {key: [9.9] * len(theta) for key, theta in fit(data).state.items()}
    moved = Observations(data.cube, data.x, data.y[::-1].copy(), data.noise_std, data.feasible, data.pending)
    for other, recipe in ((moved, GaussianProcess()), (data, GaussianProcess(priors=FLAT))):
        assert fit(other, recipe, previous=wrong).state == fit(other, recipe).state


def test_refits_come_with_each_tenth_of_growth():
    sizes = sorted({scheduled_size(n, 0.1) for n in range(1, 2000)})
    assert sizes[:20] == list(range(1, 21))
    ratios = np.diff(sizes[20:]) / sizes[20:-1]
    assert 0.1 <= ratios.min() < ratios.max() < 0.14
    assert [scheduled_size(n, 0.0) for n in (5, 50, 500)] == [5, 50, 500]
    assert [anchor(n) for n in (3, 4, 5, 8, 9, 1600)] == [2, 2, 4, 4, 8, 1024]


@pytest.mark.parametrize(
    "y", [np.zeros(6), np.full(6, 7.0), np.array([1e300, 1e-300, 5.0, -1e300, 0.0, 1.0]), 1e-300 * np.arange(6)]
)
def test_extreme_outcomes_give_finite_forecasts(y):
    base = observations(6)
    fitted = fit(Observations(base.cube, base.x, y, base.noise_std, base.feasible, base.pending))
    forecast = fitted.posterior(np.random.default_rng(0).random((9, 3)))
    assert np.all(np.isfinite(forecast.loc))
    assert np.all(np.isfinite(forecast.scale))
    assert np.all(forecast.scale > 0)


def test_a_linear_kernel_is_never_certain(data):
    forecast = fit(data, GaussianProcess(Linear())).posterior(np.full((1, 3), 0.5))  # where its prior variance is 0
    assert forecast.scale[0, 0] > 0


def test_hyper_parameters_follow_outcomes_whose_spread_changes():
    base = observations(50)
    y = np.where(np.arange(50) < 48, 1e-3 * base.y, base.y)
    moved = Observations(base.cube, base.x, y, base.noise_std, base.feasible, base.pending)
    assert scheduled_size(50, 0.1) == 48
    assert largest(fit(base).state) == 48
    assert largest(fit(moved.head(49)).state) == 49
    assert largest(fit(moved).state) in (49, 50)


def largest(state):
    return max(int(key.split("-")[0]) for key in state)


@pytest.mark.parametrize("n", [1, 2])
def test_one_or_two_outcomes_are_enough_to_forecast(n):
    forecast = fit(observations(n)).posterior(np.full((1, 3), 0.5))
    assert np.isfinite(forecast.loc[0, 0])
    assert forecast.scale[0, 0] > 0


def test_what_is_remembered_is_that_of_the_same_kernel():
    data = observations(12)

    def theta(kernel):
        return GaussianProcess(kernel).fit(data, rng=np.random.default_rng(0)).thetas

    FITS.clear()
    first = theta(RBF())
    assert not np.allclose(theta(Matern32()), first)
    np.testing.assert_array_equal(theta(RBF()), first)
