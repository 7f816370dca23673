"""The runner: what a result file lacks is measured, side by side, and recorded as one line each.

Most measurements are runs, cells of a table of problems, strategies and seeds. The first points of a seed are the same
for all strategies, and so is the noise of the i-th evaluation. A measurement depends on nothing but its key, so that it
can be made again alone.
"""

import gzip
import json
import os
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal, Protocol, get_args
from zlib import crc32
from zlib import error as zlib_error

import numpy as np

from calibo import Forecast
from calibo.arrays import Array
from calibo.design import Design, design_points
from calibo.errors import CaliboError, InputError
from calibo.scoring import quantile_crps
from calibo.space import Params
from calibo_bench.clients import THREADS, Answer, Client, ClientError, client_of
from calibo_bench.problems.functions import Function, function
from calibo_bench.problems.suites import problems_of
from calibo_bench.problems.synthetic import Instance

__all__ = [
    "OWN",
    "Cell",
    "Key",
    "Measurement",
    "Row",
    "blank_row",
    "initial_points",
    "missing",
    "parsed_start",
    "read_rows",
    "row_key",
    "run",
]

Row = dict[str, Any]
Key = tuple[str, str, int, int, str]
"""Problem, strategy, seed, budget, start."""

OWN = "own"  # start: no point is given, the strategy begins with its own design
MISSED = 0.15  # of each axis around the minimiser: no point of the start "missed" lies in that box
OUTSIDE = (0.6, 0.9)  # of the first axis: no point of the start "outside" lies between; there is Forrester's minimum


class Measurement(Protocol):
    """What becomes one row of a result file."""

    @property
    def key(self) -> Key: ...

    def measured(self) -> Row:
        """The row; what goes wrong is part of it."""
        ...


@dataclass(frozen=True)
class Cell:
    """One run of a strategy on a problem."""

    problem: str
    strategy: str
    seed: int
    budget: int
    timeout: float = 300.0
    """Seconds for one suggestion."""

    start: str = ""
    """The given points: a design and their number, as in "random3"; empty for max(5, d + 1) of a Sobol sequence; "own"
    for none, where the strategy begins with its own design."""

    @property
    def key(self) -> Key:
        return self.problem, self.strategy, self.seed, self.budget, self.start

    def measured(self) -> Row:
        """The run; what goes wrong in it is part of the row."""
        row = blank_row(self.key)
        try:
            (problem,) = problems_of(self.problem)
            instance = problem.at(self.seed)
            row["d"], row["minimum"], row["range"] = len(instance.space), instance.minimum, instance.range
            row["observed"] = [] if instance.noise is not None else None
            _evaluate(instance, _client(self.strategy, self.timeout), self, row)
        except CaliboError as error:
            row["error"] = str(error)
        except Exception as error:  # a strategy of ours, or a problem, that crashed
            row["error"] = f"{type(error).__name__}: {error}"
        return row


def run(cells: Sequence[Measurement], path: Path, jobs: int) -> Iterator[Row]:
    """Measure the cells side by side; each row is in the file before it is given."""
    if not cells:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"The result file must be one that can be written, but got {str(path)!r}: {error.strerror}."
        ) from None
    for variable in THREADS:  # of the processes begun below
        os.environ[variable] = "1"
    waiting = deque(cells)
    with path.open("ab+") as file:
        file.truncate(_whole_lines(path))  # a crash may have cut the last line
        while waiting:
            for row in _measured_until_a_worker_dies(waiting, jobs):
                file.write(json.dumps(row).encode() + b"\n")
                file.flush()
                yield row


def _whole_lines(path: Path) -> int:
    content = path.read_bytes()
    if content and not content.startswith(b"{"):
        raise InputError(f"The result file {str(path)!r} must hold one run a line, but holds something else.")
    return content.rfind(b"\n") + 1


def _measured_until_a_worker_dies(waiting: "deque[Measurement]", jobs: int) -> Iterator[Row]:
    """Takes cells from the left; those under way when a worker process ends, killed or out of memory, have failed."""
    running: dict[Future[Row], Measurement] = {}
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        while waiting or running:
            while waiting and len(running) < jobs:
                cell = waiting.popleft()
                running[pool.submit(_measured, cell)] = cell
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            try:
                for future in done:
                    yield future.result()
                    del running[future]
            except BrokenProcessPool:
                for cell in running.values():
                    yield {**blank_row(cell.key), "error": "the process of the run has ended"}
                return


def missing(cells: Iterable[Measurement], path: Path) -> list[Measurement]:
    """The cells of which the file, or its compressed form, has no row yet; those that failed are tried again."""
    done = {row_key(row) for row in read_rows(path) if row["error"] is None}
    return [cell for cell in cells if cell.key not in done]


def row_key(row: Row) -> Key:
    return row["problem"], row["strategy"], row["seed"], row["budget"], row.get("start", "")


def read_rows(path: Path) -> list[Row]:
    """The rows of a file and of its compressed form; of several for one cell, the last."""
    rows: dict[Key, Row] = {}
    for file in (path.with_name(f"{path.name}.gz"), path):
        if file.exists():
            text = _text(file)
            for number, line in enumerate(text.splitlines(), start=1):
                try:
                    row = json.loads(line)
                    rows[row_key(row)] = {"error": None, **row}
                except (ValueError, LookupError, TypeError):
                    if number < len(text.splitlines()):  # a last line may have been cut by a crash
                        raise InputError(
                            f"Line {number} of {str(file)!r} is damaged. Remove it to read the others."
                        ) from None
    return list(rows.values())


