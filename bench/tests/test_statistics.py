"""Statistics on made-up results whose answers are known."""

import numpy as np
import pytest

from calibo_bench import statistics
from calibo_bench.page import page
from calibo_bench.report import best_peer, markdown, under_noise
from calibo_bench.statistics import COARSE, FLOOR, TINY, Results, holm, is_comparable


def row(problem="p", strategy="a", seed=0, values=(1.0,), minimum=0.0, range=1.0, initial=1, **more):
    base = {
        "problem": problem, "strategy": strategy, "seed": seed, "budget": len(values), "d": 1, "minimum": minimum,
        "range": range, "initial": initial, "load": 1.0, "values": list(values), "wall": [0.1], "processor": [0.2],
        "forecasts": [], "versions": {"x": "1"}, "recommended": None, "error": None,
    }  # fmt: skip
    return {**base, **more}


def test_curves_are_the_best_so_far_in_ranges_from_the_last_given_point_on():
    results = Results([row(values=[5.0, 3.0, 4.0, 1.0, 0.0], range=2.0, initial=2)])
    np.testing.assert_allclose(results.curves["a"]["p", 0], [1.5, 1.5, 0.5, TINY])


def test_under_noise_the_recommended_point_counts_even_if_it_gets_worse():
    noisy = row(values=[5.0, 0.0, 4.0, 1.0], initial=2, recommended=[3.0, 2.0, 4.0])
    np.testing.assert_allclose(Results([noisy]).curves["a"]["p", 0], [3.0, 2.0, 4.0])
    unknown = [{**noisy, "minimum": None}, row(strategy="b", values=[9.0] * 4, minimum=None, initial=2)]
    assert Results(unknown).finals("b", "p") == pytest.approx([7.0]), "the lowest recommended value of any run"


def test_a_run_that_failed_keeps_the_point_it_had():
    failed = row(strategy="b", values=[1.0, 0.5], budget=4, error="no answer within 60 seconds")
    whole = row(values=[1.0, 0.5, 0.25, 0.25])
    np.testing.assert_allclose(Results([whole, failed]).curves["b"]["p", 0], [1.0, 0.5, 0.5, 0.5])
    assert Results([whole, failed]).compared("b", "a").losses == 1
    assert is_comparable(failed)
    assert not is_comparable(row(values=[1.0], initial=2, error="a peer that knows no categories")), "it never began"
    assert not is_comparable({**row(), "range": None, "initial": None})
    assert not is_comparable(row(values=[1.0, 1.0], initial=2, recommended=[]))


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


def test_last_digits_do_not_count():
    rows = [row(seed=s, values=[1.0, 1e-9]) for s in range(5)]
    rows += [row(strategy="b", seed=s, values=[1.0, 2e-3]) for s in range(5)]
    beside = Results(rows).compared("b", "a")
    assert beside.regret[0] == pytest.approx(2e-3 / FLOOR)
    assert beside.coarse == pytest.approx((1.0, 1.0, 1.0)), f"both are below {COARSE}"
    assert beside.area[0] == pytest.approx(1.002 / 1.000001)


def covered(monkeypatch, problems, seeds, between, within, times=200):
    """How many of the 95 % intervals of a ratio of 2 hold it."""
    monkeypatch.setattr(statistics, "RESAMPLES", 500)
    rng, hits = np.random.default_rng(0), 0
    for _ in range(times):
        logs = (
            np.log(2.0) + between * rng.standard_normal((problems, 1)) + within * rng.standard_normal((problems, seeds))
        )
        rows = [row(f"p{i}", "a", s, [0.1 * np.exp(logs[i, s])]) for i in range(problems) for s in range(seeds)]
        rows += [row(f"p{i}", "b", s, [0.1]) for i in range(problems) for s in range(seeds)]
        _, low, high = Results(rows).compared("a", "b").regret
        hits += low <= 2.0 <= high
    return hits


@pytest.mark.parametrize(
    ("problems", "seeds", "between", "within"), [(1, 20, 0.0, 0.5), (10, 8, 0.5, 0.5), (6, 5, 1, 0.1)]
)
def test_the_interval_covers_the_true_ratio_as_often_as_it_says(monkeypatch, problems, seeds, between, within):
    """Of 200 intervals at 95 %, binomially few miss, also if problems differ."""
    assert covered(monkeypatch, problems, seeds, between, within) >= 180  # P(fewer than 180 of 200) < 0.005


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
    shared = Results(rows).shared()
    assert sorted(shared.curves["a"]) == sorted(shared.curves["b"]) == [("p", 1), ("p", 2)]


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


