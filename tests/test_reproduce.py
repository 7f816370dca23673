"""Papers reproduced: the metrics, the targets, and the command."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtri

from calibo.bench.runner import row_key
from calibo.cli import main
from calibo.presets import named
from calibo.reproduce import TARGETS, Archive, Run
from calibo.reproduce.targets import mean_and_error

ONE, TWO = Run("branin", "one"), Run("branin", "two")


def row(run, seed, values, forecasts=()):
    cell = run.cell(seed)
    shared = {"problem": cell.problem, "strategy": cell.strategy, "seed": seed, "budget": cell.budget}
    return {**shared, "start": cell.start, "error": None, "initial": 3, "values": values, "forecasts": list(forecasts)}


def archive(one, two, **more):
    rows = [row(run, seed, values) for run, runs in ((ONE, one), (TWO, two)) for seed, values in enumerate(runs)]
    return Archive(rows, 20, **more)


def test_curves_begin_after_the_given_points():
    made = archive([[5, 9, 7, 8, 4, 6]], [])
    np.testing.assert_array_equal(made.curves(ONE)[0], [5, 5, 4, 4])
    assert made.curves(TWO) == {}
    assert made.minimum(ONE) == "4"
    assert made.minimum(TWO) == ""


def test_wins_are_lower_minima_or_the_same_earlier():
    ours = [[9, 9, 9, 1, 1, 1], [9, 9, 9, 5, 2, 2], [9, 9, 9, 5, 2, 2], [9, 9, 9, 3, 3, 3]]
    theirs = [[9, 9, 9, 2, 2, 2], [9, 9, 9, 5, 5, 2], [9, 9, 9, 4, 2, 2], [9, 9, 9, 1, 1, 1]]
    assert archive(ours, theirs).beaten(ONE, TWO) == (2, 1, 1)
    assert archive(ours, theirs).beaten(TWO, ONE) == (1, 1, 2)
    assert archive(ours, theirs[:2]).beaten(ONE, TWO) == (2, 0, 0), "only pairs count"


def test_a_minimum_that_differs_by_rounding_is_the_same():
    assert archive([[9, 9, 9, 1.0, 1.0]], [[9, 9, 9, 1.0 + 1e-6, 1.0 - 1e-6]]).beaten(ONE, TWO) == (0, 1, 0)


def test_areas_are_normalised_over_all_that_are_compared():
    areas = archive([[8, 9, 8, 4, 0]], [[8, 8, 8, 8, 8], [4, 4, 4, 4, 4]]).areas([ONE, TWO])
    np.testing.assert_allclose(areas[ONE], [(1 + 0.5 + 0) / 3])
    np.testing.assert_allclose(areas[TWO], [1.0, 0.5])
    alone = archive([[3, 3, 3, 3]], []).areas([ONE])
    np.testing.assert_array_equal(alone[ONE], [0.0])


def test_scores_are_of_all_forecasts_so_far():
    pits, levels = np.array([0.52, 0.11]), np.linspace(0.05, 0.95, 19)
    forecasts = [[0, 1, 0, float(ndtri(p)), float(ndtri(0.5)), 0, 0] for p in pits]
    made = Archive([row(ONE, 0, [1.0] * 5, forecasts)], 1)
    raw, used = made.scores(ONE)
    expected = [((levels - (pits[:t, None] <= levels).mean(axis=0)) ** 2).sum() for t in (1, 2)]
    np.testing.assert_allclose(raw, expected)
    assert used[1] == pytest.approx(used[0])


def test_seeds_and_quick_runs_are_told_apart():
    rows = [row(ONE, seed, [3.0, 2.0, 1.0, 0.5]) for seed in range(4)]
    assert len(Archive(rows, 2).of(ONE)) == 2
    assert not Archive(rows, 4, quick=True).of(ONE)
    assert len(Archive([row(replace(ONE, steps=8), 0, [1.0] * 11)], 4, quick=True).of(ONE)) == 1
    assert not Archive([{**rows[0], "error": "crashed"}], 4).of(ONE)


def test_means_have_their_standard_error():
    assert mean_and_error([1.0, 3.0]) == "2 (1)"
    assert mean_and_error([]) == ""


@pytest.mark.parametrize("name", TARGETS)
def test_every_target_names_strategies_that_exist_and_reports_what_there_is(name):
    target = TARGETS[name]
    for run in target.runs:
        named(run.strategy.removeprefix("calibo-") if run.strategy != "calibo" else None)
    cells = target.cells(2, quick=False)
    assert len({cell.key for cell in cells}) == len(cells) == 2 * len(set(target.runs))
    assert target.report(Archive([], 20)).text, "nothing has been run yet, and that is no error"
    # numbers that differ by strategy and seed: every row of a table gets them
    rng = np.random.default_rng(0)
    made = [
        {
            **row(run, seed, rng.random(5).tolist(), [[0.0, 1.0, 0.0, 0.3, 0.1, 1.0, 0.0]] * 2),
        }
        for run in dict.fromkeys(target.runs)
        for seed in range(2)
    ]
    assert len({row_key(each) for each in made}) == len(cells)
    report = target.report(Archive(made, 2))
    if "table" in name:
        assert report.text.count("|") > 40
    assert "nan" not in report.text
    assert all(figure.data for figure in report.figures)


def test_the_command_runs_resumes_and_writes(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "--list"]) == 0
    assert "cal24-table1" in capsys.readouterr().out
    words = ["reproduce", "cal24-fig1", "--quick", "--seeds", "1", "--out", "here"]
    assert main(words) == 0
    assert "2 of 2 runs" in capsys.readouterr().out
    assert main([*words, "--report-only"]) == 0
    assert len(Path("here/runs.jsonl").read_text().splitlines()) == 2
    assert "calibo reproduce cal24-fig1 --quick" in Path("here/cal24-fig1.md").read_text()
    page = Path("here/cal24-fig1.html").read_text()
    assert "selected steps on Forrester&#x27;s function</h1>" in page
    assert "<code>calibo reproduce" in page


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "TARGET must be of"),
        (["nothing"], "but got ['nothing']"),
        (["cal24-fig1", "--seeds", "0"], "--seeds and --jobs must be at least 1"),
    ],
)
def test_bad_words_are_told(words, expected, capsys):
    assert main(["reproduce", *words]) == 2
    assert expected in capsys.readouterr().err
