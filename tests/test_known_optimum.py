"""A known optimum, from the argument to the end of a study."""

import json
import pickle
import warnings
from pathlib import Path

import numpy as np
import optuna
import pytest

from calibo import (
    CaliboWarning,
    CalibratedSampler,
    Float,
    InputError,
    Int,
    Optimizer,
    StopAtOptimum,
    audit,
    maximize,
    minimize,
)
from calibo.calibration import Record
from calibo.cli import main
from calibo.models import KnownOptimum, SourceTask
from calibo.optimum import Optimum
from calibo.optuna.reader import read_study
from calibo.optuna.schema import OPTIMUM
from calibo.presets import PRESETS, get_strategy
from calibo.side_information import BOTH, KNOWN, PRIOR_STUDIES, SideInformation

SPACE = {"x": Float(0, 1), "y": Float(0, 1)}


@pytest.fixture(autouse=True)
def quiet():
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def bowl(x: float, y: float) -> float:
    return (x - 0.3) ** 2 + (y - 0.6) ** 2


def suggested(trial):
    return bowl(trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1))


# the end


def test_a_run_ends_when_the_optimum_is_reached():
    result = minimize(bowl, SPACE, 60, seed=0, progress=False, known_optimum=0.0)
    values = [trial.value for trial in result.study.trials]
    assert len(values) < 30
    assert Optimum(0.0).is_reached_by(np.array(values))
    assert not Optimum(0.0).is_reached_by(np.array(values[:-1]))


def test_an_accuracy_is_maximised():
    def accuracy(x, y):
        return 1.0 - bowl(x, y)

    result = maximize(accuracy, SPACE, 60, seed=0, progress=False, known_optimum=1.0, optimum_tolerance=0.01)
    assert len(result.study.trials) < 30
    assert result.best_value >= 0.99
    assert read_study(result.study).optimum == Optimum(-1.0, tolerance=0.01)


def test_the_same_call_evaluates_nothing_more(tmp_path):
    place = str(tmp_path / "a.db")
    for _ in range(2):
        result = minimize(bowl, SPACE, 60, seed=0, progress=False, known_optimum=0.0, storage=place)
        count = len(result.study.trials)
    assert count < 30
    assert len(minimize(bowl, SPACE, count + 2, progress=False, storage=place).study.trials) == count + 2


def test_as_a_callback_for_any_sampler():
    knowing = optuna.create_study(sampler=CalibratedSampler(seed=0, known_optimum=0.0))
    knowing.optimize(suggested, 60, callbacks=[StopAtOptimum()])
    assert len(knowing.trials) < 30
    random = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    random.optimize(suggested, 200, callbacks=[StopAtOptimum(0.0, 0.02)])
    assert len(random.trials) < 200
    assert random.best_value <= 0.02
    highest = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))
    highest.optimize(lambda trial: 5.0 - suggested(trial), 200, callbacks=[StopAtOptimum(5.0, 0.02)])
    assert len(highest.trials) == len(random.trials)
    assert read_study(random).optimum is None, "a rule is no knowledge of the study"
    with pytest.raises(InputError, match="`known_optimum` must be given here or to the sampler"):
        optuna.create_study().optimize(suggested, 1, callbacks=[StopAtOptimum()])


def test_a_lucky_outcome_does_not_end_a_noisy_study():
    """The best outcome is far below the optimum; what is believed of it is not."""
    optimizer = Optimizer(SPACE, seed=0, strategy="plain", known_optimum=0.0, optimum_tolerance=0.02)
    rng = np.random.default_rng(0)
    for x, y in rng.random((40, 2)):
        if bowl(x, y) > 0.08:
            optimizer.tell({"x": x, "y": y}, bowl(x, y) + 0.01 * rng.standard_normal(), noise=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CaliboWarning)
        optimizer.tell({"x": 0.9, "y": 0.1}, -0.01, noise=0.5)
    assert optimizer.best.value == -0.01
    assert not optimizer.reached
    for _ in range(6):
        optimizer.tell({"x": 0.3, "y": 0.6}, 0.01 * rng.standard_normal(), noise=0.01)
    assert optimizer.reached


