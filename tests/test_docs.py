"""Pages: links lead somewhere, and Python blocks run."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "bench" / "README.md", *(ROOT / "docs").rglob("*.md")]
GUIDES = [ROOT / "docs" / "guides" / name for name in ("strategies.md", "calibration.md")]


def anchors(page: Path) -> set[str]:
    """Of the headings, as GitHub names them."""
    heads = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        found = (page.parent / name).resolve() if name else page
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), target


def test_the_readme_is_read_in_one_sitting():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 130


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", [*PAGES[:1], *(ROOT / "docs").rglob("guides/*.md")], ids=lambda page: page.name)
def test_python_blocks_are_python(page):
    assert all(ast.parse(block) for block in blocks(page))


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.name)
def test_blocks_that_make_strategies_run(page):
    import calibo

    known = {"space": {"x": calibo.Float(0, 1)}}
    for block in blocks(page):
        if "study" not in block:
            exec(block, known)
    assert len(known) > 2, "some block has run"
