"""Comparisons of our own: what is measured, and what the pages say of rows that are known."""

import json
from pathlib import Path

import numpy as np
import pytest

from calibo_bench import runner
from calibo_bench.cli import main
from calibo_bench.clients import PEERS, client_of
from calibo_bench.experiments import EXPERIMENTS
from calibo_bench.experiments.recalibrators import ScoreSequence
from calibo_bench.experiments.spaces import Study
from calibo_bench.experiments.timing import Timing
from calibo_bench.problems.suites import problems_of
from calibo_bench.runner import OWN, Cell, blank_row, initial_points
from calibo_bench.statistics import Results
from calibo_bench.targets import Archive

NAMES = {experiment.name: experiment for experiment in EXPERIMENTS}


@pytest.mark.parametrize("name", NAMES)
def test_every_measurement_has_a_key_of_its_own(name):
    for quick in (True, False):
        cells = NAMES[name].cells(2, quick=quick)
        assert len({cell.key for cell in cells}) == len(cells) > 0
        for cell in cells:
            if isinstance(cell, Cell) and cell.strategy not in PEERS:  # peers may not be installed
                client_of(cell.strategy, 1.0)


@pytest.mark.parametrize("name", NAMES)
def test_a_page_of_nothing_is_a_page(name):
    assert "nan" not in NAMES[name].report(Archive([], 2)).text


def run(cell, values):
    return {**blank_row(cell.key), "values": values, "initial": 1, "minimum": 0.0, "range": 1.0}


def test_a_better_default_is_told_by_a_ratio_below_one():
    cells = NAMES["choices"].cells(3, quick=False)
    best = {"choices/refit every step": 0.5, "choices/initial 4": 2.0}
    rows = [run(cell, [4.0, best.get(cell.strategy, 1.0) * (1 + 0.01 * cell.seed)]) for cell in cells]
    lines = NAMES["choices"].report(Archive(rows, 3)).text.splitlines()
    found = {line.split(" | ")[0].strip("| "): line.split(" | ")[1:3] for line in lines if line.startswith("|")}
    assert found["refit every step"][1].startswith("0.500")
    assert found["initial 4"][1].startswith("2.0")
    assert found["four at a time: mean"][0].startswith("1.000")
    assert "plain" not in found, "it is what the others are compared with"


def test_the_correction_that_finds_the_minimum_is_told():
    rows = []
    for cell in NAMES["forrester"].cells(4, quick=False):
        found = -6.02 if cell.strategy == "corrections/Stream/shift-scale" else -0.9
        rows.append({**run(cell, [3.0, 3.0, 3.0, found]), "initial": 3})
    text = NAMES["forrester"].report(Archive(rows, 4)).text
    line, same = (line for line in text.splitlines() if line.startswith("| shift-scale"))
    assert line == same, "from both sets of starts"
    assert [cell.split(",")[0].strip() for cell in line.strip("|").split("|")[1:]] == ["0/4", "0/4", "4/4"]
    assert "Without calibration: 0/4" in text


def test_a_leaderboard_runs_ours_longer_and_slow_peers_only_for_confirmation():
    for name in ("functions", "tuning", "functions-held-out", "tuning-held-out"):
        cells = NAMES[name].cells(20, quick=False)
        assert {cell.budget for cell in cells if cell.strategy.startswith("calibo")} == {80}
        assert {cell.budget for cell in cells if not cell.strategy.startswith("calibo")} == {40}
        slow = [cell for cell in cells if cell.strategy in ("hebo", "smac", "ax", "botorch-saas")]
        assert bool(slow) == name.endswith("held-out")
        assert {cell.seed for cell in slow} <= set(range(10))
        assert {cell.seed for cell in cells if cell.strategy == "optuna-gp"} == set(range(20))