def rosenbrock(x, y):
    return 100.0 * (y - x**2) ** 2 + (1.0 - x) ** 2


def test_a_few_large_outcomes_do_not_end_a_run():
    wide = {"x": Float(-5, 10), "y": Float(-5, 10)}
    for seed in range(3):
        result = minimize(rosenbrock, wide, 9, seed=seed, progress=False, known_optimum=0.0)
        assert len(result.study.trials) == 9


@pytest.mark.parametrize("told", [True, False], ids=["told", "not told"])
def test_a_noisy_run_ends_where_the_function_is_near(told):
    rng = np.random.default_rng(0)

    def noisy(x, y):
        value = bowl(x, y) + 0.01 * rng.standard_normal()
        return (value, 0.01) if told else value

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CaliboWarning)
        result = minimize(noisy, SPACE, 60, seed=0, progress=False, known_optimum=0.0, optimum_tolerance=0.01)
    assert len(result.study.trials) < 60
    advice = result.recommendation
    assert (advice.median if told else advice.interval[0]) <= 0.01
    assert bowl(**advice.params) < 0.03


# a wrong value


def test_an_outcome_beyond_it_is_told_with_both_values():
    with pytest.warns(CaliboWarning, match=r"better than the known optimum 0\.2 .* Correct `known_optimum`") as told:
        result = minimize(bowl, SPACE, 14, seed=0, progress=False, known_optimum=0.2)
    assert len(result.study.trials) == 14, "a wrong value ends nothing"
    shown = [str(warning.message) for warning in told if "better than" in str(warning.message)]
    assert f"{result.best_value:.6g}" in shown[-1]
    assert result.best_value < 0.01
    optimizer = Optimizer(SPACE, direction="maximize", seed=0, known_optimum=0.5)
    optimizer.tell({"x": 0.1, "y": 0.1}, 0.2)
    with pytest.warns(CaliboWarning, match=r"outcome 0\.9 is better than the known optimum 0\.5"):
        optimizer.tell({"x": 0.5, "y": 0.5}, 0.9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer.tell({"x": 0.2, "y": 0.5}, 0.8)
    assert not optimizer.reached


def test_a_value_far_too_low_makes_no_difference_to_speak_of():
    usual, told = (
        minimize(bowl, SPACE, 14, seed=3, progress=False, **known) for known in ({}, {"known_optimum": -1e4})
    )
    assert told.best_value < 10.0 * usual.best_value + 1e-6
    last = [record for record in read_study(told.study).records if record is not None]
    assert last
    assert {record.aim for record in last} <= {"another model", "out of reach"}


# what is stored, and who knows


def test_what_was_aimed_at_is_recorded_and_told():
    def valley(x, y):
        return bowl(x, y) ** 2

    result = minimize(valley, SPACE, 16, seed=0, progress=False, known_optimum=0.0, optimum_tolerance=0.0)
    aims = [record.aim for record in read_study(result.study).records if record is not None]
    assert aims
    assert None not in aims
    text = str(audit(result))
    assert f"The known optimum was targeted in {aims.count('regret')} of {len(aims)} trials" in text
    record = next(r for r in read_study(result.study).records if r is not None)
    assert Record.from_json(json.loads(json.dumps(record.to_json()))).aim == record.aim
    assert Record.from_json({**record.to_json(), "aim": "nonsense"}).aim is None
    old = record.to_json()
    del old["aim"]
    assert Record.from_json(old).aim is None


def test_whoever_reads_the_study_knows_it():
    study = optuna.create_study(sampler=CalibratedSampler(seed=0, known_optimum=0.0, optimum_is_bound=True))
    study.optimize(suggested, 6)
    assert read_study(study, "plain").strategy.acquisition.optimum == Optimum(0.0, bound=True)
    for nonsense in (
        3,
        {"value": "x", "bound": 1, "tolerance": None},
        {"bound": True},
        {"value": 1.0, "bound": 2},
        None,
    ):
        study.set_user_attr(OPTIMUM, nonsense)
        assert read_study(study).optimum is None
    study.set_user_attr(OPTIMUM, {"value": 1.0, "tolerance": 0.5, "a field of a later version": 3})
    assert read_study(study).optimum == Optimum(1.0, tolerance=0.5)
    assert pickle.loads(pickle.dumps(study.sampler)).optimum == Optimum(0.0, bound=True)


def test_parameters_that_are_not_always_there():
    def branching(trial):
        kind = trial.suggest_categorical("kind", ["a", "b"])
        return (trial.suggest_float(kind, 0, 1) - 0.3) ** 2

    study = optuna.create_study(sampler=CalibratedSampler(seed=0, known_optimum=0.0, strategy="plain+root+erm"))
    study.optimize(branching, 40, callbacks=[StopAtOptimum()])
    assert study.best_value < 1e-3


def test_a_journal_keeps_it(tmp_path):
    optimizer = Optimizer(SPACE, seed=0, direction="maximize", known_optimum=1, optimum_tolerance=0.1)
    optimizer.save(tmp_path / "a.log")
    for _ in range(6):
        params = optimizer.ask()
        optimizer.tell(params, -bowl(**params))
    again = Optimizer.load(tmp_path / "a.log")
    assert again.optimum == Optimum(1.0, tolerance=0.1)
    assert again.strategy == optimizer.strategy
    assert again.ask() == optimizer.ask()
    Optimizer(SPACE, seed=0).save(tmp_path / "b.log")
    assert Optimizer.load(tmp_path / "b.log").optimum is None


# strategies


@pytest.mark.parametrize("preset", ["default", "plain", "ei", "pi", "lcb", "papers"])
def test_every_preset_can_know_it(preset):
    strategy = PRESETS[preset].with_side_information(SideInformation(optimum=Optimum(0.0)))
    assert KNOWN in dict(strategy.surrogate.recipes)
    assert strategy.with_side_information(SideInformation(optimum=Optimum(0.0))) == strategy
    optimizer = Optimizer(SPACE, seed=0, strategy=preset, known_optimum=0.0)
    for _ in range(8):
        params = optimizer.ask()
        optimizer.tell(params, bowl(**params))
    bound = PRESETS[preset].with_side_information(SideInformation(optimum=Optimum(0.0, bound=True)))
    assert bound.surrogate == PRESETS[preset].surrogate


@pytest.mark.parametrize("parts", ["root+erm", "root-linear+cbm", "ei-known", "root+mes-known", "bounded", "root"])
def test_parts_wait_for_the_value(parts, tmp_path):
    message, strategy = "`known_optimum` must be given for a strategy with", f"plain+{parts}"
    with pytest.raises(InputError, match=message):
        Optimizer(SPACE, seed=0, strategy=strategy)
    place = f"sqlite:///{tmp_path / 'a.db'}"
    with pytest.raises(InputError, match=message):
        minimize(bowl, SPACE, 5, strategy=strategy, storage=place, study_name="a")
    assert not optuna.get_all_study_names(place)
    study = optuna.create_study(sampler=CalibratedSampler(strategy=strategy))
    with pytest.raises(InputError, match=message):
        study.optimize(suggested, 1)
    study.sampler = CalibratedSampler(known_optimum=0.0)
    study.optimize(suggested, 1)
    study.sampler = CalibratedSampler(strategy=strategy)  # the study knows
    with pytest.warns(CaliboWarning, match="was created with the strategy 'default', and continues with 'custom"):
        study.optimize(suggested, 6)
    assert sum(trial.state.name == "COMPLETE" for trial in study.trials) == 7
    optimizer = Optimizer(SPACE, seed=0, strategy=f"plain+{parts}", known_optimum=0.0)
    for _ in range(12):
        params = optimizer.ask()
        optimizer.tell(params, bowl(**params))
    assert optimizer.best.value < 0.1
    assert not hasattr(optimizer.strategy.surrogate, "recipes"), "who names the parts gets them without a guard"


def test_earlier_tasks_may_be_known_as_well():
    rng = np.random.default_rng(0)
    x = rng.random((20, 2))
    y = np.array([7.0 + 3.0 * bowl(*row) for row in x])
    source = SourceTask("earlier", x, y, np.full(20, np.nan))
    strategy = get_strategy("default").with_side_information(SideInformation((source,), Optimum(0.0)))
    one_after_the_other = (
        get_strategy("default")
        .with_side_information(SideInformation((source,)))
        .with_side_information(SideInformation(optimum=Optimum(0.0)))
    )
    assert (
        one_after_the_other
        == get_strategy("default")
        .with_side_information(SideInformation(optimum=Optimum(0.0)))
        .with_side_information(SideInformation((source,)))
        == strategy
    )
    names = [name for name, _ in strategy.surrogate.recipes]
    assert names[0] == PRIOR_STUDIES
    assert names[-2:] == [KNOWN, BOTH]
    optimizer = Optimizer(SPACE, seed=0, strategy=strategy)
    for _ in range(9):
        params = optimizer.ask()
        optimizer.tell(params, bowl(**params))
    assert optimizer.best.value < 1e-3
    assert isinstance(dict(strategy.surrogate.recipes)[BOTH], KnownOptimum)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"known_optimum": np.nan}, "`known_optimum` must be a finite number"),
        ({"known_optimum": "0"}, "`known_optimum` must be a finite number"),
        ({"known_optimum": 0.0, "optimum_tolerance": -1.0}, "`optimum_tolerance` must be a number of at least 0"),
        ({"optimum_tolerance": 0.1}, "`optimum_tolerance` must come with `known_optimum`"),
        ({"optimum_is_bound": True}, "`optimum_is_bound` must come with `known_optimum`"),
        ({"known_optimum": 0.0, "strategy": "plain+conformal-ei"}, "`known_optimum` needs an acquisition that takes"),
    ],
)
def test_bad_input_is_told(arguments, message):
    with pytest.raises(InputError, match=message):
        CalibratedSampler(**arguments)
    with pytest.raises(InputError, match=message):
        Optimizer(SPACE, **arguments)


