"""The sampler inside real studies."""

import json
import pickle
import subprocess
import sys
import threading
import time
import warnings
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState, create_trial

from calibo import CaliboWarning, CalibratedSampler, InputError, Optimizer, Strategy
from calibo.acquisition import LowerBound
from calibo.optuna import internals
from calibo.optuna.columns import Columns
from calibo.optuna.internals import set_trial_attribute
from calibo.optuna.reader import read_study
from calibo.optuna.sampler import _taken
from calibo.optuna.schema import NOISE, TRIAL, fits_in, mark_interrupted, read_settings, read_trial
from calibo.optuna.trials import this_worker
from calibo.presets import get_strategy
from calibo.space import Categorical, Float, Int, Space

UNIT = FloatDistribution(0.0, 1.0)


@pytest.fixture(autouse=True)
def quiet():
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def bowl(trial):
    return (trial.suggest_float("x", 0, 1) - 0.3) ** 2 + (trial.suggest_float("y", 0, 1) - 0.6) ** 2


def hills(trial):
    x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
    return np.sin(13 * x) * np.sin(27 * x) + np.cos(11 * y + x)


def studied(objective=bowl, n=12, seed=0, **options):
    study = optuna.create_study(sampler=CalibratedSampler(seed=seed, **options))
    study.optimize(objective, n_trials=n)
    return study


def params(study):
    return [trial.params for trial in study.trials]


def done(value=1.0, state=TrialState.COMPLETE, **point):
    return create_trial(
        params=point,
        distributions=dict.fromkeys(point, UNIT),
        value=value if state.name == "COMPLETE" else None,
        state=state,
    )


def test_the_minimum_is_found():
    assert studied(n=25).best_value < 1e-4


def test_the_maximum_is_found():
    study = optuna.create_study(direction="maximize", sampler=CalibratedSampler(seed=0))
    study.optimize(lambda trial: -bowl(trial), n_trials=25)
    assert study.best_value > -1e-4


def test_a_study_with_a_declared_space_asks_what_the_optimizer_asks():
    space = {"x": Float(0, 1), "n": Int(1, 50, log=True), "c": Categorical(["a", "b", "c"])}

    def objective(trial):
        x, n = trial.suggest_float("x", 0, 1), trial.suggest_int("n", 1, 50, log=True)
        return x * n + (trial.suggest_categorical("c", ["a", "b", "c"]) == "a")

    study = studied(objective, 15, seed=4, space=space)
    optimizer = Optimizer(space, seed=4)
    for trial in study.trials:
        assert optimizer.ask() == trial.params
        optimizer.tell(trial.params, trial.value)


def test_the_same_seed_gives_the_same_suggestions_and_another_one_others():
    assert params(studied(seed=3)) == params(studied(seed=3))
    assert params(studied(seed=3)) != params(studied(seed=4))


