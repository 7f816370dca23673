"""The pictures of the README and of the results, in docs/images: `python bench/picture.py`.

calibration.svg: the reliability of the forecasts on the confirmation functions, and one run on Branin's function.
evaluations.svg: how many evaluations calibo needs to other optimizers' results. Both use the leaderboards' rows.
"""

from functools import cache
from pathlib import Path

import numpy as np
from scipy.special import ndtr

from calibo import Float, Optimizer
from calibo_bench.problems.functions import function
from calibo_bench.problems.suites import SUITES
from calibo_bench.runner import Row, read_rows
from calibo_bench.statistics import Results, is_comparable

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
WIDTH, HEIGHT, LEFT, TOP, SIZE = 860, 350, 60, 60, 240  # of the picture; the panels are as high as SIZE
RED, BLUE, GREY = "#d62728", "#1f77b4", "#888"
LEVELS = np.linspace(0.0, 1.0, 101)
STEPS, DESIGN = 30, 5


@cache
def rows(suite: str) -> list[Row]:
    """The comparable runs of a leaderboard."""
    names = {problem.name for problem in SUITES[suite]}
    made = read_rows(ROOT / "bench" / "results" / "leaderboards.jsonl")
    return [row for row in made if row["problem"] in names and is_comparable(row)]


def reliability() -> dict[str, np.ndarray]:
    """The share of outcomes below each forecast quantile."""
    scores: dict[str, list[float]] = {"calibo-plain": [], "calibo": []}
    for row in rows("functions-held-out"):
        if row["strategy"] in scores:
            scores[row["strategy"]] += [forecast[4] for forecast in row["forecasts"]]
    return {name: (ndtr(np.array(found))[:, None] <= LEVELS).mean(axis=0) for name, found in scores.items()}


def trace() -> tuple[np.ndarray, np.ndarray]:
    """Outcomes (n,), and the 90 % interval (n, 2) forecast for each; NaN before there is a model."""
    branin = function("branin")
    box = zip(branin.low.tolist(), branin.high.tolist(), strict=True)
    optimizer = Optimizer({f"x{i}": Float(low, high) for i, (low, high) in enumerate(box)}, seed=4)
    outcomes, intervals = [], []
    for step in range(STEPS):
        params = optimizer.ask()
        known = step >= DESIGN
        intervals.append(optimizer.forecast(params, noise=True).interval(0.9) if known else (np.nan, np.nan))
        outcomes.append(branin(np.array(list(params.values()))))
        optimizer.tell(params, outcomes[-1])
    return np.array(outcomes), np.array(intervals)


def line(x: np.ndarray, y: np.ndarray, color: str, extra: str = "") -> str:
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    return f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2" {extra}/>'


def text(x: float, y: float, words: str, extra: str = "") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" {extra}>{words}</text>'


def frame(left: float, width: float, title: str, below: str, beside: str) -> list[str]:
    bottom, middle = TOP + SIZE, TOP + SIZE / 2
    turned = f'text-anchor="middle" transform="rotate(-90 {left - 40:.0f} {middle:.0f})"'
    return [
        f'<rect x="{left}" y="{TOP}" width="{width}" height="{SIZE}" fill="none" stroke="#ccc"/>',
        text(left, TOP - 32, title, 'font-weight="bold"'),
        text(left + width / 2, bottom + 36, below, 'text-anchor="middle"'),
        text(left - 40, middle, beside, turned),
    ]


def left_panel() -> list[str]:
    x, y = LEFT + SIZE * LEVELS, TOP + SIZE * (1.0 - LEVELS)
    found = reliability()
    parts = frame(LEFT, SIZE, "Reliability", "forecast probability", "share of outcomes")
    parts.append(line(x, y, GREY, 'stroke-dasharray="4 4"'))
    for name, color in (("calibo-plain", BLUE), ("calibo", RED)):
        parts.append(line(x, TOP + SIZE * (1.0 - found[name]), color))
    for share in (0.0, 0.5, 1.0):
        parts.append(text(LEFT + SIZE * share, TOP + SIZE + 16, f"{share:.0%}", 'text-anchor="middle"'))
        parts.append(text(LEFT - 6, TOP + SIZE * (1.0 - share) + 4, f"{share:.0%}", 'text-anchor="end"'))
    for row, (words, color) in enumerate((("calibo", RED), ("plain GP", BLUE), ("ideal", GREY))):
        parts.append(text(LEFT + 10, TOP + 20 + 18 * row, words, f'fill="{color}"'))
    return parts


