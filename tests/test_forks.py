"""Forks while other threads are anywhere in the library: no child hangs."""

import importlib
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from forks import in_fork

import convcore
from convcore import _forks
from convcore.engine.runtime.locks import process_lock

PACKAGE = Path(convcore.__file__).parent
SCRIPT = Path(__file__).resolve().parent / "fuzz" / "forking_threads.py"

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


@pytest.mark.subprocess
@pytest.mark.parametrize("options", ["--count=12", "--imports=4"])
def test_children_of_random_moments_go_on(options):
    command = [sys.executable, str(SCRIPT), options, "--seed=3"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failed" in done.stdout


@pytest.fixture
def elsewhere():
    """Run a function in another thread until the test ends."""
    end, threads = threading.Event(), []

    def start(function):
        begun = threading.Event()
        thread = threading.Thread(target=function, args=(begun, end))
        threads.append(thread)
        thread.start()
        assert begun.wait(20)
        return thread

    yield start
    end.set()
    for thread in threads:
        thread.join()


def test_a_fork_waits_until_nothing_is_half_changed(elsewhere):
    lock, values = process_lock(), [0, 0]

    def change(begun, end):
        while not end.is_set():
            with lock:
                values[0] += 1
                time.sleep(1e-4)
                values[1] += 1
            begun.set()
            time.sleep(1e-4)

    elsewhere(change)
    for _ in range(10):
        assert in_fork(lambda: str(values[0] - values[1])) == "0"


def test_a_lock_that_is_never_released_is_free_in_the_child(elsewhere, monkeypatch):
    monkeypatch.setattr(_forks, "MAX_WAIT", 0.1)
    held, free = process_lock(), process_lock()

    def hold(begun, end):
        with held:
            begun.set()
            end.wait()

    elsewhere(hold)
    assert in_fork(lambda: str([lock.acquire(timeout=5) for lock in (held, free)])) == str(
        [True] * 2
    )
    assert not held.acquire(blocking=False) and free.acquire(blocking=False)
    free.release()


def test_who_holds_a_lock_may_fork():
    lock = process_lock()
    with lock:
        assert in_fork(lambda: str(lock.acquire(blocking=False))) == "True"
    assert in_fork(lambda: str(lock.acquire(blocking=False))) == "True"


def test_two_threads_may_fork_at_once(elsewhere):
    convcore.rand(1)  # loads what each child would
    found = []

    def fork(begun, end):
        begun.set()
        while not end.is_set():
            found.append(in_fork(lambda: str(len(convcore.rand(3)))))

    elsewhere(fork)
    found += [in_fork(lambda: str(len(convcore.rand(3)))) for _ in range(10)]
    assert set(found) == {"3"}


def test_a_child_draws_what_its_parent_would(elsewhere):
    generator = convcore.Generator().manual_seed(0)

    def draw(begun, end):
        while not end.is_set():
            convcore.rand(100_000, generator=generator)
            begun.set()

    elsewhere(draw)
    for _ in range(5):
        state = in_fork(lambda: str(generator.get_state()[:24].tolist()))
        assert state.startswith("[")
        assert (
            in_fork(lambda: str(convcore.rand(3, generator=generator).shape)) == "torch.Size([3])"
        )


def test_numpys_default_generator_is_usable_in_the_child(elsewhere):
    import numpy as np

    def draw(begun, end):
        while not end.is_set():
            np.random.standard_normal(1_000_000)
            begun.set()

    elsewhere(draw)
    for _ in range(5):
        assert in_fork(lambda: str(len(np.random.standard_normal(3)))) == "3"


def test_a_module_that_was_half_imported_is_imported_anew(tmp_path, monkeypatch, elsewhere):
    monkeypatch.setattr(_forks, "MAX_WAIT", 0.1)
    (tmp_path / "half.py").write_text("import convcore\nconvcore.begun(__name__)\nvalue = 7\n")
    monkeypatch.setattr(convcore, "__path__", [*convcore.__path__, str(tmp_path)])
    parent = os.getpid()

    def wait(begun, end):
        def function(name):
            begun.set()
            if os.getpid() == parent:
                end.wait()

        return function

    def load(begun, end):
        monkeypatch.setattr(convcore, "begun", wait(begun, end), raising=False)
        importlib.import_module("convcore.half")

    def compute():
        return str(importlib.import_module("convcore.half").value)

    elsewhere(load)
    assert in_fork(compute) == "7"


def test_every_lock_of_the_package_is_known_to_forks():
    lock = re.compile(r"\b(threading\.)?(R?Lock|Condition|Semaphore)\(\)|cached_property")
    found = {
        file.relative_to(PACKAGE).as_posix()
        for file in PACKAGE.rglob("*.py")
        if lock.search(file.read_text(encoding="utf-8"))
    }
    # A profile computes its rows once, in the thread that reads them.
    assert found == {"_forks.py", "inspection/profiling/profile.py"}
