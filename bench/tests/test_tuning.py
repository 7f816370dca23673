"""Tuning of real models: noise, truth, inactive parameters, and data."""

import gzip
import hashlib
import json

import numpy as np
import pytest

from calibo import Float, InputError
from calibo_bench.problems import tuning
from calibo_bench.problems.tuning import CONFIRMATION, DEVELOPMENT, REPEATS, Task

TASKS = {task.name: task for task in (*DEVELOPMENT, *CONFIRMATION)}


def small(loss="log"):
    """A task of forty rows."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((40, 2))
    y = x[:, 0] + 0.3 * rng.standard_normal(40)
    y = y if loss == "rmse" else (y > 0).astype(int)

    def model(params, seed):
        from sklearn.linear_model import LogisticRegression, Ridge

        return Ridge(params["C"]) if loss == "rmse" else LogisticRegression(C=params["C"])

    return Task(f"small-{loss}", lambda: (x, y), model, loss, {"C": Float(1e-3, 1e3, log=True)})


@pytest.mark.parametrize("loss", ["log", "error", "rmse"])
def test_an_outcome_is_noisy_and_its_truth_the_mean_of_thirty(loss):
    instance, rng = small(loss).instance, np.random.default_rng(0)
    assert instance.is_noisy
    drawn = [instance.evaluate({"C": 1.0}, rng)[0] for _ in range(60)]
    assert len(set(drawn)) > 10
    truth = instance.true_value({"C": 1.0})
    assert truth == np.mean([small(loss).evaluate({"C": 1.0}, 1_000_000 + k) for k in range(REPEATS)])
    error = np.std(drawn, ddof=1) * np.sqrt(1 / 30 + 1 / 60)
    assert abs(truth - np.mean(drawn)) < 4.0 * error
    assert instance.range > 0.0


def test_losses_are_those_of_scikit_learn():
    from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score

    for loss, scoring in (("log", "neg_log_loss"), ("error", "accuracy"), ("rmse", "neg_root_mean_squared_error")):
        task = small(loss)
        splits = (KFold if loss == "rmse" else StratifiedKFold)(3, shuffle=True, random_state=5)
        score = cross_val_score(task.model({"C": 1.0}, 5), *task.data(), cv=splits, scoring=scoring).mean()
        assert task.evaluate({"C": 1.0}, 5) == pytest.approx(100.0 * (1.0 - score) if loss == "error" else -score)


def test_inactive_parameters_do_not_matter():
    for name, point, other in (
        ("pipeline-cancer", {"kind": "tree"}, {"C": 1e3, "neighbors": 50}),
        ("ridge-diabetes", {"kernel": "rbf"}, {"degree": 1}),
    ):
        instance = TASKS[name].instance
        whole = {**instance.space.from_cube(np.full(len(instance.space), 0.5)), **point}
        assert not set(other) & set(instance.active(whole))
        assert instance.value(whole) == instance.value({**whole, **other})


@pytest.mark.parametrize(
    "name", [name for name in TASKS if name.split("-")[1] in ("wine", "cancer", "diabetes", "digits")]
)
def test_models_of_the_bundled_data_can_be_evaluated_anywhere(name):
    if name.startswith("xgboost"):
        pytest.importorskip("xgboost", reason="an extra")
    instance, rng = TASKS[name].instance, np.random.default_rng(0)
    for u in rng.random((3, len(instance.space))):
        assert np.isfinite(instance.value(instance.space.from_cube(instance.space.cube.snap(u[None])[0])))


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["xgboost-affairs", "trees-votes", "splines-visits"])
def test_surveys_of_statsmodels_are_loaded(name):
    task = TASKS[name]
    x, y = task.data()
    assert 500 < len(x) == len(y)
    assert np.isfinite(x).all()
    instance = task.instance
    assert np.isfinite(instance.value(instance.space.from_cube(np.full(len(instance.space), 0.5))))


def test_articles_are_read_from_the_data_directory(tmp_path, monkeypatch):
    groups = ["comp.graphics", "rec.autos", "sci.med", "talk.politics.guns", "misc.forsale"]
    entries = [
        {"group": groups[i % 5], "text": f"Subject: secret{i % 5}\n\nword{i % 5} common word{i % 5}"} for i in range(60)
    ]
    packed = gzip.compress("\n".join(map(json.dumps, entries)).encode(), mtime=0)
    folder = tmp_path / "newsgroups20"
    folder.mkdir()
    (folder / "20news_bydate.jsonl.gz").write_bytes(packed)
    monkeypatch.setenv("CALIBO_DATA", str(tmp_path))
    with pytest.raises(InputError, match="must have the sha256"):
        tuning._newsgroups()
    monkeypatch.setattr(
        tuning, "NEWSGROUPS", ("newsgroups20/20news_bydate.jsonl.gz", hashlib.sha256(packed).hexdigest())
    )
    x, y = tuning._newsgroups()
    assert x.shape == (48, 5), "the fifth group and the headers are left out"
    assert sorted(set(y)) == [0, 1, 2, 3]
    monkeypatch.delenv("CALIBO_DATA")
    with pytest.raises(InputError, match=r"CALIBO_DATA must name a directory.*20 Newsgroups"):
        tuning._newsgroups()
