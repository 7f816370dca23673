"""The runner, with strategies that behave and with some that do not."""

import gzip
import json
import time
from dataclasses import replace

import numpy as np
import optuna
import pytest
from scipy import stats

from calibo import Categorical, Float, InputError, Int, Optimizer, Space
from calibo.scoring import normal_crps
from calibo_bench import clients as strategies
from calibo_bench import runner
from calibo_bench.clients import PEERS, SCRIPTS, client_of
from calibo_bench.problems.synthetic import Instance, Problem, cropped, noisy, plain
from calibo_bench.runner import Cell, initial_points, missing, read_rows, run

SCRIPT = """
import os, sys, time
from protocol import serve
answers = os.dup(1)

class Odd:
    def __init__(self, task):
        self.space, self.count = list(task.space.values()), 0

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
    "number": ("os.write(answers, b'7\\n'); time.sleep(60)", "must be an object"),
    "half": ("os.write(answers, b'{\\\"par'); time.sleep(60)", "no answer within 1 seconds"),
    "print": ("print('hello'); os.write(1, b'hello')", None),
}


@pytest.fixture(autouse=True)
def own_clients(monkeypatch):
    """The clients of each test, and no others."""
    clients = {}

    def client(strategy, timeout):
        return clients.setdefault((strategy, timeout), client_of(strategy, timeout))

    monkeypatch.setattr(runner, "_client", client)
    yield
    for one in clients.values():
        one.close()


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
    timeout = 1.0 if behavior in ("hang", "half") else 60.0
    row = Cell("branin-cropped", name, 0, 12, timeout).measured()
    expected = BEHAVIORS[behavior][1]
    if expected is None:
        assert row["error"] is None
        assert len(row["values"]) == 12
    else:
        assert expected in row["error"]
        assert len(row["values"]) == 7, "what came before is kept"
        json.dumps(row)
    again = Cell("branin-cropped", name, 1, 6, timeout).measured()  # the same client, after what happened
    assert again["error"] is None
    assert len(again["values"]) == 6


def test_a_preset_that_crashes_is_recorded(monkeypatch):
    class Broken:
        def begin(self, space, seed, earlier=tuple, least=None, *, given=True):
            return {}

        def ask(self):
            raise ZeroDivisionError("oh")

        def tell(self, params, value):
            pass

    monkeypatch.setattr(runner, "_client", lambda strategy, timeout: Broken())
    assert Cell("branin-cropped", "broken", 0, 9).measured()["error"] == "ZeroDivisionError: oh"


def test_a_preset_that_hangs_is_stopped(monkeypatch):
    monkeypatch.setattr(Optimizer, "ask", lambda self: time.sleep(60))
    row = Cell("branin-cropped", "calibo-pi", 0, 9, timeout=0.3).measured()
    assert "no answer within 0.3 seconds" in row["error"]


def test_a_problem_that_cannot_be_made_is_recorded(monkeypatch):
    monkeypatch.delenv("CALIBO_DATA", raising=False)
    assert "CALIBO_DATA" in Cell("table-lda", "random", 0, 9).measured()["error"]
    assert "must exceed the 11 initial points" in Cell("ackley10-cropped", "random", 0, 9).measured()["error"]


def test_a_cell_can_be_run_again_alone():
    cell = Cell("hartmann3-cropped-noisy", "calibo", 5, 14)
    first = cell.measured()
    Cell("branin-cropped", "calibo", 1, 9).measured()  # what ran before must not matter
    again = cell.measured()
    for part in ("values", "observed", "forecasts", "minimum", "range"):
        assert first[part] == again[part]
    assert first["values"] != Cell("hartmann3-cropped-noisy", "calibo", 6, 14).measured()["values"]


def test_strategies_of_a_seed_begin_with_the_same_points_and_the_same_noise():
    rows = [
        Cell("hartmann3-cropped-noisy", name, 2, 8).measured() for name in ("calibo", "calibo-lcb", "random", "sobol")
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


@pytest.mark.parametrize("start", ["random3", "sobol4", "latin4", "missed3"])
def test_a_start_gives_the_first_points(start):
    rows = [Cell("forrester", name, 4, 7, start=start).measured() for name in ("calibo-papers-base", "calibo")]
    count = int(start[-1])
    for row in rows:
        assert row["error"] is None
        assert row["initial"] == count
        assert row["start"] == start
        assert row["values"][:count] == rows[0]["values"][:count]
        assert len(row["forecasts"]) == 7 - count, "the model begins where the given points end"
    points = [params["x0"] for params in initial_points(plain("forrester").at(4), "forrester", 4, start)]
    if start == "missed3":
        assert all(abs(x - 0.757) > 0.149 for x in points)
    if start == "latin4":
        assert sorted(int(4 * x) for x in points) == [0, 1, 2, 3]


@pytest.mark.parametrize("start", ["grid3", "random", "random0", "3"])
def test_a_start_needs_a_design_and_a_number(start):
    assert "--start must be one of" in Cell("forrester", "random", 0, 7, start=start).measured()["error"]


def test_runs_of_other_starts_are_other_runs(tmp_path):
    cells = [Cell("forrester", "random", 0, 6, start=start) for start in ("", "random3", "random4")]
    assert len(list(run(cells[:2], tmp_path / "r.jsonl", 1))) == 2
    assert missing(cells, tmp_path / "r.jsonl") == cells[2:]


def test_random_and_sobol_propose_every_kind_of_value():
    for name in ("random", "sobol"):
        row = Cell("cv-ridge-diabetes", name, 0, 8).measured()
        assert row["error"] is None


def test_runs_are_resumed_and_failed_ones_tried_again(tmp_path, odd):
    out = tmp_path / "r.jsonl"
    cells = [Cell("branin-cropped", name, seed, 6) for seed in range(2) for name in ("random", "sobol")]
    assert len(list(run(cells[:2], out, 2))) == 2
    with out.open("a") as file:
        file.write('{"problem": "branin-cr')  # a crash in the middle of a line
    assert len(read_rows(out)) == 2
    assert len(list(run(cells[2:3], out, 1))) == 1
    assert missing(cells, out) == cells[3:]
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
    assert Cell("branin-cropped", str(script), 0, 9).measured()["error"] == "RuntimeError: 1"


def test_unknown_and_missing_strategies_are_told(monkeypatch, tmp_path):
    for name in ("nothing", "ei", "default"):
        with pytest.raises(InputError, match="must be one of"):
            client_of(name, 1.0)
    monkeypatch.setenv("CALIBO_PEERS", str(tmp_path))
    with pytest.raises(InputError, match="install-peers"):
        client_of("botorch", 1.0)


def test_every_peer_has_a_script():
    for environment, script, _ in PEERS.values():
        text = (SCRIPTS / script).read_text()
        assert "serve(" in text
        assert environment is None or "calibo" not in text, "it runs where calibo is not installed"


KILLER = SCRIPT.replace("BEHAVIOR", "os.kill(os.getppid(), 9)")


def test_a_worker_that_is_killed_costs_the_cells_under_way_only(tmp_path):
    script = tmp_path / "killer.py"
    script.write_text(KILLER)
    cells = [Cell("branin-cropped", str(script) if i == 1 else "random", i, 9) for i in range(5)]
    rows = list(run(cells, tmp_path / "r.jsonl", 1))
    assert len(rows) == 5
    assert [row["seed"] for row in rows if row["error"]] == [1]
    assert "has ended" in rows[1]["error"]


@pytest.mark.parametrize("name", ["optuna-tpe", pytest.param("optuna-gp", marks=pytest.mark.oracle)])
def test_optuna_as_a_peer(name, monkeypatch):
    """It is installed here, too: its script is run by this interpreter."""
    environment, script, argument = PEERS[name]
    assert environment == "optuna"
    monkeypatch.setitem(strategies.PEERS, "here", (None, script, argument))
    rows = [Cell("branin-cropped", "here", seed, 12).measured() for seed in (3, 2, 3)]
    assert [row["error"] for row in rows] == [None] * 3
    assert rows[0]["values"] == rows[2]["values"], "a run leaves nothing behind"
    assert rows[0]["versions"]["optuna"] == optuna.__version__
    assert min(rows[0]["wall"]) > 0


def test_results_are_numbers():
    row = Cell("camel6-cropped-integers", "calibo-plain", 0, 12).measured()
    assert row["error"] is None
    assert np.all(np.isfinite(row["values"]))
    assert row["load"] >= 0
    assert {"calibo", "calibo source", "numpy"} == set(row["versions"])
    for mean, deviation, observed, score, bent, crps, log_density in row["forecasts"]:
        assert score == pytest.approx((observed - mean) / deviation, abs=1e-4)
        assert bent == score, "this preset does not recalibrate"
        normal = normal_crps(np.array([mean]), np.array([deviation]), np.array([observed]))
        assert crps == pytest.approx(float(normal[0]), rel=0.02, abs=1e-9)
        assert log_density == pytest.approx(stats.norm(mean, deviation).logpdf(observed), abs=1e-3)


@pytest.mark.parametrize("strategy", ["calibo+transfer", "calibo-plain+transfer", "calibo-plain+warped+joint"])
def test_strategies_may_learn_from_the_earlier_task(strategy):
    row = Cell("branin-cropped-after_alike", strategy, 0, 6, start="sobol2").measured()
    assert row["error"] is None
    alone = Cell("branin-cropped-after_alike", strategy.partition("+")[0], 0, 6, start="sobol2").measured()
    assert row["values"][:2] == alone["values"][:2]
    assert row["values"] != alone["values"]


def test_where_nothing_came_before_there_is_nothing_to_learn_from():
    assert "the problem has no source task" in Cell("branin", "calibo+transfer", 0, 8).measured()["error"]
    row = Cell("branin-after_alike", "calibo+joint", 0, 8).measured()
    assert "needs one Gaussian process" in row["error"]


def test_the_start_outside_the_valley_depends_on_the_seed_alone():
    instance = plain("forrester").at(0)
    points = [[p["x0"] for p in initial_points(instance, "forrester", seed, "outside3")] for seed in range(20)]
    assert all(len(each) == 3 for each in points)
    assert not any(0.6 <= x <= 0.9 for each in points for x in each)
    expected = np.random.default_rng(4).random(64)
    assert points[4] == expected[(expected < 0.6) | (expected > 0.9)][:3].tolist()


def test_the_bench_tells_the_value_rightly_or_wrongly():
    told = {"known": 2.0, "bound": 2.0, "known-low20": 1.0, "known-high5": 2.25}
    for part, value in told.items():
        client = client_of(f"calibo-plain+{part}", 10.0)
        client.begin(LINE, 0)
        assert client.front.optimizer.optimum.value == pytest.approx(value, abs=0.01), "the maximum is of 256 points"
        assert client.front.optimizer.optimum.bound == (part == "bound")
    with pytest.raises(strategies.ClientError, match="the minimum value of this problem is unknown"):
        client_of("calibo+known", 10.0).begin(replace(LINE, minimum=None), 0)


LINE = Instance(Space({"x": Float(0, 1)}), lambda params: 2.0 + 5.0 * params["x"], 2.0)
CONDITIONAL = Instance(
    Space({"kind": Categorical(["flat", "deep"]), "depth": Int(1, 9), "x": Float(0, 1)}),
    lambda params: params["x"] + (params["depth"] if params["kind"] == "deep" else 3.0),
    1.0,
    conditions={"depth": ("kind", ["deep"])},
)


@pytest.mark.parametrize("strategy", ["calibo", "calibo-plain", "random"])
def test_conditional_parameters_are_active_or_left_out(strategy, monkeypatch):
    monkeypatch.setattr(runner, "problems_of", lambda name: [Problem(name, lambda seed: CONDITIONAL)])
    row = Cell("conditional", strategy, 0, 12).measured()
    assert row["error"] is None
    assert len(row["values"]) == 12
    assert CONDITIONAL.active({"kind": "flat", "depth": 2, "x": 0.5}) == {"kind": "flat", "x": 0.5}
    assert CONDITIONAL.complete({"kind": "flat", "x": 0.5}) == {"kind": "flat", "depth": 5, "x": 0.5}


def test_under_noise_a_row_has_the_true_value_of_the_recommended_point():
    row = Cell("branin-cropped-noisy", "random", 3, 12).measured()
    assert len(row["recommended"]) == 12 - row["initial"] + 1, "from the last given point on"
    best = [row["values"][int(np.argmin(row["observed"][: i + 1]))] for i in range(row["initial"] - 1, 12)]
    assert row["recommended"] == best, "random search takes the best observation home, not the truly best point"
    ours = Cell("branin-cropped-noisy", "calibo-plain", 3, 12).measured()
    assert set(ours["recommended"]) <= set(ours["values"]), "only what was evaluated is recommended"
    assert Cell("branin-cropped", "random", 3, 7).measured()["recommended"] is None


def test_a_peer_may_recommend_another_point_than_the_best_observation(tmp_path, monkeypatch):
    script = tmp_path / "cautious.py"
    more = "    def recommend(self):\n        return {name: entry['high'] for name, entry in self.space_of.items()}\n"
    text = SCRIPT.replace("BEHAVIOR", "pass").replace(
        "self.space, self.count =", "self.space_of = task.space; self.space, self.count ="
    )
    script.write_text(text.replace("serve(Odd", more + "\nserve(Odd"))
    monkeypatch.setattr(runner, "problems_of", lambda name: [noisy(Problem(name, lambda seed: LINE))])
    row = Cell("line", str(script), 0, 8).measured()
    assert row["error"] is None
    assert row["recommended"] == [7.0] * 4


def test_peers_are_told_the_space_the_seed_and_whether_values_are_exact(tmp_path, monkeypatch):
    script = tmp_path / "told.py"
    wanted = (
        "raise RuntimeError(repr((self.task.seed, self.task.exact, self.task.conditions, sorted(self.task.space))))"
    )
    text = SCRIPT.replace("BEHAVIOR", wanted).replace("self.count == 3", "True")
    script.write_text(text.replace("self.space, self.count =", "self.task = task; self.space, self.count ="))
    instances = {"exact": LINE, "noisy": noisy(Problem("line", lambda seed: LINE)).at(0)}
    instances["conditional"] = replace(
        LINE, space=Space({"x": Float(0, 1), "z": Float(0, 1)}), conditions={"z": ("x", [1.0])}
    )
    monkeypatch.setattr(runner, "problems_of", lambda name: [Problem(name, lambda seed: instances[name])])
    said = {name: Cell(name, str(script), 4, 8).measured()["error"] for name in instances}
    assert said["exact"] == "RuntimeError: (4, True, {}, ['x'])"
    assert said["noisy"] == "RuntimeError: (4, False, {}, ['x'])"
    assert said["conditional"] == "RuntimeError: (4, True, {'z': ['x', [1.0]]}, ['x', 'z'])"
