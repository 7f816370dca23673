import numpy as np
import optuna
import pytest

from calibo import CalibratedSampler, Float, InputError, StopWhenUnlikely, minimize
from calibo.optuna.reader import read_study
from calibo.optuna.schema import STOPPED

optuna.logging.set_verbosity(optuna.logging.ERROR)


def bowl(x: float, y: float) -> float:
    return (x - 0.3) ** 2 + (y - 0.6) ** 2


SPACE = {"x": Float(0, 1), "y": Float(0, 1)}


def test_a_study_ends_when_nothing_is_left_to_gain():
    result = minimize(bowl, SPACE, 60, seed=0, callbacks=[StopWhenUnlikely(0.01)], progress=False)
    n = len(result.study.trials)
    assert 4 <= n < 40
    assert result.best_value < 0.01
    found = result.study.user_attrs[STOPPED]
    assert found["trial"] == n - 1
    assert found["chance"] < 0.05
    assert 0.0 < found["left"] < 0.01
    assert f"Stopped after trial {n - 1}" in result.stopped


def test_it_goes_on_while_there_is_something_to_gain():
    def wavy(x: float) -> float:
        return np.sin(40 * x) + x

    result = minimize(wavy, {"x": Float(0, 1)}, 8, seed=0, callbacks=[StopWhenUnlikely(1e-6, 1e-9)], progress=False)
    assert len(result.study.trials) == 8
    assert STOPPED not in result.study.user_attrs
    assert result.stopped is None


def test_the_design_is_always_finished():
    study = optuna.create_study(sampler=CalibratedSampler(seed=0, n_startup_trials=7))
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), 20, callbacks=[StopWhenUnlikely(10.0)])
    assert len(study.trials) == 7


def test_a_plateau_says_nothing_of_the_rest():
    def well(trial: optuna.Trial) -> float:
        return float(abs(trial.suggest_float("x", 0, 1) - 0.777) > 0.001)

    study = optuna.create_study(sampler=CalibratedSampler(seed=0))
    study.optimize(well, 12, callbacks=[StopWhenUnlikely(0.001)])
    assert len(study.trials) == 12


def test_a_study_that_went_on_is_not_stopped():
    stopped = minimize(bowl, SPACE, 60, seed=0, callbacks=[StopWhenUnlikely(0.01)], progress=False)
    assert stopped.stopped
    stopped.study.optimize(lambda t: bowl(t.suggest_float("x", 0, 1), t.suggest_float("y", 0, 1)), 1)
    assert stopped.stopped is None
    for broken in ("yes", {"trial": 0}, {**stopped.study.user_attrs[STOPPED], "chance": "high"}):
        stopped.study.set_user_attr(STOPPED, broken)
        assert stopped.stopped is None


def test_a_trial_that_another_worker_starts_while_the_rule_is_computed_changes_nothing():
    class SlowRule(StopWhenUnlikely):
        def __call__(self, study, trial):
            study.ask()
            super().__call__(study, trial)

    result = minimize(bowl, SPACE, 60, seed=0, callbacks=[SlowRule(0.01)], progress=False)
    assert len(result.study.trials) < 100
    assert result.stopped
    result.study.ask()
    assert result.stopped is None


def test_the_chance_is_at_least_the_highest_probability_anywhere():
    result = minimize(bowl, SPACE, 8, seed=0, progress=False)
    data = read_study(result.study, result.strategy)
    belief = data.fit()
    rule = StopWhenUnlikely(0.001)
    chance = rule.probability(result.study)
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.random((4000, 2)), np.clip(data.observations.x + 0.03 * rng.standard_normal((8, 2)), 0, 1)])
    forecast = belief.forecast(x)
    target = belief.fitted.in_sample_mean(data.observations.x).min() - 0.001
    from scipy.special import ndtr

    everywhere = ndtr(forecast.normal_score(np.full(len(x), target)))
    assert everywhere.max() <= chance + 1e-6
    assert chance < 1.0
    smaller = [StopWhenUnlikely(r).probability(result.study) for r in (1e-6, 0.01, 0.1, 1.0)]
    assert np.all(np.diff(smaller) <= 1e-9)


def test_it_works_for_a_study_of_another_sampler_under_maximisation_and_with_conditions():
    def objective(trial: optuna.Trial) -> float:
        kind = trial.suggest_categorical("kind", ["a", "b"])
        return -((trial.suggest_float("x", 0, 1) - 0.4) ** 2) if kind == "a" else -1.0 - trial.suggest_float("z", 0, 1)

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
    study.optimize(objective, 25)
    assert 0.0 <= StopWhenUnlikely(0.5).probability(study) < 0.5
    assert StopWhenUnlikely(1e-6).probability(study) >= StopWhenUnlikely(0.5).probability(study)


def test_nothing_is_known_of_an_empty_study():
    assert StopWhenUnlikely(0.1).probability(optuna.create_study()) is None


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((-1.0,), "resolution"),
        ((0.0,), "resolution"),
        (("0.1",), "resolution"),
        ((True,), "resolution"),
        ((1.0, "a"), "alpha"),
        ((1.0, 0.1, "zz"), "strategy"),
        ((np.inf,), "resolution"),
        ((1.0, 0.0), "alpha"),
        ((1.0, 1.0), "alpha"),
    ],
)
def test_bad_settings_get_a_sentence(arguments, named):
    with pytest.raises(InputError, match=f"`{named}` must"):
        StopWhenUnlikely(*arguments)


def test_called_by_hand_it_says_nothing_that_did_not_happen():
    study = optuna.create_study(sampler=CalibratedSampler(seed=0))
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1) ** 2, 12)
    with pytest.raises(RuntimeError):
        StopWhenUnlikely(10.0)(study, study.trials[-1])
    assert STOPPED not in study.user_attrs


@pytest.mark.parametrize("n", [4, 5, 6, 7])
def test_the_chance_is_between_that_of_one_point_and_that_of_any(n):
    """That of any point is the share of draws from the joint posterior over a grid."""

    def waves(x: float) -> float:
        return np.sin(9 * x) + 0.3 * np.cos(31 * x)

    result = minimize(waves, {"x": Float(0, 1)}, n, seed=1, strategy="plain", progress=False)
    rule = StopWhenUnlikely(0.01, alpha=0.999)
    chance = rule.probability(result.study)
    fitted = read_study(result.study, result.strategy).fit().fitted
    process, grid = fitted.processes[0], np.linspace(0, 1, 300)[:, None]
    theta = process.theta[:-2]
    to_data, within = process.kernel.cross(theta, process.x)(grid)[0], process.kernel.cross(theta, grid)(grid)[0]
    known = process.kernel.cross(theta, process.x)(process.x)[0] + np.diag(process.noise)
    covariance = within - to_data @ np.linalg.solve(known, to_data.T)
    mean = process.mean + to_data @ process.alpha
    draws = np.random.default_rng(0).multivariate_normal(mean, covariance + 1e-9 * np.eye(300), 4000, method="eigh")
    best = fitted.in_sample_mean(process.x).min()
    anywhere = float((fitted.center + fitted.spread * draws.min(axis=1) < best - 0.01).mean())
    one = StopWhenUnlikely(0.01, alpha=1e-9).probability(result.study)  # no further points are added
    assert one < chance < anywhere + 0.02
    assert anywhere > 0.05 or chance > 0.6 * anywhere
