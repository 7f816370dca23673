"""The command line, as a person uses it."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import optuna
import pytest

import calibo
from calibo.cli import main
from calibo.cli.terminal import draw_trace, printable

FUNCTIONS = """
import time

def bowl(x, n):
    return (x - 0.3) ** 2 + n, 0.1

def chooses(trial):
    if trial.suggest_categorical("kind", ["a", "b"]) == "a":
        return trial.suggest_float("u", 0, 1)
    return 1 + trial.suggest_float("v", 0, 1)

def slow(x, n):
    print("evaluating", flush=True)
    time.sleep(30)

def fails(x, n):
    raise RuntimeError("the oven is cold")

number = 3
"""
SPACE = """
[parameters.x]
type = "float"
low = 0.0
high = 1.0

[parameters.n]
type = "int"
low = 1
high = 64
log = true
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(FUNCTIONS)
    Path("space.toml").write_text(SPACE)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "train", raising=False)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield tmp_path
    sys.modules.pop("train", None)


@pytest.fixture
def run(capsys):
    def call(*words, code=0):
        assert main([*map(str, words)]) == code, capsys.readouterr()
        shown = capsys.readouterr()
        if code == 2:
            assert shown.out == ""
            assert shown.err.count("\n") == 1, "one line"
            return shown.err
        return shown.out

    return call


def trials(name, path="calibo.db"):
    return optuna.load_study(study_name=name, storage=f"sqlite:///{path}").trials


def test_help_fits_one_screen():
    printed = subprocess.run(
        [sys.executable, "-m", "calibo", "--help"], capture_output=True, text=True, check=True
    ).stdout
    lines = printed.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    for command in ("run", "show", "audit", "ask", "tell", "drop", "amend", "widen", "plot"):
        assert re.search(rf"^ +{command} ", printed, re.MULTILINE)


def test_without_a_command_help_is_shown(run):
    assert "examples:" in run()


@pytest.mark.parametrize("command", ["run", "show", "audit", "ask", "tell"])
def test_every_command_explains_itself(command, capsys):
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    assert "--storage" in capsys.readouterr().out


def test_version(capsys):
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out.strip() == f"calibo {calibo.__version__}"


def test_run_then_show_then_more(run):
    out = run("run", "train.py:bowl", "--space", "space.toml", "--trials", "8", "--seed", "1")
    assert "Best measured" in out
    assert "90 % interval [" in out
    assert len(trials("bowl")) == 8
    out = run("show")
    assert "bowl: minimize, 8 complete" in out
    assert "━" in out
    assert "Recommended" in out
    run("run", "train.py:bowl", "--trials", "11")  # the study knows its space
    assert len(trials("bowl")) == 11


def test_forecasts_are_audited(run):
    run("run", "train.py:bowl", "--space", "space.toml", "--trials", "9", "--seed", "1")
    assert "calibo audit" in run("show")
    out = run("audit", "--html", "audit.html")
    assert "bowl: 6 outcomes checked against out-of-sample forecasts" in out
    assert "Decided: outcomes were worse than forecast in" in out
    page = Path("audit.html").read_text()
    assert "reliability" in page.lower()
    assert "src=" not in page.split("<body>")[1], "nothing is loaded from elsewhere"
    assert "nothing" not in run("audit", "other", code=2)


def test_recalibration_may_be_chosen(run):
    run("run", "train.py:bowl", "--space", "space.toml", "--trials", "8", "--seed", "1", "--recalibrate", "never")
    assert "left its last forecast unchanged" in run("show")
    assert "invalid choice" in run("run", "train.py:bowl", "--recalibrate", "sometimes", code=2)