# evaluations to another strategy's result


def ours(values, problem="p", seeds=6, **more):
    return [row(problem, "calibo", s, values, initial=2, **more) for s in range(seeds)]


def theirs(values, problem="p", seeds=6, **more):
    return [row(problem, "peer", s, values, initial=2, **more) for s in range(seeds)]


LONG = [5.0, 4.0, 3.0, 2.0, 1.0, 0.5, 0.2, 0.0]


def reached(rows):
    return Results(rows).evaluations("calibo", "peer")


def test_evaluations_count_the_given_points_up_to_the_first_that_is_as_good():
    found = reached([*ours(LONG), *theirs([5.0, 4.0, 4.0, 2.0])])
    assert found.by_problem == {"p": 4}
    assert found.ratio == pytest.approx((1.0, 1.0, 1.0))
    assert (found.never, found.given) == ((), ())
    assert reached([*ours(LONG), *theirs([5.0, 4.0, 3.5, 3.0])]).by_problem == {"p": 3}
    assert reached([*ours(LONG), *theirs([5.0, 4.0, 1.0, 0.3])]).by_problem == {"p": 7}, "our runs go on"


def test_a_result_that_is_never_reached_costs_twice_the_budget_and_is_listed():
    found = reached([*ours([5.0] * 8), *theirs([5.0, 4.0, 4.0, 2.0])])
    assert found.by_problem == {"p": 8}
    assert found.never == ("p",)
    assert found.ratio[0] == pytest.approx(2.0)


def test_problems_on_which_the_given_points_suffice_are_left_out_and_counted():
    rows = [*ours(LONG), *theirs([5.0, 4.0, 4.0, 2.0])]
    found = reached([*rows, *ours(LONG, "easy"), *theirs([5.0, 4.0, 4.0, 4.0], "easy")])
    assert found.given == ("easy",)
    assert found.by_problem == {"p": 4}
    assert found.ratio[0] == pytest.approx(1.0)


def test_a_result_within_a_thousandth_of_the_minimum_is_good_enough():
    found = reached([*ours([5.0, 4.0, 9e-4, 0, 0, 0, 0, 0]), *theirs([5.0, 4.0, 1e-6, 1e-9])])
    assert found.by_problem == {"p": 3}


def test_medians_are_over_the_seeds_that_both_have():
    rows = [row("p", "calibo", s, [9.0, 9.0, *([1.0] * 6 if s < 3 else [8.0] * 6)], initial=2) for s in range(9)]
    rows += [row("p", "peer", s, [9.0, 9.0, 9.0, 2.0], initial=2) for s in range(3)]
    assert reached(rows).by_problem == {"p": 3}, "with all nine of ours it would not be reached"


def test_under_noise_a_recommendation_that_is_as_good_once_counts():
    noisy = [row("p", "calibo", s, LONG, initial=2, recommended=[4, 1, 9, 9, 9, 9, 9]) for s in range(6)]
    assert reached([*noisy, *theirs([5.0, 4.0, 4.0, 2.0])]).by_problem == {"p": 3}


def test_runs_that_stop_at_the_budget_tell_nothing_about_evaluations():
    assert reached([*ours([5.0, 4.0, 3.0, 2.0]), *theirs([5.0, 4.0, 4.0, 2.0])]) is None


def test_the_interval_of_evaluations_resamples_problems():
    rows = []
    for i in range(8):
        mine = [9.0, 9.0, *([9.0] * (i % 2) * 4), *([1.0] * 8)][:8]  # reached at 3 or at 7
        rows += [*ours(mine, f"p{i}"), *theirs([9.0, 9.0, 9.0, 2.0], f"p{i}")]
    middle, low, high = reached(rows).ratio
    assert middle == pytest.approx(np.sqrt(3 * 7) / 4)
    assert 0.75 <= low < 0.9 * middle
    assert 1.1 * middle < high <= 1.75


def test_the_best_peer_is_the_one_that_is_hardest_to_reach():
    rows = [
        *ours(LONG),
        *theirs([5.0, 4.0, 4.0, 2.0]),
        *(row("p", "calibo-x", s, [5, 4, 0, 0], initial=2) for s in range(6)),
    ]
    results = Results([*rows, *(row("p", "weak", s, [5.0, 4.0, 4.0, 3.0], initial=2) for s in range(6))])
    made = {name: results.evaluations("calibo", name) for name in ("peer", "weak", "calibo-x")}
    assert best_peer(made) == "peer", "and no strategy of ours"


# tests over problems


