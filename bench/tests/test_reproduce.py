"""Papers reproduced: the metrics, what every report says of runs that are known, and the command."""

import json
from dataclasses import replace
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
from scipy.special import ndtri

from calibo_bench.catalog import TARGETS
from calibo_bench.cli import main
from calibo_bench.clients import client_of
from calibo_bench.problems.functions import function
from calibo_bench.reproduce.calibration import paper_values as printed
from calibo_bench.targets import Archive, Reproduction, Run, mean_and_error

PAPERS = [name for name, target in TARGETS.items() if isinstance(target, Reproduction)]
ONE, TWO = Run("branin", "one"), Run("branin", "two")


def row(run, seed, values, forecasts=()):
    cell = run.cell(seed)
    shared = {"problem": cell.problem, "strategy": cell.strategy, "seed": seed, "budget": cell.budget}
    problem = {"minimum": 0.0, "range": 10.0}
    known = {"start": cell.start, "error": None, "initial": 3, "values": values, "forecasts": list(forecasts)}
    return {**shared, **problem, **known}


def archive(one, two, seeds=20):
    rows = [row(run, seed, values) for run, runs in ((ONE, one), (TWO, two)) for seed, values in enumerate(runs)]
    return Archive(rows, seeds)


def test_curves_begin_after_the_given_points():
    made = archive([[5, 9, 7, 8, 4, 6]], [])
    np.testing.assert_array_equal(made.curves(ONE)[0], [5, 5, 4, 4])
    assert made.curves(TWO) == {}
    assert made.minimum(ONE) == "4"
    assert made.minimum(TWO) == ""


def test_wins_are_lower_minima_and_ties_the_same():
    ours = [[9, 9, 9, 1, 1, 1], [9, 9, 9, 5, 2, 2], [9, 9, 9, 3, 3, 3], [9, 9, 9, 1, 1, 1 + 1e-6]]
    theirs = [[9, 9, 9, 2, 2, 2], [9, 9, 9, 5, 5, 2], [9, 9, 9, 1, 1, 1], [9, 9, 9, 1, 1, 1]]
    assert archive(ours, theirs).beaten(ONE, TWO) == (1, 2, 1)
    assert archive(ours, theirs).beaten(TWO, ONE) == (1, 2, 1)
    assert archive(ours, theirs[:2]).beaten(ONE, TWO) == (1, 1, 0), "only pairs count"


def test_areas_are_normalised_over_all_that_are_compared():
    areas = archive([[8, 9, 8, 4, 0]], [[8, 8, 8, 8, 8], [4, 4, 4, 4, 4]]).areas([ONE, TWO])
    np.testing.assert_allclose(areas[ONE], [(1 + 0.5 + 0) / 3])
    np.testing.assert_allclose(areas[TWO], [1.0, 0.5])
    alone = archive([[3, 3, 3, 3]], []).areas([ONE])
    np.testing.assert_array_equal(alone[ONE], [1.0], "who never improves is as bad as can be")


def test_scores_are_of_all_forecasts_so_far():
    pits, levels = np.array([0.52, 0.11]), np.linspace(0.05, 0.95, 19)
    forecasts = [[0, 1, 0, float(ndtri(p)), float(ndtri(0.52)), 0, 0] for p in pits]
    made = Archive([row(ONE, 0, [1.0] * 5, forecasts)], 1)
    raw, used = made.scores(ONE)
    expected = [((levels - (pits[:t, None] <= levels).mean(axis=0)) ** 2).sum() for t in (1, 2)]
    np.testing.assert_allclose(raw, expected)
    assert used[1] == pytest.approx(used[0]) == pytest.approx(raw[0])


def test_only_seeds_that_all_have_are_compared():
    made = archive([[1.0] * 4] * 3, [[2.0] * 4] * 2, seeds=4)
    assert {run: len(made.shared([ONE, TWO]).of(run)) for run in (ONE, TWO)} == {ONE: 2, TWO: 2}


