"""What looking inside costs: forward passes with captured outputs, against plain ones, in pairs."""

from __future__ import annotations

import contextlib
import gc
import resource
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
LARGEST_GROWTH = 1.0
NETS = {"ResNet-18": ("resnet18", (1, 3, 224, 224), 15), "LeNet": ("lenet", (64, 1, 28, 28), 150)}


def seconds(run: Callable[[], Any]) -> float:
    """Return the processor time of a call."""
    start = time.process_time()
    run()
    return time.process_time() - start


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


def growth(times: int = 10_000) -> float:
    """Return by how many MB the process grows over captures, an error in every second one."""
    net, x = models.lenet().eval(), convcore.randn(1, 1, 28, 28)

    def captures(number: int) -> int:
        for one in range(number):
            with contextlib.suppress(ZeroDivisionError), inspection.capture(net):
                net(x).sum().backward()
                _ = 1 / (one % 2)
        gc.collect()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    before = captures(times // 10)
    return (captures(times) - before) / 1024


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
    grown = conclude("growth over 10,000 captures", growth(), LARGEST_GROWTH, " MB", check)
    return failed | grown


if __name__ == "__main__":
    sys.exit(main())