def test_a_fresh_process_suggests_the_same(tmp_path):
    url = f"sqlite:///{tmp_path}/s.db"
    study = optuna.create_study(study_name="s", storage=url, sampler=CalibratedSampler(seed=5))
    study.optimize(bowl, n_trials=11)
    code = (
        "import optuna, json; from calibo import CalibratedSampler\n"
        f"s = optuna.load_study(study_name='s', storage={url!r}, sampler=CalibratedSampler(seed=5))\n"
        "t = s.ask(); print(json.dumps([t.suggest_float('x', 0, 1), t.suggest_float('y', 0, 1)]))"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert json.loads(printed) == list(studied(n=12, seed=5).trials[-1].params.values())


def test_fits_stored_with_the_trials_are_used():
    study = studied(n=14)
    assert any(fits_in(trial) for trial in study.trials), "no fit was stored"
    history = read_study(study)
    stored = history.fits["surrogate"]
    fitted = Strategy().fit(history.observations, rng=np.random.default_rng(0)).state["surrogate"]
    sizes = {key: key.rpartition("/")[2].split("-")[0] for key in fitted}
    # the last outcome is not yet part of a stream that was stored
    assert {key for key, size in sizes.items() if size != "stream" and int(size) < 14} <= set(stored)
    assert sum(size == "stream" and key not in stored for key, size in sizes.items()) == 1
    assert all(stored[key] == fitted[key] for key in fitted if key in stored)


def test_long_values_are_stored_whole():
    def wide(trial):
        return sum(trial.suggest_float(f'a parameter with a long name and "quotes" {j}', 0, 1) for j in range(60))

    study = studied(wide, 14)
    for trial in study.trials:
        assert set(trial.system_attrs) <= {"calibo:proposal", "calibo:fits"}
    assert len(json.dumps(study.trials[-1].system_attrs[TRIAL])) > 2045
    assert len(read_trial(study.trials[-1]).chosen) == 60


def test_it_pickles_and_goes_on_the_same():
    study = studied(n=9)
    twin = studied(n=9)
    twin.sampler = pickle.loads(pickle.dumps(study.sampler))
    study.optimize(bowl, n_trials=2)
    twin.optimize(bowl, n_trials=2)
    assert params(study) == params(twin)


def test_threads_keep_apart_from_what_others_evaluate():
    lock, evaluated, gaps = threading.Lock(), {}, []

    def slow(trial):
        value = bowl(trial)
        point = np.array([*trial.params.values()])
        with lock:
            gaps.extend(np.abs(point - other).max() for other in evaluated.values())
            evaluated[trial.number] = point
        time.sleep(0.1)  # so that others choose meanwhile
        with lock:
            del evaluated[trial.number]
        return value

    study = optuna.create_study(sampler=CalibratedSampler(seed=0))
    study.optimize(slow, n_trials=24, n_jobs=4)
    assert len(gaps) >= 4, "hardly anything was evaluated at the same time"
    assert min(gaps) > 1e-4


@pytest.mark.parametrize("n", [3, 12])  # in the design, and with a model
def test_workers_that_ask_at_the_same_moment_keep_apart(n):
    study = studied(hills, n)
    others = [
        optuna.load_study(study_name=study.study_name, storage=study._storage, sampler=study.sampler) for _ in range(4)
    ]
    trials = [other.ask() for other in others]  # all are begun before the first one chooses
    points = np.array([[t.suggest_float("x", 0, 1), t.suggest_float("y", 0, 1)] for t in reversed(trials)])
    gaps = np.abs(points[:, None] - points).max(axis=2) + np.eye(4)
    assert gaps.min() > 1e-3


def test_the_same_points_are_chosen_whether_or_not_the_earlier_choices_are_known():
    first, second = studied(hills, 12), studied(hills, 12)
    known = [first.ask({"x": UNIT, "y": UNIT}).params for _ in range(2)]
    _, later = second.ask(), second.ask()
    foreseen = {name: later.suggest_float(name, 0, 1) for name in ("x", "y")}
    assert foreseen == pytest.approx(known[1], abs=1e-9)


def test_a_point_chosen_by_another_worker_counts_before_its_parameters_are_suggested():
    study = studied(hills, 12)
    other = study.ask()
    x = other.suggest_float("x", 0, 1)  # y is chosen, but the worker has not come to it
    assert set(read_trial(study.trials[-1]).chosen) == {"x", "y"}
    mine = study.ask({"x": UNIT, "y": UNIT})
    assert max(abs(mine.params["x"] - x), abs(mine.params["y"] - other.suggest_float("y", 0, 1))) > 1e-3


def running(worker, age, longest=timedelta(minutes=1)):
    """Whether a trial of such an age counts as running."""
    study = optuna.create_study()
    now = datetime.now()
    finished = done(x=0.1)
    finished.datetime_start, finished.datetime_complete = now - longest, now
    study.add_trial(finished)
    open_trial = create_trial(params={"x": 0.2}, distributions={"x": UNIT}, state=TrialState.RUNNING)
    open_trial.datetime_start = now - age
    open_trial.system_attrs = {TRIAL: {"params": {}, "worker": worker}}
    study.add_trial(open_trial)
    return len(read_study(study).running) == 1


def test_a_trial_whose_process_has_ended_is_not_pending():
    ended = subprocess.run(
        [sys.executable, "-c", "from calibo.optuna.trials import this_worker; print(this_worker())"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    assert not running(ended, timedelta(seconds=1))
    assert running(this_worker(), timedelta(seconds=1))


def test_a_trial_that_takes_much_longer_than_any_other_is_not_pending():
    assert running(this_worker(), timedelta(minutes=9))
    assert not running(this_worker(), timedelta(minutes=11))
    assert running(this_worker(), timedelta(minutes=11), longest=timedelta(minutes=5))
    assert running("elsewhere|1|1", timedelta(minutes=9))
    assert not running("elsewhere|1|1", timedelta(minutes=11))


def test_a_trial_asked_for_by_hand_stays_pending_for_days():
    assert running(None, timedelta(hours=20))
    assert not running(None, timedelta(days=2))
    assert running(None, timedelta(days=30), longest=timedelta()), "imported results say nothing about time"


def test_conditional_parameters_are_chosen_by_the_model():
    def objective(trial):
        kind = trial.suggest_categorical("kind", ["a", "b"])
        if kind == "a":
            return 1 + trial.suggest_float("u", 0, 1)
        return (trial.suggest_float("v", 0, 1) - 0.7) ** 2 + (trial.suggest_float("w", 0, 1) - 0.2) ** 2

    study = studied(objective, 30)
    assert study.best_value < 1e-3
    late = [trial.params for trial in study.trials[15:]]
    assert sum(point["kind"] == "b" for point in late) >= 10


def test_a_condition_on_a_real_number_is_survived():
    def objective(trial):
        x = trial.suggest_float("x", 0, 1)
        if x < 0.5:
            return x + 0.5
        return abs(x - 0.8) + (trial.suggest_float("y", 0, 1) - 0.25) ** 2

    study = studied(objective, 40)
    assert study.best_value < 0.02
    assert len({round(point["x"], 4) for point in params(study)}) > 15, "the search must not repeat one point"


def test_the_count_of_layers_decides_about_their_sizes():
    def objective(trial):
        layers = trial.suggest_int("layers", 1, 3)
        sizes = [trial.suggest_int(f"size{j}", 1, 64, log=True) for j in range(layers)]
        return abs(layers - 2) + sum(abs(np.log2(size) - 4) for size in sizes)

    assert studied(objective, 40).best_value < 1.0


def test_ranges_may_change_between_trials():
    study = studied(lambda trial: trial.suggest_float("x", 0, 10), 8)
    study.optimize(lambda trial: abs(trial.suggest_float("x", -5, 2) + 3), n_trials=15)
    assert study.best_value < 0.1
    history = read_study(study)
    assert all(-5 <= trial.params["x"] <= 2 for trial in history.trials), "values outside the latest range are left out"


def test_failed_pruned_and_nan_trials_steer_away_and_teach_no_number():
    def objective(trial):
        x = trial.suggest_float("x", 0, 1)
        if x < 0.2:
            raise RuntimeError
        if x < 0.35:
            trial.report(-100.0, 1)
            raise optuna.TrialPruned
        if x < 0.5:
            return float("nan")
        return x

    study = optuna.create_study(sampler=CalibratedSampler(seed=4))
    study.optimize(objective, n_trials=30, catch=(RuntimeError,))
    history = read_study(study)
    assert {t.state for t in history.trials} == {TrialState.COMPLETE, TrialState.FAIL, TrialState.PRUNED}
    assert np.isnan(history.observations.y[~history.observations.feasible]).all()
    assert (history.observations.x[8:] > 0.4).mean() > 0.6, "most of the search is where things work, or at the edge"
    assert 0.5 <= study.best_value < 0.501


def test_infinite_values_are_failures():
    study = optuna.create_study()
    study.add_trials([done(x=0.1), done(float("inf"), x=0.2), done(-float("inf"), x=0.3)])
    np.testing.assert_array_equal(read_study(study).observations.feasible, [True, False, False])


def test_constraints_are_kept():
    def objective(trial):
        x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
        trial.set_constraint("sum", 1.0 - x - y)
        return x + 2 * y

    study = studied(objective, 30)
    feasible = [trial for trial in study.trials if trial.constraints["sum"] <= 0]
    assert min(trial.value for trial in feasible) < 1.02
    assert read_study(study).observations.constraints.shape == (30, 1)


def test_noise_is_read_from_the_user_attribute():
    study = optuna.create_study()
    study.add_trial(done(x=0.1))
    noisy = done(x=0.2)
    noisy.user_attrs = {NOISE: 0.5}
    study.add_trial(noisy)
    np.testing.assert_array_equal(read_study(study).observations.noise_std, [np.nan, 0.5])
    noisy.user_attrs = {NOISE: "a lot"}
    study.add_trial(noisy)
    with pytest.warns(CaliboWarning, match="'a lot'"):
        assert np.isnan(read_study(study).observations.noise_std[2])


def test_a_trial_stopped_from_outside_says_nothing_about_its_point():
    study = optuna.create_study()
    study.add_trials([done(x=0.1), done(x=0.2, state=TrialState.FAIL), done(x=0.3, state=TrialState.FAIL)])
    assert len(read_study(study).trials) == 3
    stopped = done(x=0.4, state=TrialState.FAIL)
    stopped.system_attrs = {"calibo:set_aside": True}
    retried = done(x=0.2)
    retried.system_attrs = {"failed_trial": 1, "retry_history": [1]}
    study.add_trials([stopped, retried])
    assert [trial.number for trial in read_study(study).trials] == [0, 2, 4]


def test_a_running_trial_can_be_set_aside():
    study = optuna.create_study()
    trial = study.ask({"x": UNIT})
    mark_interrupted(study, trial)
    study.tell(trial, state=TrialState.FAIL)
    assert read_study(study).trials == ()


def test_enqueued_parameters_are_respected_and_the_others_chosen_with_them():
    study = studied(n=12)
    study.enqueue_trial({"x": 0.31})
    study.enqueue_trial({"x": 5.0})  # outside: taken by Optuna with a warning
    study.optimize(bowl, n_trials=1)
    assert study.trials[12].params["x"] == 0.31
    assert abs(study.trials[12].params["y"] - 0.6) < 0.2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study.optimize(bowl, n_trials=1)
    assert study.trials[-1].params["x"] == 5.0
    study.optimize(bowl, n_trials=1)


def test_trials_of_other_samplers_are_learned_from():
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(bowl, n_trials=15)
    study.sampler = CalibratedSampler(seed=0)
    study.optimize(bowl, n_trials=10)
    assert study.best_value < 1e-3


def test_choices_may_be_of_every_kind():
    choices = (None, True, 1.5, "a", "1.5")
    study = studied(
        lambda trial: choices.index(trial.suggest_categorical("c", choices)) + trial.suggest_float("x", 0, 1), 12
    )
    assert study.best_params["c"] is None


@pytest.mark.parametrize(
    "name", ["'; DROP TABLE trials; --", "<script>alert(1)</script>", "a\nb", '"', "名前", "\x1b[2J", ""]
)
def test_names_are_only_text(name, tmp_path):
    study = optuna.create_study(
        study_name=f"s{name}", storage=f"sqlite:///{tmp_path}/s.db", sampler=CalibratedSampler(seed=0)
    )
    study.optimize(lambda trial: trial.suggest_float(name, 0, 1), n_trials=6)
    again = optuna.load_study(
        study_name=f"s{name}", storage=f"sqlite:///{tmp_path}/s.db", sampler=CalibratedSampler(seed=0)
    )
    again.optimize(lambda trial: trial.suggest_float(name, 0, 1), n_trials=1)
    assert [set(trial.params) for trial in again.trials] == [{name}] * 7


def test_attributes_written_by_something_else_do_no_harm():
    study = studied(n=8)
    foreign = done(x=0.4, y=0.4)
    foreign.system_attrs = {"calibo:state:0": "not json {", "calibo:proposal:0": "[1, 2]", "calibo:fits": 3}
    study.add_trial(foreign)
    odd = create_trial(params={}, distributions={}, state=TrialState.RUNNING)
    odd.system_attrs = {TRIAL: {"params": {"x": "a", "y": None}, "worker": 7}}
    study.add_trial(odd)
    study.optimize(bowl, n_trials=2)
    assert len(study.trials) == 12


def test_several_objectives_are_refused_in_words():
    study = optuna.create_study(directions=["minimize", "maximize"], sampler=CalibratedSampler())
    with pytest.raises(InputError, match="one direction, but got 2"):
        study.optimize(lambda trial: (trial.suggest_float("x", 0, 1), 0.0), n_trials=1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"strategy": "best"}, "`strategy` must be"),
        ({"seed": -1}, "`seed` must be"),
        ({"seed": 1.5}, "`seed` must be"),
        ({"n_startup_trials": -2}, "`initial` must be|n_startup_trials"),
        ({"space": {}}, "`parameters` must be"),
    ],
)
def test_bad_arguments_are_named(options, words):
    with pytest.raises(InputError, match=words):
        CalibratedSampler(**options)