def test_a_run_stops_when_nothing_is_left_to_gain(run):
    out = run(
        "run", "train.py:bowl", "--space", "space.toml", "--trials", "60", "--seed", "1", "--stop-resolution", "100"
    )
    assert "the probability that a promising point improves by more than 100 is" in out
    assert len(trials("bowl")) < 20
    assert "--stop-alpha must come with --stop-resolution" in run("run", "train.py:bowl", "--stop-alpha", "0.1", code=2)
    assert "--stop-resolution must" in run("run", "train.py:bowl", "--stop-resolution", "-1", code=2)


def test_a_function_may_declare_its_parameters_itself(run):
    run("run", "train.py:chooses", "--trials", "12", "--study", "mine", "--storage", "own.db", "--strategy", "lcb")
    assert {"kind", "u", "v"} == {name for trial in trials("mine", "own.db") for name in trial.params}
    assert "kind = a" in run("show", "mine", "--storage", "sqlite:///own.db")


def test_maximize_is_said_once_and_kept(run):
    run("run", "train.py:bowl", "--space", "space.toml", "--trials", "3", "--maximize")
    run("run", "train.py:bowl", "--trials", "4")
    assert optuna.load_study(study_name="bowl", storage="sqlite:///calibo.db").direction.name == "MAXIMIZE"
    Path("down.toml").write_text('direction = "minimize"\n' + SPACE)
    assert "contradict" in run("run", "train.py:bowl", "--space", "down.toml", "--maximize", "--study", "z", code=2)


def test_failures_are_told_and_shown(run, capsys):
    assert main(["run", "train.py:fails", "--space", "space.toml", "--trials", "2"]) == 2, "shorter than the design"
    assert "failed in 2 trials in a row" in capsys.readouterr().err
    assert main(["run", "train.py:fails", "--space", "space.toml", "--trials", "2", "--keep-going"]) == 0
    shown = capsys.readouterr()
    assert "the oven is cold" in shown.err
    assert "No feasible trial yet" in shown.out
    assert "the oven is cold" in run("show", "fails")


def test_jobs_and_timeout(run):
    run("run", "train.py:bowl", "--space", "space.toml", "--trials", "6", "--jobs", "2")
    assert 6 <= len(trials("bowl")) <= 7
    run("run", "train.py:chooses", "--timeout", "0.5")
    assert len(trials("chooses")) >= 1


