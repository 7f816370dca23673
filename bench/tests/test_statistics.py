"""Statistics on made-up results whose answers are known."""

import numpy as np
import pytest

from calibo_bench.page import page
from calibo_bench.report import markdown
from calibo_bench.statistics import FLOOR, Results, critical_difference


def row(problem="p", strategy="a", seed=0, values=(1.0,), minimum=0.0, range=1.0, initial=1, **more):
    base = {
        "problem": problem, "strategy": strategy, "seed": seed, "budget": len(values), "d": 1, "minimum": minimum,
        "range": range, "initial": initial, "load": 1.0, "values": list(values), "wall": [0.1], "processor": [0.2],
        "forecasts": [], "versions": {"x": "1"}, "error": None,
    }  # fmt: skip
    return {**base, **more}


def test_curves_are_the_best_so_far_in_ranges_from_the_last_given_point_on():
    results = Results([row(values=[5.0, 3.0, 4.0, 1.0, 0.0], range=2.0, initial=2)])
    np.testing.assert_allclose(results.curves["a"]["p", 0], [1.5, 1.5, 0.5, FLOOR])


def test_without_a_known_minimum_the_least_value_found_by_anybody_counts():
    rows = [row(values=[3.0, 2.0], minimum=None), row(strategy="b", values=[3.0, 1.0], minimum=None)]
    assert Results(rows).finals("a", "p") == pytest.approx([1.0])
    assert Results(rows).finals("b", "p") == pytest.approx([FLOOR])


def test_a_seed_may_have_a_minimum_of_its_own():
    rows = [row(values=[3.0, 2.0], minimum=1.0), row(seed=1, values=[3.0, 2.0], minimum=-4.0)]
    assert Results(rows).finals("a", "p") == pytest.approx([1.0, 6.0])


def test_a_constant_ratio_is_found_with_an_interval_of_no_width():
    rows = []
    for problem in ("p", "q"):
        for seed in range(6):
            level = 0.01 * (seed + 1)
            rows += [row(problem, "a", seed, [1.0, 3 * level]), row(problem, "b", seed, [1.0, level])]
    beside = Results(rows).compared("a", "b")
    assert beside.regret == pytest.approx((3.0, 3.0, 3.0))
    assert (beside.cells, beside.wins, beside.ties, beside.losses, beside.fraction) == (12, 0, 0, 12, 0.0)
    assert Results(rows).compared("b", "a").regret == pytest.approx((1 / 3, 1 / 3, 1 / 3))


def test_the_interval_covers_the_true_ratio_as_often_as_it_says():
    """Log-normal ratios of 2 over 20 seeds: of 200 intervals at 95 %, binomially few miss."""
    rng, hits = np.random.default_rng(0), 0
    for _ in range(200):
        logs = np.log(2.0) + 0.5 * rng.standard_normal((2, 20))
        rows = [row(p, "a", s, [0.1 * np.exp(logs[i, s])]) for i, p in enumerate("pq") for s in range(20)]
        rows += [row(p, "b", s, [0.1]) for p in "pq" for s in range(20)]
        _, low, high = Results(rows).compared("a", "b").regret
        hits += low <= 2.0 <= high
    assert hits >= 180  # of 95 % expected; P(fewer than 180 of 200) < 0.005


def test_few_seeds_have_no_interval_and_missing_runs_do_not_drop_a_problem():
    rows = [row("p", "a", s, [0.2 + 0.01 * s]) for s in range(6)] + [row("q", "a", s, [0.4]) for s in range(2)]
    rows += [row(p, "b", s, [0.1]) for p in "pq" for s in range(6)]
    ratio, low, _ = Results(rows).compared("a", "b").regret
    assert np.isnan(low)
    ours = np.mean(np.log([2 + 0.1 * s for s in range(6)]))
    assert ratio == pytest.approx(np.exp((ours + np.log(4.0)) / 2))


def test_only_common_cells_are_compared():
    rows = [row(strategy="a", seed=s, values=[0.1]) for s in range(4)] + [
        row(strategy="b", seed=s, values=[0.2]) for s in (1, 2, 9)
    ]
    assert Results(rows).compared("a", "b").cells == 2


