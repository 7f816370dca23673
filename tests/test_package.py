"""What a user gets by installing and importing."""

import subprocess
import sys

import calibo


def test_every_public_name_exists():
    for name in calibo.__all__:
        assert getattr(calibo, name) is not None


def test_importing_loads_nothing_heavy():
    heavy = ("optuna", "torch", "sklearn", "plotly", "scipy.stats")
    code = f"import sys, calibo; print([m for m in {heavy} if m in sys.modules])"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"


def test_the_engine_runs_without_optuna():
    code = (
        "import sys; sys.modules['optuna'] = None\n"
        "from calibo import Float, Optimizer\n"
        "o = Optimizer({'x': Float(0, 1)}, seed=0)\n"
        "for _ in range(7): p = o.ask(); o.tell(p, p['x'])\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
