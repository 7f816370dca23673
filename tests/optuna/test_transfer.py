"""Learning from earlier studies."""

import json
import pickle
import warnings

import numpy as np
import optuna
import pytest

from calibo import CaliboWarning, CalibratedSampler, Float, InputError, Int, StopWhenUnlikely, audit, forecast, optimize
from calibo.cli import main
from calibo.models import GaussianProcess, Transfer
from calibo.optuna import schema, transfer
from calibo.optuna.prior_studies import PriorStudy
from calibo.optuna.reader import read_study
from calibo.optuna.transfer import read_prior_studies
from calibo.presets import get_strategy
from calibo.side_information import PRIOR_STUDIES


@pytest.fixture(autouse=True)
def quiet():
    optuna.logging.set_verbosity(optuna.logging.ERROR)


BOX = {"x": Float(0, 1), "y": Float(0, 1)}


def bowl(trial, shift=0.0):
    x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
    return (x - 0.3 - shift) ** 2 + np.sin(5 * (y - 0.6)) ** 2


def earlier(objective=bowl, n=25, storage=None, name="earlier", direction="minimize"):
    study = optuna.create_study(
        study_name=name, storage=storage, direction=direction, sampler=optuna.samplers.RandomSampler(seed=3)
    )
    study.optimize(objective, n)
    return study


def recorded(trial):
    return schema.records_of(trial, schema.read_trial(trial))[0]


def rival(study):
    """The recipe of the model that knows the sources, as whoever opens the study finds it."""
    _, joint = read_study(study, "plain").strategy.surrogate.recipes[0]
    assert isinstance(joint, Transfer)
    return joint


def test_a_study_that_is_alike_is_believed():
    study = optuna.create_study(sampler=CalibratedSampler(seed=0, transfer_from=[earlier()]))
    study.optimize(lambda trial: 100.0 * bowl(trial) + 7.0, 9)
    last = recorded(study.trials[-1])
    assert last.models[PRIOR_STUDIES] > 0.9
    assert study.best_value < 12.0
    assert recorded(study.trials[2]) is not None, "with something to begin with, the model begins early"


def test_a_study_that_was_maximised_is_turned_round():
    turned = earlier(lambda trial: -bowl(trial), direction="maximize")
    study = optuna.create_study(sampler=CalibratedSampler(seed=0, transfer_from=turned, strategy="plain"))
    study.optimize(bowl, 8)
    joint = rival(study)
    fitted = joint.fit(read_study(study).observations.valid(), rng=np.random.default_rng(0))
    assert fitted.correlations[1] > 0.7


def test_a_study_that_misleads_is_not_believed():
    rng = np.random.default_rng(0)
    noise = earlier(lambda trial: bowl(trial) * 0 + rng.standard_normal())
    study = optuna.create_study(sampler=CalibratedSampler(seed=0, transfer_from=[noise], strategy="plain"))
    study.optimize(bowl, 14)
    data, rng = read_study(study).observations.valid(), np.random.default_rng(1)
    with_it, without = (recipe.fit(data, rng=rng) for recipe in (rival(study), GaussianProcess()))
    x = rng.random((200, 2))
    change = with_it.posterior(x).loc - without.posterior(x).loc
    assert np.sqrt(np.mean(change**2)) < 0.15 * data.y.std(), "it is taken for noise"
    assert study.best_value < 0.02


def test_spaces_that_differ_are_joined_on_what_they_share():
    def other(trial):
        return bowl(trial) + 0.1 * trial.suggest_int("old", 1, 5)

    def objective(x, y, new):
        return (x - 0.3) ** 2 + np.sin(5 * (y - 0.6)) ** 2 + 0.1 * new

    space = {"x": Float(0, 1), "y": Float(0, 1), "new": Int(0, 3)}
    with pytest.warns(CaliboWarning, match=r"on \['x', 'y'\]: only it has \['old'\], and only this one has \['new'\]"):
        result = optimize(objective, space, 6, seed=0, progress=False, transfer_from=[earlier(other)])
    assert PRIOR_STUDIES in recorded(result.study.trials[-1]).models


def test_nothing_in_common_is_told():
    study = optuna.create_study(sampler=CalibratedSampler(seed=0, transfer_from=[earlier()]))
    with pytest.warns(CaliboWarning, match="it has 0 outcomes within the bounds of shared parameters"):
        study.optimize(lambda trial: trial.suggest_float("z", 0, 1), 3)


