"""The bench measures calibo from outside: it uses what docs/api.md lists, and nothing else."""

import ast
import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import calibo
import calibo_bench

ROOT = Path(calibo_bench.__file__).parents[3]
SOURCES = [*(ROOT / "bench" / "src").rglob("*.py"), ROOT / "bench" / "picture.py"]


def public():
    """The names that the page lists, by module."""
    rows = re.findall(r"^\| `(calibo[\w.]*)` \| (.+) \|$", (ROOT / "docs" / "api.md").read_text(), re.MULTILINE)
    return {module: set(re.findall(r"`(\w+)`", names)) for module, names in rows}


PUBLIC = public()


@pytest.mark.parametrize("module", PUBLIC)
def test_what_is_listed_is_there(module):
    assert PUBLIC[module] <= set(dir(import_module(module)) if module != "calibo" else calibo.__all__)
    assert not any(name.startswith("_") for name in PUBLIC[module])


def test_everything_on_top_is_listed():
    assert PUBLIC["calibo"] == set(calibo.__all__)


def test_the_bench_imports_only_what_is_public():
    reached = []
    for file in SOURCES:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "calibo":
                names = {alias.name for alias in node.names} - PUBLIC.get(node.module, set())
                reached += [f"{file.relative_to(ROOT)}: {node.module}.{name}" for name in sorted(names)]
            if isinstance(node, ast.Import):
                reached += [f"{file.name}: {a.name}" for a in node.names if a.name.startswith("calibo.")]
            whole = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "calibo"
            if whole and node.attr not in {*PUBLIC["calibo"], "__version__", "__file__"}:
                reached.append(f"{file.relative_to(ROOT)}:{node.lineno}: calibo.{node.attr}")
            if isinstance(node, ast.Import):
                reached += [
                    f"{file.name}: {a.name} as {a.asname}" for a in node.names if a.name == "calibo" and a.asname
                ]
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
                called = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
                words = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
                hidden = called in ("import_module", "__import__") and any(w.split(".")[0] == "calibo" for w in words)
                if hidden or (called in ("getattr", "setattr") and any(w.startswith("_") for w in words)):
                    reached.append(f"{file.relative_to(ROOT)}:{node.lineno}: {called}")
            private = isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__")
            if private and not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
                reached.append(f"{file.relative_to(ROOT)}:{node.lineno}: {node.attr}")
    assert not reached


def test_both_have_one_version():
    declared = tomllib.loads((ROOT / "bench" / "pyproject.toml").read_text())["project"]
    assert declared["version"] == calibo.__version__
    (pinned,) = [wanted for wanted in declared["dependencies"] if wanted.startswith("calibo")]
    assert pinned.endswith(f"=={calibo.__version__}")
    assert "Private :: Do Not Upload" in declared["classifiers"]
