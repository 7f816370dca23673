"""What a study stores, and who remembers it: old studies, one schema, the strategy of a study, one reader."""

import gzip
import json
import shutil
import warnings
from pathlib import Path

import numpy as np
import optuna
import pytest

import calibo
from calibo import CaliboWarning, CalibratedSampler, Float, InputError, Optimizer, Strategy, minimize
from calibo.acquisition import LowerBound
from calibo.adapters import reader, schema
from calibo.adapters.reader import read_study
from calibo.adapters.schema import FITS, SCHEMA, STRATEGY, TRIAL, VERSION, read_settings
from calibo.adapters.storage import opened
from calibo.calibration.aliases import ALIASES
from calibo.cli import main
from calibo.parts import build, identity, spec
from calibo.presets import named
from calibo.study import Result

FIXTURES = Path(__file__).parents[1] / "fixtures"
BOX = {"x": Float(-2, 2), "y": Float(-1, 3)}


@pytest.fixture(autouse=True)
def quiet():
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def valley(trial):
    x, y = trial.suggest_float("x", -2, 2), trial.suggest_float("y", -1, 3)
    return (1 - x) ** 2 + 20 * (y - x * x) ** 2


def shown(params):
    return {name: value.hex() if isinstance(value, float) else value for name, value in params.items()}


# studies of the first version


@pytest.fixture
def old(tmp_path):
    """Studies that were written before the schema had a version."""
    path = tmp_path / "old.log"
    path.write_bytes(gzip.decompress((FIXTURES / "schema1.log.gz").read_bytes()))
    return opened(path)


EXPECTED = json.loads((FIXTURES / "schema1.json").read_text())
OWN = {"plain": named("plain"), "papers": named("papers"), "function": named("plain", "auto")}
SUGGEST = {
    "conditional": lambda t: (
        t.suggest_float("rate", 1e-4, 1.0, log=True),
        t.suggest_categorical("kind", ["a", "b"]) == "a" and t.suggest_int("layers", 1, 8),
    ),
    "function": lambda t: (
        t.suggest_float("x", 0, 1),
        t.suggest_int("n", 1, 5),
        t.suggest_categorical("c", ["u", "v"]),
    ),
}


@pytest.mark.parametrize("name", ["default", "plain", "papers", "conditional", "function"])
def test_an_old_study_goes_on_as_it_would_have(name, old):
    study = optuna.load_study(study_name=name, storage=old, sampler=CalibratedSampler(seed=11))
    expected = EXPECTED[name]
    audit = calibo.audit(study)
    assert read_study(study).recipe == OWN.get(name, Strategy()), "its strategy was the name of a preset"
    assert (len(audit.outcomes), sum(c.replayed for c in audit.outcomes)) == (expected["checked"], expected["replayed"])
    assert audit.raw.calibration_error == expected["error"]
    assert audit.recalibrated.crps == pytest.approx(expected["crps"], rel=1e-12)
    recommended = Result(study).recommendation
    assert shown(recommended.params) == expected["recommended"]
    assert [end.hex() for end in recommended.interval] == expected["interval"]
    scores = read_study(study).observations.scores
    assert np.isfinite(scores).sum() == expected["checked"] - expected["replayed"], "old names of models are known"
    trial = study.ask()
    SUGGEST.get(name, valley)(trial)
    assert shown(trial.params) == expected["params"]
    assert read_settings(study).strategies, "from now on the strategy is stored whole"


@pytest.mark.parametrize("name", ["known", "after"])
def test_old_forecasts_of_a_model_that_knew_more_are_audited_and_replayed(name, old):
    """Its old name followed from the optimum, or from the outcomes of another study: no table has it."""
    study = optuna.load_study(study_name=name, storage=old, sampler=CalibratedSampler(seed=11))
    data, expected = read_study(study), EXPECTED[name]
    assert (data.optimum is not None) == (name == "known")
    assert len(data.settings.sources) == (name == "after")
    audit = calibo.audit(study)
    assert (len(audit.outcomes), sum(c.replayed for c in audit.outcomes)) == (expected["checked"], expected["replayed"])
    assert audit.raw.calibration_error == expected["error"]
    study.optimize(valley, 2)
    assert all(trial.state.name == "COMPLETE" for trial in study.trials[-2:])


