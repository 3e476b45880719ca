"""Import time: `import convcore` compared with the imports that it depends on.

Processor time, of which other programs take none: the median of 15 rounds of a fresh process each,
of the time over that of the same round, in which a slow moment of the machine meets them all.
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
start = time.process_time()
exec(sys.argv[1])
print(time.process_time() - start)
"""


def main() -> int:
    """Measure and print all; the larger of ours counts."""
    check = check_requested(__doc__)
    rounds = [
        {statement: float(run_child(_TIMED, statement)) for statement in (FLOOR, *OURS)}
        for _ in range(ROUNDS)
    ]
    for statement in (FLOOR, *OURS):
        seconds = statistics.median(one[statement] for one in rounds)
        print(f"{1e3 * seconds:8.1f} ms of processor time  {statement}")
    codes = [
        conclude(
            statement,
            statistics.median(one[statement] / one[FLOOR] for one in rounds),
            *(LIMIT, " x", check),
        )
        for statement in OURS
    ]
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
