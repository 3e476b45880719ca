"""Mutation check of the quick run: how many small errors in the package do its tests find?

    python tests/mutants.py                         200 mutants of the Python modules
    python tests/mutants.py --compiled              16 of the kernels, built in a copy
    python tests/mutants.py --module autograd/saved --count 20 --seed 3 tests/autograd

A mutant is a function with one error: a reversed comparison or condition, - for +, a term or a
statement left out, a constant off by one (`helpers/mutations.py`). Tests are collected once. A
first process runs them without an error and records which tests reach which mutant. A fork for
each mutant then runs these tests until one fails: first those of the file named after the module,
then the fastest.
"""

from __future__ import annotations

import argparse
import faulthandler
import functools
import gc
import importlib
import importlib.util
import os
import pickle
import resource
import select
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path[0] = str(ROOT / "tests" / "helpers")

import mutations  # noqa: E402 - found by the line above

# Mutants that no test can tell from the original, and why.
EQUIVALENT = {
    "functions/windows/pooling.py: _stride: type(value) is not int and is_sequence(value) and "
    "(len(value) == 0) -> is_sequence(value) and len(value) == 0": "an int is not a sequence",
    "functions/normalization/normalization.py: _at_least_single: 2 -> 3": "no dtype has 3 bytes",
}
VERDICTS = ("killed", "timeout", "survived", "not reached", "equivalent")