def test_parts_that_cannot_stand_together_are_told_before_anything_is_evaluated():
    with pytest.raises(InputError, match=r"must forecast untransformed outcomes for ExpectedRegret.*'\+single'"):
        Optimizer(SPACE, strategy="default+erm", known_optimum=0.0)
    with pytest.raises(InputError, match="`recipe` must not require a known optimum"):
        Optimizer(SPACE, strategy="plain+root+bagged", known_optimum=0.0)
    several = optuna.create_study(directions=["minimize", "minimize"])
    with pytest.raises(InputError, match="`study` must have one direction"):
        several.optimize(lambda trial: (0.0, 1.0), 1, callbacks=[StopAtOptimum(0.0)])


def test_a_wrong_value_is_told_once_an_outcome():
    for _ in range(2):  # a second study of the same name is another one
        with pytest.warns(CaliboWarning) as told:
            minimize(bowl, SPACE, 16, seed=0, progress=False, known_optimum=0.2, study_name="same")
        shown = [str(warning.message) for warning in told]
        outcomes = [text.split(" is better")[0] for text in shown]
        assert len(set(outcomes)) == len(outcomes)


def branin(x, y):
    x, y = 15.0 * x - 5.0, 15.0 * y
    return (y - 5.1 / (4 * np.pi**2) * x**2 + 5 / np.pi * x - 6) ** 2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x) + 10


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("least", [2.0, 10.0])
def test_a_run_does_not_end_at_a_value_that_is_wrong(seed, least):
    options = {"known_optimum": least, "optimum_tolerance": 0.1, "strategy": "plain", "progress": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CaliboWarning)
        found = minimize(branin, SPACE, 12, seed=seed, **options)
    assert len(found.study.trials) == 12 or found.best_value > least - 0.1


