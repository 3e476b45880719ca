"""What looking inside costs: forward passes with captured outputs, against plain ones, in pairs."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from children import check_requested, conclude

import convcore
from convcore import inspection, models

# What a pass may cost, as a multiple of a plain one.
LIMITS = {"outputs": 1.05, "statistics": 1.15, "first": 1.2, "off": 1.01}
NETS = {"ResNet-18": ("resnet18", (1, 3, 224, 224), 15), "LeNet": ("lenet", (64, 1, 28, 28), 150)}


def seconds(run: Callable[[], Any]) -> float:
    """Return the processor time of a call."""
    start = time.process_time()
    run()
    return time.process_time() - start


def ratio(plain: Callable[[], Any], other: Callable[[], Any], times: int) -> float:
    """Return the median of the ratios of pairs, each measured in both orders."""
    found = []
    for number in range(times):
        if number % 2:
            found.append(1 / (seconds(plain) / seconds(other)))
        else:
            found.append(seconds(other) / seconds(plain))
    return statistics.median(found)


def measured(name: str) -> dict[str, float]:
    """Return the costs of one net by kind."""
    maker, shape, times = NETS[name]
    net, x = getattr(models, maker)().eval(), convcore.randn(*shape)

    def plain() -> None:
        net(x)

    def first() -> None:
        with inspection.capture(net, of=("output",)):
            net(x)

    with convcore.no_grad():
        plain()
        before = statistics.median(seconds(plain) for _ in range(times))
        found = {"first": seconds(first) / before}
        for kind, stats in (("outputs", ()), ("statistics", True)):
            found[kind] = within(net, plain, stats, times)
        after = statistics.median(seconds(plain) for _ in range(times))
    return found | {"off": after / before}


def within(net: Any, plain: Callable[[], Any], stats: Any, times: int) -> float:
    """Return what a pass within an open capture costs."""
    open_one = inspection.capture(net, of=("output",), stats=stats)
    found = []
    for _ in range(times):
        without = seconds(plain)
        with open_one:
            plain()  # the first pass inside makes room for the values
            found.append(seconds(plain) / without)
    return statistics.median(found)


def main() -> int:
    """Measure and print."""
    check, failed = check_requested(__doc__), 0
    convcore.set_num_threads(1)
    for name in NETS:
        for kind, value in measured(name).items():
            failed |= conclude(f"{name}, {kind}", value, LIMITS[kind], "x", check)
    return failed


if __name__ == "__main__":
    sys.exit(main())