class Session:
    """Plugin of pytest: runs the collected tests on one mutant after the other."""

    def __init__(self, mutants: list[mutations.Mutant], state: memoryview, limit: float) -> None:
        self.mutants, self.state, self.limit = mutants, state, limit
        self.outcomes: Counter[str] = Counter()  # reports of the running test
        self.verdicts: Counter[tuple[str, str]] = Counter()  # by group
        self.caches: list[functools._lru_cache_wrapper] = []

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        from hypothesis import Phase, settings

        phases = [Phase.explicit, Phase.generate]  # a failing example need not be minimal
        settings.register_profile("mutants", settings.default, phases=phases)
        settings.load_profile("mutants")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.outcomes[report.outcome] += 1

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.import_once()
        start = time.monotonic()
        recorded, code = self.fork(lambda: self.record(session.items), 3 * 3600)
        if recorded is None:
            raise RuntimeError(f"the tests without an error ended with exit code {code}")
        n_passed = sum(passed for passed, _, _ in recorded)
        print(f"{n_passed} of {len(recorded)} tests passed, {time.monotonic() - start:.0f} s")
        for k, mutant in enumerate(self.mutants, 1):
            tests = sorted(
                (mutant.path.stem.strip("_") not in item.path.stem, seconds, index)
                for index, item in enumerate(session.items)
                for passed, seconds, reached in [recorded[index]]
                if passed and k in reached
            )
            verdict, detail = self.judge([session.items[index] for *_, index in tests], k)
            if verdict in ("survived", "not reached") and mutant.about in EQUIVALENT:
                verdict, detail = "equivalent", EQUIVALENT[mutant.about]
            self.verdicts[mutant.group, verdict] += 1
            print(f"{verdict:11} {mutant.line:4} {mutant.about}  [{detail}]", flush=True)
        self.print_table()
        return True

    def import_once(self) -> None:
        """Import before the forks, and find the caches of convcore's functions."""
        for mutant in self.mutants:
            if mutant.path.suffix == ".py":
                importlib.import_module(mutant.module)
        if importlib.util.find_spec("torch"):
            importlib.import_module("torch")
        gc.unfreeze()
        self.caches = [
            thing
            for thing in gc.get_objects()
            if type(thing) is functools._lru_cache_wrapper and "convcore" in thing.__module__
        ]
        gc.freeze()

    def print_table(self) -> None:
        print(f"\n{'':14}", *(f"{verdict:>11}" for verdict in VERDICTS))
        for group in dict.fromkeys(mutant.group for mutant in self.mutants):
            counts = [self.verdicts[group, verdict] for verdict in VERDICTS]
            print(f"{group:14}", *(f"{count:11}" for count in counts))
        n = Counter(verdict for _, verdict in self.verdicts.elements())
        n_killed, n_real = n["killed"] + n["timeout"], n.total() - n["equivalent"]
        print(f"{'all':14}", *(f"{n[verdict]:11}" for verdict in VERDICTS))
        print(f"killed: {n_killed} of {n_real}, {n_killed / max(n_real, 1):.1%}")

    def judge(self, items: list[pytest.Item], k: int) -> tuple[str, str]:
        """Return the verdict on a mutant, and the test that failed."""
        if not items:
            return "not reached", ""
        result, code = self.fork(lambda: self.run_until_failure(items, k), 30 * self.limit)
        if result is None:
            is_late = code in (-signal.SIGPROF, -signal.SIGKILL)
            return "timeout" if is_late else "killed", f"exit code {code}"
        n_run, failed = result
        return ("killed", failed) if failed else ("survived", f"{n_run} of {len(items)} tests")

    def run_item(self, item: pytest.Item, next_item: pytest.Item | None) -> tuple[bool, float]:
        """Run a test; return whether it passed, and its CPU seconds."""
        for cache in self.caches:
            cache.cache_clear()  # plans of earlier tests would keep a mutant from being reached
        self.outcomes.clear()
        start = time.process_time()
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=next_item)
        return set(self.outcomes) == {"passed"}, time.process_time() - start

    def record(self, items: list[pytest.Item]) -> list[tuple[bool, float, set[int]]]:
        """Run each test without an error: whether it passed, its time, the mutants it reached."""
        n, recorded = len(self.mutants) + 1, []
        for item, next_item in zip_longest(items, items[1:]):
            self.state[:n] = memoryview(bytes(4 * n)).cast("i")
            passed, seconds = self.run_item(item, next_item)
            recorded.append((passed, seconds, {k for k in range(1, n) if self.state[k]}))
        return recorded

    def run_until_failure(self, items: list[pytest.Item], k: int) -> tuple[int, str]:
        """Run tests on a mutant until one fails or time is up; return their number, and the one."""
        self.state[0] = k
        for n_run, (item, next_item) in enumerate(zip_longest(items, items[1:]), 1):
            # An error that makes a test endless: SIGPROF ends the process.
            signal.setitimer(signal.ITIMER_PROF, 5)
            passed, _ = self.run_item(item, next_item)
            if not passed:
                return n_run, item.nodeid
            if time.process_time() > self.limit:
                break
        return n_run, ""

    def fork(self, run: Callable[[], object], seconds: float) -> tuple[object, int]:
        """Call a function in a silent child; return its result, None if it died, and exit code."""
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, 1)
                os.dup2(null, 2)
                faulthandler.disable()  # it writes to the standard error of before
                resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
                with os.fdopen(writer, "wb") as file:
                    pickle.dump(run(), file)
                os._exit(0)
            finally:
                os._exit(1)
        os.close(writer)
        data, deadline = b"", time.monotonic() + seconds
        while select.select([reader], [], [], max(0, deadline - time.monotonic()))[0]:
            piece = os.read(reader, 1 << 20)
            data += piece
            if not piece:
                break
        else:
            os.kill(child, signal.SIGKILL)
        os.close(reader)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return (pickle.loads(data) if code == 0 else None), code


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0, help="seed of the draw of mutants")
    parser.add_argument("--count", type=int, help="mutants: 200 by default, 16 with --compiled")
    parser.add_argument("--module", default="", help="text in the path or description of a mutant")
    parser.add_argument("--compiled", action="store_true", help="mutants of the kernels")
    parser.add_argument("--limit", type=float, default=20, help="CPU seconds of tests per mutant")
    parser.add_argument("tests", nargs="*", help="paths of tests; the whole quick run by default")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        package = ROOT / "convcore"
        if args.compiled:
            package = mutations.copy_checkout(ROOT, Path(folder, "checkout"))
        sys.path.insert(0, str(package.parent))
        found = mutations.find(package, mutations.COMPILED if args.compiled else mutations.PYTHON)
        found = (mutant for mutant in found if args.module in mutant.about)
        mutants = mutations.draw(found, args.count or (16 if args.compiled else 200), args.seed)
        state = mutations.share_state(Path(folder, "state"))
        if args.compiled:
            mutations.build(mutants, package.parent)
        else:
            mutations.instrument(mutants)
        os.chdir(ROOT)
        options = ["-q", "-s", "-p", "no:cacheprovider", "-m", "quick", *args.tests]
        return pytest.main(options, plugins=[Session(mutants, state, args.limit)])


if __name__ == "__main__":
    sys.exit(main())
