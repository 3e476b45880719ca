"""Memory pool: the time saved by writing results to memory that was used before.

A step writes arrays of one size, 128 MiB of them, holds them together and drops them, as the layers
of a net do; once in blocks of convcore's pool and once in NumPy's arrays, in turn.  So does a step
of convolutions.  Then the price: a block beside an array of NumPy's, a search among idle blocks.
"""

from __future__ import annotations

import sys

from children import check_requested, conclude, run_child

# Fresh pages a result, from the second step on.  A few are the measuring program's own.
LIMIT = 1.0

_MEASURED = """
import resource
import time
from statistics import median

import numpy as np

from convcore import engine
from convcore.engine.runtime import layout, memory

MIB = 1 << 20
in_pool, bytes_ = memory.empty, np.dtype(np.uint8)

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def compare(name, step, results, rounds=7):
    # (seconds, faults) of each round's step, for both kinds of memory.
    found = {"pool": [], "numpy": []}
    for _ in range(rounds):
        for kind in found:
            memory.empty = in_pool if kind == "pool" else np.empty
            engine.empty_cache()
            step()
            before, start = faults(), time.perf_counter()
            step()
            found[kind].append((time.perf_counter() - start, faults() - before))
    ratio = median(n[0] / p[0] for p, n in zip(found["pool"], found["numpy"]))
    us, fresh = ({kind: median(f[i] for f in found[kind]) / results for kind in found}
                 for i in (0, 1))
    print(f"{name:26}{1e6 * us['pool']:10.1f}{1e6 * us['numpy']:10.1f}{ratio:8.2f}"
          f"{fresh['pool']:10.2f}{fresh['numpy']:8.1f}", flush=True)
    return fresh["pool"]

def fill(n_bytes):
    arrays = []
    for _ in range(128 * MIB // n_bytes):
        arrays.append(memory.empty((n_bytes,), bytes_))
        arrays[-1].fill(1)

def convolve(x, w, times):
    results = [engine.conv_forward(x, w, padding=w.shape[2] // 2) for _ in range(times)]

def ones(*shape):
    return np.ones(shape, np.float32)

worst = 0
print(f"{'':26}{'us: pool':>10}{'NumPy':>10}{'ratio':>8}{'faults':>10}{'NumPy':>8}")
for size in (64 << 10, 256 << 10, MIB, 4 * MIB, 8 * MIB, 32 * MIB):
    name = f"filled, {size >> 10} KiB"
    worst = max(worst, compare(name, lambda: fill(size), 128 * MIB // size))
for name, times, x, w in (
    ("3x3 64 @224, N=4, one", 1, ones(4, 64, 224, 224), ones(64, 64, 3, 3)),
    ("3x3 64 @224, N=2", 4, ones(2, 64, 224, 224), ones(64, 64, 3, 3)),
    ("1x1 64-256 @56, N=8", 8, ones(8, 64, 56, 56), ones(256, 64, 1, 1)),
    ("3x3 512 @7, N=8", 16, ones(8, 512, 7, 7), ones(512, 512, 3, 3)),
):
    worst = max(worst, compare(name, lambda: convolve(x, w, times), times))

def cost(call, times=10_000):
    def seconds():
        start = time.perf_counter()
        for _ in range(times):
            call()
        return time.perf_counter() - start
    return 1e6 * min(seconds() for _ in range(7)) / times

memory.empty = in_pool
shape, float32 = (1, 16, 56, 56), np.dtype(np.float32)
print(f"an array: {cost(lambda: in_pool(shape, float32)):.2f} us in a block, "
      f"{cost(lambda: np.empty(shape, float32)):.2f} us in NumPy's memory")

def search(n_others):
    # The block that fits was idle before all the others, which were dropped in any order.
    wanted, others = memory.Block(128 << 10), [memory.Block(64 << 10) for _ in range(n_others)]
    np.random.default_rng(n_others).shuffle(others)
    del wanted
    others.clear()
    start = time.perf_counter()
    wanted = memory.Block(128 << 10)
    return 1e6 * (time.perf_counter() - start)

for others in (0, 100, 1000):
    print(f"a block behind {others} others: {min(search(others) for _ in range(50)):.2f} us")
print(worst)
"""


def main() -> int:
    """Measure and print."""
    check = check_requested(__doc__)
    *lines, worst = run_child(_MEASURED).splitlines()
    print("\n".join(lines))
    return conclude("most fresh pages a result", float(worst), LIMIT, "", check)


if __name__ == "__main__":
    sys.exit(main())
