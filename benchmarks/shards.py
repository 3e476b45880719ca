"""What training in shards costs in one process: processor time by that of a plain step.

    python benchmarks/shards.py

Of a step, forward and backward, of 64 images on one thread; medians of five, in turn. Below each,
what batches of a shard's size take without the shards: the rest is the price of equal bits.
"""

from __future__ import annotations

import statistics
import time

import convcore
from convcore import distributed, models, nn
from convcore.nn.functional import cross_entropy

COUNTS = (1, 2, 4, 8, 16)


def small():
    return nn.Sequential(
        *(nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU()),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)),
    )


def plain(net, x, y):
    return lambda: cross_entropy(net(x), y).backward()


def sharded(net, shards, x, y):
    ddp = nn.parallel.DistributedDataParallel(net, shards=shards)
    return lambda: ddp.backward(lambda x, y: cross_entropy(ddp(x), y), x, y)


def small_batches(net, count, x, y):
    """Passes of parts of the batch one after the other, whose gradients are forgotten."""

    def step():
        for images, labels in zip(x.chunk(count), y.chunk(count), strict=True):
            net.zero_grad()
            cross_entropy(net(images), labels).backward()

    return step


def measure(make, size):
    """Return the processor time of each number of shards, and of small batches, by a plain step's.

    Two lists.
    """
    x, y = convcore.rand(64, 3, size, size), convcore.randint(0, 10, (64,))
    steps = {0: plain(make(), x, y)}
    for n in COUNTS:
        steps[n], steps[-n] = sharded(make(), n, x, y), small_batches(make(), n, x, y)
    times = {n: [] for n in steps}
    for _ in range(6):
        for n, step in steps.items():
            start = time.process_time()
            step()
            times[n].append(time.process_time() - start)
    medians = {n: statistics.median(found[1:]) for n, found in times.items()}
    return [[medians[sign * n] / medians[0] for n in COUNTS] for sign in (1, -1)]


def main():
    convcore.set_num_threads(1)
    distributed.init_process_group()
    print("shards         ", *(f"{n:6}" for n in COUNTS))
    for name, make, size in (("two layers, 32", small, 32), ("ResNet-18, 64", models.resnet18, 64)):
        for label, ratios in zip((name, "  small batches"), measure(make, size), strict=True):
            print(f"{label:15}", *(f"{ratio:6.2f}" for ratio in ratios), flush=True)


if __name__ == "__main__":
    main()
