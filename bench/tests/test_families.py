import json
from pathlib import Path

import numpy as np
import pytest

import calibo.calibration
from calibo_bench.experiments.experience import learned, stored
from calibo_bench.problems.families import FAMILIES, drawn_from
from calibo_bench.runner import read_rows

RESULTS = Path(__file__).parents[1] / "results"


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_draws_finite_functions_that_differ(family):
    found = []
    for seed in range(12):
        instance, spread = drawn_from(family, seed)
        again, _ = drawn_from(family, seed)
        x = np.random.default_rng(seed).random((40, len(instance.space)))
        values = [instance.value(dict(zip(instance.space, u, strict=True))) for u in x]
        assert np.all(np.isfinite(values))
        assert 0.01 < np.std(values) / spread < 100.0
        assert again.value(dict(zip(again.space, x[0], strict=True))) == values[0]
        found.append(round(values[0], 9))
    assert len(set(found)) == 12


def test_noise_is_of_every_kind():
    with_noise = 0
    for seed in range(30):
        instance, spread = drawn_from("bumps", seed)
        if instance.noise is not None:
            rng, params = np.random.default_rng(0), dict.fromkeys(instance.space, 0.5)
            with_noise += 1
            assert 0.01 < np.std([instance.noise(params, rng) for _ in range(200)]) / spread < 1.2
    assert 15 <= with_noise <= 29


def test_the_shipped_table_is_what_the_stored_runs_teach():
    rows = [row for row in read_rows(RESULTS / "experience.jsonl") if not row["error"]]
    assert len(rows) >= 800
    shipped = Path(calibo.calibration.__file__).with_name("experience.json")
    assert json.loads(shipped.read_text()) == json.loads(stored(rows))


def test_a_wrong_width_is_learned():
    rng = np.random.default_rng(0)
    rows = [
        {"problem": f"family-{name}", "honesty": {"reported": {"outcomes": told, "recommended": [told[5], told[40]]}}}
        for name in FAMILIES
        for scores in np.where(np.arange(41) < 6, 3.0, 0.7) * rng.standard_normal((400, 41))
        for told in [[[n, 0.0, z] for n, z in enumerate(scores)]]
    ]
    table = learned(rows)
    for part, first, last in (("outcomes", 3, 21), ("recommended", 3, 29)):
        widths = dict(table[part])
        assert widths[first] == pytest.approx(3.0, rel=0.15)
        assert widths[last] == pytest.approx(0.7, rel=0.15)


def test_the_family_that_needs_the_widest_intervals_decides():
    rng = np.random.default_rng(0)
    rows = [
        {"problem": f"family-{name}", "honesty": {"reported": {"outcomes": told, "recommended": told[5:6]}}}
        for name in FAMILIES
        for scores in (2.0 if name == "trees" else 1.0) * rng.standard_normal((400, 41))
        for told in [[[n, 0.0, z] for n, z in enumerate(scores)]]
    ]
    *widths, last = learned(rows)["outcomes"]
    assert [width for _, width in widths] == pytest.approx([2.0] * 4, rel=0.1)
    assert last == (151, 1.0), "from there on the model is another one"
