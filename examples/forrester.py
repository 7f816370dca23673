"""How calibration finds a valley that the first points missed, step by step on a page.

    python examples/forrester.py --html forrester.html

The set-up of the calibration papers: a Gaussian process with RBF kernel by maximum likelihood, a lower confidence
bound, and three initial points outside [0.6, 0.9]. Fitted to few points, such a process is far too sure of itself;
calibrated on forecasts of points it has not seen, it knows, looks elsewhere, and finds the global minimum.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from calibo import Float, Optimizer, Strategy
from calibo.acquisition import LowerBound
from calibo.calibration import RefittedLeaveOneOut, SigmaScaleRecalibrator
from calibo.pages import drawn, write_page
from calibo.presets import PRESETS

INITIAL, STEPS, SHOWN = (0.5, 0.95, 0.15), 12, (1, 2, 4, 8)
GRID = np.linspace(0.0, 1.0, 201)


def forrester(x: np.ndarray | float) -> np.ndarray | float:
    return (6 * x - 2) ** 2 * np.sin(12 * x - 4)


UNCALIBRATED = replace(PRESETS["papers-base"], acquisition=LowerBound(2.0))
CALIBRATED = replace(UNCALIBRATED, evidence=RefittedLeaveOneOut(), recalibrator=SigmaScaleRecalibrator())


def steps(strategy: Strategy) -> list[dict[str, np.ndarray]]:
    """What was known, believed and chosen at every step."""
    optimizer = Optimizer({"x": Float(0, 1)}, strategy=strategy, seed=0)
    for x in INITIAL:
        optimizer.tell({"x": x}, forrester(x))
    found = []
    for _ in range(STEPS):
        points = [optimizer.forecast({"x": x}) for x in GRID]
        quantiles = np.array([[point.quantile(p) for p in (0.05, 0.5, 0.95)] for point in points]).T
        data = np.array([[trial.params["x"], trial.value] for trial in optimizer.trials])
        asked = optimizer.ask()
        found.append({"data": data, "quantiles": quantiles, "next": asked["x"]})
        optimizer.tell(asked, forrester(**asked))
    return found


def figure(runs: dict[str, list[dict[str, np.ndarray]]]) -> go.Figure:
    titles = [f"{name}, step {step}" for name in runs for step in SHOWN]
    grid = make_subplots(
        rows=len(runs),
        cols=len(SHOWN),
        subplot_titles=titles,
        shared_yaxes=True,
        horizontal_spacing=0.03,
        vertical_spacing=0.1,
    )
    for i, found in enumerate(runs.values(), start=1):
        for j, step in enumerate(SHOWN, start=1):
            known = found[step - 1]
            low, middle, high = known["quantiles"]
            band = {"fill": "toself", "fillcolor": "rgba(31,119,180,.2)", "line": {"width": 0}, "hoverinfo": "skip"}
            traces = [
                go.Scatter(x=[*GRID, *GRID[::-1]], y=[*high, *low[::-1]], name="90 % interval", **band),
                go.Scatter(x=GRID, y=middle, name="median", line={"color": "#1f77b4"}),
                go.Scatter(x=GRID, y=forrester(GRID), name="truth", line={"color": "#444", "dash": "dot"}),
                go.Scatter(
                    x=known["data"][:, 0],
                    y=known["data"][:, 1],
                    name="known",
                    mode="markers",
                    marker={"color": "black"},
                ),
                go.Scatter(x=[known["next"]] * 2, y=[-12, 18], name="next", mode="lines", line={"color": "#d62728"}),
            ]
            for trace in traces:
                trace.showlegend = i == j == 1
                grid.add_trace(trace, row=i, col=j)
    grid.update_yaxes(range=[-12, 18])
    grid.update_xaxes(range=[-0.03, 1.03])
    return grid.update_layout(
        template="plotly_white", height=640, margin={"l": 40, "r": 10, "t": 50, "b": 30}, width=1150
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--html", default="forrester.html")
    path = Path(parser.parse_args().html)
    runs = {"uncalibrated": steps(UNCALIBRATED), "calibrated": steps(CALIBRATED)}
    for name, found in runs.items():
        best = min(float(forrester(step["next"])) for step in found)
        near = next((i for i, step in enumerate(found, start=1) if 0.6 < step["next"] < 0.9), None)
        print(f"{name:13s} best value {best:6.3f} of -6.021; first looked into [0.6, 0.9] at step {near or 'never'}")
    body = f"<h1>Forrester's function</h1><pre>{__doc__.strip()}</pre>"
    write_page(path, "Forrester's function", body + drawn([figure(runs)]).replace("class=figures", "class=wide"))
    print(f"The steps are drawn in {path}")
