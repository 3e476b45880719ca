"""Fixtures that every test file shares: a seed, child processes, PyTorch where it is installed."""

from __future__ import annotations

import faulthandler
import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

# pytest's importlib mode leaves sys.path alone; this makes tests/helpers importable and nothing
# else: the checkout itself stays invisible, so that the installed package is what is tested.
sys.path.insert(0, str(Path(__file__).parent / "helpers"))

import properties
import tiers
from skips import LONG, summary
from torch_errors import errors

# What a child process may not inherit: both change which kernel OpenBLAS runs.
BLAS_VARIABLES = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", type=int, default=20, help="seed of every random test")
    parser.addoption(
        "--all",
        action="store_const",
        const="all",
        dest="tier",
        help="run every test; without it, a path or -m, the quick ones run",
    )
    parser.addoption(
        "--long-cases",
        type=int,
        default=0,
        help="cases of the long properties, seeded by --seed; 0, the default, leaves them out",
    )
    parser.addoption(
        "--renew-errors",
        action="store_true",
        help="write PyTorch's errors into helpers/torch_errors.json, as it raises them",
    )
    parser.addoption(
        "--exact-scratch",
        action="store_true",
        help="take results and scratch of exactly the size asked for, for a sanitizer to watch",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Assign the tiers; leave out the long properties, and what is not quick in a quick run."""
    tiers.assign(items)
    left_out = []
    if not config.getoption("--long-cases"):
        left_out += [item for item in items if item.get_closest_marker("long")]
    if config.getoption("tier") == "quick":
        left_out += [item for item in items if not item.get_closest_marker("quick")]
    if left_out:
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]
        config.hook.pytest_deselected(items=list(gone))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect tests without the garbage collector, which took two fifths of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Have the garbage collector pass over 20,000 tests: `pytest --durations=20` shows why."""
    _pass_over_what_stays()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Have it pass over what a file of tests imported, PyTorch for one, once the file has ended."""
    yield
    if nextitem is not None and nextitem.path != item.path:
        _pass_over_what_stays()


def _pass_over_what_stays() -> None:
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which tests did not run, why, and by which command they do."""
    stats = terminalreporter.stats
    reasons = [
        report.longrepr[2] for report in stats.get("skipped", ()) if type(report.longrepr) is tuple
    ]
    left_out = stats.get("deselected", ())
    is_quick = terminalreporter.config.getoption("tier") == "quick"
    if not is_quick:
        reasons += [LONG for item in left_out if item.get_closest_marker("long")]
    if reasons:
        terminalreporter.section(f"{len(reasons)} tests did not run", sep="-")
        for line in summary(reasons):
            terminalreporter.write_line(line)
    if is_quick:
        terminalreporter.section("the quick run", sep="-")
        for line in tiers.summary(left_out):
            terminalreporter.write_line(line)


def pytest_configure(config: pytest.Config) -> None:
    for name, about in tiers.MARKERS.items():
        config.addinivalue_line("markers", f"{name}: {about}")
    # In a process of pytest-xdist the option is the controller's: there all paths seem to be named.
    if config.option.tier is None:
        is_named = config.option.markexpr or config.args_source is config.ArgsSource.ARGS
        config.option.tier = "all" if is_named or config.option.long_cases else "quick"
    is_quick = config.option.tier == "quick" or "quick" in config.option.markexpr
    properties.settings.load_profile("quick" if is_quick else "full")
    os.environ.pop("COLUMNS", None)  # pytest-xdist sets it, and what is printed would be cut
    faulthandler.enable()
    if config.getoption("--exact-scratch"):
        make_scratch_exact()
    if config.getoption("--renew-errors"):
        errors.renew()


def pytest_sessionfinish() -> None:
    errors.save()


def make_scratch_exact() -> None:
    """Have every call allocate its memory, no byte more than it asked for, and free it."""
    from convcore.engine.runtime import memory

    memory.empty = np.empty
    memory.take = lambda n_bytes: np.empty(n_bytes, np.uint8)
    memory.give = lambda block: None


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """The number behind every draw: --seed on the command line."""
    return request.config.getoption("--seed")


@pytest.fixture
def rng(seed: int) -> np.random.Generator:
    """A generator of its own for each test, so that tests do not depend on their order."""
    return np.random.default_rng(seed)


@pytest.fixture(autouse=True)
def no_interception() -> Iterator[None]:
    """Undo what the first subclass of Tensor does to the package: other tests look at it bare."""
    yield
    if "convcore.overrides" in sys.modules:
        sys.modules["convcore.overrides"].uninstall()


@pytest.fixture
def torch() -> object:
    """PyTorch, or a skip."""
    return pytest.importorskip("torch")


@pytest.fixture(params=["convcore", "torch"])
def lib(request: pytest.FixtureRequest) -> object:
    """Each library in turn, for tests of what both must do; a skip where PyTorch is missing."""
    return pytest.importorskip(request.param)


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    """convcore's set_num_threads; the number that was found is set again afterwards."""
    import convcore

    found = convcore.get_num_threads()
    yield convcore.set_num_threads
    convcore.set_num_threads(found)


def child_environment(coretype: str | None) -> dict[str, str]:
    """This environment with OpenBLAS free to choose its kernel, or held to ``coretype``."""
    environment = {k: v for k, v in os.environ.items() if k not in BLAS_VARIABLES}
    if coretype is not None:
        environment["OPENBLAS_CORETYPE"] = coretype
    environment["PYTHONFAULTHANDLER"] = "1"
    return environment


@pytest.fixture
def run_child() -> Callable[..., str]:
    """Return run(program, *arguments, coretype=None, timeout=120) -> what the child printed.

    The program runs in a fresh interpreter of the same installation.  A child that fails or hangs
    fails the test, with its traceback in the message.
    """

    def run(program: str, *arguments: str, coretype: str | None = None, timeout: int = 120) -> str:
        command = [sys.executable, "-P", "-W", "error", "-c", program, *arguments]
        try:
            done = subprocess.run(
                command,
                env=child_environment(coretype),
                capture_output=True,
                text=True,
                timeout=timeout,
            )
        except subprocess.TimeoutExpired as error:
            pytest.fail(
                f"the child hung for {timeout} s; it had written: {(error.stderr or b'')[-3000:]!r}"
            )
        if done.returncode:
            pytest.fail(f"the child ended with {done.returncode}:\n{done.stderr[-8000:]}")
        return done.stdout

    return run
