"""The self-check's workers: what they find, and that a worker's end is a failure, not the end."""

import pytest

from convcore.bench.process import WorkerError
from convcore.verify import runner
from convcore.verify.cases import parse_case

CASE = "1,4,6,6,8,3,1,1,1,1 float32 contiguous/channels_last/strided normal 3"
ANSWER = {
    "errors": [["forward", "im2col", 1.5, 4.0], ["forward", "winograd", 13.0, 12.0]],
    "digests": {"1": {"forward im2col": "a"}, "2": {"forward im2col": "a"}},
}


def test_errors_and_other_bits_are_failures_with_their_command():
    findings = runner.Findings("avx2")
    findings.add(CASE, ANSWER, {"in a forked child": {"forward im2col": "b"}, "elsewhere": {}})
    assert [failure.what for failure in findings.failures] == [
        "winograd, forward: error 13 eps, not 12",
        "forward im2col: other bits in a forked child",
        "forward im2col: other bits elsewhere",
    ]
    assert findings.failures[0].command == f"convcore verify --isa avx2 --case '{CASE}'"
    assert findings.largest == {"im2col": 1.5, "winograd": 13.0}


class Workers:
    """Stands in for processes, of which the first one dies at its second case."""

    def __init__(self):
        self.made, self.asked = 0, 0

    def __call__(self, isa, threads):
        self.made += 1
        return self

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass

    def ask(self, command, case):
        self.asked += command == "check"
        if command == "check" and self.asked == 2:
            raise WorkerError("worker", "its worker ended with exit code -11")
        return ANSWER | {"errors": []} if command == "check" else {"forward im2col": "a"}


def test_a_dead_worker_is_a_failure_of_its_case_and_is_replaced(monkeypatch):
    workers = Workers()
    monkeypatch.setattr(runner, "_worker", workers)
    findings = runner.verify_cases("base", [parse_case(CASE)] * 3)
    assert [failure.what for failure in findings.failures] == [
        "worker: its worker ended with exit code -11"
    ]
    assert (findings.cases, workers.made) == (2, 4)


@pytest.mark.subprocess
def test_real_workers_find_nothing_wrong():
    isas = runner.instruction_sets()
    assert isas[-1] == "base"
    findings = runner.verify_cases("base", [parse_case(CASE)])
    assert findings.failures == []
    assert (findings.cases, findings.forks) == (1, 1)
    assert findings.results >= 6