def test_an_old_journal_of_an_optimizer_goes_on(tmp_path):
    shutil.copy(FIXTURES / "schema1.jsonl", tmp_path / "run.jsonl")
    optimizer, expected = Optimizer.load(tmp_path / "run.jsonl"), EXPECTED["optimizer"]
    assert optimizer.strategy == named("plain+bagged")
    assert len(optimizer.trials) == expected["trials"]
    assert all(trial.record is not None for trial in optimizer.trials[4:])
    assert [shown(optimizer.ask()) for _ in range(2)] == expected["params"]
    assert len(optimizer.pending) == expected["pending"]


def test_every_old_name_is_that_of_a_model():
    models = json.loads((FIXTURES / "schema1-models.json").read_text())
    assert {name: identity(build(stored)) for name, stored in models.items()} == ALIASES


def test_what_is_whole_comes_before_pieces_and_pieces_are_never_written():
    study = optuna.create_study(sampler=CalibratedSampler(seed=0, space=BOX))
    study.set_user_attr("calibo:space:0", '[{"name": "old", "kind": "float", "low": 0, "high": 1')
    study.set_user_attr("calibo:space:1", ', "log": false, "step": null}]')
    assert list(read_settings(study).space) == ["old"]
    schema.store_space(study, calibo.Space(BOX))
    assert list(read_settings(study).space) == ["x", "y"]
    study.optimize(valley, 7)
    written = {key for trial in study.trials for key in trial.system_attrs} | set(study.user_attrs)
    assert written == {TRIAL, FITS, SCHEMA, "calibo:space", "calibo:space:0", "calibo:space:1"}
    assert study.user_attrs[SCHEMA] == VERSION


def test_a_trial_takes_two_attributes_and_little_room():
    study = optuna.create_study(sampler=CalibratedSampler(seed=0))
    study.optimize(lambda t: sum((t.suggest_float(f"x{i}", -5, 5) - i) ** 2 * (1 + 9 * i) for i in range(4)), 30)
    ours = [{key: value for key, value in t.system_attrs.items() if key.startswith("calibo:")} for t in study.trials]
    assert max(len(attributes) for attributes in ours) == 2
    room = np.mean([sum(len(key) + len(json.dumps(value)) for key, value in each.items()) for each in ours])
    assert room < 900, "so that a second forecast of 300 fits into 1,200"


# the strategy of a study


def test_a_study_remembers_its_strategy(tmp_path):
    place = f"sqlite:///{tmp_path / 'a.db'}"
    own = Strategy(surrogate=named("plain").surrogate, acquisition=LowerBound(1.3), initial=3)
    study = optuna.create_study(storage=place, study_name="a", sampler=CalibratedSampler(strategy=own, seed=0))
    study.optimize(valley, 5)
    again = optuna.load_study(storage=place, study_name="a", sampler=CalibratedSampler(seed=0))
    again.optimize(valley, 2)
    twin = optuna.create_study(sampler=CalibratedSampler(strategy=own, seed=0))
    twin.optimize(valley, 7)
    assert [trial.params for trial in again.trials] == [trial.params for trial in twin.trials]
    for read in (read_study(again), read_study(optuna.load_study(storage=place, study_name="a"))):
        assert read.recipe == own
    assert (
        calibo.forecast(again, {"x": 0.0, "y": 0.0}).median
        == calibo.forecast(again, {"x": 0.0, "y": 0.0}, strategy=own).median
    )
    assert (
        calibo.forecast(again, {"x": 0.0, "y": 0.0}).median
        != calibo.forecast(again, {"x": 0.0, "y": 0.0}, strategy="default").median
    )


