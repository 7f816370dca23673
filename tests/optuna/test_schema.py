"""What a study stores, and who remembers it: old studies, one schema, the strategy of a study, one reader."""

import gzip
import json
import shutil
import warnings
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import optuna
import pytest

import calibo
from calibo import CaliboWarning, CalibratedSampler, Float, InputError, Optimizer, Strategy, minimize
from calibo.acquisition import LowerBound
from calibo.calibration import Recalibrator
from calibo.calibration.aliases import ALIASES
from calibo.cli import main
from calibo.forecasts import CalibrationMap
from calibo.models import SourceTask, Transfer
from calibo.optuna import reader, schema
from calibo.optuna.reader import read_study
from calibo.optuna.schema import FITS, SCHEMA, STRATEGY, TRIAL, VERSION, fits_in, read_settings
from calibo.optuna.storages import open_storage
from calibo.parts import build, identity, register, spec
from calibo.presets import get_strategy
from calibo.study import Result

FIXTURES = Path(__file__).parents[1] / "fixtures"
BOX = {"x": Float(-2, 2), "y": Float(-1, 3)}


@pytest.fixture(autouse=True)
def quiet():
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def valley(trial):
    x, y = trial.suggest_float("x", -2, 2), trial.suggest_float("y", -1, 3)
    return (1 - x) ** 2 + 20 * (y - x * x) ** 2


def near(expected):
    """Numbers in hexadecimal, up to what another processor's arithmetic changes."""
    if isinstance(expected, dict):
        return {name: near(value) for name, value in expected.items()}
    if isinstance(expected, list):
        return [near(value) for value in expected]
    number = isinstance(expected, str) and "0x" in expected
    return pytest.approx(float.fromhex(expected), rel=1e-5, abs=1e-6) if number else expected


# studies of the first version


@pytest.fixture
def old(tmp_path):
    """Studies that were written before the schema had a version."""
    path = tmp_path / "old.log"
    path.write_bytes(gzip.decompress((FIXTURES / "schema1.log.gz").read_bytes()))
    return open_storage(path)


EXPECTED = json.loads((FIXTURES / "schema1.json").read_text())
OWN = {"plain": get_strategy("plain"), "papers": get_strategy("papers"), "function": get_strategy("plain", "auto")}
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
    default = replace(Strategy(), decide="always")  # as it was then
    study = optuna.load_study(study_name=name, storage=old, sampler=CalibratedSampler(seed=11))
    expected = EXPECTED[name]
    audit = calibo.audit(study)
    assert read_study(study).requested == OWN.get(name, default), "its strategy was the name of a preset"
    assert (len(audit.outcomes), sum(c.replayed for c in audit.outcomes)) == (expected["checked"], expected["replayed"])
    assert audit.raw.calibration_error == expected["error"]
    assert audit.calibrated.crps == pytest.approx(expected["crps"], rel=1e-6)
    own = replace(OWN.get(name, default), report=None)  # there was no report
    recommended = Result(study, own).recommendation
    assert recommended.params == near(expected["recommended"])
    assert list(recommended.interval) == near(expected["interval"])
    scores = read_study(study).observations.scores
    assert np.isfinite(scores).sum() == expected["checked"] - expected["replayed"], "old names of models are known"
    trial = study.ask()
    SUGGEST.get(name, valley)(trial)
    assert trial.params == near(expected["params"])
    assert read_settings(study).strategy, "from now on the strategy is stored whole"


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
    assert optimizer.strategy == get_strategy("plain+bagged")
    assert len(optimizer.trials) == expected["trials"]
    assert all(trial.record is not None for trial in optimizer.trials[4:])
    assert [optimizer.ask() for _ in range(2)] == near(expected["params"])
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
    assert room < 1300


# the strategy of a study