def test_the_earlier_of_two_equal_values_wins():
    early, late = row(strategy="a", values=[1.0, 0.5, 0.5]), row(strategy="b", values=[1.0, 0.9, 0.5])
    beside = Results([early, late]).compared("a", "b")
    assert (beside.wins, beside.ties, beside.losses) == (1, 0, 0)
    same = Results([early, row(strategy="b", values=[1.0, 0.5, 0.5])]).compared("a", "b")
    assert (same.wins, same.ties, same.losses, same.fraction) == (0, 1, 0, 1.0)


def test_areas_lie_between_the_best_and_the_worst_of_a_seed():
    rows = [row(strategy="a", values=[1.0, 1.0, 1.0]), row(strategy="b", values=[1.0, 0.0, 0.0])]
    results = Results(rows)
    assert results.areas("a", "p") == pytest.approx([1.0])
    assert results.areas("b", "p") == pytest.approx([1 / 3], abs=1e-5)


def test_ranks_and_the_critical_difference():
    rows = []
    for problem in "pqrs":
        for name, level in (("a", 0.1), ("b", 0.2), ("c", 0.2)):
            rows += [row(problem, name, s, [level]) for s in range(3)]
    rows.append(row("p", "few", 0, [0.001]))
    ranks, _, others = Results(rows).ranks()
    assert ranks == pytest.approx({"a": 1.0, "b": 2.5, "c": 2.5})
    assert others == ["few"], "who lacks runs is not ranked, and named"
    apart = Results([row("p", "a", 0, [0.1]), row("q", "b", 0, [0.1])])
    assert apart.ranks()[0] == {}, "as many runs, but not the same"
    # q of 5 % for 5 strategies is 2.728, Table 5a of Demsar (2006)
    assert critical_difference(5, 30) == pytest.approx(2.728 * np.sqrt(5 * 6 / (6 * 30)), rel=1e-3)


def test_seconds_and_forecasts_are_pooled():
    rows = [row(forecasts=[[0.0, 1.0, 0.5], [0.0, 1.0, -0.5]], range=2.0, wall=[0.1, 0.3], processor=[0.2, 0.2])]
    assert Results(rows).seconds("a") == pytest.approx((0.2, 0.2))
    scores = Results(rows).scores("a")
    assert scores.count == 2
    assert scores.sharpness == pytest.approx(0.5)
    assert Results([row()]).scores("a") is None
    bent = [row(forecasts=[[0.0, 1.0, 0.5, 0.5, 3.0], [0.0, 1.0, -0.5, -0.5, 3.0]])]
    assert Results(bent).scores("a").bias > 0.49, "what was recalibrated is scored so"


NASTY = "<script>alert('x')</script>"


def test_the_page_stands_alone_and_escapes_what_it_shows(tmp_path):
    rows = [row(problem, name, s, [1.0, 0.5, 0.1 * (s + 1)], forecasts=[[0.0, 1.0, 0.5]]) for problem in ("p-x", "q-x")
            for name in ("a", NASTY) for s in range(3)]  # fmt: skip
    path = tmp_path / "page.html"
    bad = {**row("p-x", "c"), "error": f"{NASTY}\n| x |"}
    tables = markdown(Results(rows), "a", f"Title {NASTY}", {"kind": ("p",), "none": ("z",)}, [bad])
    assert "* p-x, c, seed 0: (script)alert" in tables
    page(Results(rows), "a", f"Title {NASTY}", tables, path)
    text = path.read_text()
    assert "Runs that failed" in text
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert" in text
    body = text[text.index("<main>") :]
    assert "http" not in body
    assert "<link" not in text
    assert "src=" not in body
    assert text.count('class="plotly-graph-div"') == 2
    assert "By kind of problem" in text


def test_the_tables_say_what_was_measured():
    rows = [row("p-x", name, s, [1.0, level]) for name, level in (("a", 0.2), ("b", 0.1)) for s in range(6)]
    text = markdown(Results(rows), "a", "Made up", {"first": ("p",)})
    assert "| b | 6 | 0.5 (0.5 to 0.5) |" in text
    assert "| b | 6 | **0.1 ± " in text
    assert "12 runs on 1 problems" in text