def test_after_a_wrong_value_it_goes_on_as_if_nothing_were_known():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CaliboWarning)
        misled = minimize(bowl, SPACE, 14, seed=0, strategy="plain", progress=False, known_optimum=2.0)
    without = minimize(bowl, SPACE, 14, seed=0, strategy="plain", progress=False)
    assert [t.params for t in misled.study.trials] == [t.params for t in without.study.trials]


def test_a_space_of_one_point_may_be_the_optimum():
    assert len(minimize(lambda a: 0.0, {"a": Int(3, 3)}, 5, progress=False, known_optimum=0.0).study.trials) == 1
    assert len(minimize(lambda a: 1.0, {"a": Int(3, 3)}, 5, progress=False, known_optimum=0.0).study.trials) == 5


def test_a_worker_whose_acquisition_reads_one_model_goes_on_without_it():
    study = optuna.create_study(sampler=CalibratedSampler(seed=0, known_optimum=0.0))
    study.optimize(suggested, 6)
    study.sampler = CalibratedSampler(seed=1, strategy="plain+conformal-ei")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        study.optimize(lambda t: suggested(t) + (t.suggest_float("z", 0, 1) if t.number > 7 else 0.0), 5)
    assert all(trial.state.name == "COMPLETE" for trial in study.trials)
    texts = [str(warning.message) for warning in told]
    assert sum("was created with the strategy 'default'" in text for text in texts) == 1, "said once"
    (dropped,) = [text for text in texts if "a known optimum, which cannot be used" in text]
    assert "needs an acquisition that takes several models" in dropped