def test_a_study_does_not_learn_from_itself(tmp_path):
    url = f"sqlite:///{tmp_path}/all.db"
    earlier(n=6, storage=url, name="old")
    for n in (3, 6):  # begun, and resumed
        result = optimize(lambda x, y: x + y, BOX, n, storage=url, study_name="new", progress=False, transfer_from=url)
        assert [source.name for source in rival(result.study).sources] == ["old"]


def test_sources_bring_their_noise_and_leave_out_what_was_not_feasible():
    def objective(trial):
        value = bowl(trial)
        trial.set_user_attr("calibo:noise", 0.25)
        trial.set_constraint("c", trial.params["x"] - 0.7)
        return value

    old = earlier(objective, n=20)
    study = optuna.create_study(sampler=CalibratedSampler(seed=0, transfer_from=[old]))
    study.optimize(bowl, 4)
    (source,) = rival(study).sources
    assert len(source.y) == sum(trial.params["x"] <= 0.7 for trial in old.trials)
    np.testing.assert_array_equal(source.noise_std, 0.25)


def test_what_needs_one_process_cannot_transfer():
    with pytest.raises(InputError, match="`transfer_from` needs an acquisition that takes several models"):
        CalibratedSampler(strategy="plain+adaptive", transfer_from=[earlier(n=3)])