def test_ctrl_c_stops_cleanly_and_the_same_command_goes_on(folder):
    words = [sys.executable, "-m", "calibo", "run", "train.py:slow", "--space", "space.toml", "--trials", "3"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "evaluating\n"
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Rerun the command to resume" in out
    assert "Traceback" not in err
    Path("train.py").write_text(FUNCTIONS.replace("time.sleep(30)", "return x"))
    subprocess.run(words, check=True, capture_output=True)
    assert [trial.state.name for trial in trials("slow")] == ["FAIL", "COMPLETE", "COMPLETE", "COMPLETE"]


def test_ask_and_tell_by_hand(run):
    out = run("ask", "paint", "--space", "space.toml", "--seed", "0")
    assert out.startswith("trial 0: x = ")
    assert "calibo tell paint VALUE --trial 0" in out
    assert run("tell", "paint", "12.5", "--noise", "0.5").startswith("trial 0: 12.5 at x = ")
    asked = json.loads(run("ask", "paint", "--json", "--fix", "n=8"))
    assert asked["params"]["n"] == 8
    assert "failed" in run("tell", "paint", "--failed", "--trial", asked["trial"])
    run("ask", "paint", "-n", "3")
    assert "the open trials are [2, 3, 4]" in run("tell", "paint", "1", code=2)
    assert "canceled" in run("tell", "paint", "--cancel", "--trial", "3")
    run("tell", "paint", "7", "--trial", "2", "--at", "x=0.5")
    told = trials("paint")
    assert [trial.state.name for trial in told] == ["COMPLETE", "FAIL", "FAIL", "FAIL", "RUNNING", "COMPLETE"]
    assert told[5].params["x"] == 0.5
    assert told[5].params["n"] == told[2].params["n"]
    assert told[0].user_attrs == {"calibo:noise": 0.5}
    run("tell", "paint", "3", "--at", "x=0.25", "--at", "n=4")
    assert trials("paint")[-1].params == {"x": 0.25, "n": 4}
    run("tell", "paint", "4", "--at", "x=0.75")  # of the one that is open
    *_, asked, _, _, told = trials("paint")
    assert (asked.state.name, told.params) == ("FAIL", {"x": 0.75, "n": asked.params["n"]})
    assert "report a point with --at" in run("tell", "paint", "4", "--at", "x=0.75", code=2)


def test_points_asked_for_are_kept_apart_until_told(run):
    points = [
        json.loads(line)["params"]
        for line in run("ask", "s", "--space", "space.toml", "-n", "6", "--seed", "0", "--json").splitlines()
    ]
    assert len({(point["x"], point["n"]) for point in points}) == 6


def test_results_go_out_and_come_in_as_csv(run):
    Path("names.toml").write_text(SPACE + '[parameters."a, \\"b\\"\\nc"]\nchoices = ["=1+1", "<b>", "x"]\n')
    run("ask", "s", "--space", "names.toml", "-n", "3")
    run("tell", "s", "0.1", "--trial", "0", "--noise", "0.25")
    run("tell", "s", "--failed", "--trial", "1")
    run("show", "s", "--csv", "out.csv")
    with open("out.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["state"] for row in rows] == ["complete", "fail", "running"]
    run("ask", "t", "--space", "names.toml")
    run("tell", "t", "--cancel")
    assert run("tell", "t", "--csv", "out.csv") == "2 trials added to t\n"
    first, second = trials("s")[:2], trials("t")[1:]
    assert [(t.state, t.value, t.params, t.user_attrs) for t in first] == [
        (t.state, t.value, t.params, t.user_attrs) for t in second
    ]


def test_a_csv_file_with_one_bad_line_adds_nothing(run):
    run("ask", "s", "--space", "space.toml")
    for text, words in (
        ("x,n,value\n0.5,2,1.0\n0.5,200,1.0\n", "Line 3: `n` must be one of"),
        ("x,n,value\n0.5,two,1.0\n", "Line 2: `n` must be a finite number"),
        ("x,value\n0.5,1.0\n", "The columns must be"),
        ("x,n,value\n0.5,1\n", "Line 2 must have 3 cells"),
        ("x,n\n0.5,1\n", "The columns must be"),
        ("x,n,value,value\n0.5,1,1,2\n", "each once"),
        ("", "is empty"),
        ("x,n,value,state\n0.5,1,1.0,done\n", "Line 2: `state` must be one of"),
        ("x,n,value,state\n0.5,1,,complete\n", "Line 2: `value` must be given"),
        ("x,n,value,noise\n0.5,1,1.0,-1\n", "Line 2: `noise` must be at least 0"),
        ("x,n,value\n0.5,1,1e400\n", "Line 2: `value` must be a finite number"),
        ("x,n,value\n\n0.5,1,1.0\n\n0.5,one,1.0\n", "Line 5: `n`"),
    ):
        Path("in.csv").write_text(text)
        assert words in run("tell", "s", "--csv", "in.csv", code=2)
    assert len(trials("s")) == 1


def test_all_studies_are_listed(run):
    run("ask", "one", "--space", "space.toml")
    run("ask", "[red]two", "--space", "space.toml", "--maximize")
    out = run("show")
    assert "one" in out
    assert "[red]two" in out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["show"], "no calibo.db"),
        (["show", "--storage", "nothing.db"], "no file"),
        (["show", "--storage", "space.toml"], "not a database"),
        (["ask", "s"], "no calibo.db"),
        (["tell", "s", "1"], "no calibo.db"),
        (["run", "train.py:nothing", "--space", "space.toml"], "must define a function 'nothing'"),
        (["run", "train.py:number", "--space", "space.toml"], "must define a function 'number'"),
        (["run", "nowhere.py:f"], "no 'nowhere.py'"),
        (["run", "train.py"], "FILE.py:function"),
        (["run", "broken.py:f"], "could not be loaded: SyntaxError"),
        (["run", "train.py:bowl", "--space", "no.toml"], "--space must be a file"),
        (["run", "train.py:bowl", "--space", "train.py"], "must be a TOML file"),
        (["run", "train.py:bowl", "--space", "bad.toml"], "`x` must have a type"),
        (["run", "train.py:bowl", "--space", "low.toml"], "In [parameters.x]: `low` must not exceed"),
        (["run", "train.py:bowl", "--space", "more.toml"], "`x` must have low, high"),
        (["run", "train.py:bowl", "--space", "empty.toml"], "must declare parameters"),
        (["run", "train.py:bowl", "--space", "up.toml"], "`direction` must be"),
        (["run", "train.py:bowl", "--space", "space.toml", "--trials", "0"], "--trials must be"),
        (["run", "train.py:bowl", "--space", "space.toml", "--strategy", "best"], "--strategy must be"),
        (["run", "train.py:bowl", "--space", "space.toml", "--storage", "no/such.db"], "existing directory"),
        (["dance"], "invalid choice: 'dance'"),
        (["ask", "s", "--space", "space.toml", "-n", "0"], "-n must be at least 1"),
        (["ask", "s", "--space", "space.toml", "--fix", "y=1"], "NAME=VALUE with one of ['x', 'n']"),
        (["ask", "s", "--space", "space.toml", "--fix", "x=7"], "`x` must lie in [0.0, 1.0]"),
        (["tell", "s"], "Exactly one of VALUE, --failed"),
        (["tell", "s", "much"], "`VALUE` must be a finite number"),
        (["tell", "s", "nan"], "`VALUE` must be a finite number"),
        (["tell", "s", "-inf"], "`VALUE` must be a finite number"),
        (["tell", "s", "1", "--noise", "inf"], "`--noise` must be a finite number"),
        (["tell", "s", "--csv", "in.csv", "--trial", "1"], "--csv must not be combined"),
        (["run", "train.py:bowl"], "must take an Optuna trial"),
        (["run", "quits.py:f"], "could not be loaded: SystemExit"),
        (["show", "--storage", "sqlite://"], "in memory"),
        (["ask", b"\xff".decode(errors="surrogateescape"), "--space", "space.toml"], "Unicode"),
        (["tell", "s", "1", "--noise", "-1"], "`--noise` must be at least 0"),
    ],
)
def test_expected_errors_are_one_line_and_exit_code_2(run, words, expected):
    Path("broken.py").write_text("def f(:")
    Path("quits.py").write_text("import sys; sys.exit(0)")
    Path("bad.toml").write_text("[parameters.x]\nlow = 0\nhigh = 1\n")
    Path("low.toml").write_text('[parameters.x]\ntype = "float"\nlow = 2\nhigh = 1\n')
    Path("more.toml").write_text('[parameters.x]\ntype = "float"\nlow = 2\nhigh = 3\nsize = 1\n')
    Path("empty.toml").write_text("")
    Path("up.toml").write_text('direction = "up"\n' + SPACE)
    assert expected in run(*words, code=2)
    if Path("calibo.db").exists():
        assert optuna.get_all_study_names("sqlite:///calibo.db") in ([], ["s"]), "nothing is begun"


