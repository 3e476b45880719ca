"""Workers for every instruction set, the cases they check, and what they found."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from convcore.bench.process import ISAS, WorkerError, WorkerProcess, worker_environment
from convcore.verify.cases import Case, draw_cases

# After so many failures of one instruction set, more would say no more.
_MOST_FAILURES = 10
# One case in so many is computed in a forked child as well.
_FORKED = 8
# Threads that BLAS is set up for in the second process; in the first it is one for each CPU.
_ALONE = 1


class Failure(NamedTuple):
    """A wrong result: the instruction set, the case, and what is wrong."""

    isa: str
    case: str
    what: str

    @property
    def command(self) -> str:
        """The command line that shows it again."""
        return f"convcore verify --isa {self.isa} --case '{self.case}'"


@dataclass
class Findings:
    """What the checks of one instruction set found, so far."""

    isa: str
    cases: int = 0
    results: int = 0
    forks: int = 0
    largest: dict[str, float] = field(default_factory=dict)  # errors in eps, by algorithm and sign
    failures: list[Failure] = field(default_factory=list)

    def add(self, case: str, answer: dict[str, Any], others: dict[str, dict[str, str]]) -> None:
        """Take in one case's errors, and digests by where they were computed."""
        self.cases += 1
        self.results += len(answer["errors"])
        for pass_name, algorithm, error, allowed in answer["errors"]:
            if error > allowed:
                self.fail(case, f"{algorithm}, {pass_name}: error {error:.3g} eps, not {allowed:g}")
            row = f"{algorithm}, one sign" if " positive " in case else algorithm
            self.largest[row] = max(error, self.largest.get(row, 0.0))
        digests = {f"on {n} threads": found for n, found in answer["digests"].items()} | others
        (_, first), *rest = digests.items()
        for (where, found), name in itertools.product(rest, first):
            if found.get(name) != first[name]:
                self.fail(case, f"{name}: other bits {where}")

    def fail(self, case: str, what: str) -> None:
        """Record a failure."""
        self.failures.append(Failure(self.isa, case, what))


def instruction_sets() -> list[str]:
    """Return the names of those that this build and this processor have, the best first."""
    with _worker("native", os.cpu_count() or 1) as worker:
        return [name for name in reversed(worker.ask("describe")["isas"]) if name in ISAS]


def verify(isa: str, seconds: float, seed: int, progress: Callable[[Findings], None]) -> Findings:
    """Check drawn cases by one instruction set until the time is over; at least one case."""
    end = time.monotonic() + seconds

    def in_time() -> Iterator[Case]:
        for count, case in enumerate(draw_cases(seed)):
            if count and time.monotonic() > end:
                return
            yield case

    return verify_cases(isa, in_time(), progress)


def verify_cases(
    isa: str, cases: Iterable[Case], progress: Callable[[Findings], None] = lambda _: None
) -> Findings:
    """Check cases by one instruction set, each in two processes that set up BLAS differently.

    A process that dies is a failure of the case that it had, and is started again.
    """
    findings = Findings(isa)
    with ExitStack() as stack:
        pair: list[WorkerProcess] = []
        for case in cases:
            if len(findings.failures) >= _MOST_FAILURES:
                break
            if not pair:
                pair = [stack.enter_context(_worker(isa, n)) for n in (os.cpu_count() or 1, _ALONE)]
            try:
                _check(findings, case.text, *pair)
            except WorkerError as error:
                findings.fail(case.text, str(error))
                stack.close()
                pair = []
            progress(findings)
    return findings


def _check(findings: Findings, case: str, worker: WorkerProcess, alone: WorkerProcess) -> None:
    """Check one case, first in the process whose BLAS has all CPUs."""
    answer = worker.ask("check", case=case)
    others = {"where BLAS was set up for one thread": alone.ask("digests", case=case)}
    if hasattr(os, "fork") and findings.cases % _FORKED == 0:
        findings.forks += 1
        others["in a forked child"] = worker.ask("digests_in_child", case=case)
    findings.add(case, answer, others)


def _worker(isa: str, threads: int) -> WorkerProcess:
    environment = worker_environment(os.environ, threads, isa)
    return WorkerProcess("worker", threads, environment, "convcore.verify.worker")
