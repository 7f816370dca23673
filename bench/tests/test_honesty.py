"""Do intervals hold, do rules stop in time, and when do calibrated decisions help: what is measured, and the pages."""

import re

import numpy as np
import optuna
import pytest

from calibo import CalibratedSampler, Recommendation, StopWhenUnlikely
from calibo.calibration import Record
from calibo.forecasts import CalibrationMap, Forecast
from calibo.models import GaussianProcess
from calibo.transforms import IDENTITY
from calibo_bench.experiments import EXPERIMENTS
from calibo_bench.experiments.honesty import VIEWS, Asking, Judge, Told, advised
from calibo_bench.experiments.stopping import RESOLUTIONS, _stopping
from calibo_bench.runner import blank_row
from calibo_bench.targets import Archive

NAMES = {experiment.name: experiment for experiment in EXPERIMENTS}


def normal(mean, std):
    return Forecast.normal(np.array([mean]), np.array([std]))[0]


def test_an_entry_has_scores_and_sizes_in_units_of_the_problem():
    n, after, before, width, interval_score, crps = Judge(2.0).entry(7, normal(1.0, 0.5), 2.5)
    low, high = 1.0 - 1.6449 * 0.5, 1.0 + 1.6449 * 0.5
    assert (n, after, before) == (7, pytest.approx(3.0, abs=1e-3), pytest.approx(3.0, abs=1e-3))
    assert width == pytest.approx((high - low) / 2.0, rel=1e-3)
    assert interval_score == pytest.approx((high - low + 20.0 * (2.5 - high)) / 2.0, rel=1e-3)
    assert 0.0 < crps < (2.5 - 1.0) / 2.0
    assert Judge(1.0).entry(7, normal(1.0, 1e-12), 1.0 + 1e-10)[1:3] == [0.0, 0.0], "rounding is no miss"


def test_scores_before_the_correction_are_those_of_the_model():
    """Forecasts of many components are stored by quantiles, which must not be taken for a correction."""
    rng = np.random.default_rng(0)
    rows = Forecast(
        rng.standard_normal((20, 1)), np.exp(rng.standard_normal((20, 1))), np.full(20, 0.05), (IDENTITY,) * 20
    )
    forecast = rows[0].calibrated(CalibrationMap.shift_scale(0.3, 1.4))
    record = Record.through_storage(Record.from_forecast(forecast, GaussianProcess()))
    after, before = Judge(1.0).entry(7, record.calibrated, 2.5, record.raw)[1:3]
    assert after == pytest.approx(forecast.normal_score(2.5), abs=5e-3)
    assert before == pytest.approx(forecast.raw.normal_score(2.5), abs=5e-3)


def test_a_recommendation_is_judged_by_its_interval_and_median():
    forecast = advised(Recommendation({}, 2.0, (1.0, 5.0)))
    np.testing.assert_allclose(forecast.interval(0.9), (1.0, 5.0), rtol=1e-6)
    assert forecast.quantile(0.5) == pytest.approx(2.0)


def test_a_run_is_judged_by_both_views():
    row = Asking("branin-cropped+20%", 0, 6).measured()
    reported, decided = (row["honesty"][view] for view in VIEWS)
    assert [entry[0] for entry in reported["outcomes"]] == [3, 4, 5, 6], "the last one from all of the budget"
    assert [entry[0] for entry in decided["outcomes"]] == [4, 5, 6], "after the initial design"
    assert reported["recommended"][0][:1] == decided["recommended"][0][:1] == [5]
    assert reported["recommended"] != decided["recommended"]


def test_another_strategy_is_told_the_same_outcomes():
    row = Told("branin-cropped+20%", "papers-online", 0, 6).measured()
    found = row["honesty"]["papers-online"]
    assert [entry[0] for entry in found["outcomes"]] == [entry[0] for entry in found["recommended"]] == [5]
    assert np.all(np.isfinite(found["outcomes"] + found["recommended"]))


