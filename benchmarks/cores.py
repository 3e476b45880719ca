"""Convolutions on more cores, on paper: a model of their scaling, from times on one thread.

    convcore bench --suite table --peers none --rounds 3 --json table.json
    python benchmarks/cores.py table.json [--cores 4,16] [--bandwidth GB/S] [--ceiling GB/S]

A pass on n cores takes the longest of two, the roofline model's (Williams, Waterman, Patterson,
"Roofline: an insightful visual performance model for multicore architectures", Communications of
the ACM 52, 2009), and a wake-up:

- its time on one thread, by the share of the thread that has the most work items: the plan cuts
  every pass into items that follow from its shapes alone, so that bits do not depend on threads;
- its bytes, each array and the plan's shared memory once, over what the cores together can move;
- WAKE_SECONDS for every doubling of the threads, to start them and to wait for the last.

What it leaves out: clocks that fall as more cores work, other sockets' memory (NUMA), and other
programs; keep one process on one socket (``numactl --cpunodebind``).  A limit of CPUs that a
container or taskset sets is respected: ``convcore info`` prints it.  The record's times on two
threads say how far the model is off where it can be tested.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from convcore.bench.layers import parse_layer
from convcore.bench.measuring import geometric_mean
from convcore.engine.conv.plan import plan_conv
from convcore.engine.conv.problem import PASSES, PassPlan

# Of a region's start and end, as few items on two threads show; other machines' are alike.
WAKE_SECONDS = 2e-6
# A core's own, and a socket's with eight channels of DDR5-4800, two thirds of 307 GB/s.
BANDWIDTH, CEILING = 12.0, 200.0
_SHOWN = 6


@dataclass(frozen=True, slots=True)
class Pass:
    """A pass of a layer, as it was timed on one thread, and on two if it was."""

    name: str
    pass_name: str
    plan: PassPlan
    moved_bytes: int
    one: float
    two: float | None

    def seconds(self, cores: int, bandwidth: float, ceiling: float) -> float:
        """Return the modelled time; bandwidths in bytes a second, of a core and of all."""
        if cores == 1:
            return self.one
        return max(self.share(cores) * self.one, self.moving(cores, bandwidth, ceiling)) + (
            WAKE_SECONDS * math.log2(cores)
        )

    def share(self, cores: int) -> float:
        """Return the part of all items that the busiest thread computes."""
        return math.ceil(self.plan.items / cores) / max(self.plan.items, 1)

    def moving(self, cores: int, bandwidth: float, ceiling: float) -> float:
        """Return the seconds in which so many cores move all bytes."""
        return self.moved_bytes / min(cores * bandwidth, ceiling)


def passes_of(record: dict[str, Any]) -> Iterator[Pass]:
    """Yield the passes of a record of `convcore bench --json`, computed as their plans say.

    Raises
    ------
    ValueError
        The record has no cell on one thread.
    """
    times: dict[tuple[str, ...], dict[int, float]] = {}
    names: dict[str, str] = {}
    for cell in record["cells"]:
        key = tuple(cell[field] for field in ("spec", "map", "format", "dtype"))
        times.setdefault(key, {})[cell["threads"]] = cell["median_seconds"]["convcore"]
        names[cell["spec"]] = cell["layer"]
    for (spec, pass_name, memory_format, dtype), found in times.items():
        if 1 not in found:
            raise ValueError("the record has no times on one thread: give bench --threads 1,2")
        geometry = parse_layer(spec).geometry
        plans = plan_conv(geometry, dtype, memory_format == "channels_last")
        plan = plans[PASSES.index(pass_name)]
        elements = (geometry.input_shape, geometry.weight_shape, geometry.output_shape)
        moved = plan.itemsize * sum(map(math.prod, elements)) + plan.shared_bytes
        name = f"{names[spec]}, {pass_name}, {memory_format}"
        yield Pass(name, pass_name, plan, moved, found[1], found.get(2))


def check(passes: Sequence[Pass], bandwidth: float, ceiling: float) -> str:
    """Return a line on the model beside times on two threads."""
    off = [p.two / p.seconds(2, bandwidth, ceiling) for p in passes if p.two is not None]
    if not off:
        return "The record has no times on two threads to test the model with."
    off.sort()
    middle = [off[len(off) * part // 10] for part in (1, 9)]
    return (
        f"Two threads, measured over modelled: {geometric_mean(off):.2f} in geometric mean of "
        f"{len(off)}, {middle[0]:.2f} to {middle[1]:.2f} for eight of ten."
    )


def scaling(
    passes: Sequence[Pass], cores: int, bandwidth: float, ceiling: float
) -> tuple[dict[str, float], list[tuple[float, Pass]]]:
    """Return each kind of pass's speed over one core's in geometric mean, and all, least first."""
    speeds = [(p.one / p.seconds(cores, bandwidth, ceiling), p) for p in passes]
    means = {
        name: geometric_mean(speed for speed, p in speeds if p.pass_name == name)
        for name in PASSES
        if any(p.pass_name == name for p in passes)
    }
    return means, sorted(speeds, key=lambda pair: pair[0])


def main(words: Sequence[str] | None = None) -> int:
    """Print the model's test, speeds on more cores, and what holds the slowest passes back."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("record", type=Path, help="of convcore bench --json")
    parser.add_argument("--cores", default="2,4,8,16,32,64")
    parser.add_argument("--bandwidth", type=float, default=BANDWIDTH, help="GB/s of one core")
    parser.add_argument("--ceiling", type=float, default=CEILING, help="GB/s of all cores")
    given = parser.parse_args(words)
    passes = list(passes_of(json.loads(given.record.read_text(encoding="utf-8"))))
    limits = (1e9 * given.bandwidth, 1e9 * given.ceiling)
    print(f"Assumed: {given.bandwidth:g} GB/s of a core, {given.ceiling:g} of all.")
    print(check(passes, *limits))
    counts = [int(count) for count in given.cores.split(",")]
    for count in counts:
        means, speeds = scaling(passes, count, *limits)
        print(f"{count:3} cores:", ", ".join(f"{k} {v:.1f}" for k, v in means.items()))
    print(f"\nThe least of {len(speeds)} on {count} cores:")
    for speed, one in speeds[:_SHOWN]:
        memory = one.moving(count, *limits) > one.share(count) * one.one
        why = "memory" if memory else f"{one.plan.items} work items"
        print(f"{speed:5.1f}  {one.name}: {one.plan.algorithm}, {why}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