def test_a_strategy_may_be_a_name_or_a_value():
    own = Strategy(acquisition=LowerBound(3.0))
    for strategy, wanted in (("lcb", get_strategy("lcb")), (own, own)):
        study = studied(n=2, strategy=strategy)
        assert read_study(study).requested == wanted
    study = studied(n=2, strategy=own, n_startup_trials=7)
    assert read_study(study).requested == replace(own, initial=7)


def test_columns_go_into_the_cube_and_back():
    columns = Columns(
        {
            "f": FloatDistribution(1e-3, 10, log=True),
            "s": FloatDistribution(-10.2, 10.2, step=0.1),
            "i": IntDistribution(1, 1000, log=True),
            "c": CategoricalDistribution(("a", None, 3)),
        }
    )
    rng = np.random.default_rng(0)
    for x in columns.cube.snap(rng.random((50, 4))):
        point = columns.decode(x)
        np.testing.assert_allclose(columns.encode(point), x, atol=1e-12)
    assert np.isnan(columns.encode({"i": 3})).tolist() == [True, True, False, True]
    assert columns.encode({"i": 2000}) is None


def test_only_columns_that_vary_are_searched():
    study = studied(lambda trial: trial.suggest_float("x", 0, 1) + trial.suggest_int("one", 1, 1), 6)
    assert list(read_study(study).columns.parameters) == ["x"]