def test_a_study_remembers_its_strategy(tmp_path):
    place = f"sqlite:///{tmp_path / 'a.db'}"
    own = Strategy(surrogate=get_strategy("plain").surrogate, acquisition=LowerBound(1.3), initial=3)
    study = optuna.create_study(storage=place, study_name="a", sampler=CalibratedSampler(strategy=own, seed=0))
    study.optimize(valley, 5)
    again = optuna.load_study(storage=place, study_name="a", sampler=CalibratedSampler(seed=0))
    again.optimize(valley, 2)
    twin = optuna.create_study(sampler=CalibratedSampler(strategy=own, seed=0))
    twin.optimize(valley, 7)
    assert [trial.params for trial in again.trials] == [trial.params for trial in twin.trials]
    for read in (read_study(again), read_study(optuna.load_study(storage=place, study_name="a"))):
        assert read.requested == own
    assert (
        calibo.forecast(again, {"x": 0.0, "y": 0.0}).median
        == calibo.forecast(again, {"x": 0.0, "y": 0.0}, strategy=own).median
    )
    assert (
        calibo.forecast(again, {"x": 0.0, "y": 0.0}).median
        != calibo.forecast(again, {"x": 0.0, "y": 0.0}, strategy="plain").median
    )


def test_another_strategy_is_used_recorded_and_said_once():
    study = optuna.create_study(study_name="s", sampler=CalibratedSampler(strategy="plain", seed=0))
    study.optimize(valley, 6)
    study.sampler = CalibratedSampler(strategy="lcb", seed=0)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        study.optimize(valley, 3)
    assert [str(warning.message) for warning in told] == [
        "The study 's' was created with the strategy 'plain', and continues with 'lcb', as requested. "
        "Omit `strategy` to continue with its own."
    ]
    lcb = identity(get_strategy("lcb"))
    assert [trial.system_attrs[TRIAL].get("strategy") for trial in study.trials] == [None] * 6 + [lcb] * 3
    assert [read_settings(study).strategy["label"], read_settings(study).others[lcb]["label"]] == ["plain", "lcb"]
    assert build(read_settings(study).others[lcb]["spec"]) == get_strategy("lcb")
    study.sampler = CalibratedSampler(seed=0)
    study.optimize(valley, 1)
    assert read_study(study).requested == get_strategy("plain")
    assert study.trials[-1].system_attrs[TRIAL].get("strategy") is None


@pytest.mark.parametrize("options", [{"recalibrate": "never"}, {"n_startup_trials": 9}], ids=["recalibrate", "initial"])
def test_what_is_asked_for_beside_the_strategy_changes_the_studys_own(options):
    study = optuna.create_study(sampler=CalibratedSampler(strategy="lcb", seed=0))
    study.optimize(valley, 5)
    study.sampler = CalibratedSampler(seed=0, **options)
    with pytest.warns(CaliboWarning, match="was created with the strategy 'lcb'"):
        study.optimize(valley, 1)
    used = read_study(study).requested
    assert used.acquisition == LowerBound()
    assert used != get_strategy("lcb")


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
    assert (read_settings(study).strategy["label"], read_settings(study).others) == ("plain", {})
    assert all("strategy" not in trial.system_attrs[TRIAL] for trial in study.trials)
    capsys.readouterr()
    shown = {}
    for words in ([], ["--strategy", "plain"], ["--strategy", "default"]):
        assert main(["show", "f", *words]) == 0
        shown[" ".join(words)] = capsys.readouterr().out.partition("Recommended")[2]
    assert shown[""] == shown["--strategy plain"] != shown["--strategy default"]
    assert main(["ask", "f"]) == 0
    assert "was created with" not in capsys.readouterr().err
    assert main(["ask", "f", "--strategy", "lcb"]) == 0
    assert "was created with the strategy 'plain', and continues with 'lcb'" in capsys.readouterr().err


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
    assert read_study(study, "plain").requested == get_strategy("plain"), "another one may be given"
    for garbage in (3, {"spec": 5}, {"spec": {"part": "search"}}):
        study._storage.set_study_system_attr(study._study_id, STRATEGY, garbage)
        assert read_study(study).requested == get_strategy("default"), "what cannot be understood was never said"


def test_a_strategy_that_cannot_be_built_again_does_not_block_one_that_is_given():
    rng = np.random.default_rng(0)
    source = SourceTask("before", rng.random((6, 2)), rng.random(6), np.full(6, np.nan))
    made = Strategy(surrogate=Transfer((source,)), initial=3)
    study = optuna.create_study(sampler=CalibratedSampler(strategy=made, seed=0))
    study.optimize(valley, 6)
    assert len(study.trials) == 6
    with pytest.raises(InputError, match="The part 'source' holds data and cannot be built"):
        read_study(optuna.load_study(study_name=study.study_name, storage=study._storage))
    study.sampler = CalibratedSampler(strategy="plain", seed=0)
    with pytest.warns(CaliboWarning, match="was created with the strategy 'custom"):
        study.optimize(valley, 1)