def test_seeds_and_quick_runs_are_told_apart():
    rows = [row(ONE, seed, [3.0, 2.0, 1.0, 0.5]) for seed in range(4)]
    assert len(Archive(rows, 2).of(ONE)) == 2
    assert not Archive(rows, 4, quick=True).of(ONE)
    quick = Archive([row(replace(ONE, steps=8), 0, [1.0] * 11)], 4, quick=True)
    assert len(quick.of(ONE)) == 1
    assert (quick.steps(ONE), Archive([], 1).steps(ONE)) == (8, 25)


def test_means_have_their_standard_error():
    assert mean_and_error([1.0, 3.0]) == "2 (1)"
    assert mean_and_error([]) == ""


def known(target, seeds=2):
    """Runs whose values follow from their names: calibrated ones find 1, all others 2, from 5."""
    rows = []
    for run in dict.fromkeys(target.runs):
        found = 1.0 if any(part in run.strategy for part in ("+papers", "+splits", "+local")) else 2.0
        if "+pi+splits" in run.strategy:
            found = 2.0  # a global map changes nothing under PI
        forecasts = [[0.0, 1.0, 0.0, 1.5, 0.1, 1.0, 0.0]] * 2
        rows += [row(run, seed, [5.0, 5.0, 5.0, found, found], forecasts) for seed in range(seeds)]
    return Archive(rows, seeds)


def cells_of(text, *first):
    """The cells of the table row that begins with these."""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[: len(first)] == list(first):
            return cells
    raise AssertionError(f"no row {first} in:\n{text}")


@pytest.mark.parametrize("name", PAPERS)
def test_every_target_names_strategies_that_exist_and_reports_what_there_is(name):
    target = TARGETS[name]
    for run in target.runs:
        client_of(run.strategy, 1.0)
    cells = target.cells(2, quick=False)
    assert len({cell.key for cell in cells}) == len(cells) == 2 * len(set(target.runs))
    empty = target.report(Archive([], 20))
    assert "nan" not in empty.text
    report = target.report(known(target))
    assert "nan" not in report.text
    assert all(figure.data for figure in report.draw())


@pytest.mark.parametrize("name", [name for name in TARGETS if name.startswith(("warp14", "opt20"))])
def test_a_method_that_is_missing_is_left_out(name):
    target = TARGETS[name]
    for strategy in {run.strategy for run in target.runs}:
        some = Archive([r for r in known(target).rows if r["strategy"] != strategy], 2)
        assert "nan" not in target.report(some).text


def _warped(best, name, seeds=6):
    """Runs whose best value is that of the first part found in the name of their strategy."""
    rows = []
    for run in dict.fromkeys(TARGETS[name].runs):
        found = next(value for part, value in best.items() if part in run.strategy)
        rows += [row(run, seed, [9.0] * 5 + [found + 0.1 * seed]) for seed in range(seeds)]
    return TARGETS[name].report(Archive(rows, seeds)).text


def test_table_one_tells_who_is_better_and_what_the_paper_has():
    text = _warped({"+warped+sampled": 1.0, "+warped": 2.0, "+sampled": 3.0, "": 4.0}, "warp14-table1")
    assert cells_of(text, "unwarped")[1] == "4.25 (0.076)"
    assert cells_of(text, "warped, sampled")[3] == "125 (7.6)", "per cent"
    assert cells_of(text, "paper: Spearmint, warped")[1:3] == ["0.398 ± 0.00 (40)", "-3.3166 ± 0.02 (100)"]
    assert cells_of(text, "warped, sampled", "unwarped, sampled")[-1] == "30/0/0"
    assert float(cells_of(text, "warped, sampled", "unwarped, sampled")[2].split()[0]) < 0.5
    assert float(cells_of(text, "unwarped, sampled", "unwarped")[2].split()[0]) < 1.0
    assert "* Branin: warped and sampled is worse by 0.852 (11.2 standard errors" in text
    assert "* online LDA: warped and sampled is as good as the paper's" in text