def test_a_refused_ask_begins_nothing(run):
    run("ask", "s", "--space", "space.toml", "--fix", "x=7", code=2)
    run("ask", "s", "--space", "space.toml", "--maximize")
    Path("down.toml").write_text('direction = "minimize"\n' + SPACE)
    assert "contradict" in run("ask", "z", "--space", "down.toml", "--maximize", code=2)


def test_show_before_anything_is_told(run):
    run("ask", "s", "--space", "space.toml")
    assert "No feasible trial yet" in run("show", "s")


def test_show_where_nothing_is_feasible(run):
    study = optuna.create_study(study_name="s", storage="sqlite:///calibo.db")
    trial = study.ask({"x": optuna.distributions.FloatDistribution(0, 1)})
    trial.set_constraint("c", 1.0)
    study.tell(trial, 1.0)
    assert "No feasible trial yet" in run("show", "s")
    assert "(infeasible)" in run("show", "s")


def test_negative_values_are_no_options(run):
    run("ask", "s", "--space", "space.toml", "-n", "3")
    for trial, value in enumerate(("-1e-3", "-5", "-.5")):
        run("tell", "s", value, "--trial", trial)
    assert [trial.value for trial in trials("s")] == [-1e-3, -5.0, -0.5]


def test_hints_can_be_pasted_into_a_shell(run):
    name = "my study; $(touch owned)"
    out = run("ask", name, "--space", "space.toml", "--storage", "other.db")
    assert f"calibo tell '{name}' VALUE --trial 0 --storage other.db" in out


