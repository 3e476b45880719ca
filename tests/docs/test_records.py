"""What was measured becomes pages of the site, one for each record."""

import importlib
import re
from pathlib import Path

import pytest

RECORDS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def records(monkeypatch):
    monkeypatch.syspath_prepend(RECORDS.parent / "docs" / "_ext")
    return importlib.import_module("records")


def test_every_record_is_a_page_that_starts_with_its_command(records):
    pages = records.pages()
    written = {path.stem for path in RECORDS.glob("*.md")} - {"README"}
    assert written | {"how"} == pages.keys() and written >= {"nets", "results"}
    for name in written:
        command = records.command_of(pages[name])
        assert command.startswith(("convcore ", "python ")), (name, command)


def test_a_new_record_becomes_a_page(records, tmp_path):
    (tmp_path / "new.md").write_text("# New\n\n    convcore bench --new\n")
    pages = records.pages(tmp_path)
    assert list(pages) == ["new"]
    assert records.command_of(pages["new"]) == "convcore bench --new"


def test_no_two_pages_of_the_site_have_the_same_title(records):
    docs = RECORDS.parent / "docs"
    texts = [p.read_text("utf-8") for p in docs.rglob("*.rst") if "generated" not in p.parts]
    titles = [text.partition("\n")[0] for text in texts]
    titles += [re.search("^# (.*)", text, re.MULTILINE)[1] for text in records.pages().values()]
    assert len(titles) == len(set(titles))
