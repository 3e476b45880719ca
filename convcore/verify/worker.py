"""The process in which cases are checked: ``python -m convcore.verify.worker NAME THREADS``."""

from __future__ import annotations

from typing import Any

from convcore import engine
from convcore.bench.process import serve_standard_streams
from convcore.engine.runtime import _isa
from convcore.verify import checks
from convcore.verify.cases import parse_case


class Worker:
    """One instruction set and one setting of BLAS; public methods are commands."""

    def __init__(self, threads: int) -> None:
        engine.set_num_threads(threads)

    def describe(self) -> dict[str, Any]:
        """Return the instruction set in use, and those that this build and processor have."""
        return {"isa": _isa.name(), "isas": list(_isa.names())}

    def digests(self, case: str) -> dict[str, str]:
        """Return a digest of each pass by each algorithm, computed on one thread."""
        return checks.digests(parse_case(case))

    def digests_in_child(self, case: str) -> dict[str, str]:
        """Return the same of a forked child."""
        return checks.digests_in_child(parse_case(case))

    def check(self, case: str) -> dict[str, Any]:
        """Return (pass, algorithm, error, allowed) in eps, and digests by number of threads."""
        parsed = parse_case(case)
        return {
            "errors": [
                (*found, checks.allowed_eps(parsed, *found[:2])) for found in checks.errors(parsed)
            ],
            "digests": {str(n): checks.digests(parsed, n) for n in checks.THREADS},
        }


if __name__ == "__main__":
    serve_standard_streams(lambda _, threads: Worker(threads))