def test_p_values_are_corrected_for_their_number():
    # Holm (1979): the smallest of four times 4, the next times 3, never decreasing
    corrected = holm({"a": 0.03, "b": 0.01, "c": 0.02, "d": 0.9})
    assert corrected == pytest.approx({"a": 0.06, "b": 0.04, "c": 0.06, "d": 0.9})
    assert holm({"a": 0.6, "b": 0.7}) == {"a": 1.0, "b": 1.0}


def test_the_signed_rank_test_is_over_problems_and_exact():
    rows = [
        row(f"p{i}", name, s, [level * (1 + 0.1 * i)])
        for i in range(6)
        for s in range(3)
        for name, level in (("a", 0.1), ("b", 0.2))
    ]
    beside = Results(rows).compared("b", "a")
    assert beside.problems == 6
    assert beside.regret_p == pytest.approx(2 / 2**6), "all six in one direction"
    same = [row(f"p{i}", name, 0, [0.1]) for i in range(6) for name in "ab"]
    assert Results(same).compared("b", "a").regret_p == 1.0


def test_ranks_are_for_strategies_without_missing_runs():
    rows = []
    for problem in "pqrs":
        for name, level in (("a", 0.1), ("b", 0.2), ("c", 0.2)):
            rows += [row(problem, name, s, [level]) for s in range(3)]
    rows.append(row("p", "few", 0, [0.001]))
    ranks, others = Results(rows).ranks()
    assert ranks == pytest.approx({"a": 1.0, "b": 2.5, "c": 2.5})
    assert others == ["few"], "who lacks runs is not ranked, and named"
    assert Results(rows).shared().ranks()[0] == {"a": 2.0, "b": 3.5, "c": 3.5, "few": 1.0}
    apart = Results([row("p", "a", 0, [0.1]), row("q", "b", 0, [0.1])])
    assert apart.ranks()[0] == {}, "as many runs, but not the same"


def test_seconds_and_forecasts_are_pooled():
    rows = [row(forecasts=[[0.0, 1.0, 0.5], [0.0, 1.0, -0.5]], range=2.0, wall=[0.1, 0.3], processor=[0.2, 0.2])]
    assert Results(rows).seconds("a") == pytest.approx((0.2, 0.2))
    scores = Results(rows).scores("a")
    assert scores.count == 2
    assert scores.sharpness == pytest.approx(0.5)
    assert Results([row()]).scores("a") is None
    bent = [row(forecasts=[[0.0, 1.0, 0.5, 0.5, 3.0], [0.0, 1.0, -0.5, -0.5, 3.0]])]
    assert Results(bent).scores("a").bias > 0.49, "what was recalibrated is scored so"


# pages

NASTY = "<script>alert('x')</script>"


def test_the_page_stands_alone_and_escapes_what_it_shows(tmp_path):
    rows = [row(problem, name, s, [1.0, 0.5, 0.1 * (s + 1)], forecasts=[[0.0, 1.0, 0.5]]) for problem in ("p-x", "q-x")
            for name in ("a", NASTY) for s in range(3)]  # fmt: skip
    path = tmp_path / "page.html"
    bad = {**row("p-x", "c"), "error": f"{NASTY}\n| x |"}
    tables = markdown(Results(rows), "a", f"Title {NASTY}", {"kind": ("p-x",), "none": ("z",)}, [bad])
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
    assert "kind (1)" in text


def test_the_tables_say_what_was_measured():
    rows = [row("p-x", name, s, [1.0, level]) for name, level in (("a", 0.2), ("b", 0.1)) for s in range(6)]
    text = markdown(Results(rows), "a", "Made up", {"first": ("p-x",)})
    assert "| b | 1 | 6 | 0.917 (0.917 to 0.917) | 0.5 (0.5 to 0.5) | 0.5 (0.5 to 0.5) | 6 / 0 / 0 |" in text
    assert "| b | 6 | **0.1 ± " in text
    assert "12 runs on 1 problems" in text
    assert "* p-x: b, final regret 0.5 (0.5 to 0.5), area 0.917 (0.917 to 0.917)" in text
    assert "1 of 1 pairs" in text


def test_a_report_says_by_which_point_noisy_runs_are_judged():
    noisy = {"values": [2.0, 1.0], "observed": [2.5, 0.5]}
    assert under_noise([row()]) == ""
    assert "recommended point: its true value" in under_noise([row(**noisy, recommended=[2.0, 1.0]), row()])
    assert "best evaluated point" in under_noise([row(**noisy)])
    assert "best evaluated point" in markdown(Results([row(**noisy), row(strategy="b", **noisy)]), "a", "", {})