def right_panel() -> list[str]:
    left, width = LEFT + SIZE + 110, WIDTH - LEFT - SIZE - 130
    outcomes, intervals = trace()
    best = np.minimum.accumulate(outcomes)
    low, high = -1.0, 2.5  # powers of ten

    def at(values: np.ndarray) -> np.ndarray:
        place = (np.log10(np.maximum(values, 10.0**low)) - low) / (high - low)
        return np.asarray(TOP + SIZE * (1.0 - np.clip(place, 0.0, 1.0)))

    x = left + width * (np.arange(STEPS) + 0.5) / STEPS
    parts = frame(left, width, "One run on Branin's function", "evaluations", "value")
    for a, down, up in zip(x, at(intervals[:, 0]), at(intervals[:, 1]), strict=True):
        if np.isfinite(down):
            ends = f'x1="{a:.1f}" x2="{a:.1f}" y1="{up:.1f}" y2="{down:.1f}"'
            parts.append(f'<line {ends} stroke="{RED}" stroke-opacity="0.35" stroke-width="7"/>')
    parts.append(line(x, at(best), GREY))
    parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3.2" fill="#222"/>' for a, b in zip(x, at(outcomes), strict=True)]
    for power in (-1, 0, 1, 2):
        parts.append(text(left - 6, float(at(np.array(10.0**power))) + 4, f"{10.0**power:g}", 'text-anchor="end"'))
    words = (("90 % forecast interval", RED), ("outcome", "#222"), ("best so far", GREY))
    for (word, color), end in zip(
        words, (width - 160, width - 90, width), strict=True
    ):  # above, where nothing is drawn
        parts.append(text(left + end, TOP - 14, word, f'fill="{color}" text-anchor="end"'))
    for number in (1, 10, 20, 30):
        parts.append(text(float(x[number - 1]), TOP + SIZE + 16, str(number), 'text-anchor="middle"'))
    return parts


# evaluations to other optimizers' results

NAMES = {  # and colors
    "optuna-gp": ("GPSampler", "#1f77b4"),
    "optuna-tpe": ("TPE", "#2ca02c"),
    "optuna-cmaes": ("CMA-ES", "#9467bd"),
    "botorch": ("BoTorch", "#ff7f0e"),
    "hebo": ("HEBO", "#8c564b"),
    "smac": ("SMAC3", "#e377c2"),
    "ax": ("Ax", "#17becf"),
    "botorch-saas": ("BoTorch, MAP-SAAS", "#bcbd22"),
}
TITLES = {
    "functions": "test functions, development half",
    "functions-held-out": "test functions, confirmation half",
    "tuning": "real tuning, development half",
    "tuning-held-out": "real tuning, confirmation half",
}
BAR, BESIDE, LOWEST = 20, 150, 1 / 8  # height of a line, width of names, smallest ratio shown


def board(suite: str, left: float, top: float, width: float) -> tuple[list[str], float]:
    """One line per optimizer, the best one above; also where they end."""
    results = Results(rows(suite))
    made = {name: results.evaluations("calibo", name) for name in NAMES if name in results.strategies}
    ratios = {name: found.ratio for name, found in made.items() if found is not None}
    ordered = sorted(ratios, key=lambda name: -ratios[name][0])
    bottom = top + BAR * len(ordered)

    def at(ratio: float) -> float:
        return left + BESIDE + (width - BESIDE) * float(np.log(max(ratio, LOWEST) / LOWEST) / np.log(2.0 / LOWEST))

    parts = [text(left, top - 14, TITLES[suite], 'font-weight="bold"')]
    for ratio in (0.125, 0.25, 0.5, 1.0, 2.0):
        dashed = 'stroke-dasharray="4 4"' if ratio != 1.0 else ""
        ends = f'x1="{at(ratio):.1f}" x2="{at(ratio):.1f}" y1="{top}" y2="{bottom}"'
        parts.append(f'<line {ends} stroke="{GREY if ratio == 1.0 else "#ccc"}" {dashed}/>')
        parts.append(text(at(ratio), bottom + 16, f"{ratio:g}", 'text-anchor="middle"'))
    for i, name in enumerate(ordered):
        y, (word, color), (middle, low, high) = top + BAR * (i + 0.5), NAMES[name], ratios[name]
        parts.append(text(left + BESIDE - 12, y + 4, word, 'text-anchor="end"'))
        if np.isfinite(low):
            ends = f'x1="{at(low):.1f}" x2="{at(high):.1f}" y1="{y}" y2="{y}"'
            parts.append(f'<line {ends} stroke="{color}" stroke-width="2"/>')
        parts.append(f'<circle cx="{at(middle):.1f}" cy="{y}" r="4.5" fill="{color}"/>')
    return parts, bottom


def evaluations() -> tuple[list[str], float]:
    """Functions above, real tuning below; development on the left, confirmation on the right."""
    half, top = WIDTH / 2, 70.0
    told = "Evaluations that calibo needs for the result of another optimizer after 40, divided by 40"
    parts = [text(20, 28, told)]
    for kind in ("functions", "tuning"):
        ends = []
        for suite, left in ((kind, 20.0), (f"{kind}-held-out", half + 10.0)):
            drawn, bottom = board(suite, left, top, half - 40)
            parts += drawn
            ends.append(bottom)
        top = max(ends) + 70.0
    return parts, top - 40.0


def save(name: str, height: float, parts: list[str]) -> None:
    style = 'font-family="system-ui, sans-serif" font-size="13" fill="#222"'
    size = f'viewBox="0 0 {WIDTH} {height:g}" width="{WIDTH}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>'
    white = f'<rect width="{WIDTH}" height="{height:g}" fill="white"/>'
    IMAGES.mkdir(exist_ok=True)
    (IMAGES / name).write_text("\n".join([head, white, *parts, "</svg>\n"]))


if __name__ == "__main__":
    drawn, height = evaluations()
    save("evaluations.svg", height, drawn)
    save("calibration.svg", HEIGHT, [*left_panel(), *right_panel()])
