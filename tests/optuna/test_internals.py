"""What calibo needs of Optuna beyond its public API; where Optuna changes, the test of that name fails."""

import ast
from pathlib import Path

import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.storages import JournalStorage, RDBStorage
from optuna.trial import TrialState, create_trial

import calibo
from calibo.optuna import internals

SOURCES = Path(calibo.__file__).parent
UNIT = FloatDistribution(0.0, 1.0)


@pytest.fixture
def study():
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna.create_study()


def test_no_other_module_reaches_into_optuna():
    """By the names that Optuna's own objects have, and by its modules that begin with an underscore."""
    private = {"_storage", "_study_id", "_trial_id", "_stop_flag", "_thread_local", "_suggest", "_contains", "_backend"}
    private |= {"_file_path", "_study"}
    found = []
    for file in SOURCES.rglob("*.py"):
        if file.name == "internals.py":
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            reached = isinstance(node, ast.Attribute) and node.attr in private
            own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            hidden = any(m.startswith("optuna.") and "._" in m for m in modules)
            if (reached and not own) or hidden:
                found.append(f"{file.relative_to(SOURCES)}:{node.lineno}")
    assert not found


def test_storage_of(study):
    assert isinstance(internals.storage_of(study), optuna.storages.BaseStorage)


def test_backend_of(study, tmp_path):
    storage = RDBStorage(f"sqlite:///{tmp_path / 'a.db'}")
    first = optuna.create_study(study_name="a", storage=storage)
    second = optuna.load_study(study_name="a", storage=storage)
    assert internals.backend_of(first) is internals.backend_of(second) is storage
    assert internals.backend_of(study) is internals.storage_of(study), "in memory there is no cache"


def test_study_id(study):
    assert internals.study_id(study) == internals.storage_of(study).get_study_id_from_name(study.study_name)


def test_whole(study):
    seen = []

    class Looking(optuna.samplers.RandomSampler):
        def infer_relative_search_space(self, study, trial):
            seen.append((type(study).__name__, internals.unfiltered_study(study)))
            return {}

    partly = optuna.create_study(sampler=Looking(), pruner=optuna.pruners.HyperbandPruner())
    partly.optimize(lambda t: t.suggest_float("x", 0, 1), 2)
    assert not {kind for kind, _ in seen} & {"Study"}, "a pruner hands over a part of the study"
    assert all(internals.study_id(original) == internals.study_id(partly) for _, original in seen)
    assert internals.unfiltered_study(study) is study


def test_study_attributes(study):
    internals.set_study_attribute(study, "a", {"b": [1, 2.5]}, user=True)
    internals.set_study_attribute(study, "c", "d")
    assert internals.study_attributes(study) == ({"a": {"b": [1, 2.5]}}, {"c": "d"})
    assert study.user_attrs == {"a": {"b": [1, 2.5]}}


def test_trial_attributes(study):
    trial = study.ask()
    internals.set_trial_attribute(study, trial, "a", 1, user=True)
    internals.set_trial_attribute(study, study.trials[0], "b", {"c": None})
    stored = internals.stored_trial(study, trial)
    assert (stored.user_attrs, stored.system_attrs) == ({"a": 1}, {"b": {"c": None}})
    assert internals.trial_id(trial) == internals.trial_id(stored)


def test_long_attributes(tmp_path):
    """A database takes text of any length: values are written whole."""
    study = optuna.create_study(storage=f"sqlite:///{tmp_path / 'a.db'}")
    text = "x" * 100_000
    internals.set_study_attribute(study, "a", text)
    trial = study.ask()
    internals.set_trial_attribute(study, trial, "b", {"c": text})
    again = optuna.load_study(study_name=study.study_name, storage=f"sqlite:///{tmp_path / 'a.db'}")
    assert internals.study_attributes(again)[1]["a"] == text
    assert again.trials[0].system_attrs["b"] == {"c": text}


def test_new_trial_and_fixed_params(study):
    template = create_trial(state=TrialState.RUNNING, system_attrs={internals.FIXED: {"x": 0.25}})
    trial = internals.new_trial(study, template)
    assert internals.suggest(trial, "x", UNIT) == 0.25
    assert trial.params == {"x": 0.25}


def test_enqueued_trials_are_fixed_the_same_way(study):
    study.enqueue_trial({"x": 0.5})
    assert study.trials[0].system_attrs[internals.FIXED] == {"x": 0.5}


def test_suggest(study):
    trial = study.ask()
    value = internals.suggest(trial, "x", UNIT)
    assert 0.0 <= value <= 1.0
    assert study.trials[0].params == {"x": value}


def test_in_loop(study):
    assert not internals.in_loop(study)
    inside = []
    study.optimize(lambda t: (inside.append(internals.in_loop(t.study)), 1.0)[1], 1)
    assert inside == [True]
    assert not internals.in_loop(study)


def test_request_stop(study):
    def objective(trial):
        internals.request_stop(trial.study)
        return 1.0

    study.optimize(objective, 5)
    assert len(study.trials) == 1


def test_contains():
    assert internals.contains(FloatDistribution(0.0, 1.0, step=0.25), 0.75)
    assert not internals.contains(FloatDistribution(0.0, 1.0, step=0.25), 0.7)


def test_retry_history():
    """A trial that is tried again carries the numbers of those before it."""
    from optuna.storages import RetryHeartbeatStaleTrialCallback

    study = optuna.create_study()
    failed = create_trial(state=TrialState.FAIL)
    study.add_trial(failed)
    with pytest.warns(optuna.exceptions.ExperimentalWarning):
        again = RetryHeartbeatStaleTrialCallback()
    again(study, study.trials[0])
    assert study.trials[1].system_attrs[internals.RETRIES] == [0]


def test_constraints(study):
    trial = study.ask()
    trial.set_constraint("weight", -1.5)
    assert study.trials[0].system_attrs[f"{internals.CONSTRAINT}weight"] == -1.5
    assert study.trials[0].constraints == {"weight": -1.5}


def test_tables(tmp_path):
    import sqlite3

    optuna.create_study(storage=f"sqlite:///{tmp_path / 'a.db'}")
    with sqlite3.connect(tmp_path / "a.db") as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert tables == internals.tables()


def test_url_of_and_file_of(tmp_path):
    url = f"sqlite:///{tmp_path / 'a.db'}"
    assert internals.url_of(RDBStorage(url)) == url
    cached = internals.storage_of(optuna.create_study(storage=url))
    assert internals.url_of(cached) == url, "behind a cache"
    journal = JournalStorage(internals.JournalFile(str(tmp_path / "a.log")))
    assert internals.file_of(journal) == str(tmp_path / "a.log")
    assert internals.url_of(journal) is None


def test_journal_file(tmp_path):
    """Half a line, left by a writer that was killed, is cut off by the next."""
    path = tmp_path / "a.log"
    storage = JournalStorage(internals.JournalFile(str(path)))
    optuna.create_study(study_name="a", storage=storage)
    with path.open("ab") as file:
        file.write(b'{"op_code": 0, "wor')
    again = JournalStorage(internals.JournalFile(str(path)))
    optuna.create_study(study_name="b", storage=again)
    names = optuna.get_all_study_names(JournalStorage(internals.JournalFile(str(path))))
    assert names == ["a", "b"]
