"""The how-to's programs that run a net in other processes label as one process does."""

import importlib.util
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "many_machines.rst"

pytestmark = pytest.mark.subprocess


@pytest.fixture
def folder(tmp_path, rng):
    """Return a folder with the page's programs and 20 images: two batches, and a smaller one."""
    image = pytest.importorskip("PIL.Image")
    for name, text in programs().items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "images").mkdir()
    for number in range(20):
        pixels = rng.integers(0, 256, (4 + number, 30, 3), np.uint8) // (1 + number % 3)
        image.fromarray(pixels).save(tmp_path / "images" / f"{number:02d}.png")
    return tmp_path


def programs():
    parts = re.findall(r":caption: (\S+)\n\n((?: {4}.*\n|\n)+)", PAGE.read_text("utf-8"))
    return {name: textwrap.dedent(text) for name, text in parts}


def run(folder, *arguments):
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=240,
        env=os.environ | {"OMP_WAIT_POLICY": "passive"}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def labelled_here(folder):
    program = (
        "import labels, pathlib; files = sorted(pathlib.Path('images').iterdir()); "
        "net = labels.make_net(); "
        "[print(file.name, text) for some in labels.batches(files) "
        "for file, text in zip(some, labels.label(net, some))]"
    )
    return run(folder, "-c", program)


def test_joblib_labels_as_one_process_does(folder):
    pytest.importorskip("joblib")
    found = run(folder, "with_joblib.py", "images")
    assert found == labelled_here(folder) and len(found) == 20
    assert len({line.split()[2] for line in found}) > 10  # and say something of each image


# What the page says of joblib's workers, and of dask's, those that come later too.
COUNTS = {
    "joblib": """
        import joblib, convcore
        from convcore.engine.runtime.threads import openmp
        if __name__ == "__main__":
            with joblib.parallel_config("loky", n_jobs=2, inner_max_num_threads=3):
                work = [joblib.delayed(convcore.get_num_threads)() for _ in range(4)]
                print({*joblib.Parallel()(work)} == {3 if openmp() else 1})
    """,
    "distributed": """
        import functools, convcore
        from convcore.engine.runtime.threads import openmp
        from distributed import Client, LocalCluster
        if __name__ == "__main__":
            with LocalCluster(2, threads_per_worker=1) as cluster, Client(cluster) as client:
                print({*client.run(convcore.get_num_threads).values()} == {1})
                client.register_worker_callbacks(functools.partial(convcore.set_num_threads, 3))
                cluster.scale(3)
                client.wait_for_workers(3)
                counts = client.run(convcore.get_num_threads)
                print(len(counts) == 3 and {*counts.values()} == {3 if openmp() else 1})
                work = client.submit(convcore.get_num_threads, pure=False)
                print(work.result() == (3 if openmp() else 1))
    """,
}


@pytest.mark.parametrize("package", COUNTS)
def test_workers_have_the_threads_that_they_are_given(package, tmp_path):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"could not import {package!r}")
    (tmp_path / "counts.py").write_text(textwrap.dedent(COUNTS[package]), encoding="utf-8")
    assert {*run(tmp_path, "counts.py")} == {"True"}


def test_dask_labels_as_one_process_does(folder):
    pytest.importorskip("distributed")
    assert run(folder, "with_dask.py", "images") == labelled_here(folder)