def test_known_warps_and_misleading_tasks_tell_who_is_better(monkeypatch):
    monkeypatch.setattr("calibo_bench.reproduce.warping.known._distances", lambda seed, n: (float(n), 2.0 * n))
    text = _warped({"+warped+sampled": 4.0, "+warped": 1.0, "+sampled": 5.0, "": 4.0}, "warp14-known")
    assert cells_of(text, "MAP estimate")[1:] == ["20 (0)", "40 (0)", "60 (0)"]
    assert cells_of(text, "mean of 100 draws")[3] == "120 (0)"
    assert float(cells_of(text.partition("ratio to unwarped")[2], "warped")[1].split()[0]) < 0.5
    better = _warped({"+transfer": 1.0, "": 4.0}, "warp14-misled")
    assert better.endswith("Intervals of the area that lie above 1.10: none.")
    assert float(cells_of(better, "", "all")[2].split()[0]) < 0.5
    worse = _warped({"+transfer": 8.0, "": 1.0}, "warp14-misled")
    assert "above 1.10: alike, branin, alike, hartmann3" in worse


def test_transfer_tells_when_it_was_as_good():
    text = _warped({"+transfer": 1.0, "+joint": 5.0, "": 4.0}, "warp14-fig5")
    assert "single-task 5, multi-task 5, warped multi-task 5" in text
    assert "multi-task alone 6," in text, "never: one more than there were"
    assert cells_of(text, "multi-task")[-1] == "1.00 (6/0/0)"


@pytest.mark.parametrize("name", ["cal24-table1", "cal24-table3"])
def test_the_methods_stand_beside_the_papers_numbers(name):
    text = TARGETS[name].report(known(TARGETS[name])).text
    forrester = text.partition("## Forrester")[2].partition("##")[0]
    assert cells_of(forrester, "uncalibrated") == [
        *("uncalibrated", "2 (0)", "1.00 (2/0/0)", "0.5 (0)", "-0.986 (0.001)", "0.8", "0.9866")
    ]
    assert cells_of(forrester, "calibrated")[:4] == ["calibrated", "1 (0)", "", "0.333 (0)"]
    assert cells_of(forrester, "calibrated")[4:] == ["-4.983 (0.894)", "", "0.8187"]
    assert cells_of(forrester, "input warping")[1:] == ["2 (0)", "1.00 (2/0/0)", "0.5 (0)", "-0.889 (0)", "1", "1.0000"]
    assert cells_of(text.partition("our base")[2], "calibo's default")[1:3] == ["2 (0)", "1.00 (2/0/0)"]


def test_table_two_tells_what_is_the_same_and_what_is_not():
    text = TARGETS["cal24-table2"].report(known(TARGETS["cal24-table2"])).text
    assert cells_of(text, "beale") == [
        *("beale", "2", "2 of 2", "1.00 (2/0/0)", "0.333 (0)", "1.00 (2/0/0)", "0.333 (0)", "0.5 (0)"),
        *("0.6", "0.0929", "0.0930"),
    ]
    rows = [
        {**r, "values": [*r["values"], 1.9]} if "+pi+splits1" in r["strategy"] else r for r in _rows("cal24-table2")
    ]
    assert cells_of(TARGETS["cal24-table2"].report(Archive(rows, 2)).text, "beale")[2] == "0 of 2"


def test_table_four_tells_calibrated_from_uncalibrated():
    text = TARGETS["cal24-table4"].report(known(TARGETS["cal24-table4"])).text
    assert cells_of(text, "kernel", "linear") == [
        *("kernel", "linear", "2", "1.00 (2/0/0)", "0.333 (0)", "0.5 (0)", "1", "0.5221", "1.0000")
    ]
    assert cells_of(text, "acquisition, linear kernel", "LCB")[-3:] == ["1", "1.0000", "1.0000"]


def test_figure_two_tells_scores_before_and_after_the_correction():
    text = TARGETS["cal24-fig2"].report(known(TARGETS["cal24-fig2"])).text
    cells = cells_of(text, "Ackley 2D, the papers' base")
    assert cells[1:7] == ["2", "2 (0)", "1 (0)", "1.00 (2/0/0)", "0.5 (0)", "0.333 (0)"]
    assert cells[7] == cells[8] > cells[9], "the raw scores of 1.5 are worse than those of 0.1"


