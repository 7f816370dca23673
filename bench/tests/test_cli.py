"""`calibo-bench`, as a person uses it."""

import json
from pathlib import Path

import pytest

from calibo_bench.cli import main


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_the_smoke_suite_runs_and_is_reported(capsys):
    words = [
        "run",
        "--suite",
        "smoke",
        "--strategies",
        "calibo,random,sobol",
        "--seeds",
        "3",
        "--budget",
        "15",
    ]
    assert main([*words, "--jobs", "2", "--out", "smoke.jsonl"]) == 0
    assert "27 of 27 runs" in capsys.readouterr().out
    assert main([*words, "--out", "smoke.jsonl"]) == 0, "nothing is left to do"
    assert len(Path("smoke.jsonl").read_text().splitlines()) == 27
    assert main(["report", "smoke.jsonl", "--title", "Smoke", "--markdown", "s.md", "--html", "s.html"]) == 0
    text = Path("s.md").read_text()
    assert text.startswith("# Smoke")
    assert "| random | 3 | 3 | " in text
    assert "<h1>Smoke</h1>" in Path("s.html").read_text()
    capsys.readouterr()
    assert main(["report", "smoke.jsonl", "--reference", "random"]) == 0
    assert "to 'random'" in capsys.readouterr().out


def test_one_seed_alone(capsys):
    words = ["run", "--suite", "levy2-cropped", "--strategies", "random", "--seed", "13", "--budget", "8"]
    assert main([*words, "--out", "r.jsonl"]) == 0
    assert '"seed": 13' in Path("r.jsonl").read_text()


def test_starts_are_reported_one_by_one(capsys):
    words = ["run", "--suite", "forrester", "--strategies", "random", "--seeds", "2", "--budget", "6"]
    for start in ("random3", "random4"):
        assert main([*words, "--start", start, "--out", "r.jsonl"]) == 0
    report = ["report", "r.jsonl", "--reference", "random"]
    assert main(report) == 2
    assert "--start must be one of ['random3', 'random4']" in capsys.readouterr().err
    assert main([*report, "--start", "random4"]) == 0
    assert main([*words[:-1], "3", "--start", "random3"]) == 2
    assert "at least 3" in capsys.readouterr().err


def test_what_is_there_is_listed(capsys):
    assert main(["list"]) == 0
    shown = capsys.readouterr().out
    assert "suite functions: beale-cropped" in shown
    assert "calibo, calibo-plain, calibo-ei" in shown
    assert "hebo" in shown


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["run", "--suite", "nothing"], "--suite must be"),
        (["run", "--strategies", "nobody"], "must be one of"),
        (["run", "--seeds", "0"], "at least 1"),
        (["run", "--budget", "5"], "--budget must exceed"),
        (["run", "--timeout", "-1"], "--timeout must be"),
        (["verify", "nothing.jsonl"], "has none"),
        (["verify", "nothing.jsonl", "--seed", "-1"], "at least 0"),
        (["report", "nothing.jsonl"], "has no rows"),
        (["install-peers", "nobody"], "NAME must be one of"),
    ],
)
def test_expected_errors_are_one_line(words, expected, capsys):
    assert main([*words]) == 2
    shown = capsys.readouterr().err
    assert expected in shown
    assert shown.count("\n") == 1


def test_failed_runs_are_told_and_listed(capsys):
    Path("bad.py").write_text("import sys; sys.exit(1)")
    assert main(["run", "--strategies", "random,bad.py", "--seeds", "1", "--budget", "7", "--out", "r.jsonl"]) == 1
    assert "has ended" in capsys.readouterr().err
    assert main(["report", "r.jsonl", "--reference", "random"]) == 0
    assert "## Runs that failed" in capsys.readouterr().out


def test_an_environment_that_cannot_be_made_is_reported(monkeypatch, tmp_path, capsys):
    from calibo_bench import clients as strategies
    from calibo_bench import install

    monkeypatch.setenv("CALIBO_PEERS", str(tmp_path / "peers"))
    broken = {"skopt": strategies.Environment(("no-such-package-of-this-name-anywhere",))}
    monkeypatch.setattr(install, "ENVIRONMENTS", broken)
    assert main(["install-peers", "skopt"]) == 1
    assert "skopt: could not be installed" in capsys.readouterr().out