@register("weighted")
@dataclass(frozen=True)
class Weighted(Recalibrator):
    """A recalibrator with a list and a number that is none."""

    weights: list = field(default_factory=lambda: [1.0, 2.0])
    unknown: float = float("nan")

    def fit(self, scores):
        return CalibrationMap()


def test_a_strategy_is_the_same_by_its_identity():
    """A list comes back as a tuple, and NaN is never equal to itself."""
    for _ in range(2):
        study = optuna.create_study(sampler=CalibratedSampler(strategy=Strategy(recalibrator=Weighted()), seed=0))
        study.optimize(valley, 2)
        study.sampler = CalibratedSampler(strategy=Strategy(recalibrator=Weighted()), seed=0)
        study.optimize(valley, 1)
    part = Weighted()
    before = identity(part)
    part.weights.append(3.0)
    assert identity(part) != before


def test_other_strategies_never_stand_for_the_studys_own():
    study = optuna.create_study(sampler=CalibratedSampler(strategy="plain", seed=0))
    study.optimize(valley, 2)
    stored = read_settings(study).strategy
    forged = {**stored, "spec": spec(get_strategy("lcb"))}
    study._storage.set_study_system_attr(study._study_id, f"{STRATEGY}:zz", forged)
    assert read_study(study).requested == get_strategy("plain")


SPEC = spec(get_strategy("default"))


@pytest.mark.parametrize(
    "damage",
    [
        {"initial": 10**400},
        {"initial": "a"},
        {"surrogate": {"part": "transfer", "sources": [1], "recipe": "x"}},
        {"surrogate": {"part": "model-choice", "recipes": [["a"]]}},
        {"surrogate": {"part": "gaussian-process", "priors": None}},
        {"surrogate": {"part": "gaussian-process", "growth": "a"}},
        {"surrogate": {"part": "gaussian-process", "kernel": {"part": "sum", "first": 1, "second": 2}}},
        {"recalibrator": {"part": "gate", "recalibrator": 5}},
        {"recalibrator": {"part": "gate", "window": 10**400}},
        {"surrogate": json.loads("[" * 900 + "]" * 900)},
        {"search": None},
    ],
    ids=range(11),
)
def test_a_damaged_strategy_is_a_sentence(damage):
    study = optuna.create_study(sampler=CalibratedSampler(strategy="plain", seed=0))
    study.optimize(valley, 5)
    study._storage.set_study_system_attr(study._study_id, STRATEGY, {"label": "d", "spec": {**SPEC, **damage}})
    study.sampler = CalibratedSampler(seed=0)
    harmless = [{"initial": 10**400}, {"recalibrator": {"part": "gate", "window": 10**400}}]  # large, and whole numbers
    with nullcontext() if damage in harmless else pytest.raises(InputError, match=r"\.$"):
        study.optimize(valley, 1)
    study.sampler = CalibratedSampler(strategy="plain", seed=0)
    with pytest.warns(CaliboWarning, match="was created with the strategy 'd'"):
        study.optimize(valley, 1)


@pytest.mark.parametrize(
    "attributes",
    [
        {TRIAL: {"params": {"x": 10**400, "y": 1.0}, "forecast": None}},
        {TRIAL: {"params": {"x": float("inf"), "y": 0.5}}},
        {"retry_history": [[1], 10**400, "a"]},
        {FITS: {"surrogate": {"a": "f8:%%%", "b": "f8:999999999999999999999999:AAAA", "c": "f8:"}}},
        {"calibo:noise": "a lot"},
    ],
    ids=["large", "infinite", "retries", "packed", "noise"],
)
@pytest.mark.filterwarnings("ignore:The user attribute")
def test_damaged_trials_stop_nothing(attributes):
    study = optuna.create_study(sampler=CalibratedSampler(strategy="plain", seed=0))
    study.optimize(valley, 4)
    last = study.trials[-1]
    for state, value in ((optuna.trial.TrialState.COMPLETE, 1.0), (optuna.trial.TrialState.RUNNING, None)):
        study.add_trial(
            optuna.trial.create_trial(
                params=last.params,
                distributions=last.distributions,
                value=value,
                state=state,
                system_attrs=attributes,
                user_attrs=attributes,
            )
        )
    study.optimize(valley, 2)
    assert len(calibo.audit(study).outcomes) >= 1