def test_improvement_is_above_zero_where_calibration_is_ahead():
    target = TARGETS["cal24-fig2"]
    figure = target.report(known(target)).draw()[1]
    assert figure.data[-1].y[-1] == 1.0


def test_figure_one_counts_who_finds_the_valley():
    target = TARGETS["cal24-fig1"]
    rows = []
    for run in target.runs:
        for seed, (without, having) in enumerate([(-6, -6), (-1, -6), (-6, -1), (-1, -1), (-1, -6)]):
            found = having if "+papers" in run.strategy else without
            rows.append(row(run, seed, [3.0, 3.0, 3.0, float(found)]))
    report = target.report(Archive(rows, 5))
    assert "both 1, only with 2, only without 1, neither 1" in report.text
    assert "Drawn: seed 1; the first that succeeds only with calibration" in report.text
    lost = target.report(Archive([r for r in rows if r["seed"] in (0, 2)], 5))
    assert "none succeeds only with calibration" in lost.text
    half = target.report(Archive([r for r in rows if "+papers" not in r["strategy"] or r["seed"] == 1], 5))
    assert half.text.startswith("1 starts"), "only pairs count"


def test_figure_four_compares_every_bound_with_the_calibrated_one():
    text = TARGETS["cal24-fig4"].report(known(TARGETS["cal24-fig4"])).text
    for method in ("uncalibrated", "conformal", "adaptive", "tuned weight"):
        assert cells_of(text, method)[1:] == ["2 (0)", "1.00 (2/0/0)", "0.5 (0)"]


def test_the_printed_numbers_are_those_of_the_paper():
    """Compared with its text by eye and by script; a change shows here."""
    content = json.dumps([printed.TABLE2, printed.TABLE3, printed.TABLE4], sort_keys=True)
    assert crc32(content.encode()) == PRINTED


PRINTED = 2480751751


def _rows(name):
    return known(TARGETS[name]).rows


def test_the_command_runs_resumes_and_writes(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "--list"]) == 0
    assert "cal24-table1" in capsys.readouterr().out
    words = ["reproduce", "cal24-fig1", "--quick", "--seeds", "1", "--out", "here"]
    assert main(words) == 0
    assert "2 of 2 runs" in capsys.readouterr().out
    first = Path("here/runs.jsonl").read_text()
    assert main(words) == 0
    assert main([*words[:-3], "1", "--report-only", "--out", "here"]) == 0
    assert Path("here/runs.jsonl").read_text() == first, "nothing is run twice"
    text = Path("here/cal24-fig1-quick.md").read_text()
    assert "calibo-bench reproduce cal24-fig1 --seeds 1 --quick" in text
    assert "8 steps" in text
    page = Path("here/cal24-fig1-quick.html").read_text()
    assert "selected steps on Forrester&#x27;s function</h1>" in page
    assert "<code>calibo-bench reproduce" in page
    assert main([*words[:-4], "--seeds", "2", "--report-only", "--out", "here"]) == 0
    assert "* calibo-papers-base+lcb2: 1 of 2 on forrester" in Path("here/cal24-fig1-quick.md").read_text()


