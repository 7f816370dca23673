import json
import resource
import signal
import subprocess
import sys
import textwrap
import time
from enum import StrEnum

import pytest

from calibo import CaliboWarning, Categorical, Float, InputError, Int, JournalError, Optimizer, Space, Strategy
from calibo.acquisition import LowerBound
from calibo.journal import Journal
from calibo.presets import get_strategy

SPACE = {
    "x": Float(-1, 1),
    "rate": Float(1e-6, 1, log=True),
    "step": Float(0, 1, step=0.25),
    "n": Int(1, 64, log=True),
    "kind": Categorical([None, True, 1, "a 'b' \"c\"\n</script>; DROP TABLE trials"]),
}


def optimizer(path=None, seed=3) -> Optimizer:
    made = Optimizer(SPACE, seed=seed)
    if path is not None:
        made.save(path)
    return made


def test_a_space_survives_its_declaration():
    space = Space(SPACE)
    again = Space.from_json(json.loads(json.dumps(space.to_json())))
    assert dict(again) == dict(space)
    assert list(again) == list(space)


def test_a_loaded_optimizer_goes_on_as_if_nothing_had_happened(tmp_path):
    first = optimizer(tmp_path / "run.jsonl")
    for i in range(14):
        params = first.ask()
        if i % 5 == 4:
            first.tell_failed(params)
        else:
            first.tell(
                params, params["x"] ** 2 + params["n"], noise=0.1 if i % 2 else None, constraints=(-1.0, params["x"])
            )
    first.ask(2)
    first.enqueue({"x": 0.5})
    second = Optimizer.load(tmp_path / "run.jsonl")
    assert repr(second.trials) == repr(first.trials)
    assert second.pending == first.pending
    assert second.best == first.best
    assert second.ask(3) == first.ask(3)


def test_a_journal_saved_late_holds_everything(tmp_path):
    first = optimizer()
    for _ in range(6):
        first.tell(first.ask(), 1.0)
    waiting = first.ask()
    first.enqueue({"x": 0.5})
    first.save(tmp_path / "run.jsonl")
    second = Optimizer.load(tmp_path / "run.jsonl")
    assert second.trials == first.trials
    assert second.pending == (waiting,)
    assert second.ask()["x"] == 0.5


def test_cancelled_and_enqueued_points_are_remembered(tmp_path):
    first = optimizer(tmp_path / "run.jsonl")
    first.enqueue({"x": 0.1 + 0.2})
    first.enqueue({"x": 0.7})
    assert first.ask()["x"] == 0.1 + 0.2
    canceled = first.ask()
    assert canceled["x"] == 0.7
    first.cancel(canceled)
    second = Optimizer.load(tmp_path / "run.jsonl")
    assert [params["x"] for params in second.pending] == [0.1 + 0.2]
    assert second.ask() == first.ask()


def test_the_strategy_is_remembered_whole(tmp_path):
    for name, strategy in {"named": "lcb", "own": Strategy(initial=3, acquisition=LowerBound(1.3))}.items():
        run = Optimizer(SPACE, strategy=strategy, seed=0)
        run.save(tmp_path / f"{name}.jsonl")
        assert Optimizer.load(tmp_path / f"{name}.jsonl").strategy == run.strategy
    assert Optimizer.load(tmp_path / "own.jsonl", strategy="plain").strategy == get_strategy("plain")


def test_a_journal_without_a_strategy_asks_for_one(tmp_path):
    path = tmp_path / "run.jsonl"
    Optimizer(SPACE, seed=0).save(path)
    for wanted, words in (
        (None, "must be given"),
        ({"part": "search"}, "is not valid"),
        ({"part": "theirs"}, "'theirs' is not registered"),
    ):
        header = {**json.loads(path.read_text().splitlines()[0]), "strategy": wanted}
        (tmp_path / "other.jsonl").write_text(json.dumps(header) + "\n")
        with pytest.raises(InputError, match=words):
            Optimizer.load(tmp_path / "other.jsonl")
        assert Optimizer.load(tmp_path / "other.jsonl", strategy="plain").strategy == get_strategy("plain")


