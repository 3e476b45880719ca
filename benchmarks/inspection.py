"""What looking inside costs: forward passes with captured outputs, against plain ones, in pairs.

On two cores of an AMD EPYC, shared with other programs, two runs printed for ResNet-18: outputs
1.07x and 1.08x, statistics 1.14x, profile 1.01x and 1.02x, off 0.98x and 1.01x, first 1.3x and
2.3x; for LeNet: outputs 1.05x and 1.07x, statistics 1.14x and 1.15x, profile 1.02x and 1.03x, off
0.96x and 0.99x, first 2.0x and 1.9x. On two cores of an Intel Xeon it printed outputs 1.11x and
1.08x, statistics 1.16x and 1.16x, first 2.0x and 1.9x. Over their limits are:

Outputs. A plain pass of ResNet-18 works in a few blocks that stay in cache; a captured one leaves
19 MB of results that something must hold. Forward hooks that do nothing but keep them cost as much
("holding alone", 1.06x and 1.07x where outputs took 1.08x), so that no way of capturing all of them
is within the limit. What capture does in Python for 85 calls takes 0.6 ms of some 30.

The first capture. What ResNet-18's results lie in was not used before: 19 MB in ten huge pages,
which the system clears. That took 0 to 7 ms of system time, and 45 ms in one process of four, where
the host of this virtual machine had first to find the memory: 4 ms a page. Opening and closing
wraps and restores 1,210 functions, so that nothing is paid while no capture is open: "block" is
what an empty block adds to a plain pass. The rest is code that runs for the first time.
"""

from __future__ import annotations

import contextlib
import gc
import resource
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import inspection_profile as profiles
from children import check_requested, conclude, run_child

import convcore
from convcore import inspection, models

# What a pass may cost, as a multiple of a plain one.
LIMITS = {"outputs": 1.05, "statistics": 1.15, "first": 1.2, "off": 1.01, "block": 1.1}
LARGEST_GROWTH = 1.0
PROCESSES = 7
NETS = {"ResNet-18": ("resnet18", (1, 3, 224, 224), 15), "LeNet": ("lenet", (64, 1, 28, 28), 150)}


def seconds(run: Callable[[], Any]) -> float:
    """Return the processor time of a call."""
    start = time.process_time()
    run()
    return time.process_time() - start


# Prints the cost of the first capture in a process.
_FIRST = """
import sys
sys.path.insert(0, sys.argv[2])
import inspection
print(inspection.first(sys.argv[1]))
"""


def made(name: str) -> tuple[Any, Callable[[], Any]]:
    """Return a net, and what calls it."""
    maker, shape, _ = NETS[name]
    net, x = getattr(models, maker)().eval(), convcore.randn(*shape)
    return net, lambda: net(x)


def first(name: str) -> float:
    """Return what the first capture in a process costs."""
    convcore.set_num_threads(1)
    net, plain = made(name)

    def captured() -> None:
        with inspection.capture(net, of=("output",)):
            plain()

    with convcore.no_grad():
        plain()
        before = statistics.median(seconds(plain) for _ in range(NETS[name][2]))
        return seconds(captured) / before


def measured(name: str) -> dict[str, float]:
    """Return the costs of one net by kind."""
    firsts = [float(run_child(_FIRST, name, sys.path[0], threads=1)) for _ in range(PROCESSES)]
    found, times = {"first": statistics.median(firsts)}, NETS[name][2]
    net, plain = made(name)
    with convcore.no_grad():
        before = min(seconds(plain) for _ in range(2 * times))
        for kind, stats in (("outputs", ()), ("statistics", True)):
            found[kind] = within(net, plain, stats, times)
        print(f"{name}, holding alone: {held(net, plain, times):.3g}x")
        found["block"] = 1 + min(seconds(lambda: empty(net)) for _ in range(2 * times)) / before
        return found | {"off": min(seconds(plain) for _ in range(2 * times)) / before}


def held(net: Any, plain: Callable[[], Any], times: int) -> float:
    """Return what a pass costs whose layers' results are kept until its end, and nothing else."""
    kept: list[Any] = []
    leaves = [layer for layer in net.modules() if not list(layer.children())]

    def keep(layer: Any, inputs: Any, output: Any) -> None:
        kept.append(output)

    def passing() -> None:
        plain()
        kept.clear()

    found = []
    for _ in range(times):
        without = seconds(plain)
        with contextlib.ExitStack() as hooks:
            for layer in leaves:
                hooks.enter_context(layer.register_forward_hook(keep))
            passing()
            found.append(seconds(passing) / without)
    return statistics.median(found)


def empty(net: Any) -> None:
    """Capture nothing."""
    with inspection.capture(net, of=("output",)):
        pass


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
    check, failed = check_requested(__doc__.partition("\n")[0]), 0
    convcore.set_num_threads(1)
    for name in NETS:
        for kind, value in measured(name).items():
            failed |= conclude(f"{name}, {kind}", value, LIMITS[kind], "x", check)
    for name, (maker, shape, steps) in profiles.NETS.items():
        ratio = profiles.ratio(*profiles.steps_of(maker, shape, steps), pairs=15)
        failed |= conclude(f"{name}, profile", ratio, profiles.LIMIT, "x", check)
    grown = conclude("growth over 10,000 captures", growth(), LARGEST_GROWTH, " MB", check)
    return failed | grown


if __name__ == "__main__":
    sys.exit(main())