def _text(file: Path) -> str:
    try:
        return (gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()).decode()
    except (OSError, EOFError, zlib_error, UnicodeDecodeError) as error:
        raise InputError(f"The result file {str(file)!r} could not be read: {error}.") from None


def _measured(cell: Measurement) -> Row:
    try:
        return cell.measured()
    except Exception as error:  # of one measurement; the others go on
        return {**blank_row(cell.key), "error": f"{type(error).__name__}: {error}"}


def blank_row(key: Key) -> Row:
    """Of a measurement that has not begun."""
    problem, strategy, seed, budget, start = key
    return {
        "problem": problem,
        "strategy": strategy,
        "seed": seed,
        "budget": budget,
        "start": start,
        "d": None,
        "minimum": None,
        "range": None,
        "initial": None,
        "begun": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "load": round(os.getloadavg()[0], 2),
        "values": [],
        "observed": None,
        "wall": [],
        "processor": [],
        "forecasts": [],
        "versions": {},
        "error": None,
    }


def initial_size(instance: Instance) -> int:
    """How many points are given to every strategy before it is asked."""
    return max(5, len(instance.space) + 1)


def initial_points(instance: Instance, name: str, seed: int, start: str = "") -> list[Params]:
    """The first points of a seed, the same for all strategies."""
    if start == OWN:
        return []
    cube = instance.space.cube
    kind, count = parsed_start(start) if start else ("sobol", initial_size(instance))
    number = crc32(f"{name} {seed}".encode())
    if kind == "outside":
        points = _outside(len(cube), count, seed)
    elif kind == "missed":
        points = _missing_the_minimum(instance, _textbook(name), count, number)
    else:
        points = design_points(kind, len(cube), count, 0, count, number)
    return [instance.space.from_cube(x) for x in cube.snap(points)]


def _textbook(name: str) -> Function:
    try:
        return function(name)
    except InputError:
        raise InputError(f"The start 'missed' needs a textbook function in its usual box, but got {name!r}.") from None


def parsed_start(start: str) -> tuple[Design | Literal["missed", "outside"], int]:
    """The design and the number of given points."""
    kinds = (*get_args(Design), "missed", "outside")
    kind = start.rstrip("0123456789")
    if kind not in kinds or kind == start or int(start[len(kind) :]) < 1:
        raise InputError(f"--start must be one of {list(kinds)} and a number, as in random3, but got {start!r}.")
    return kind, int(start[len(kind) :])  # type: ignore[return-value]


def _outside(d: int, count: int, seed: int) -> Array:
    """Random points, the same for every problem of a seed."""
    points = np.random.default_rng(seed).random((64, d))
    outside = points[(points[:, 0] < OUTSIDE[0]) | (points[:, 0] > OUTSIDE[1])]
    if len(outside) < count:
        raise InputError(f"The start 'outside' has {len(outside)} points at most, but got {count}.")
    return outside[:count]


def _missing_the_minimum(instance: Instance, made: Function, count: int, seed: int) -> Array:
    """Random points of which each is away from the minimiser, in at least one column."""
    rng, place = np.random.default_rng(seed), (made.minimizer - made.low) / (made.high - made.low)
    points = np.empty((0, len(instance.space)))
    while len(points) < count:
        more = rng.random((256, len(instance.space)))
        points = np.concatenate([points, more[np.abs(more - place).max(axis=1) > MISSED]])
    return points[:count]


def _evaluate(instance: Instance, client: Client, cell: Cell, row: Row) -> None:
    first = initial_points(instance, cell.problem, cell.seed, cell.start)
    row["initial"] = len(first)
    if cell.budget <= len(first):
        raise InputError(f"`budget` must exceed the {len(first)} given points, but got {cell.budget}.")
    row["versions"] = dict(client.begin(instance.space, cell.seed, instance.earlier, instance.least, given=bool(first)))
    for i in range(cell.budget):
        answer = Answer(dict(first[i]), 0.0, 0.0) if i < len(first) else client.ask()
        try:
            params = instance.space.plain(answer.params)
        except CaliboError as error:
            raise ClientError(f"a suggestion must lie in the space: {error}") from None
        value, observed = instance.evaluate(params, np.random.default_rng([cell.seed, i]))
        client.tell(params, observed)
        row["values"].append(_short(value))
        if row["observed"] is not None:
            row["observed"].append(_short(observed))
        if i >= len(first):
            row["wall"].append(_short(answer.wall, 3))
            row["processor"].append(_short(answer.processor, 3))
            if answer.forecast is not None:
                row["forecasts"].append([_short(part, 5) for part in _checked(answer.forecast, observed)])


def _checked(forecast: Forecast, observed: float) -> tuple[float, ...]:
    """Raw median and half-width, what came, its raw score; score, CRPS and log density when calibrated."""
    raw = forecast.raw
    low, median, high = (float(y) for y in raw.at_normal_score(np.array([-1.0, 0.0, 1.0])))
    crps = quantile_crps(forecast.quantile(LEVELS), observed)
    scores = float(raw.normal_score(observed)), float(forecast.normal_score(observed))
    return median, 0.5 * (high - low), observed, *scores, crps, float(forecast.log_density(observed))


LEVELS = (np.arange(100) + 0.5) / 100  # at which the CRPS is measured


def _short(value: float, digits: int = 8) -> float:
    return float(f"{value:.{digits}g}")


@cache
def _client(strategy: str, timeout: float) -> Client:
    """One for all cells of this process: some take seconds to start."""
    return client_of(strategy, timeout)
