"""Every test and script that a page names is there: a promise without one is none."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    page
    for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("docs/**/*.rst"))
    if page.name != "CHANGELOG.md"
)
NAMED = re.compile(r"\b((?:tests|benchmarks)/[\w/]+\.py)(?:::(\w+))?")
ALONE = re.compile(r"`(test_\w+)`")


def functions(file: Path) -> set[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_what_the_page_names_is_there(page):
    text = page.read_text(encoding="utf-8")
    named = NAMED.findall(text)
    missing = [file for file, _ in named if not (ROOT / file).is_file()]
    assert missing == []
    assert [
        (file, name) for file, name in named if name and name not in functions(ROOT / file)
    ] == []
    alone = set(ALONE.findall(text))
    if alone:
        every = {name for file in ROOT.glob("tests/**/test_*.py") for name in functions(file)}
        assert alone <= every


def test_the_pages_of_promises_name_tests():
    counts = {page.name: len(NAMED.findall(page.read_text(encoding="utf-8"))) for page in PAGES}
    assert counts["determinism.md"] >= 20 and counts["SECURITY.md"] >= 5
