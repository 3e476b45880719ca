"""Import time: `import convcore` compared with the imports that it depends on.

Median of 15 fresh processes each, in turn, so that a slow moment of the machine meets them all.
"""

from __future__ import annotations

import statistics
import sys

from children import check_requested, conclude, run_child

ROUNDS = 15
LIMIT = 1.0
FLOOR = "import numpy, scipy.linalg.cython_blas"
OURS = ("import convcore", "import convcore.engine", "import convcore.nn, convcore.optim")

_TIMED = """
import sys, time
start = time.perf_counter()
exec(sys.argv[1])
print(time.perf_counter() - start)
"""


def main() -> int:
    """Measure and print all; the larger of ours counts."""
    check = check_requested(__doc__)
    seconds: dict[str, list[float]] = {statement: [] for statement in (FLOOR, *OURS)}
    for _ in range(ROUNDS):
        for statement, samples in seconds.items():
            samples.append(float(run_child(_TIMED, statement)))
    medians = {statement: statistics.median(samples) for statement, samples in seconds.items()}
    for statement, median in medians.items():
        print(f"{1e3 * median:8.1f} ms  {statement}")
    codes = [
        conclude(statement, medians[statement] / medians[FLOOR], LIMIT, " x", check)
        for statement in OURS
    ]
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