def test_another_strategy_is_used_recorded_and_said_once():
    study = optuna.create_study(study_name="s", sampler=CalibratedSampler(strategy="plain", seed=0))
    study.optimize(valley, 6)
    study.sampler = CalibratedSampler(strategy="lcb", seed=0)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        study.optimize(valley, 3)
    assert [str(warning.message) for warning in told] == [
        "The study 's' was begun with the strategy 'plain', and goes on with 'lcb', as asked for. "
        "Without `strategy` it goes on with its own."
    ]
    lcb = identity(named("lcb"))
    assert [trial.system_attrs[TRIAL].get("strategy") for trial in study.trials] == [None] * 6 + [lcb] * 3
    assert [stored["label"] for stored in read_settings(study).strategies.values()] == ["plain", "lcb"]
    assert build(read_settings(study).strategies[lcb]["spec"]) == named("lcb")
    study.sampler = CalibratedSampler(seed=0)
    study.optimize(valley, 1)
    assert read_study(study).recipe == named("plain")
    assert study.trials[-1].system_attrs[TRIAL].get("strategy") is None


@pytest.mark.parametrize("options", [{"recalibrate": "never"}, {"n_startup_trials": 9}], ids=["recalibrate", "initial"])
def test_what_is_asked_for_beside_the_strategy_changes_the_studys_own(options):
    study = optuna.create_study(sampler=CalibratedSampler(strategy="lcb", seed=0))
    study.optimize(valley, 5)
    study.sampler = CalibratedSampler(seed=0, **options)
    with pytest.warns(CaliboWarning, match="was begun with the strategy 'lcb'"):
        study.optimize(valley, 1)
    used = read_study(study).recipe
    assert used.acquisition == LowerBound()
    assert used != named("lcb")


def test_optimize_goes_on_with_the_strategy_of_the_study(tmp_path):
    def f(x, y):
        return (1 - x) ** 2 + 20 * (y - x * x) ** 2

    place = {"storage": tmp_path / "s.db", "study_name": "f", "seed": 0, "progress": False}
    minimize(f, BOX, 6, strategy="plain", **place)
    resumed = minimize(f, BOX, 9, **place)
    once = minimize(f, BOX, 9, strategy="plain", seed=0, progress=False)
    assert [t.params for t in resumed.study.trials] == [t.params for t in once.study.trials]
    assert resumed.recommendation == once.recommendation


