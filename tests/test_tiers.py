"""The table of tiers names tests that are there; the quick run keeps the first rows of products."""

import re
from pathlib import Path
from types import SimpleNamespace

import properties
import pytest
import tiers
from hypothesis import settings

ROOT = Path(__file__).resolve().parents[1]
PRODUCT = f"{tiers.PRODUCTS[0]}[a-b]"


class Item:
    """A test as pytest collects it: its path, fixtures, parameters and marks."""

    def __init__(self, nodeid="tests/test_a.py::test_b", fixtures=(), names=(), **params):
        self.nodeid, self.fixturenames = nodeid, fixtures
        self.marks = [pytest.mark.parametrize(name, ()).mark for name in names]
        indices = {name: value for name, value in params.items() if isinstance(value, int)}
        self.callspec = SimpleNamespace(params=params, indices=indices)

    def add_marker(self, name):
        self.marks.append(getattr(pytest.mark, name).mark)

    def iter_markers(self, name):
        return (mark for mark in self.marks if mark.name == name)

    def get_closest_marker(self, name):
        return next(self.iter_markers(name), None)

    @property
    def tiers(self):
        return {mark.name for mark in self.marks} - {"parametrize"}


@pytest.mark.parametrize(
    "path", [*tiers.PRODUCTS, *(path for tier in tiers.TIERS.values() for path in tier.paths)]
)
def test_paths_of_the_table_are_there(path):
    file, _, test = path.partition("::")
    assert (ROOT / file).exists()
    if test:
        name = test.partition("[")[0]
        assert re.search(rf"^def {name}", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize(
    "item, expected",
    [
        (Item(), {"quick"}),
        (Item("tests/fuzz/test_a.py::test_b"), {"fuzz"}),
        (Item(fixtures=("run_child",)), {"subprocess"}),
        (Item(fixtures=("torch",)), {"torch", "quick"}),
        (Item(fixtures=("lib",), lib="torch"), {"torch", "quick"}),
        (Item(names=["a", "b"], a=3, b=1), {"quick"}),
        (Item(PRODUCT, names=["a"], a=3), {"quick"}),
        (Item(PRODUCT, names=["a", "b"], a=3, b=0), {"quick"}),
        (Item(PRODUCT, names=["a", "b"], a=3, b=1), {"rows"}),
        (Item(PRODUCT, names=["a, b"], a=3, b=3), {"quick"}),
        (Item(PRODUCT, fixtures=("torch",), names=["a", "b"], a=2, b=1), {"torch", "rows"}),
    ],
)
def test_each_test_has_its_tiers(item, expected):
    tiers.assign([item])
    assert item.tiers == expected


def test_the_last_lines_say_what_was_left_out():
    items = [
        Item(),
        Item("tests/fuzz/test_a.py::test_b"),
        Item(PRODUCT, names=["a", "b"], a=1, b=1),
    ]
    tiers.assign(items)
    first, last = tiers.summary(items)
    assert first == "left out: 1 fuzz, 1 rows"
    assert last.startswith("pytest --all runs every test") and "fuzz" in last
    assert list(tiers.summary([])) == [last]


def test_a_profile_scales_the_number_of_examples():
    found = settings.get_current_profile_name()
    try:
        numbers = []
        for name in ("quick", "full", "nightly"):
            settings.load_profile(name)
            numbers.append([properties.examples(n).max_examples for n in (4, 50, 2000)])
    finally:
        settings.load_profile(found)
    assert numbers == [[1, 5, 200], [4, 50, 2000], [40, 500, 20000]]