def test_fixed_values_go_to_who_fixed_them(run):
    run("ask", "s", "--space", "space.toml")
    optuna.load_study(study_name="s", storage="sqlite:///calibo.db").enqueue_trial({"x": 0.77})
    assert json.loads(run("ask", "s", "--fix", "x=0.25", "--json"))["params"]["x"] == 0.25
    assert json.loads(run("ask", "s", "--json"))["params"]["x"] == 0.77


def test_a_trial_that_a_program_evaluates_cannot_be_told_by_hand(run):
    run("ask", "s", "--space", "space.toml")
    run("tell", "s", "1")
    study = optuna.load_study(study_name="s", storage="sqlite:///calibo.db", sampler=calibo.CalibratedSampler())
    messages = []

    def told_meanwhile(trial):
        trial.suggest_float("x", 0, 1), trial.suggest_int("n", 1, 64, log=True)
        messages.append(run("tell", "s", "5", "--trial", trial.number, code=2))
        messages.append(run("tell", "s", "5", code=2))
        return 1.0

    study.optimize(told_meanwhile, n_trials=1)
    assert "is being evaluated by a program" in messages[0]
    assert "No trial of " in messages[1]


def test_export_never_overwrites_something_else(run):
    run("ask", "s", "--space", "space.toml")
    before = Path("calibo.db").read_bytes()
    assert "which exists" in run("show", "s", "--csv", "calibo.db", code=2)
    assert Path("calibo.db").read_bytes() == before
    run("show", "s", "--csv", "out.csv")
    run("show", "s", "--csv", "out.csv")
    assert [path.name for path in Path().glob("*.csv*")] == ["out.csv"]


def test_filled_in_and_canceled_lines_of_an_export(run):
    run("ask", "s", "--space", "space.toml", "-n", "3")
    run("tell", "s", "--cancel", "--trial", "1")
    run("show", "s", "--csv", "out.csv")
    lines = Path("out.csv").read_text().splitlines()
    lines[1] = lines[1].replace("running,,", "running,4.5,")
    Path("in.csv").write_text("\ufeff" + "\r\n".join(line.replace(",", ";") for line in lines))
    assert run("tell", "s", "--csv", "in.csv") == "1 trials added to s\n"
    assert trials("s")[-1].value == 4.5


def test_constraints_and_pruned_trials_survive_a_round_trip(run):
    run("ask", "s", "--space", "space.toml")
    study = optuna.load_study(study_name="s", storage="sqlite:///calibo.db")
    distributions = study.trials[0].distributions
    trial = study.ask(distributions)
    trial.set_constraint("weight", 2.5)
    study.tell(trial, 1.0)
    pruned = study.ask(distributions)
    pruned.report(3.0, 1)
    study.tell(pruned, state=optuna.trial.TrialState.PRUNED)
    run("show", "s", "--csv", "out.csv")
    run("tell", "s", "--csv", "out.csv")
    again = trials("s")[3:]
    assert again[0].constraints == {"weight": 2.5}
    assert again[1].state == optuna.trial.TrialState.PRUNED