@pytest.mark.parametrize(
    "suggest",
    [
        lambda trial: trial.suggest_int("n", 0, 2**60),
        lambda trial: trial.suggest_int("n", 1, 2**45, log=True),
        lambda trial: trial.suggest_int("n", 0, 3 * 2**58, step=3),
        lambda trial: trial.suggest_float("n", 0, 1, step=1e-16),
        lambda trial: trial.suggest_float("n", 1e5, np.nextafter(1e5, np.inf), log=True),
        lambda trial: trial.suggest_float("n", 0, 5e-324),
    ],
)
def test_ranges_of_very_many_or_very_few_values_are_taken(suggest):
    assert len(studied(lambda trial: float(suggest(trial)) + trial.suggest_float("x", 0, 1), 12).trials) == 12


def test_infinite_constraints_are_borne():
    def objective(trial):
        x = trial.suggest_float("x", 0, 1)
        trial.set_constraint("c", np.inf if x < 0.8 else x - 1.1)
        return x

    assert 0.8 <= min(t.value for t in studied(objective, 25).trials if t.constraints["c"] <= 0) < 0.85


def many_kinds(trial):
    kind = trial.suggest_categorical("kind", list("abcdef"))
    x, y = trial.suggest_float(f"{kind}x", 0, 1), trial.suggest_float(f"{kind}y", 0, 1)
    if kind == "d" and x < 0.5:
        raise ValueError
    return (x - 0.7) ** 2 + (y - 0.6) ** 2 + (0.0 if kind == "d" else 0.2)


