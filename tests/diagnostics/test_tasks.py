"""Learned tasks: what is drawn, said and shown of how alike studies are."""

from pathlib import Path

import numpy as np
import optuna
import pytest

from calibo import CalibratedSampler, InputError, learned_tasks, optimize
from calibo.cli import main


@pytest.fixture(autouse=True)
def quiet():
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def hill(trial, sign=1.0, phase=0.0):
    x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
    return sign * (np.sin(6 * x + phase) + (y - 0.4) ** 2)


def earlier(name, sign):
    study = optuna.create_study(study_name=name, sampler=optuna.samplers.RandomSampler(seed=4))
    study.optimize(lambda trial: hill(trial, sign, 0.3), 20)
    return study


@pytest.fixture(scope="module")
def study():
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sources = [earlier("same", 1.0), earlier("opposite", -1.0)]
    made = optuna.create_study(
        study_name="now", sampler=CalibratedSampler(seed=0, strategy="plain", transfer_from=sources)
    )
    for trial in sources[0].trials[:12]:  # spread out, so that there is something to compare
        made.enqueue_trial({"x": 1.0 - trial.params["x"], "y": trial.params["y"]})
    made.optimize(hill, 12)
    return made


@pytest.fixture(scope="module")
def found(study):
    return learned_tasks(study)


def test_correlations_are_correlations(found):
    assert found.names == ("now", "same", "opposite")
    assert list(found.values) == [3, 6, 12]
    drawn = found.values[12]
    assert drawn.shape == (100, 3, 3)
    np.testing.assert_allclose(np.einsum("sii->si", drawn), 1.0)
    np.testing.assert_allclose(drawn, np.swapaxes(drawn, 1, 2))
    assert np.all(np.linalg.eigvalsh(drawn) > -1e-9)
    low, high = found.band()
    assert np.all((low <= found.mean() + 1e-9) & (found.mean() <= high + 1e-9))
    assert found.effective > 4
    assert found.reduction < 1.3
    assert found.seconds > 0


def test_what_was_learned_is_said(found):
    same, opposite = found.sentences()
    assert same.startswith("same: similar (correlation 0.9")
    assert opposite.startswith("opposite: opposite (correlation -0.")
    assert found.mean()[1, 2] < -0.5, "the two earlier ones are each other's opposite, too"


def test_the_figure_shows_all_tasks_and_how_the_first_row_grew(found):
    figure = found.figure()
    assert list(figure.data[0].x) == ["now", "same", "opposite"]
    assert [trace.name for trace in figure.data[1:]] == ["same", "opposite"]
    assert list(figure.data[1].x) == [3, 6, 12]


def test_on_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    result = optimize(hill, None, 5, storage="s.db", study_name="s", progress=False, transfer_from=earlier("old", 1.0))
    assert learned_tasks(result, draws=8).names == ("s", "old")
    assert main(["plot", "tasks", "s", "--storage", "s.db", "--samples", "8"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("old: ")
    assert "Learned tasks of s</h1>" in Path("tasks.html").read_text()
    optimize(hill, None, 3, storage="s.db", study_name="alone", progress=False)
    assert main(["plot", "tasks", "alone", "--storage", "s.db"]) == 2
    assert "must learn from prior studies, but 'alone' does not" in capsys.readouterr().err


def test_bad_input_is_told():
    with pytest.raises(InputError, match="`source` must be an Optuna study or a Result"):
        learned_tasks("study")
    with pytest.raises(InputError, match="`draws` must be a whole number"):
        learned_tasks(optuna.create_study(), draws=0)