# the bench and the command line


def test_on_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("f.py").write_text("def bowl(x):\n    return (x - 0.3) ** 2 - 0.001\n")
    Path("space.toml").write_text('[parameters.x]\ntype = "float"\nlow = 0.0\nhigh = 1.0\n')
    words = ["run", "f.py:bowl", "--space", "space.toml", "--seed", "0", "--known-optimum", "-1e-3"]
    assert main(words) == 0
    told = capsys.readouterr().out
    assert "has reached the known optimum -0.001" in told
    assert "continue without --known-optimum" in told
    assert main(["show", "bowl"]) == 0
    assert "Known optimum  -0.001 (attainable); the best measured value is" in capsys.readouterr().out
    assert main(["ask", "hand", "--space", "space.toml", "--seed", "0", "--known-optimum", "0.0", "--json"]) == 0
    capsys.readouterr()
    assert main(["tell", "hand", "0.5"]) == 0
    assert "known optimum" not in capsys.readouterr().out
    assert main(["ask", "hand", "--json"]) == 0
    assert main(["tell", "hand", "0.0"]) == 0
    assert "The best value has reached the known optimum 0" in capsys.readouterr().out
    assert main(["run", "f.py:bowl", "--optimum-tolerance", "0.1"]) == 2
    words = ["ask", "rounded", "--space", "space.toml", "--known-optimum", "0.5", "--optimum-tolerance", "0.01"]
    assert main(words) == 0
    assert main(["tell", "rounded", "0.495"]) == 0
    capsys.readouterr()
    assert main(["show", "rounded"]) == 0
    assert "the best measured value is 0.005 better, within the tolerance" in capsys.readouterr().out
    bad = ["--known-optimum", "nan"], ["--known-optimum", "-inf"], ["--strategy", "plain+erm"], ["--strategy", "none"]
    for words in bad:
        assert main(["ask", "new", "--space", "space.toml", *words]) == 2
    assert main(["show", "new"]) == 2, "nothing was begun"


def test_a_bad_value_begins_no_study(tmp_path):
    with pytest.raises(InputError, match="`known_optimum` must be a finite number"):
        minimize(bowl, SPACE, 5, storage=str(tmp_path / "a.db"), known_optimum=np.inf)
    assert not (tmp_path / "a.db").exists()
