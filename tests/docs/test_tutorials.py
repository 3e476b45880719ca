"""The site's tutorials run from the first line to the last, without a warning."""

import runpy
import sys
from pathlib import Path

import pytest

TUTORIALS = sorted((Path(__file__).parents[2] / "docs" / "tutorials").glob("*.py"))


@pytest.mark.parametrize("script", TUTORIALS, ids=lambda script: script.stem)
def test_tutorial_runs(script, tmp_path, monkeypatch, threads):
    for library in ("sklearn", "matplotlib", "onnx", "ml_dtypes"):
        pytest.importorskip(library)
    import matplotlib
    import matplotlib.pyplot as plt

    for name in [name for name in sys.modules if name.partition(".")[0] == "torch"]:
        monkeypatch.delitem(sys.modules, name)  # where PyTorch is loaded, nothing takes its place
    monkeypatch.chdir(tmp_path)
    with matplotlib.rc_context({"backend": "agg"}):
        plt.switch_backend("agg")
        monkeypatch.setattr(plt, "show", lambda: None)
        try:
            runpy.run_path(str(script), run_name="__main__")
            for number in plt.get_fignums():
                plt.figure(number).canvas.draw()
            assert plt.get_fignums(), "a tutorial without a picture"
        finally:
            plt.close("all")


def test_each_tutorial_is_run():
    assert TUTORIALS, "no tutorial was found"