def test_choices_that_read_the_same_are_told_apart(run):
    Path("c.toml").write_text(
        '[parameters.c]\nchoices = [1, "1", "a"]\n[parameters.x]\ntype = "float"\nlow = 0\nhigh = 1\n'
    )
    assert json.loads(run("ask", "s", "--space", "c.toml", "--fix", "c=1", "--json"))["params"]["c"] == 1
    assert json.loads(run("ask", "s", "--fix", 'c="1"', "--json"))["params"]["c"] == "1"
    run("tell", "s", "1", "--trial", "0")
    run("tell", "s", "2", "--trial", "1")
    run("show", "s", "--csv", "out.csv")
    run("tell", "s", "--csv", "out.csv")
    assert [trial.params["c"] for trial in trials("s")] == [1, "1", 1, "1"]
    Path("same.toml").write_text("[parameters.c]\nchoices = [1, true]\n")
    assert "distinct choices" in run("ask", "t", "--space", "same.toml", code=2)


def test_a_parameter_may_not_be_named_as_a_column_of_the_file(run):
    Path("v.toml").write_text('[parameters.value]\ntype = "float"\nlow = 0\nhigh = 1\n')
    run("ask", "s", "--space", "v.toml")
    assert "must not be named like" in run("show", "s", "--csv", "out.csv", code=2)


def test_several_objectives_are_refused(run):
    optuna.create_study(study_name="multi", storage="sqlite:///calibo.db", directions=["minimize", "maximize"])
    for words in (["show", "multi"], ["tell", "multi", "1"], ["run", "train.py:chooses", "--study", "multi"]):
        assert "one direction" in run(*words, code=2)


def test_the_reader_of_a_pipe_may_go_and_old_terminals_are_served(folder):
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    words = [sys.executable, "-m", "calibo"]
    subprocess.run(
        [*words, "run", "train.py:bowl", "--space", "space.toml", "--trials", "5"], check=True, capture_output=True
    )
    shown = subprocess.run([*words, "show"], check=True, capture_output=True, env=env)
    assert b"Best measured" in shown.stdout
    gone = subprocess.run(
        f"{sys.executable} -m calibo show | head -1; exit ${{PIPESTATUS[0]}}",
        shell=True,
        executable="/bin/bash",
        capture_output=True,
    )
    assert gone.returncode == 0
    assert gone.stderr == b""
    with open("/dev/full", "w") as nowhere:
        full = subprocess.run([*words, "show"], stdout=nowhere, stderr=subprocess.PIPE)
    assert full.returncode == 2
    assert b"Traceback" not in full.stderr