def test_rows_are_made_again_and_compared(capsys):
    words = ["run", "--suite", "branin", "--strategies", "calibo-plain,random", "--seeds", "2", "--budget", "8"]
    assert main([*words, "--out", "r.jsonl"]) == 0
    capsys.readouterr()
    assert main(["verify", "r.jsonl"]) == 0
    shown = capsys.readouterr().out
    assert "4 rows. Made by one state of the code: " in shown
    assert "2 of 2 are identical." in shown
    assert main(["verify", "r.jsonl", "--strategies", "random"]) == 0, "a peer is repeated if it is named"
    rows = [json.loads(line) for line in Path("r.jsonl").read_text().splitlines()]
    for row in rows:
        row["values"][6] += 1.0
    Path("r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    capsys.readouterr()
    assert main(["verify", "r.jsonl", "--rows", "1"]) == 1
    shown = capsys.readouterr().out
    assert "**4 rows were changed after they were written.**" in shown
    assert "branin random 1: changed after it was written" in shown
    assert "the point of evaluation 7 differs" in shown
    assert main(["report", "r.jsonl", "--reference", "random"]) == 0
    assert "4 rows were changed" in capsys.readouterr().out, "a page of such rows says so"
    assert main(["report", "r.jsonl", "--reference", "random", "--markdown", "nowhere/x.md"]) == 2
    assert "could not be read or written" in capsys.readouterr().err


def test_a_row_of_another_seed_or_strategy_than_it_says_is_told(capsys):
    words = ["run", "--suite", "branin-cropped-noisy", "--strategies", "calibo-plain", "--seed", "1", "--budget", "8"]
    assert main([*words, "--out", "r.jsonl"]) == 0
    row = json.loads(Path("r.jsonl").read_text())
    for part, changed in (("seed", 2), ("strategy", "calibo-ei"), ("recommended", row["recommended"][::-1])):
        Path("r.jsonl").write_text(json.dumps({**row, part: changed}) + "\n")
        capsys.readouterr()
        assert main(["verify", "r.jsonl"]) == 1
        shown = capsys.readouterr().out
        assert "changed after it was written" in shown
        assert ("the recommendation of evaluation" in shown) == (part == "recommended")


def test_problems_that_confirm_a_default_are_not_for_trying(capsys):
    words = ["run", "--suite", "branin,peaks2", "--strategies", "calibo-plain,random", "--seeds", "1", "--budget", "7"]
    assert main([*words, "--out", "r.jsonl"]) == 2
    assert "'peaks2', which confirms a finished default" in capsys.readouterr().err
    assert not Path("r.jsonl").exists()
    assert main([*words, "--out", "r.jsonl", "--held-out"]) == 0
    words[words.index("calibo-plain,random")] = "random"
    assert main([*words, "--out", "other.jsonl"]) == 0, "other optimizers may be measured there at any time"


def test_runs_that_go_on_tell_how_many_evaluations_are_needed(capsys):
    words = ["run", "--suite", "branin,forrester", "--seeds", "5", "--out", "r.jsonl"]
    assert main([*words, "--strategies", "calibo-plain", "--budget", "16"]) == 0
    assert main([*words, "--strategies", "random", "--budget", "8"]) == 0
    assert main(["report", "r.jsonl", "--reference", "calibo-plain"]) == 0
    shown = capsys.readouterr().out
    assert "compared after 8 evaluations" in shown
    assert "## Evaluations to each strategy's result" in shown
    assert "The best peer is random: " in shown
    assert main(["report", "r.jsonl", "--reference", "calibo-plain", "--budget", "9"]) == 2
    assert "--budget must be one of [8, 16], but got 9" in capsys.readouterr().err


def test_a_result_file_that_cannot_be_written_is_told(capsys):
    assert main(["run", "--out", "/proc/nowhere/r.jsonl", "--strategies", "random"]) == 2
    assert "must be in a writable folder" in capsys.readouterr().err


def test_peers_need_given_points(capsys):
    words = ["run", "--suite", "branin", "--strategies", "random", "--seeds", "1", "--budget", "8", "--start", "own"]
    assert main([*words, "--out", "r.jsonl"]) == 1
    assert "a peer uses the initial points as its design" in capsys.readouterr().err