def test_fields_of_a_later_version_are_survived(tmp_path):
    path = tmp_path / "run.jsonl"
    first = Optimizer(SPACE, seed=0, known_optimum=0.0)
    first.save(path)
    header = json.loads(path.read_text().splitlines()[0])
    header["space"][0]["unit"], header["optimum"]["source"], header["mood"] = "kg", "a table", 3
    path.write_text(json.dumps(header) + "\n")
    second = Optimizer.load(path)
    assert dict(second.space) == dict(first.space)
    assert second.optimum == first.optimum
    header["optimum"] = {"source": "a table"}
    path.write_text(json.dumps(header) + "\n")
    with pytest.raises(JournalError, match="`optimum` must have a value"):
        Optimizer.load(path)


@pytest.mark.parametrize("cut", [1, 5, 40])
def test_a_journal_cut_in_a_line_loads_everything_before_it(tmp_path, cut):
    path = tmp_path / "run.jsonl"
    first = optimizer(path)
    for i in range(8):
        first.tell(first.ask(), float(i))
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    with pytest.warns(CaliboWarning, match="cut off"):
        second = Optimizer.load(path)
    assert second.trials == first.trials[:7]
    assert len(second.pending) == 1
    second.tell(second.pending[0], 7.0)
    assert Optimizer.load(path).trials == first.trials


def test_a_damaged_line_in_the_middle_is_named(tmp_path):
    path = tmp_path / "run.jsonl"
    first = optimizer(path)
    for i in range(3):
        first.tell(first.ask(), float(i))
    lines = path.read_text().splitlines(keepends=True)
    lines[2] = lines[2][:10] + "\n"
    path.write_text("".join(lines))
    with pytest.raises(JournalError, match="Line 3"):
        Optimizer.load(path)


