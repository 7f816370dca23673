"""The runner, with strategies that behave and with some that do not."""

import gzip
import json
import os
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from calibo import InputError
from calibo.bench.problems import cropped
from calibo.bench.runner import Cell, initial_points, measured, missing, read_rows, run
from calibo.bench.strategies import PEERS, SCRIPTS, client_of

SCRIPT = """
import os, sys, time
from protocol import serve

class Odd:
    def __init__(self, space, seed):
        self.space, self.count = space, 0

    def ask(self):
        self.count += 1
        params = {entry["name"]: entry["low"] + 0.3 * (entry["high"] - entry["low"]) for entry in self.space}
        if self.count == 3:
            BEHAVIOR
        return params

    def tell(self, params, value):
        pass

serve(Odd, ("numpy",))
"""

BEHAVIORS = {
    "well": ("pass", None),
    "crash": ("os._exit(3)", "has ended"),
    "raise": ("raise RuntimeError('the oven is cold')", "RuntimeError: the oven is cold"),
    "hang": ("time.sleep(60)", "no answer within 1 seconds"),
    "nan": ("params = dict.fromkeys(params, float('nan'))", "must lie in the space"),
    "outside": ("params = dict.fromkeys(params, 1e9)", "must lie in the space"),
    "strange": ("params = {'other': 1}", "must lie in the space"),
    "nonsense": ("params = 7", "must have parameters"),
    "print": ("print('hello'); os.write(1, b'hello')", None),
}


@pytest.fixture
def odd(tmp_path):
    def make(behavior):
        path = tmp_path / f"{behavior}.py"
        path.write_text(SCRIPT.replace("BEHAVIOR", BEHAVIORS[behavior][0]))
        return str(path)

    return make


@pytest.mark.parametrize("behavior", BEHAVIORS)
def test_what_goes_wrong_is_recorded_and_the_next_run_goes_on(odd, behavior):
    name = odd(behavior)
    row = measured(Cell("branin-cropped", name, 0, 12, timeout=1.0 if behavior == "hang" else 60.0))
    expected = BEHAVIORS[behavior][1]
    if expected is None:
        assert row["error"] is None
        assert len(row["values"]) == 12
    else:
        assert expected in row["error"]
        assert len(row["values"]) == 7, "what came before is kept"
        json.dumps(row)
    again = measured(Cell("branin-cropped", name, 1, 6, timeout=60.0))
    assert again["error"] is None
    assert len(again["values"]) == 6


def test_a_preset_that_crashes_is_recorded(monkeypatch):
    from calibo.bench import runner

    class Broken:
        def begin(self, space, seed):
            return {}

        def ask(self):
            raise ZeroDivisionError("oh")

        def tell(self, params, value):
            pass

    monkeypatch.setattr(runner, "_client", lambda strategy, timeout: Broken())
    assert measured(Cell("branin-cropped", "broken", 0, 9))["error"] == "ZeroDivisionError: oh"


def test_a_cell_can_be_run_again_alone():
    cell = Cell("hartmann3-cropped-noisy", "calibo", 5, 14)
    first, again = measured(cell), measured(cell)
    for part in ("values", "observed", "forecasts", "minimum", "range"):
        assert first[part] == again[part]
    assert first["values"] != measured(Cell("hartmann3-cropped-noisy", "calibo", 6, 14))["values"]


def test_strategies_of_a_seed_begin_with_the_same_points_and_the_same_noise():
    rows = [
        measured(Cell("hartmann3-cropped-noisy", name, 2, 8)) for name in ("calibo", "calibo-lcb", "random", "sobol")
    ]
    for row in rows:
        assert row["error"] is None
        assert row["initial"] == 5
        assert row["values"][:5] == rows[0]["values"][:5]
        assert row["observed"][:5] == rows[0]["observed"][:5]
        assert len(row["wall"]) == len(row["processor"]) == 3
    assert len({tuple(row["values"]) for row in rows}) == 4
    assert len(rows[0]["forecasts"]) == 3
    assert rows[2]["forecasts"] == []
    points = initial_points(cropped("branin").at(0), "branin-cropped", 0)
    assert points != initial_points(cropped("branin").at(1), "branin-cropped", 1)


def test_random_and_sobol_propose_every_kind_of_value():
    for name in ("random", "sobol"):
        row = measured(Cell("tune-ridge", name, 0, 8))
        assert row["error"] is None


def test_runs_are_resumed_and_failed_ones_tried_again(tmp_path, odd):
    out = tmp_path / "r.jsonl"
    cells = [Cell("branin-cropped", name, seed, 6) for seed in range(2) for name in ("random", "sobol")]
    assert len(list(run(cells[:3], out, 2))) == 3
    assert missing(cells, out) == cells[3:]
    with out.open("a") as file:
        file.write('{"problem": "branin-cr')  # a crash in the middle of a line
    assert len(read_rows(out)) == 3
    rows = read_rows(out)
    rows[0]["error"] = "no answer"
    out.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert len(missing(cells, out)) == 2
    packed = out.with_name("r.jsonl.gz")
    packed.write_bytes(gzip.compress(out.read_bytes()))
    out.unlink()
    assert len(read_rows(out)) == 3, "the compressed form is read as well"
    assert len(missing(cells, out)) == 2


def test_a_damaged_line_is_named(tmp_path):
    out = tmp_path / "r.jsonl"
    out.write_text("nonsense\n{}\n")
    with pytest.raises(InputError, match="Line 1"):
        read_rows(out)


def test_processes_have_one_thread(tmp_path):
    script = tmp_path / "threads.py"
    script.write_text(SCRIPT.replace("BEHAVIOR", "raise RuntimeError(os.environ['OPENBLAS_NUM_THREADS'])"))
    assert measured(Cell("branin-cropped", str(script), 0, 9))["error"] == "RuntimeError: 1"


def test_unknown_and_missing_strategies_are_told(monkeypatch, tmp_path):
    with pytest.raises(InputError, match="must be one of"):
        client_of("nothing", 1.0)
    monkeypatch.setenv("CALIBO_PEERS", str(tmp_path))
    with pytest.raises(InputError, match="install-peers"):
        client_of("botorch", 1.0)


def test_every_peer_has_a_script():
    for environment, script, _ in PEERS.values():
        text = (SCRIPTS / script).read_text()
        assert "serve(" in text
        assert environment is None or "calibo" not in text, "it runs where calibo is not installed"


def test_the_optuna_peer_speaks_the_protocol(tmp_path, monkeypatch):
    """Optuna is installed here, too: its script is run by this interpreter."""
    monkeypatch.setenv("CALIBO_PEERS", str(tmp_path))
    (tmp_path / "optuna" / "bin").mkdir(parents=True)
    (tmp_path / "optuna" / "bin" / "python").symlink_to(sys.executable)
    begun = time.monotonic()
    row = measured(Cell("branin-cropped", "optuna-tpe", 0, 15, timeout=61.0))
    assert (
        row["error"] is None or "has ended" in row["error"]
    )  # a link to a virtual environment may not find its packages
    assert time.monotonic() - begun < 60


def test_results_are_numbers(tmp_path):
    row = measured(Cell("camel6-cropped-integers", "calibo", 0, 12))
    assert row["error"] is None
    assert np.all(np.isfinite(row["values"]))
    assert row["load"] >= 0
    assert set(row["versions"]) == {"calibo", "numpy"}
    assert Path(tmp_path).exists()
    assert os.environ is not None
