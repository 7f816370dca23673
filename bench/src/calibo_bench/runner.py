"""The runner: runs the measurements missing in a result file in parallel and records one line for each.

Most measurements are runs, cells of a table of problems, strategies and seeds. All strategies of a seed have the same
initial points and the same noise in the i-th evaluation. A measurement depends only on its key, so it can be repeated
alone.
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
from calibo_bench.provenance import sealed, source_commit

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

OWN = "own"  # start: no initial points, the strategy uses its own design
MISSED = 0.15  # of each axis around the minimiser: no point of the start "missed" lies in that box
OUTSIDE = (0.6, 0.9)  # of the first axis: no point of the start "outside" lies in it; Forrester's minimum does


class Measurement(Protocol):
    """A measurement that becomes one row of a result file."""

    @property
    def key(self) -> Key: ...

    def measured(self) -> Row:
        """The row; errors are recorded in it."""
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
    """The initial points: a design and their number, as in "random3"; empty for max(5, d + 1) Sobol points; "own" for
    none, so that the strategy uses its own design."""

    @property
    def key(self) -> Key:
        return self.problem, self.strategy, self.seed, self.budget, self.start

    def measured(self) -> Row:
        """The run; errors are recorded in the row."""
        row = blank_row(self.key)
        try:
            (problem,) = problems_of(self.problem)
            instance = problem.at(self.seed)
            row["d"], row["minimum"], row["range"] = len(instance.space), instance.minimum, instance.range
            row["observed"], row["recommended"] = ([], []) if instance.is_noisy else (None, None)
            _evaluate(instance, _client(self.strategy, self.timeout), self, row)
        except CaliboError as error:
            row["error"] = str(error)
        except Exception as error:  # a crash of our strategy or of the problem
            row["error"] = f"{type(error).__name__}: {error}"
        return row


def run(cells: Sequence[Measurement], path: Path, jobs: int) -> Iterator[Row]:
    """Measure the cells in parallel; each row is written before it is yielded."""
    if not cells:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"The result file must be in a writable folder, but got {str(path)!r}: {error.strerror}."
        ) from None
    for variable in THREADS:  # for the processes started below
        os.environ[variable] = "1"
    waiting = deque(cells)
    with path.open("ab+") as file:
        file.truncate(_whole_lines(path))  # a crash may have cut the last line
        while waiting:
            for made in _measured_until_a_worker_dies(waiting, jobs):
                row = sealed(made)
                file.write(json.dumps(row).encode() + b"\n")
                file.flush()
                yield row


def _whole_lines(path: Path) -> int:
    content = path.read_bytes()
    if content and not content.startswith(b"{"):
        raise InputError(f"The result file {str(path)!r} must hold one run per line, but holds something else.")
    return content.rfind(b"\n") + 1


def _measured_until_a_worker_dies(waiting: "deque[Measurement]", jobs: int) -> Iterator[Row]:
    """Take cells from the left; those running when a worker dies (killed or out of memory) have failed."""
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
                    yield {**blank_row(cell.key), "error": "the worker process has ended"}
                return


def missing(cells: Iterable[Measurement], path: Path) -> list[Measurement]:
    """The cells without a row in the file or its compressed form; failed ones are retried."""
    done = {row_key(row) for row in read_rows(path) if row["error"] is None}
    return [cell for cell in cells if cell.key not in done]


def row_key(row: Row) -> Key:
    return row["problem"], row["strategy"], row["seed"], row["budget"], row.get("start", "")


def read_rows(path: Path) -> list[Row]:
    """The rows of a file and its compressed form; the last one of each cell."""
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
    except Exception as error:  # only this measurement fails; the others continue
        return {**blank_row(cell.key), "error": f"{type(error).__name__}: {error}"}


def blank_row(key: Key) -> Row:
    """The row of a measurement that has not started."""
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
        "recommended": None,
        "wall": [],
        "processor": [],
        "forecasts": [],
        "versions": {},
        "commit": source_commit(),
        "error": None,
    }


def initial_size(instance: Instance) -> int:
    """The number of initial points given to every strategy."""
    return max(5, len(instance.space) + 1)


def initial_points(instance: Instance, name: str, seed: int, start: str = "") -> list[Params]:
    """The initial points of a seed, the same for all strategies."""
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
    """The design and the number of initial points."""
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
        raise InputError(f"The start 'outside' has at most {len(outside)} points, but got {count}.")
    return outside[:count]


def _missing_the_minimum(instance: Instance, made: Function, count: int, seed: int) -> Array:
    """Random points, each away from the minimiser along at least one axis."""
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
        raise InputError(f"`budget` must exceed the {len(first)} initial points, but got {cell.budget}.")
    row["versions"] = dict(client.begin(instance, cell.seed, given=bool(first)))
    best, truths = (np.inf, dict[str, Any]()), dict[str, float]()
    for i in range(cell.budget):
        answer = Answer(dict(first[i]), 0.0, 0.0) if i < len(first) else client.ask()
        try:
            params = instance.complete(answer.params)
        except CaliboError as error:
            raise ClientError(f"a suggestion must lie in the space: {error}") from None
        value, observed = instance.evaluate(params, np.random.default_rng([cell.seed, i]))
        client.tell(params, observed)
        row["values"].append(_short(value))
        best = min(best, (observed, params), key=lambda pair: pair[0])
        if row["observed"] is not None:
            row["observed"].append(_short(observed))
        if row["recommended"] is not None and i + 1 >= len(first):
            taken = client.recommend()
            taken = best[1] if taken is None else instance.complete(taken)
            name = json.dumps(instance.active(taken), sort_keys=True)
            truths[name] = truths[name] if name in truths else instance.true_value(taken)
            row["recommended"].append(_short(truths[name]))
        if i >= len(first):
            row["wall"].append(_short(answer.wall, 3))
            row["processor"].append(_short(answer.processor, 3))
            if answer.forecast is not None:
                row["forecasts"].append([_short(part, 5) for part in _checked(answer.forecast, observed)])


def _checked(forecast: Forecast, observed: float) -> tuple[float, ...]:
    """Raw median and half-width, observation, raw score; score, CRPS and log density of the recalibrated forecast."""
    raw = forecast.raw
    low, median, high = (float(y) for y in raw.at_normal_score(np.array([-1.0, 0.0, 1.0])))
    crps = quantile_crps(forecast.quantile(LEVELS), observed)
    scores = float(raw.normal_score(observed)), float(forecast.normal_score(observed))
    return median, 0.5 * (high - low), observed, *scores, crps, float(forecast.log_density(observed))


LEVELS = (np.arange(100) + 0.5) / 100  # quantile levels of the CRPS


def _short(value: float, digits: int = 8) -> float:
    return float(f"{value:.{digits}g}")


@cache
def _client(strategy: str, timeout: float) -> Client:
    """One for all cells of this process: some take seconds to start."""
    return client_of(strategy, timeout)