def test_files_that_are_no_journals_are_refused(tmp_path):
    for name, text, message in (
        ("empty", "", "no header"),
        ("other", '{"a": 1}\n', "no header"),
        ("newer", '{"calibo": 99}\n', "version 2"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(InputError, match=message):
            Optimizer.load(tmp_path / name)
    with pytest.raises(JournalError, match="could not be read"):
        Optimizer.load(tmp_path / "missing")


@pytest.mark.parametrize("text", ["my precious data", '{"lr": 0.1}', '{"a": 1}\n{"b": 2', ""])
def test_a_file_that_is_no_journal_is_left_as_it_is(tmp_path, text):
    path = tmp_path / "other"
    path.write_text(text)
    with pytest.raises(InputError, match="no header"):
        Optimizer.load(path)
    assert path.read_text() == text


def test_half_a_line_of_another_writer_spoils_nothing(tmp_path):
    path = tmp_path / "run.jsonl"
    run = optimizer(path)
    params = run.ask()
    with path.open("ab") as file:
        file.write(b'{"tell": {"x": 0.')  # killed in the middle
    run.tell(params, 1.0)
    assert Optimizer.load(path).trials == run.trials


def test_loading_alone_changes_no_byte(tmp_path):
    path = tmp_path / "run.jsonl"
    first = optimizer(path)
    first.tell(first.ask(), 1.0)
    cut = path.read_bytes()[:-4]
    path.write_bytes(cut)
    path.chmod(0o444)
    with pytest.warns(CaliboWarning, match="cut off"):
        Optimizer.load(path)
    assert path.read_bytes() == cut


@pytest.mark.parametrize(
    "line",
    [
        '{"tell": {"x": 0.5}, "value": 1.0, "noise": null, "constraints": []}',
        '{"ask": {"x": 99}, "turn": null}',
        '{"unknown": {}}',
        "{}",
        '{"tell": 3, "value": 1.0, "noise": null, "constraints": []}',
    ],
)
def test_an_event_that_makes_no_sense_is_named(tmp_path, line):
    path = tmp_path / "run.jsonl"
    optimizer(path)
    with path.open("a") as file:
        file.write(line + "\n")
    with pytest.raises(JournalError, match="Line 2"):
        Optimizer.load(path)


def test_the_order_of_keys_does_not_matter(tmp_path):
    path = tmp_path / "run.jsonl"
    first = Optimizer({"x": Float(0, 1)}, seed=0)
    first.save(path)
    with path.open("a") as file:
        file.write('{"value": 2.0, "noise": null, "constraints": [], "tell": {"x": 0.5}}\n')
    assert Optimizer.load(path).best.value == 2.0


def test_the_working_directory_may_change(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = optimizer("run.jsonl")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    run.tell(run.ask(), 1.0)
    assert len(Optimizer.load(tmp_path / "run.jsonl").trials) == 1


def test_choices_from_an_enumeration_are_its_values(tmp_path):
    class Kind(StrEnum):
        ROUND = "round"
        FLAT = "flat"

    run = Optimizer({"kind": Categorical(list(Kind))}, seed=0)
    run.save(tmp_path / "run.jsonl")
    again = Optimizer.load(tmp_path / "run.jsonl")
    again.tell({"kind": Kind.FLAT}, 1.0)
    assert again.best.params == {"kind": "flat"}


def test_an_existing_file_is_never_overwritten(tmp_path):
    path = tmp_path / "run.jsonl"
    optimizer(path)
    with pytest.raises(InputError, match="Load it"):
        optimizer(path)
    with pytest.raises(JournalError, match="must be writable"):
        optimizer(tmp_path / "no" / "such" / "folder")


def test_a_full_disk_loses_nothing(tmp_path):
    path = tmp_path / "run.jsonl"
    run = optimizer(path)
    params = [run.ask() for _ in range(3)]
    run.tell(params[0], 0.0)
    size = path.stat().st_size
    kept = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, limits[1]))  # room for a part of the next line
    try:
        with pytest.raises(JournalError, match="Nothing is lost"):
            run.tell(params[1], 1.0)
        assert path.stat().st_size == size
        assert len(run.trials) == 2
        for n in (1, 3):
            with pytest.raises(JournalError, match="could not be written"):
                run.ask(n)
        assert run.pending == (params[2],)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
        with pytest.raises(JournalError, match="could not be written"):
            run.save(tmp_path / "elsewhere.jsonl")
        assert not (tmp_path / "elsewhere.jsonl").exists()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, kept)
    run.tell(params[2], 2.0)
    again = Optimizer.load(path)
    assert [trial.value for trial in again.trials] == [0.0, 1.0, 2.0]
    assert again.pending == ()


def test_what_was_told_survives_kill_9(tmp_path):
    path = tmp_path / "run.jsonl"
    script = textwrap.dedent(
        """
        import sys
        from calibo import Float, Optimizer
        run = Optimizer({"x": Float(0, 1)}, seed=0, strategy=None)
        run.save(sys.argv[1])
        while True:
            params = run.ask()
            run.tell(params, params["x"])
            print(len(run.trials), flush=True)
        """
    )
    with subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, text=True) as process:
        told = 0
        for line in process.stdout:
            told = int(line)
            if told >= 15:
                time.sleep(0.004)
                process.send_signal(signal.SIGKILL)
                break
        told = max([told, *[int(line) for line in process.stdout]])
    assert process.returncode == -signal.SIGKILL
    assert len(Optimizer.load(path).trials) >= told


WRITER = """
import sys
from calibo.journal import Journal

journal = Journal(sys.argv[1])
for i in range(200):
    journal.append({"worker": int(sys.argv[2]), "i": i, "filler": "x" * 500})
"""


def test_lines_of_several_writers_do_not_mix(tmp_path):
    path = tmp_path / "shared.jsonl"
    Journal(path).create({})
    workers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(w)]) for w in range(3)]
    assert [worker.wait() for worker in workers] == [0, 0, 0]
    events = Journal(path).read()[1:]
    assert len(events) == 600
    for w in range(3):
        assert [event["i"] for event in events if event["worker"] == w] == list(range(200))