def test_a_study_without_outcomes_is_left_out_with_a_word():
    empty = optuna.create_study(study_name="empty")
    empty.optimize(bowl, 1)
    study = optuna.create_study(sampler=CalibratedSampler(seed=0, transfer_from=[empty]))
    with pytest.warns(CaliboWarning, match="'empty' is ignored: it has 1 outcomes"):
        study.optimize(bowl, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error", CaliboWarning)
        study.optimize(bowl, 1)  # said once


def test_a_storage_stands_for_its_studies(tmp_path):
    url = f"sqlite:///{tmp_path}/old.db"
    earlier(n=3, storage=url, name="a")
    earlier(n=3, storage=url, name="b")
    assert [found.name for found in read_prior_studies(url)] == ["a", "b"]
    assert len(read_prior_studies([url, earlier(n=2)])) == 3
    for bad in ([3], 3, None, f"sqlite:///{tmp_path}/none.db"):
        with pytest.raises(InputError):
            read_prior_studies(bad)


def test_a_sampler_that_transfers_can_be_sent_elsewhere(tmp_path):
    old = earlier(n=6, storage=f"sqlite:///{tmp_path}/old.db")
    sampler = pickle.loads(pickle.dumps(CalibratedSampler(seed=0, transfer_from=[old])))
    study = optuna.create_study(sampler=sampler)
    study.optimize(bowl, 4)
    assert PRIOR_STUDIES in recorded(study.trials[-1]).models


def test_what_others_have_found_is_stored_with_the_study(tmp_path):
    """So that a source may grow or vanish, and a fresh process still believes the same."""
    url, store = f"sqlite:///{tmp_path}/new.db", f"sqlite:///{tmp_path}/old.db"
    old = earlier(n=8, storage=store)
    study = optuna.create_study(
        study_name="new", storage=url, sampler=CalibratedSampler(seed=0, strategy="plain", transfer_from=[old])
    )
    study.optimize(bowl, 4)
    at = {"x": 0.3, "y": 0.2}
    before, known = forecast(study, at).interval(0.9), rival(study)
    old.optimize(bowl, 3)
    again = optuna.load_study(study_name="new", storage=url, sampler=CalibratedSampler(seed=0, strategy="plain"))
    assert forecast(again, at).interval(0.9) == before
    optuna.delete_study(study_name="earlier", storage=store)
    assert rival(again) == known
    again.optimize(bowl, 1)
    assert PRIOR_STUDIES in recorded(again.trials[-1]).models, "who goes on need not name the sources again"
    assert len(rival(again).sources[0].y) == 8


def test_a_further_source_is_added_and_the_others_stay():
    one, two = earlier(n=5, name="one"), earlier(n=6, name="two")
    study = optuna.create_study(sampler=CalibratedSampler(seed=0, strategy="plain", transfer_from=[one]))
    study.optimize(bowl, 3)
    one.optimize(bowl, 2)
    study.sampler = CalibratedSampler(seed=0, strategy="plain", transfer_from=[one, two])
    study.optimize(bowl, 1)
    assert [(source.name, len(source.y)) for source in rival(study).sources] == [("one", 5), ("two", 6)]


def test_of_many_outcomes_the_best_and_some_others_are_learned_from(monkeypatch):
    monkeypatch.setattr(transfer, "MOST_OUTCOMES", 20)
    old = earlier(n=50)
    study = optuna.create_study(sampler=CalibratedSampler(seed=0, strategy="plain", transfer_from=[old]))
    with pytest.warns(CaliboWarning, match="Of the 50 outcomes of 'earlier', 20 are used"):
        study.optimize(bowl, 2)
    joint = rival(study)
    values = sorted(trial.value for trial in old.trials)
    assert set(values[:10]) <= set(joint.sources[0].y)
    assert len(joint.sources[0].y) == 20
    assert max(joint.sources[0].y) > values[30], "some are bad"


GOOD = {"name": "a", "begun": None, "params": [{"x": 0.1}, {"x": 0.2}], "values": [1.0, 2.0], "noise": [None, 0.1]}


def test_what_is_stored_by_others_is_not_believed():
    study = optuna.create_study(sampler=CalibratedSampler(seed=0, strategy="plain", transfer_from=[earlier(n=5)]))
    study.optimize(bowl, 2)
    for garbage in ("x", [3], [["k"]], ["0123"], {}, None):
        other = optuna.create_study()
        other._storage.set_study_system_attr(other._study_id, "calibo:earlier", garbage)
        other._storage.set_study_system_attr(other._study_id, "calibo:source:0123", garbage)
        other.add_trials(study.trials)
        assert read_study(other, "plain").strategy == get_strategy("plain")


@pytest.mark.parametrize(
    ("part", "garbage"),
    [
        ("name", 3),
        ("begun", 3),
        ("params", None),
        ("params", [1, 2]),
        ("params", [{}]),
        ("values", "ab"),
        ("values", ["a", "b"]),
        ("values", [float("nan"), 1.0]),
        ("values", [10**400, 1.0]),
        ("values", [[1.0], [2.0]]),
        ("values", [True, 1.0]),
        ("noise", ["a", None]),
        ("noise", [-1.0, None]),
        ("noise", [float("inf"), None]),
    ],
)
def test_what_can_be_read_is_what_was_written(part, garbage):
    assert PriorStudy.from_json(GOOD) is not None
    assert PriorStudy.from_json({**GOOD, part: garbage}) is None
    without = PriorStudy.from_json({key: value for key, value in GOOD.items() if key != part})
    assert without is None or part == "begun", "when it was begun need not be known"


def test_one_sampler_serves_several_studies():
    sampler = CalibratedSampler(seed=0, strategy="plain", transfer_from=[earlier(n=5)])
    for _ in range(2):
        study = optuna.create_study(study_name="same", sampler=sampler)
        study.optimize(bowl, 3)
        assert len(rival(study).sources) == 1


def test_sources_of_one_name_are_told_apart():
    one, two = earlier(n=5), earlier(n=6)
    study = optuna.create_study(sampler=CalibratedSampler(seed=0, strategy="plain", transfer_from=[one, two]))
    study.optimize(bowl, 2)
    assert sorted(len(source.y) for source in rival(study).sources) == [5, 6]


def test_studies_without_outcomes_take_no_room_and_may_come_later(monkeypatch):
    monkeypatch.setattr(transfer, "MOST_OUTCOMES", 12)
    late = optuna.create_study(study_name="late")
    many = [optuna.create_study(study_name=f"empty{i}") for i in range(5)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CaliboWarning)
        study = optuna.create_study(
            sampler=CalibratedSampler(seed=0, strategy="plain", transfer_from=[earlier(n=8), late, *many])
        )
        study.optimize(bowl, 2)
        late.optimize(bowl, 9)
        study.sampler = CalibratedSampler(seed=0, strategy="plain", transfer_from=[late])
        study.optimize(bowl, 1)
    assert [len(source.y) for source in rival(study).sources] == [8, 4], "in all no more than there is room for"


def test_not_more_studies_than_can_be_compared():
    sources = [earlier(n=3, name=f"s{i}") for i in range(10)]
    study = optuna.create_study(sampler=CalibratedSampler(seed=0, strategy="plain", transfer_from=sources))
    with pytest.warns(CaliboWarning, match=r"The prior studies \['s8', 's9'\] are ignored"):
        study.optimize(bowl, 2)
    assert len(rival(study).sources) == transfer.MOST_STUDIES


def test_categories_that_cannot_be_stored_are_left_out():
    def odd(trial):
        return bowl(trial) + (trial.suggest_categorical("kind", [(1, 2), "a", "b"]) == "a")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        old = earlier(odd, n=20)
        study = optuna.create_study(sampler=CalibratedSampler(seed=0, strategy="plain", transfer_from=[old]))
        study.optimize(odd, 3)
    kinds = [trial.params["kind"] for trial in old.trials]
    assert len(rival(study).sources[0].y) == sum(isinstance(kind, str) for kind in kinds) < 20


def test_a_deleted_study_is_told_before_anything_runs():
    old = earlier(n=4)
    optuna.delete_study(study_name="earlier", storage=old._storage)
    with pytest.raises(InputError, match="'earlier' has been deleted"):
        CalibratedSampler(transfer_from=[old])


def test_a_pruner_does_not_make_a_study_its_own_source(tmp_path):
    url = f"sqlite:///{tmp_path}/all.db"
    earlier(n=6, storage=url, name="old")

    def objective(trial):
        for step in range(9):
            trial.report(bowl(trial), step)
            trial.should_prune()
        return bowl(trial)

    for _ in range(2):
        sampler = CalibratedSampler(seed=0, strategy="plain", transfer_from=url)
        pruner = optuna.pruners.HyperbandPruner(max_resource=9)
        study = optuna.create_study(study_name="new", storage=url, sampler=sampler, pruner=pruner, load_if_exists=True)
        study.optimize(objective, 4)
    assert [source.name for source in rival(study).sources] == ["old"]


def test_stopping_rules_know_the_sources():
    old = earlier(n=20)
    result = optimize(
        lambda x, y: (x - 0.3) ** 2 + np.sin(5 * (y - 0.6)) ** 2,
        BOX,
        12,
        seed=0,
        progress=False,
        transfer_from=[old],
        callbacks=[StopWhenUnlikely(0.01)],
    )
    assert len(result.study.trials) < 12
    assert PRIOR_STUDIES in audit(result).outcomes[-1].record.models
    assert result.recommendation.median < 0.5


def test_two_nearly_equal_outcomes_do_not_hide_what_the_sources_know():
    """The first trials lie far from the valley, the third goes to where the earlier study found it."""

    def valley(trial, cost=1.0):
        rate, momentum = trial.suggest_float("rate", 1e-4, 1.0), trial.suggest_float("momentum", 0.0, 1.0)
        return cost * ((np.log10(rate) + 1.7) ** 2 + 2 * (momentum - 0.8) ** 2)

    old = optuna.create_study(study_name="old", sampler=CalibratedSampler(seed=5, strategy="plain"))
    old.optimize(lambda trial: valley(trial, 4.0), 30)
    study = optuna.create_study(sampler=CalibratedSampler(seed=0, strategy="plain", transfer_from=[old]))
    for rate in (0.7, 0.9):
        study.enqueue_trial({"rate": rate, "momentum": 0.1})
    study.optimize(valley, 5)
    assert min(trial.value for trial in study.trials[:2]) > 3.0
    assert study.best_value < 0.5


def test_a_new_column_does_not_make_it_another_model():
    def wider(trial):
        return bowl(trial) + trial.suggest_float("z", 0, 1)

    study = optuna.create_study(sampler=CalibratedSampler(seed=0, strategy="plain", transfer_from=[earlier(n=8)]))
    study.optimize(bowl, 3)
    before = repr(rival(study))
    with pytest.warns(CaliboWarning, match="only this one has"):
        study.optimize(wider, 2)
    assert repr(rival(study)) == before


def test_asking_by_hand(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    earlier(n=12, storage="sqlite:///old.db")
    lines = [f'[parameters.{name}]\ntype = "float"\nlow = 0.0\nhigh = 1.0\n' for name in ("x", "y")]
    (tmp_path / "s.toml").write_text("".join(lines))
    ask = ["ask", "s", "--seed", "0", "--json"]
    for n in range(4):
        more = ["--space", "s.toml", "--transfer-from", "sqlite:///old.db"] if n == 0 else []
        assert main([*ask, *more]) == 0
        told = json.loads(capsys.readouterr().out)
        value = (told["params"]["x"] - 0.3) ** 2 + np.sin(5 * (told["params"]["y"] - 0.6)) ** 2
        assert main(["tell", "s", repr(float(value)), "--trial", str(n)]) == 0
        capsys.readouterr()
    study = optuna.load_study(study_name="s", storage="sqlite:///calibo.db")
    assert PRIOR_STUDIES in recorded(study.trials[-1]).models
    assert main(["show", "s"]) == 0


def test_on_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    earlier(n=8, storage="sqlite:///old.db")
    lines = ["def f(trial):", "    return trial.suggest_float('x', 0, 1) + trial.suggest_float('y', 0, 1)"]
    (tmp_path / "f.py").write_text("\n".join(lines))
    assert main(["run", "f.py:f", "--trials", "4", "--seed", "0", "--transfer-from", "sqlite:///old.db"]) == 0
    study = optuna.load_study(study_name="f", storage="sqlite:///calibo.db")
    assert PRIOR_STUDIES in recorded(study.trials[-1]).models
