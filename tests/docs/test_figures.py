"""The figures of the site's explanations and how-tos can be drawn, and each is on a page."""

import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
ROOMS = ("explanations", "howto")
FIGURES = sorted(script for room in ROOMS for script in (DOCS / room).glob("figures/*.py"))


@pytest.mark.parametrize("script", FIGURES, ids=lambda script: script.stem)
def test_figure_is_drawn(script, monkeypatch, threads):
    pytest.importorskip("matplotlib")
    import matplotlib.pyplot as plt

    plt.switch_backend("agg")
    monkeypatch.setattr(plt, "show", lambda: None)
    monkeypatch.chdir(script.parent)
    try:
        runpy.run_path(str(script))
        assert plt.get_fignums(), "nothing was drawn"
        for number in plt.get_fignums():
            plt.figure(number).canvas.draw()
    finally:
        plt.close("all")


def test_each_figure_is_on_a_page_and_each_page_has_its_figures():
    drawn = {script.relative_to(DOCS).as_posix() for script in FIGURES}
    pages = [page for room in ROOMS for page in (DOCS / room).glob("*.rst")]
    lines = [line for page in pages for line in page.read_text("utf-8").splitlines()]
    shown = {line.split()[-1] for line in lines if line.startswith(".. plot::")}
    assert drawn == shown
