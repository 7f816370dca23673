"""What a user gets by installing and importing."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import calibo
from calibo.cube import Axis, Cube
from calibo.design import sobol_points
from calibo.forecasts import CalibrationMap
from calibo.gp.linalg import pairs

ROOT = Path(calibo.__file__).parents[2]


def test_every_public_name_exists():
    for name in calibo.__all__:
        assert getattr(calibo, name) is not None


@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        ("import calibo, calibo.cli", ("numpy", "scipy", "optuna", "rich")),
        ("import calibo; calibo.Optimizer", ("optuna", "torch", "sklearn", "plotly", "scipy.stats")),
        (
            "import calibo; calibo.minimize(lambda p: p['x'], {'x': (0.0, 1.0)}, 6, progress=False)",
            ("sqlalchemy", "rich", "plotly", "IPython"),
        ),
    ],
)
def test_nothing_heavy_is_loaded_before_it_is_used(code, heavy):
    code += f"; import sys; print([m for m in {heavy} if m in sys.modules])"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"


def test_modules_are_found_without_an_import():
    code = "import calibo; print(calibo.space.Float is calibo.Float, hasattr(calibo, 'nothing'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]


def test_the_newcomers_script_runs():
    script = ROOT / "examples" / "newcomer.py"
    assert len(script.read_text().splitlines()) <= 60
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, timeout=300)
    assert "name 'deeper' is not defined" in done.stdout
    assert "Recommendation(params={'temperature'" in done.stdout


def test_the_engine_runs_without_optuna():
    code = (
        "import sys; sys.modules['optuna'] = None\n"
        "from calibo import Float, Optimizer\n"
        "o = Optimizer({'x': Float(0, 1)}, seed=0)\n"
        "for _ in range(7): p = o.ask(); o.tell(p, p['x'])\n"
        "print(len(o.trials))"
    )
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert printed.strip() == "7"


NAMES = {"sklearn": "scikit-learn"}  # of a distribution, where it is not that of its package


def imported(folder):
    """The packages that modules import, wherever they stand."""
    found = set()
    for file in folder.rglob("*.py"):
        if "peers" in file.parts:  # scripts that run in environments of their own
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            if isinstance(node, ast.ImportFrom) and not node.level:
                found.add((node.module or "").split(".")[0])
    return {NAMES.get(name, name) for name in found if name not in sys.stdlib_module_names}


def declared(file):
    project = tomllib.loads(file.read_text())["project"]
    wanted = [*project["dependencies"], *(w for extra in project["optional-dependencies"].values() for w in extra)]
    return {re.split(r"[\s\[<>=!~;]", each, maxsplit=1)[0] for each in wanted} | {project["name"]}


def test_every_package_that_is_imported_is_declared():
    assert imported(ROOT / "src") <= declared(ROOT / "pyproject.toml")
    bench = {name.replace("calibo_bench", "calibo-bench") for name in imported(ROOT / "bench" / "src")}
    assert {"xgboost-cpu" if name == "xgboost" else name for name in bench} <= declared(
        ROOT / "bench" / "pyproject.toml"
    )


def test_only_optuna_five_is_promised():
    assert "optuna>=5,<6" in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]


def test_importing_the_commands_changes_no_stream():
    code = "import sys; before = sys.stdout.errors; import calibo.cli.terminal; print(before == sys.stdout.errors)"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "True"


def test_caches_hand_out_nothing_that_can_be_changed():
    cube = Cube((Axis(), Axis("categorical", 3), Axis("ordered", 5)))
    arrays = [cube.free, cube.categorical, cube.discrete, *pairs(5), sobol_points(2, 0, 4, 0), CalibrationMap().slopes]
    arrays.append(CalibrationMap(np.array([0.0, 1.0]), np.array([0.0, 2.0])).slopes)
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[-1]
