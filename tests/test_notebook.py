"""In a real kernel: the progress bar, the views of values, and the interrupt button."""

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = pytest.mark.filterwarnings("ignore")  # of the client

CELLS = """
import calibo, time
def f(x, y):
    time.sleep(0.02)
    return (x - 0.3) ** 2 + y
space = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
result = calibo.minimize(f, space, 9, seed=0)
# %%
result
# %%
calibo.minimize(f, space, 9, seed=0, n_jobs=2).recommendation
# %%
import os, signal, threading
threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGINT)).start()
calibo.minimize(f, space, 1000, seed=0)
# %%
import sys
len(sys.last_value.result.trials) > 1
"""


@pytest.fixture(scope="module")
def outputs():
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS.split("# %%\n")])
    NotebookClient(book, timeout=120, kernel_name="python3", allow_errors=True).execute()
    return [cell.outputs for cell in book.cells]


def text(output, kind="text/plain"):
    return output["data"][kind]


def test_the_bar_ends_at_100_percent_without_warnings(outputs):
    (bar,) = outputs[0]
    assert text(bar).startswith("trials 9/9, ")
    assert "best " in text(bar)
    assert text(bar, "text/html").startswith('<progress value="9" max="9">')
    assert [text(output).partition(" ")[0] for output in outputs[2]] == ["trials", "Recommendation(params={'x':"]


def test_a_result_is_shown_as_a_table(outputs):
    (shown,) = outputs[1]
    assert "<th>best value</th>" in text(shown, "text/html")
    assert len(text(shown)) < 100


def test_the_interrupt_hands_the_result_over(outputs):
    bar, error = outputs[3]
    assert "/1000, " in text(bar)
    assert error["ename"] == "Interrupted"
    assert "sys.last_value.result" in error["evalue"]
    assert len(error["traceback"]) == 1
    assert text(outputs[4][0]) == "True"