def made(cells, spread):
    """Rows of runs whose scores are Normal; those of the deciding view are twice as wide."""
    rows = []
    for cell in cells:
        if not isinstance(cell, Asking):
            continue
        rng = np.random.default_rng([cell.seed, *cell.problem.encode()])
        found = {}
        for view, factor in zip(VIEWS, (1.0, 2.0), strict=True):
            entries = [
                [[n, z, z, 1.0, 1.0 + 20.0 * max(abs(z) - 1.645, 0.0), 0.1, 0.5] for n, z in enumerate(scores.tolist())]
                for scores in factor * spread * rng.standard_normal((2, 81))
            ]
            found[view] = {"outcomes": entries[0][3 : cell.budget + 1], "recommended": entries[1][5::5]}
        rows.append({**blank_row(cell.key), "honesty": found})
    return rows


@pytest.mark.parametrize(("spread", "met"), [(0.95, True), (2.5, False)])
def test_a_page_tells_which_aims_are_met(spread, met):
    experiment = NAMES["honesty-held-out"]
    text = experiment.report(Archive(made(experiment.cells(20, quick=False), spread), 20)).text
    lines = [line for line in text.splitlines() if line.startswith(("| next outcomes:", "| recommendations"))]
    problems = [line for line in lines if "no problem" in line]
    assert all(("met in 12 of 12" in line) == met for line in problems)
    pooled = next(line for line in lines if "with noise" in line)
    assert ("missed" in pooled) != met
    ratio = re.search(r"\| decided \| any noise \| 6 to 10 \| \d+ \| \d+ % \| \d+ % \| ([\d.]+)", text)
    assert float(ratio.group(1)) < 0.9, "wider scores of the deciding view cost it"


def test_a_coarser_rule_never_ends_later():
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=CalibratedSampler(seed=0))
    ended, alone = {}, {}
    for n in range(14):
        study.optimize(lambda trial: trial.suggest_float("a", -1, 1) ** 2, 1)
        ended |= {rule: n for rule, _ in _stopping("reported", study, 1.0, ended)}
        for resolution in RESOLUTIONS:
            chance = StopWhenUnlikely(resolution).probability(study)
            if chance is not None and chance < 0.05:
                alone.setdefault(f"reported {resolution:g}", n)
    assert ended == alone, "each rule ends when it would by itself"
    assert len(ended) == 2


def test_what_stopping_saves_and_leaves_is_told():
    rows = []
    for cell in NAMES["stopping"].cells(4, quick=False):
        stopped = {"reported 0.1": [30, 0.04, 0.5 if cell.seed == 0 else 0.05]}
        rows.append({**blank_row(cell.key), "stopping": {"stopped": stopped, "regret": 0.05}})
    text = NAMES["stopping"].report(Archive(rows, 4)).text
    line = next(line for line in text.splitlines() if line.startswith("| 0.1 | no noise | reported"))
    assert [cell.strip() for cell in line.split("|")][5:7] == ["100 %", "50 %"]
    assert "25 % ±" in line
    assert "| 0.1 | no noise | raw | " in text


@pytest.mark.parametrize("name", ["deciding", "deciding-held-out"])
def test_a_better_default_has_a_ratio_below_one(name):
    cells = NAMES[name].cells(4, quick=False)
    rows = []
    for cell in cells:
        size = 0.5 if cell.strategy == "calibo" else 1.0
        noisy = "+" in cell.problem or "noisy" in cell.problem
        values = [4.0, size * (1.0 + 0.1 * cell.seed)]
        told = {"observed": values, "recommended": values} if noisy else {}
        rows.append({**blank_row(cell.key), "values": values, "initial": 1, "minimum": 0.0, "range": 1.0, **told})
    text = NAMES[name].report(Archive(rows, 4)).text
    for label in ("no noise", "noise", "all"):
        line = next(line for line in text.splitlines() if line.startswith(f"| {label} | default"))
        assert line.split("|")[6].strip().startswith("0.5")