def test_without_plotly_tables_are_written(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("runs.jsonl").write_text("".join(json.dumps(r) + "\n" for r in _rows("cal24-fig4")))
    monkeypatch.setitem(__import__("sys").modules, "plotly.graph_objects", None)
    assert main(["reproduce", "cal24-fig4", "--report-only", "--runs", "runs.jsonl", "--seeds", "2"]) == 0
    assert "Tables are written without it" in capsys.readouterr().err
    assert sorted(path.name for path in Path("reproduced").iterdir()) == ["cal24-fig4.md"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "TARGET must be one of"),
        (["nothing"], "but got ['nothing']"),
        (["cal24-fig1", "--seeds", "0"], "--seeds and --jobs must be at least 1"),
        (["cal24-fig1", "--report-only"], "There must be runs to report"),
        (["cal24-fig1", "--out", "a.txt"], "--out must be a folder"),
        (["cal24-fig1", "--quick", "--runs", "a.txt"], "must hold one run per line"),
        (["cal24-fig1", "--report-only", "--runs", "b.jsonl"], "could not be read"),
    ],
)
def test_bad_words_are_told_and_nothing_is_lost(words, expected, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("precious")
    Path("b.jsonl.gz").write_bytes(b"no gzip")
    assert main(["reproduce", *words]) == 2
    assert expected in capsys.readouterr().err
    assert Path("a.txt").read_text() == "precious"


def test_errors_between_methods_are_paired():
    """What ERM is behind hardly varies between seeds, whatever both do."""
    rows = []
    for run in dict.fromkeys(TARGETS["opt20-fig2"].runs):
        given, erm = int(run.start.removeprefix("random")), "root" in run.strategy and "erm" in run.strategy
        first = run.strategy == "calibo-plain+ei-known+known"
        for seed in range(6):
            regret = 1.0 + seed + (0.0 if first else 0.5 + 0.01 * seed if erm else 5.0)
            rows.append(row(run, seed, [99.0] * given + [function(run.problem).minimum + regret]))
    text = TARGETS["opt20-fig2"].report(Archive(rows, 6)).text
    behind = np.array([0.5 + 0.01 * seed for seed in range(6)])
    expected = behind.mean() / (behind.std(ddof=1) / np.sqrt(6))
    assert text.count(f"is {expected:.1f} standard errors behind EI*, plain") == 6


@pytest.mark.parametrize(("target", "goal"), [("opt20-fig4", 0.2), ("opt20-fig3", -195.0)])
def test_evaluations_until_a_goal_are_counted(target, goal):
    """Two runs reach it, with the first evaluation after the given ones and with the second, the others never."""
    rows = []
    for run in dict.fromkeys(TARGETS[target].runs):
        given = int(run.start.removeprefix("random"))
        reaching = [[goal + 9.0] * (given + seed) + [goal] * (3 - seed) for seed in range(2)]
        never = [[goal + 9.0] * (given + 3)] * (3 if run.strategy == "calibo" else 2)
        rows += [row(run, seed, values) for seed, values in enumerate(reaching + never)]
    text = TARGETS[target].report(Archive(rows, 5)).text
    assert text.count(f"| {given + 2} (2 of 4)") >= len({item["strategy"] for item in rows})
    assert "of 5)" not in text, "a seed that not all methods have is left out"
    only = [item for item in rows if item["seed"] != 0]
    assert "| not reached by half (1 of 3)" in TARGETS[target].report(Archive(only, 5)).text


def test_known_optima_tell_who_is_best_and_who_was_misled():
    """Regrets by the name of the strategy; on every function ERM is the best of the paper's."""
    rows = []
    for run in dict.fromkeys(TARGETS["opt20-fig2"].runs):
        regret = 1e-3 if "root" in run.strategy and "erm" in run.strategy else 1.0
        given = int(run.start.removeprefix("random"))
        values = [9.0] * given + [function(run.problem).minimum + regret]
        rows += [row(run, seed, values) for seed in range(6)]
    text = TARGETS["opt20-fig2"].report(Archive(rows, 6)).text
    assert text.count("is the best") == 6
    assert text.count("1e+03 times lower mean regret than EI") == 3
    rows = []
    for run in dict.fromkeys(TARGETS["opt20-fig5"].runs):
        regret = 1.0 if run.strategy.endswith("erm+known-low100") else 0.1
        values = [1.1] * int(run.start.removeprefix("random")) + [regret] * 30  # the rows have a minimum of 0
        rows += [row(run, seed, values) for seed in range(6)]
    text = TARGETS["opt20-fig5"].report(Archive(rows, 6)).text
    wrong = "paper: ERM, unguarded, 100 % too low"
    assert f"lie above 1.10: Hartmann 3D, {wrong}; gSobol 5D, {wrong}." in text
    assert "100 % too high: in 0 of 6; gSobol 5D, 5 % too high: in 0 of 6; gSobol 5D, 20 % too high: in 6 of 6" in text