@pytest.mark.parametrize("seed", range(3))
def test_a_branch_that_failed_once_is_not_lost(seed):
    study = optuna.create_study(sampler=CalibratedSampler(seed=seed))
    study.optimize(many_kinds, n_trials=50, catch=(ValueError,))
    visits = [trial for trial in study.trials if trial.params["kind"] == "d"]
    assert visits[0].params["dx"] < 0.5 or len(visits) > 1
    assert len(visits) >= 2


def test_many_discrete_branches_are_searched():
    def objective(trial):
        i = int(trial.suggest_categorical("kind", [str(i) for i in range(12)]))
        return float(sum(trial.suggest_int(f"p{i}_{j}", 1, 5) for j in range(3)) + i)

    assert studied(objective, 60).best_value <= 6


def test_threads_give_back_the_blas_threads_they_took():
    from threadpoolctl import threadpool_info, threadpool_limits

    def gated(trial):
        x = trial.suggest_float("x", 0, 1)
        return x if x < 0.5 else trial.suggest_float("y", 0, 1)

    with threadpool_limits(2, user_api="blas"):
        optuna.create_study(sampler=CalibratedSampler(seed=0)).optimize(gated, n_trials=24, n_jobs=4)
        assert {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"} == {2}


@pytest.mark.parametrize("batch", [1, 4])
def test_fits_are_made_once_even_by_fresh_samplers(batch, monkeypatch):
    from calibo.models import gaussian_process

    fits, real = [], gaussian_process.maximum_a_posteriori
    monkeypatch.setattr(
        gaussian_process, "maximum_a_posteriori", lambda *args, **options: (fits.append(1), real(*args, **options))[1]
    )

    def gated(trial):  # no parent explains y: it is chosen by itself
        x = trial.suggest_float("x", 0, 1)
        return x if x < 0.5 else x + trial.suggest_float("y", 0, 1)

    study = optuna.create_study()
    for _ in range(40 // batch):
        study.sampler = CalibratedSampler(seed=0)
        gaussian_process.FITS.clear()  # as in a fresh process: what helps is in the study
        trials = [study.ask() for _ in range(batch)]
        for trial in trials:
            study.tell(trial, gated(trial))
    assert len(fits) < 240, "of two chains of about thirty fits of three models"


def test_added_trials_may_have_times_with_zones():
    study = studied(n=6)
    trial = done(x=0.5, y=0.5)
    trial.datetime_start = trial.datetime_complete = datetime.now(UTC)
    study.add_trial(trial)
    study.ask({"x": UNIT})
    study.optimize(bowl, n_trials=2)
    assert len(read_study(study).trials) == 9, "six, the one added, and two"


def test_pruners_that_hand_over_part_of_a_study_hide_no_worker():
    study = optuna.create_study(sampler=CalibratedSampler(seed=0), pruner=optuna.pruners.HyperbandPruner())
    study.optimize(bowl, n_trials=8)
    assert {read_trial(trial).worker for trial in study.trials} == {this_worker()}


def test_warps_are_kept_with_the_study():
    sampler = CalibratedSampler(seed=0, strategy="plain+warped", warp={"x": "log", "y": None}, n_startup_trials=3)
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda t: t.suggest_float("x", 0, 1) ** 2 + t.suggest_int("y", 0, 20), n_trials=5)
    assert study.user_attrs["calibo:warp"] == {"x": "log", "y": None}
    axes = read_study(study).columns.cube.axes
    assert [axis.warp for axis in axes] == ["log", None]
    again = CalibratedSampler(seed=0, strategy="plain+warped", n_startup_trials=3)
    study.sampler = again
    study.ask().suggest_float("x", 0, 1)
    assert read_settings(study).warps == {"x": "log", "y": None}, "another sampler of the study uses the same"


def test_warps_are_those_of_the_space_unless_others_are_given():
    space = Space({"x": Float(0, 1, warp="log"), "y": Float(0, 1), "z": Categorical(["a", "b"])})
    assert CalibratedSampler(space=space).warps == {"x": "log"}
    assert CalibratedSampler(space=space, warp={"x": "auto", "y": "exp"}).warps == {"x": "auto", "y": "exp"}
    for bad in ({"z": "log"}, {"w": "log"}, {"x": "bend"}, "log"):
        with pytest.raises(InputError, match="`warp"):
            CalibratedSampler(space=space, warp=bad)


def test_a_warp_that_cannot_be_read_was_never_said():
    study = optuna.create_study()
    study.set_user_attr("calibo:warp", {"x": "bend", "y": "log"})
    assert read_settings(study).warps == {"y": "log"}
    study.set_user_attr("calibo:warp", 3)
    assert read_settings(study).warps == {}


def test_a_point_that_another_has_moved_to_meanwhile_is_taken():
    """Known as running elsewhere when we looked; by now it stands where we want to go."""
    study = optuna.create_study(sampler=CalibratedSampler(seed=0))
    distribution = {"x": optuna.distributions.FloatDistribution(0, 1)}
    for value in (0.1, 0.9):
        study.add_trial(optuna.create_trial(params={"x": value}, distributions=distribution, value=value))
    first, ours = study.ask(), study.ask()
    set_trial_attribute(study, first, TRIAL, {"params": {"x": 0.3}})
    history = read_study(study)
    left, right = np.array([0.3]), np.array([0.7])
    mine = study._storage.get_trial(ours._trial_id)
    assert not _taken(study, mine, history, left), "that was known when it was chosen"
    set_trial_attribute(study, first, TRIAL, {"params": {"x": 0.7}})
    assert _taken(study, mine, history, right)
    assert not _taken(study, mine, history, left)


# what a sampler stores beforehand


def known(value):
    return CalibratedSampler(seed=0, known_optimum=value, warp={"x": "log"}, n_startup_trials=2)


def stored_optimum(study):
    return read_settings(study).optimum.value


def test_threads_wait_until_side_information_is_stored(monkeypatch):
    real, seen = internals.set_study_attribute, []

    def slow(*args, **options):
        time.sleep(0.02)
        real(*args, **options)

    monkeypatch.setattr("calibo.optuna.schema.set_study_attribute", slow)
    study = optuna.create_study(sampler=known(0.0))

    def objective(trial):
        value = trial.suggest_float("x", 0, 1)
        seen.append((read_settings(study).optimum is not None, dict(read_settings(study).warps)))
        return value

    study.optimize(objective, 4, n_jobs=4)
    assert seen == [(True, {"x": "log"})] * 4


def test_what_could_not_be_stored_is_stored_with_the_next_trial(monkeypatch):
    study, real, calls = optuna.create_study(sampler=known(0.0)), internals.set_study_attribute, []

    def fails_once(*args, **options):
        calls.append(1)
        if len(calls) == 1:
            raise RuntimeError("database is locked")
        real(*args, **options)

    monkeypatch.setattr("calibo.optuna.schema.set_study_attribute", fails_once)
    with pytest.raises(RuntimeError, match="locked"):
        study.ask()
    study.ask()
    assert stored_optimum(study) == 0.0
    assert read_settings(study).strategy is not None


def test_a_study_that_is_created_again_is_prepared_again(tmp_path):
    storage, sampler = optuna.storages.RDBStorage(f"sqlite:///{tmp_path}/s.db"), known(0.0)
    for _ in range(2):
        study = optuna.create_study(study_name="s", storage=storage, sampler=sampler)
        study.optimize(bowl, 2)
        assert stored_optimum(study) == 0.0
        assert study.user_attrs["calibo:warp"] == {"x": "log"}
        optuna.delete_study(study_name="s", storage=storage)


def test_the_last_sampler_has_the_last_word():
    study, a, b = optuna.create_study(), known(0.0), known(-5.0)
    for sampler, wanted in ((a, 0.0), (b, -5.0), (a, 0.0)):
        study.sampler = sampler
        study.ask()
        assert stored_optimum(study) == wanted


class Wrapping(optuna.samplers.BaseSampler):
    """Forwards Optuna's three abstract methods, and no other."""

    def __init__(self, inner):
        self.inner = inner

    def infer_relative_search_space(self, study, trial):
        return self.inner.infer_relative_search_space(study, trial)

    def sample_relative(self, study, trial, search_space):
        return self.inner.sample_relative(study, trial, search_space)

    def sample_independent(self, study, trial, name, distribution):
        return self.inner.sample_independent(study, trial, name, distribution)


def test_a_wrapped_sampler_stores_what_it_knows():
    study = optuna.create_study(sampler=Wrapping(known(0.0)))
    study.optimize(bowl, 3)
    assert stored_optimum(study) == 0.0
    assert read_settings(study).warps == {"x": "log"}