def test_debug_shows_the_traceback(capsys):
    assert main(["show", "--debug"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_a_study_of_another_space_is_refused(run):
    run("run", "train.py:bowl", "--space", "space.toml", "--trials", "2")
    Path("space.toml").write_text(SPACE.replace("64", "65"))
    assert "differs in ['n']" in run("run", "train.py:bowl", "--space", "space.toml", code=2)
    assert "differs in ['n']" in run("ask", "bowl", "--space", "space.toml", code=2)


NASTY = '\x1b[2J[bold]<script>\'; DROP TABLE studies; --\n"name"'


def test_names_are_only_text(run):
    Path("nasty.toml").write_text(f"[parameters.{json.dumps(NASTY)}]\nchoices = [{json.dumps(NASTY)}, 'b']\n")
    run("ask", NASTY, "--space", "nasty.toml")
    run("tell", NASTY, "1.0")
    out = run("show", NASTY)
    assert "\x1b" not in out
    assert "[bold]<script>'; DROP" in out
    assert "'; DROP TABLE" in run("tell", NASTY, "1.0", code=2)
    assert len(trials(NASTY)) == 1
    errors = run("show", "\x1b[31m\n", code=2)
    assert "\x1b" not in errors


def test_opening_a_study_executes_nothing(run, tmp_path):
    run("ask", "s", "--space", "space.toml")
    run("tell", "s", "1")
    study = optuna.load_study(study_name="s", storage="sqlite:///calibo.db")
    for key, value in (
        ("calibo:space:0", '{"a": 1}'),
        ("calibo:space:0", "5"),
        ("calibo:space:0", '[{"name": "x", "kind": "os"}]'),
    ):
        twisted = optuna.create_study(study_name=f"t{value}", storage="sqlite:///calibo.db")
        twisted.set_user_attr(key, value)
        assert "is not valid" in run("ask", f"t{value}", code=2)
    evil = f"__import__('pathlib').Path({str(tmp_path / 'owned')!r}).touch()"
    study.set_user_attr("calibo:seed", evil)
    trial = optuna.create_trial(
        params={"x": 0.5, "n": 2},
        distributions=study.trials[0].distributions,
        value=2.0,
        user_attrs={"calibo:error": evil},
    )
    trial.system_attrs = {"calibo:state:0": evil, "calibo:proposal:0": "cos\nsystem\n(S'touch owned'\ntR."}
    study.add_trial(trial)
    trial.system_attrs = {"calibo:state:0": '{"surrogate": "abc", "feasibility": 5, "x": [1]}', "retry_history": 5}
    study.add_trial(trial)
    trial.system_attrs = {"calibo:state:0": "[" * 100_000}
    trial.user_attrs = {"calibo:noise": 10**400}
    study.add_trial(trial)
    run("show", "s")
    run("ask", "s")
    assert not (tmp_path / "owned").exists()


def test_the_trace_has_the_best_and_the_values():
    lines = draw_trace([3.0, 1.0, 2.0, 0.5], [3.0, 1.0, 1.0, 0.5])
    assert lines[0].startswith("  3 ┤━")
    assert lines[9].startswith("0.5 ┤   ━")
    assert any("·" in line for line in lines)
    assert draw_trace([], []) == []
    assert draw_trace([float("nan")], [float("nan")]) == []
    assert "log scale" in draw_trace([1e-3, 1.0], [1.0, 1e-3])[-1]
    assert len(draw_trace([1.0] * 500, [1.0] * 500)[0]) < 80
    assert draw_trace([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])[0].startswith("3 ┤")


def test_control_characters_are_spelled_out():
    assert printable("a\x1b[2J\nb") == "a\\x1b[2J\\nb"
    assert printable("Größe 名") == "Größe 名"


def test_a_csv_file_of_a_spreadsheet_is_read(run):
    run("ask", "s", "--space", "space.toml")
    Path("in.csv").write_text("when;x;n;value\nMonday;0,25;2;12,5\n")
    assert "1 trials added" in run("tell", "s", "--csv", "in.csv")
    assert (trials("s")[1].params["x"], trials("s")[1].value) == (0.25, 12.5)
    Path("in.csv").write_text("x;n;value\n0,25;2;12,5;7\n")
    assert "must have 3 cells" in run("tell", "s", "--csv", "in.csv", code=2)


def test_a_rounded_ask_shows_the_value_that_is_used(run):
    for _ in range(6):
        asked = json.loads(run("ask", "s", "--space", "space.toml", "--json"))
        x = asked["params"]["x"]
        assert trials("s")[-1].params["x"] == x
        assert len(f"{x:.12g}".lstrip("-0.").replace(".", "")) <= 4
        run("tell", "s", (x - 0.3) ** 2)
    assert asked["forecast"] is not None, "the forecast is that of the rounded point"
    exact = [json.loads(line) for line in run("ask", "s", "--json", "--digits", "0", "-n", "4").splitlines()]
    assert any(len(repr(each["params"]["x"])) > 8 for each in exact), "some may lie at a bound"
    assert "--digits" in run("ask", "s", "--digits", "-1", code=2)


def test_a_bad_first_value_does_not_squeeze_the_trace():
    values = [1e9, 5.0, 4.0, 4.5, 3.0, 3.5, 2.0]
    best = [1e9, 5.0, 4.0, 4.0, 3.0, 3.0, 2.0]
    lines = draw_trace(values, best)
    assert lines[0].startswith("5 ┤▲━")
    assert len({i for i, line in enumerate(lines) if "━" in line}) >= 4
    upwards = draw_trace([-value for value in values], [-value for value in best])
    assert upwards[-3].startswith("-5 ┤▼━")


WIDE = "".join(f'[parameters.a_long_name_{i}]\ntype = "float"\nlow = 0.0\nhigh = 1.0\n\n' for i in range(14))


def test_values_are_readable_with_fourteen_parameters_in_a_pipe(run):
    Path("wide.toml").write_text(WIDE)
    for value in (3.0, 1.0, 2.0):
        run("ask", "wide", "--space", "wide.toml")
        run("tell", "wide", value)
    shown = subprocess.run(
        [sys.executable, "-m", "calibo", "show", "wide"], capture_output=True, text=True, check=True
    ).stdout
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= 80
    for name, value in trials("wide")[1].params.items():
        assert re.search(rf"│ {name} +│ {value:.6g} ", shown), "the best trial comes first"
    assert "best measured" in shown


def test_every_command_takes_json(run):
    def told(*words):
        return json.loads(run(*words, "--json"))

    Path("wide.toml").write_text(SPACE.replace("high = 1.0", "high = 2.0"))
    found = told("run", "train.py:bowl", "--space", "space.toml", "--trials", "7")
    assert (found["study"], found["counts"], found["stopped"]) == ("bowl", {"complete": 7}, None)
    assert found["best"]["value"] >= 1.0
    assert set(found["recommendation"]) == {"params", "median", "low", "high", "noise"}
    assert told("ask", "bowl")["trial"] == 7
    assert told("tell", "bowl", "3.5") == {
        "study": "bowl",
        "trial": 7,
        "value": 3.5,
        "params": trials("bowl")[7].params,
    }
    assert told("drop", "bowl", "0", "1") == {"study": "bowl", "dropped": [0, 1]}
    assert told("amend", "bowl", "2", "-1") == {"study": "bowl", "trial": 2, "value": -1.0}
    assert told("widen", "bowl", "--space", "wide.toml")["changed"] == ["x"]
    shown = told("show")
    assert shown["best"]["value"] == -1.0
    assert [correction["trial"] for correction in shown["corrections"]] == [0, 1, 2]
    assert len(shown["trials"]) == 6
    assert told("show", "--csv", "all.csv") == {"study": "bowl", "trials": 6, "csv": "all.csv"}
    assert told("audit")["reported"]["count"] == told("audit")["outcomes"] > told("audit")["raw"]["count"]
    assert told("plot", "warps", "--samples", "4")["html"] == "warps.html"


def test_trials_that_a_bug_spoiled_are_shown_as_ignored(run, capsys):
    Path("train.py").write_text("def f(x, n):\n    return y\n")
    assert main(["run", "train.py:f", "--space", "space.toml"]) == 2
    capsys.readouterr()
    shown = run("show", "f")
    assert "f: minimize, 3 ignored" in shown
    assert "ignored: NameError" in shown


INTERRUPTED = """
import os, signal, sys

class Interrupt:
    def find_spec(self, name, *_):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
from calibo.cli import main
sys.exit(main(["run", "train.py:bowl", "--space", "space.toml"]))
"""


@pytest.mark.parametrize("module", ["rich.console", "numpy", "optuna", "scipy.stats"])
def test_ctrl_c_while_modules_are_imported_is_quiet(module):
    code = INTERRUPTED.format(module=module)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 130
    assert "Traceback" not in done.stderr
    assert "topped" in done.stderr + done.stdout
