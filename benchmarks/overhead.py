"""Call overhead: the time of a tiny engine.conv2d, 4 to 4 channels on 8 x 8."""

from __future__ import annotations

import sys

from children import check_requested, conclude, run_child

LIMIT = 8.0

_TIMED = """
import numpy as np

from convcore import engine
from convcore.bench.measuring import calibrate, sample

x = np.random.default_rng(0).standard_normal((1, 4, 8, 8), dtype=np.float32)
w = np.random.default_rng(1).standard_normal((4, 4, 3, 3), dtype=np.float32)
call = lambda: engine.conv2d(x, w, padding=1)
call()
sampling = calibrate(call)
# The least of many: what the call costs when nothing else runs.
print(min(sample(call, sampling) for _ in range(100)))
"""


def main() -> int:
    """Measure and print."""
    check = check_requested(__doc__)
    microseconds = 1e6 * float(run_child(_TIMED))
    return conclude("engine.conv2d, 4 to 4 channels on 8 x 8", microseconds, LIMIT, " us", check)


if __name__ == "__main__":
    sys.exit(main())