def test_densities_that_are_no_numbers_are_computed_again():
    study = optuna.create_study(sampler=CalibratedSampler(seed=0))
    study.optimize(valley, 9)
    known = {
        key: [float("nan")] * 3 for t in study.trials for key in fits_in(t).get("surrogate", {}) if "stream" in key
    }
    assert known
    twins = []
    for extra in ({}, {FITS: {"surrogate": known}}):
        twin = optuna.create_study(sampler=CalibratedSampler(seed=0))
        for trial in study.trials:
            attributes = {**trial.system_attrs, FITS: {}, **extra}
            twin.add_trial(
                optuna.trial.create_trial(
                    params=trial.params, distributions=trial.distributions, value=trial.value, system_attrs=attributes
                )
            )
        twin.optimize(valley, 1)
        twins.append(twin.trials[-1].params)
    assert twins[0] == twins[1]


# one reader


def test_a_process_parses_a_finished_trial_once(monkeypatch):
    parsed, real = [], schema.Record.from_json
    monkeypatch.setattr(schema.Record, "from_json", staticmethod(lambda stored: (parsed.append(1), real(stored))[1]))
    study = optuna.create_study(sampler=CalibratedSampler(seed=0, strategy="plain"))
    study.optimize(valley, 15)
    before = len(parsed)
    calibo.audit(study)
    calibo.forecast(study, {"x": 0.0, "y": 0.0})
    assert len(parsed) - before <= 2, "the last trial, which had not been read yet"
    assert before < 15 * 8, "but for some times while it runs"
    again = optuna.load_study(study_name=study.study_name, storage=study._storage)
    read_study(again)
    assert len(parsed) - before <= 2, "another object of the same study"


def test_studies_of_one_storage_are_told_apart(tmp_path):
    store = open_storage(tmp_path / "s.db")
    for name, shift in (("a", 0.0), ("b", 5.0)):
        study = optuna.create_study(study_name=name, storage=store, sampler=CalibratedSampler(seed=0, strategy="plain"))
        study.optimize(lambda t, shift=shift: valley(t) + shift, 6)
    a, b = (read_study(optuna.load_study(study_name=name, storage=store)) for name in ("a", "b"))
    np.testing.assert_allclose(b.observations.y[:4], a.observations.y[:4] + 5.0)
    assert a.records[-1].raw.mean_and_std != b.records[-1].raw.mean_and_std


def test_what_a_process_has_parsed_goes_with_its_storage(tmp_path):
    store = open_storage(tmp_path / "s.db")
    study = optuna.create_study(storage=store, sampler=CalibratedSampler(seed=0, strategy="plain"))
    study.optimize(valley, 5)
    assert store in reader._CACHES
    count = len(reader._CACHES)
    del study, store
    import gc

    gc.collect()
    assert len(reader._CACHES) < count


def test_a_study_that_takes_the_number_of_a_deleted_one_is_another(tmp_path):
    store = optuna.storages.RDBStorage(f"sqlite:///{tmp_path / 's.db'}")

    def made(shift):
        study = optuna.create_study(study_name="s", storage=store, sampler=CalibratedSampler(seed=0, strategy="plain"))
        study.optimize(lambda t: valley(t) + shift, 8)
        return read_study(study)

    first = made(0.0)
    optuna.delete_study(study_name="s", storage=store)
    second = made(5.0)
    assert all(record is not None for record in second.records[4:])
    assert np.isfinite(second.observations.scores).sum() == 4
    assert [r.raw.mean_and_std for r in second.records[4:]] != [r.raw.mean_and_std for r in first.records[4:]]


def test_a_deleted_study_is_told(tmp_path):
    store = optuna.storages.RDBStorage(f"sqlite:///{tmp_path / 's.db'}")
    study = optuna.create_study(study_name="s", storage=store, sampler=CalibratedSampler(seed=0, strategy="plain"))
    study.optimize(valley, 5)
    optuna.delete_study(study_name="s", storage=store)
    with pytest.raises(InputError, match="must exist, but 's' has been deleted"):
        calibo.audit(study)