def test_every_command_takes_the_strategy_of_the_study(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("f.py").write_text("def f(x):\n    return (x - 0.3) ** 2\n")
    Path("space.toml").write_text('[parameters.x]\ntype = "float"\nlow = 0.0\nhigh = 1.0\n')
    run = ["run", "f.py:f", "--space", "space.toml", "--seed", "0"]
    assert main([*run, "--trials", "6", "--strategy", "plain"]) == 0
    assert main([*run, "--trials", "8"]) == 0
    study = optuna.load_study(study_name="f", storage="sqlite:///calibo.db")
    assert [stored["label"] for stored in read_settings(study).strategies.values()] == ["plain"]
    assert all("strategy" not in trial.system_attrs[TRIAL] for trial in study.trials)
    capsys.readouterr()
    shown = {}
    for words in ([], ["--strategy", "plain"], ["--strategy", "default"]):
        assert main(["show", "f", *words]) == 0
        shown[" ".join(words)] = capsys.readouterr().out.partition("Recommended")[2]
    assert shown[""] == shown["--strategy plain"] != shown["--strategy default"]
    assert main(["ask", "f"]) == 0
    assert "was begun with" not in capsys.readouterr().err
    assert main(["ask", "f", "--strategy", "lcb"]) == 0
    assert "was begun with the strategy 'plain', and goes on with 'lcb'" in capsys.readouterr().err


def test_a_strategy_with_a_part_that_is_not_registered_is_an_error_that_names_it(tmp_path):
    study = optuna.create_study(sampler=CalibratedSampler(strategy="plain", seed=0))
    study.optimize(valley, 5)
    theirs = {
        "schema": 2,
        "label": "theirs",
        "identity": "0",
        "spec": {**spec(Strategy()), "search": {"part": "theirs"}},
    }
    study._storage.set_study_system_attr(study._study_id, STRATEGY, theirs)
    study.sampler = CalibratedSampler(seed=0)
    with pytest.raises(InputError, match=r"The part 'theirs' is not registered here\. Import the module"):
        read_study(study)
    assert read_study(study, "plain").recipe == named("plain"), "another one may be given"
    for garbage in (3, {"spec": 5}, {"spec": {"part": "search"}}):
        study._storage.set_study_system_attr(study._study_id, STRATEGY, garbage)
        assert read_study(study).recipe == named("default"), "what cannot be understood was never said"


# one reader


def test_a_process_parses_a_finished_trial_once(monkeypatch):
    parsed, real = [], schema.Record.of
    monkeypatch.setattr(schema.Record, "of", staticmethod(lambda stored: (parsed.append(1), real(stored))[1]))
    study = optuna.create_study(sampler=CalibratedSampler(seed=0, strategy="plain"))
    study.optimize(valley, 15)
    before = len(parsed)
    calibo.audit(study)
    calibo.forecast(study, {"x": 0.0, "y": 0.0})
    assert len(parsed) - before <= 1, "the last trial, which had not been read yet"
    assert before < 15 * 8, "but for some times while it runs"
    again = optuna.load_study(study_name=study.study_name, storage=study._storage)
    read_study(again)
    assert len(parsed) - before <= 1, "another object of the same study"


def test_studies_of_one_storage_are_told_apart(tmp_path):
    store = opened(tmp_path / "s.db")
    for name, shift in (("a", 0.0), ("b", 5.0)):
        study = optuna.create_study(study_name=name, storage=store, sampler=CalibratedSampler(seed=0, strategy="plain"))
        study.optimize(lambda t, shift=shift: valley(t) + shift, 6)
    a, b = (read_study(optuna.load_study(study_name=name, storage=store)) for name in ("a", "b"))
    np.testing.assert_allclose(b.observations.y[:4], a.observations.y[:4] + 5.0)
    assert a.records[-1].raw.mean_and_deviation != b.records[-1].raw.mean_and_deviation


def test_what_a_process_has_parsed_goes_with_its_storage(tmp_path):
    store = opened(tmp_path / "s.db")
    study = optuna.create_study(storage=store, sampler=CalibratedSampler(seed=0, strategy="plain"))
    study.optimize(valley, 5)
    assert store in reader._PARSED
    count = len(reader._PARSED)
    del study, store
    import gc

    gc.collect()
    assert len(reader._PARSED) < count


# mended on the way


def test_the_list_of_studies_shows_the_best_that_is_feasible(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        study = optuna.create_study(study_name=name, storage="sqlite:///calibo.db")
        for value, excess in ((1.0, 2.0), (7.0, -1.0)):
            trial = study.ask()
            trial.suggest_float("x", 0, 1)
            trial.set_constraint("weight", excess)
            study.tell(trial, value)
    assert main(["show"]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if "minimize" in line]
    assert len(rows) == 2
    assert all(" 7 " in row and " 1 " not in row for row in rows)


def test_an_audit_by_another_strategy_knows_the_optimum_too():
    optimizer = Optimizer(BOX, seed=0, known_optimum=0.0)
    rng = np.random.default_rng(0)
    for _ in range(9):
        x, y = float(rng.uniform(-2, 2)), float(rng.uniform(-1, 3))
        optimizer.tell({"x": x, "y": y}, (1 - x) ** 2 + 20 * (y - x * x) ** 2)
    twin = Optimizer(BOX, seed=0, strategy="plain+root+erm", known_optimum=0.0)
    for trial in optimizer.trials:
        twin.tell(trial.params, trial.value)
    audit = calibo.audit(optimizer, strategy="plain+root+erm")
    assert len(audit.outcomes) == 5
    np.testing.assert_array_equal(audit.pits["raw"], calibo.audit(twin).pits["raw"])
    assert not np.allclose(audit.pits["raw"], calibo.audit(optimizer).pits["raw"])
    with pytest.raises(InputError, match="`known_optimum` must be given"):
        calibo.audit(Optimizer(BOX), strategy="plain+root+erm")
