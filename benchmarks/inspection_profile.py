"""Profiles: the time that `convcore.inspection.profile` adds to a net's forward and backward pass.

Steps with and without a profile take turns, and the time is that of the process on all its cores:
what other processes do counts for neither. What is printed is the median of the ratios of pairs.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable

import convcore
from convcore import inspection, models

LIMIT = 1.05
NETS = {
    "LeNet, 64 x 1 x 28 x 28": (models.lenet, (64, 1, 28, 28), 10),
    "ResNet-18, 1 x 3 x 224 x 224": (models.resnet18, (1, 3, 224, 224), 1),
}


def steps_of(made: Callable, shape: tuple[int, ...], steps: int) -> tuple[Callable, Callable]:
    """Return a function that runs steps, and one that does so in a profile."""
    net, x = made(), convcore.rand(shape)

    def plain() -> None:
        for _ in range(steps):
            net(x).sum().backward()

    def profiled() -> None:
        with inspection.profile(net):
            plain()

    return plain, profiled


def seconds(call: Callable) -> float:
    """Return the process's CPU time of a call."""
    start = time.process_time()
    call()
    return time.process_time() - start


def ratio(plain: Callable, profiled: Callable, pairs: int) -> float:
    """Return the median, over pairs, of the time with a profile to that without."""
    plain()
    profiled()
    found = []
    for number in range(pairs):
        order = (plain, profiled) if number % 2 else (profiled, plain)
        taken = {call: seconds(call) for call in order}
        found.append(taken[profiled] / taken[plain])
    return statistics.median(found)


def main() -> int:
    """Print a ratio for each net; return 1 if one is above the limit."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=31, help="pairs of each net")
    pairs = parser.parse_args().pairs
    slow = False
    for name, (made, shape, steps) in NETS.items():
        found = ratio(*steps_of(made, shape, steps), pairs)
        slow |= found > LIMIT
        print(f"{name:32}{found:6.3f} of the time without, {LIMIT} allowed", flush=True)
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())