def test_what_was_read_cannot_be_changed():
    study = optuna.create_study(sampler=CalibratedSampler(seed=0))
    study.optimize(valley, 7)
    for record in read_study(study).records[4:]:
        for array in (record.raw.raw.loc, record.raw.raw.scale, record.raw.map.knots, record.raw.map.values):
            assert not array.size or not array.flags.writeable


def test_nonsense_is_told_once():
    study = optuna.create_study(sampler=CalibratedSampler(seed=0, strategy="plain"))
    study.optimize(valley, 3)
    last = study.trials[-1]
    study.add_trial(
        optuna.trial.create_trial(
            params=last.params, distributions=last.distributions, value=1.0, user_attrs={"calibo:noise": "a lot"}
        )
    )
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        study.optimize(valley, 3)
        calibo.audit(study)
    assert len(told) == 1


def test_an_earlier_study_of_an_earlier_one_is_not_spoken_of():
    first = optuna.create_study(study_name="first")
    first.optimize(lambda t: t.suggest_float("x", -2, 2) + t.suggest_float("z", 0, 1), 6)
    second = optuna.create_study(study_name="second", sampler=CalibratedSampler(seed=0, transfer_from=[first]))
    with pytest.warns(CaliboWarning, match="is used only on"):
        second.optimize(valley, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CalibratedSampler(seed=0, transfer_from=[second])


def test_what_an_earlier_study_found_fits_into_every_database():
    wide = optuna.create_study(study_name="wide", sampler=optuna.samplers.RandomSampler(seed=0))
    wide.optimize(lambda t: sum(t.suggest_float(f"a parameter with a long name {i}", 0, 1) for i in range(30)), 100)
    study = optuna.create_study(sampler=CalibratedSampler(seed=0, strategy="plain", transfer_from=[wide]))
    with pytest.warns(CaliboWarning, match="Of the 100 outcomes of 'wide'"):
        study.ask()
    (stored,) = read_settings(study).sources.values()
    assert len(json.dumps(stored)) < 65_535
    assert len(stored["values"]) > 30


# mended on the way


def test_the_list_of_studies_has_room_for_several_objectives(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    several = optuna.create_study(study_name="a", storage="sqlite:///calibo.db", directions=["minimize", "maximize"])
    several.optimize(lambda t: (t.suggest_float("x", 0, 1), 1.0), 2)
    optuna.create_study(study_name="b", storage="sqlite:///calibo.db").optimize(lambda t: t.suggest_float("x", 0, 1), 2)
    assert main(["show"]) == 0
    assert "minimize and maximize" in capsys.readouterr().out


def test_an_ask_that_fails_begins_no_trial(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("space.toml").write_text('[parameters.x]\ntype = "float"\nlow = 0.0\nhigh = 1.0\n')
    assert main(["ask", "paint", "--space", "space.toml"]) == 0
    assert main(["ask", "paint", "--strategy", "plain+erm"]) == 2
    assert "--known-optimum must be given" in capsys.readouterr().err
    assert main(["tell", "paint", "0.5"]) == 0, "one trial is open"
    study = optuna.load_study(study_name="paint", storage="sqlite:///calibo.db")
    theirs = {"label": "theirs", "spec": {**spec(Strategy()), "search": {"part": "theirs"}}}
    study._storage.set_study_system_attr(study._study_id, STRATEGY, theirs)
    study.set_user_attr("calibo:optimum", {"value": 0.0})
    assert main(["tell", "paint", "0.4", "--at", "x=0.2"]) == 0, "what was told is stored"
    assert "is reached: The part 'theirs' is not registered" in capsys.readouterr().err
    assert main(["ask", "paint"]) == 2
    assert main(["ask", "paint", "--strategy", "plain"]) == 0


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


@pytest.mark.parametrize("name", ["default", "plain", "papers"])
def test_a_strategy_stored_before_there_was_a_rule_of_decisions_keeps_its_own(name):
    stored = spec(get_strategy(name))
    del stored["decide"]
    assert build(stored).decide == "always"
    assert (build(stored) == get_strategy(name)) == (name != "default")