def test_a_leaderboard_tells_the_best_peer_and_failed_runs():
    def made(cell):
        if cell.strategy == "calibo":  # as good as 0.8 ** 10 after 20 evaluations of 12
            return run(cell, [0.8 ** (t // 2) for t in range(24)])
        if cell.strategy == "optuna-gp" and cell.seed == 0:
            return {**run(cell, [1.0, 0.8]), "error": "no answer within 60 seconds"}
        return run(cell, [0.8**t if cell.strategy == "optuna-tpe" else 1.0 for t in range(cell.budget)])

    rows = [made(cell) for cell in NAMES["functions-held-out"].cells(6, quick=True)]
    text = NAMES["functions-held-out"].report(Archive(rows, 6)).text
    assert "The best peer is optuna-tpe: 1.92" in text
    assert "| optuna-tpe | 1.92 (1.92 to 1.92) | 4 | 0 | 0 |" in text
    assert "optuna-gp, seed 0: no answer within 60 seconds" in text
    assert "There are no runs of 'calibo'" in NAMES["functions"].report(Archive(rows[-1:], 6)).text


def test_samplers_are_compared_by_the_best_feasible_value():
    rows = []
    for study in NAMES["spaces"].cells(2, quick=False):
        values = [3.0] * 8 + [None if study.sampler == "GPSampler" else 2.0 if study.sampler == "calibo" else 2.5] * 32
        rows.append({**blank_row(study.key), "values": [None] * 40 if study.sampler == "random" else values})
    text = NAMES["spaces"].report(Archive(rows, 2)).text.partition("## wave and disk")[2]
    assert "| calibo | 2 ± 0 | 2 ± 0 | 2 |  |" in text
    assert "| TPE | 2.5 ± 0 | 2.5 ± 0 | 2.5 | 2 / 0 / 0 |" in text
    assert "| GPSampler | 3 ± 0 |" in text
    assert "| random | nothing feasible |" in text


def test_a_study_of_a_sampler_is_measured():
    row = Study("wave and disk", "calibo", 0, 10).measured()
    same = Study("wave and disk", "random", 0, 10).measured()
    assert row["error"] is None
    assert len(row["values"]) == 10
    assert row["values"][:8] == same["values"][:8], "the first trials are given"
    assert row["values"] != same["values"]


def test_a_strategy_may_begin_with_its_own_design():
    cell = Cell("cube-branin", "choices/initial 4", 3, 6, start=OWN)
    row, other = cell.measured(), Cell("cube-branin", "calibo-plain", 3, 6, start=OWN).measured()
    (problem,) = problems_of("cube-branin")
    assert initial_points(problem.at(3), "cube-branin", 3, OWN) == []
    assert row["error"] is None
    assert row["initial"] == 0
    assert len(row["values"]) == len(row["wall"]) == 6
    assert len(row["forecasts"]) == 2, "the design of four points is asked for without a model"
    assert row["values"][:4] == other["values"][:4], "designs are paired by the seed"


def test_a_batch_is_asked_at_once():
    rows = [
        Cell("cube-branin", f"choices/{name}", 1, 9, start=OWN).measured()
        for name in ("plain", "four at a time: own mean")
    ]
    assert [row["error"] for row in rows] == [None, None]
    assert rows[0]["values"][:4] == rows[1]["values"][:4]
    assert rows[0]["values"] != rows[1]["values"]
    assert rows[1]["forecasts"] == []


def test_streams_have_the_error_of_their_fault():
    known, corrected = (
        ScoreSequence(name, 200, 0).measured()["errors"] for name in ("identity", "ShiftScaleRecalibrator")
    )
    assert known["none"] < 0.02 < known["biased"]
    assert corrected["biased"] < 0.5 * known["biased"]


def test_times_are_measured_in_a_process_of_their_own():
    row = Timing("fresh", 12).measured()
    assert row["error"] is None
    assert 0.0 < row["times"]["fresh"] < 60.0
    assert row["versions"]["calibo"]
    assert "KeyError" in Timing("nothing").measured()["error"]


def test_speed_is_a_ratio_of_means():
    rows = []
    for timing in NAMES["speed"].cells(1, quick=False):
        times = {
            "side_by_side": {
                "plain": [0.01] * 10,
                "default": [0.03] * 10,
                "GPSampler": [0.1] * 10,
                "BoTorch": [0.2] * 10,
            },
            "reporting": {"decision": [20.0] * 3, "with its report": [30.0] * 3},
            "steps": {"update": 1e-3 * timing.n, "refit": 1e-2 * timing.n, "peak": 100.0},
            "fresh": {"fresh": 1.0},
            "peer_steps": {"first": 1.0, "next": 1e-3 * timing.n**2, "peak": 200.0},
            "importing": {"median": 0.1, "largest": 0.2},
            "installed": {"core": 150.0, "base": 100.0},
        }[timing.job]
        rows.append({**blank_row(timing.key), "times": times})
    text = NAMES["speed"].report(Archive(rows, 1)).text
    assert "| 1 | 50 | 10.0 ± 0.0 | 30.0 ± 0.0 | 100.0 ± 0.0 | **10.0** | 5 | 200.0 ± 0.0 | **20.0** | 10 |" in text
    assert "| 20.0 | 30.0 | **1.50** |" in text
    assert "| exponent | 1.00 | 1.00 | 0.00 |  | 2.00 |  |" in text
    assert "beyond NumPy + SciPy: 50 MB" in text


def test_costs_are_medians_of_ratios():
    (cell,) = [
        cell for cell in NAMES["calibration-cost"].cells(1, quick=False) if cell.key[:4:3] == ("calibrated_step", 30)
    ]
    seconds = [[0.011, 0.010], [0.012, 0.010], [0.1, 0.09]]
    times = {"one row": seconds, "mixture of 8 rows": (2 * np.array(seconds)).tolist()}
    text = NAMES["calibration-cost"].report(Archive([{**blank_row(cell.key), "times": times}], 1)).text
    assert "| one row | 30 | 12.0 | 10.0 | 1.11 | 1.10 |" in text
    rows = [
        {
            **blank_row(cell.key),
            "times": {
                "plain": [0.01, 0.03],
                "plain+warped": [0.02, 0.06],
                "plain+sampled": [0.1, 0.1],
                "plain+warped+sampled": [0.2, 0.2],
            },
        }
        for cell in NAMES["warping-cost"].cells(2, quick=False)
    ]
    text = NAMES["warping-cost"].report(Archive(rows, 2)).text
    assert "| plain+warped+sampled | 200 | 10.0 | 200 | 6.7 |" in text


def test_the_command_makes_a_page_and_goes_on(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["reproduce", "recalibrators", "--quick", "--out", "here"]
    assert main([*words, "--seeds", "1"]) == 0
    assert main([*words, "--seeds", "2", "--jobs", "2"]) == 0
    rows = [json.loads(line) for line in Path("here/runs.jsonl").read_text().splitlines()]
    assert len(rows) == 16
    text = Path("here/recalibrators-quick.md").read_text()
    assert "`calibo-bench reproduce recalibrators --seeds 2 --quick`" in text
    assert "## After 20 outcomes" in text
    assert "16 runs. Made by one state of the code: " in text
    assert "here/recalibrators-quick.md\n" in capsys.readouterr().out, "there is nothing to draw"
    Path("here/runs.jsonl").write_text("\n".join(json.dumps(row) for row in rows[:15]) + "\n")
    assert main([*words, "--seeds", "2", "--report-only"]) == 0
    assert "Missing or failed runs:\n\n* " in Path("here/recalibrators-quick.md").read_text()


def test_what_goes_wrong_is_part_of_the_row_and_the_others_go_on(tmp_path):
    cells = [Study("no such problem", "calibo", 0, 9), ScoreSequence("identity", 20, 0)]
    rows = {row["problem"]: row for row in runner.run(cells, tmp_path / "r.jsonl", 1)}
    assert "KeyError" in rows["no such problem"]["error"]
    assert rows["streams"]["error"] is None


@pytest.mark.parametrize("name", ["recalibrators", "storage", "failures", "spaces", "choices", "calibration", "speed"])
def test_failed_and_missing_rows_are_left_out(name):
    cells = NAMES[name].cells(2, quick=False)
    failed = [{**blank_row(cell.key), "error": "crashed"} for cell in cells]
    assert "nan" not in NAMES[name].report(Archive(failed, 2)).text


def test_a_comparison_that_was_stopped_early_is_reported():
    rows = []
    for cell in NAMES["calibration"].cells(2, quick=False):
        if cell.strategy == "calibo-plain" or (cell.strategy == "calibo" and cell.problem.startswith("ackley2")):
            forecasts = [[0.0, 1.0, 0.5, 0.5, 0.5, 0.3, -1.0]] * 12
            rows.append({**run(cell, [3.0, 2.0, 1.0]), "forecasts": forecasts})
    text = NAMES["calibration"].report(Archive(rows, 2)).text
    assert "| none | 2 | 1 | 1 |" in text
    assert "| default" not in text, "it has not been run on all problems"


def test_times_are_measured_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "speed", "--jobs", "2"]) == 2
    assert "--jobs must be 1 for ['speed']" in capsys.readouterr().err


def test_areas_of_runs_with_their_own_design_are_those_of_the_whole_curve():
    cells = [Cell("cube-branin", name, seed, 3, start=OWN) for name in ("a", "b") for seed in range(6)]
    rows = [{**run(cell, [4.0, 2.0 if cell.strategy == "a" else 4.0, 1.0]), "initial": 0} for cell in cells]
    found = Results(rows).compared("b", "a")
    assert found.regret[0] == pytest.approx(1.0)
    assert found.area[0] == pytest.approx(9.0 / 7.0)
