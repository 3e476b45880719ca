"""Growth: programs that run for long take no more memory at the end than after their first calls.

    python tests/fuzz/growth.py --iterations 10000
    python tests/fuzz/growth.py --iterations 10000 --leak=tensor      # a control: exit code 1

Each program is called that often, a tenth of it or more to warm up.  From then on

- Python's objects, and blocks of Python's memory, grow by less than one in `ITERATIONS_A_BLOCK`
  iterations, and a slack;
- what malloc has given out (glibc), and the process's resident memory, by less than `SLACK` and
  `RESIDENT_SLACK`;
- blocks of the memory pool in use, by less than `SLACK` (plans of nets are of several sizes).

What may grow is what is bounded: each entry of convcore's caches, of which plans of
convolutions are the largest (a cache of 4,096: engine/conv/call.py), may take
`ENTRY_BYTES` and `ENTRY_BLOCKS`.  The programs of ever new shapes fill them, and go through their
shapes in turn; what they have is compared after whole turns, for a full cache of small shapes takes
less than one of large shapes.  The exit code is 1 if anything has grown more.  Fewer than `FEWEST`
iterations are a look at it: what is made once and kept is not all there after a tenth of them, and
counts as growth.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import functools
import gc
import itertools
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

import convcore
from convcore import inspection, nn, optim
from convcore.engine.runtime import memory, tables

ITERATIONS_A_BLOCK = 4
SLACK_OBJECTS, SLACK_BLOCKS = 20, 500
SLACK = 256 << 10
RESIDENT_SLACK = 6 << 20  # the system's page tables and the heap's gaps too
ENTRY_BYTES = 8 << 10
ENTRY_BLOCKS = 48  # with what an optimised net has of a kind of input; 14,000 calls are bounded
SELDOM = 10  # optimising takes as long as so many calls
FEWEST = 5_000  # of which a tenth, to warm up, has made all that is made once
F4 = np.dtype("float32")


class Taken(NamedTuple):
    """What is in use: objects that the collector knows, blocks and bytes of memory."""

    objects: int
    blocks: int
    malloc: int
    resident: int
    pool: int
    cached: int


class _Mallinfo(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd")),
        *((name, ctypes.c_size_t) for name in ("usmblks", "fsmblks", "uordblks", "fordblks")),
        ("keepcost", ctypes.c_size_t),
    ]


def _malloc_bytes() -> int:
    """Return the bytes that malloc has given out, 0 where the C library does not say."""
    library = ctypes.CDLL(None)
    if not hasattr(library, "mallinfo2"):
        return 0
    library.mallinfo2.restype = _Mallinfo
    info = library.mallinfo2()
    return info.uordblks + info.hblkhd


def _caches() -> list[functools._lru_cache_wrapper]:
    """Return the bounded caches of convcore's functions."""
    found = [one for one in gc.get_objects() if isinstance(one, functools._lru_cache_wrapper)]
    return [
        one
        for one in found
        if one.__module__.startswith("convcore") and one.cache_parameters()["maxsize"]
    ]


def taken() -> Taken:
    """Return what is in use, after a collection and without idle memory of the pool."""
    gc.collect()
    memory.empty_cache()
    cached = sum(one.cache_info().currsize for one in _caches())
    cached += tables.kept_bytes() // ENTRY_BYTES
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    pool = convcore.memory_stats()["allocated_bytes.current"]
    objects = len(gc.get_objects())
    return Taken(objects, sys.getallocatedblocks(), _malloc_bytes(), resident, pool, cached)


def excess(before: Taken, after: Taken, iterations: int) -> list[str]:
    """Return what has grown more than it may."""
    entries = max(0, after.cached - before.cached)
    blocks = iterations // ITERATIONS_A_BLOCK + ENTRY_BLOCKS * entries
    objects, blocks = blocks + SLACK_OBJECTS, blocks + SLACK_BLOCKS
    n_bytes = ENTRY_BYTES * entries
    allowed = Taken(objects, blocks, SLACK + n_bytes, RESIDENT_SLACK + n_bytes, SLACK, 1 << 62)
    grown = {name: now - was for name, was, now in zip(Taken._fields, before, after, strict=True)}
    return [
        f"{name} grew by {grown[name]:,}, allowed {most:,}, with {entries} more cached"
        for name, most in zip(Taken._fields, allowed, strict=True)
        if grown[name] > most
    ]


# The programs


def small_net() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.GELU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Dropout(0.1), nn.Linear(16, 5),
    )  # fmt: skip


LARGEST = {"new_shapes": 63, "optimized": 63, "many_optimized": 15}  # height and width


def shapes(program: str) -> Iterator[tuple[int, int]]:
    """Yield heights and widths from 8 on without end, each pair again after all others."""
    return itertools.cycle(itertools.product(range(8, LARGEST[program] + 1), repeat=2))


def turn(program: str) -> int:
    """Return after how many iterations a program's shapes come again."""
    return (LARGEST[program] - 7) ** 2 if program in LARGEST else 1


def parts(iterations: int, turn: int) -> tuple[int, int]:
    """Return how many iterations warm up, a tenth at least, and how many whole turns are left."""
    warm = max(3, iterations // 10)
    rest = iterations - warm
    rest = rest // turn * turn or rest
    return iterations - rest, rest


def image(height: int = 12, width: int = 12) -> convcore.Tensor:
    return convcore.from_numpy(np.ones((2, 3, height, width), F4))


def train() -> Callable[[], object]:
    net, labels = small_net(), convcore.tensor([1, 3])
    optimizer = optim.Adam(net.parameters())
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, 100)

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(image()), labels).backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        schedule.step()

    return step


def infer() -> Callable[[], object]:
    net = small_net().eval()

    def call() -> None:
        with convcore.no_grad():
            net(image())

    return call


def hooks() -> Callable[[], object]:
    net = small_net()

    def step() -> None:
        handles = [m.register_forward_hook(lambda module, args, out: out * 1) for m in net]
        handles += [m.register_full_backward_hook(lambda module, gx, gy: None) for m in net]
        x = image().requires_grad_()
        handles.append(x.register_hook(lambda grad: grad * 2))
        y = net(x).sum()
        y.grad_fn.register_hook(lambda gx, gy: None)
        y.backward()
        for handle in handles:
            handle.remove()

    return step


def new_shapes() -> Callable[[], object]:
    net, sizes = small_net(), shapes("new_shapes")

    def step() -> None:
        net.zero_grad()
        net(image(*next(sizes))).sum().backward()

    return step


def optimized() -> Callable[[], object]:
    net, sizes = convcore.optimize_for_inference(small_net().eval()), shapes("optimized")

    def call() -> None:
        net(image(*next(sizes)))

    return call


def many_optimized() -> Callable[[], object]:
    """Nets that are optimised, called and dropped."""
    sizes = shapes("many_optimized")

    def call() -> None:
        convcore.optimize_for_inference(small_net().eval())(image(*next(sizes)))

    return call


def errors() -> Callable[[], object]:
    """Calls that are refused, forward and in the middle of a backward pass."""
    weight = convcore.ones(4, 3, 3, 3, requires_grad=True)

    def refuse(grad: convcore.Tensor) -> None:
        raise ArithmeticError("no")

    def call() -> None:
        for bad in (lambda: nn.functional.conv2d(image()[:, :2], weight), lambda: backward()):
            with contextlib.suppress(RuntimeError, ArithmeticError):
                bad()

    def backward() -> None:
        y = nn.functional.conv2d(image(), weight).relu()
        y.register_hook(refuse)
        y.sum().backward()

    return call


def inspected() -> Callable[[], object]:
    """Blocks that look inside, every second of which an error ends."""
    net, again = small_net(), itertools.cycle((False, True))

    def interrupt(module: nn.Module, args: tuple, output: convcore.Tensor) -> None:
        raise ArithmeticError("in the middle of the net")

    blocks = (
        lambda: inspection.capture(net),
        lambda: inspection.capture(net, stats=True),
        lambda: inspection.patch(net, {"2": inspection.zero}, grads={"0": inspection.zero}),
        lambda: inspection.find_nan(net),
        lambda: inspection.profile(net),
    )
    turns = itertools.cycle(blocks)

    def call() -> None:
        hook = net[4].register_forward_hook(interrupt) if next(again) else contextlib.nullcontext()
        with contextlib.suppress(ArithmeticError), hook, next(turns)():
            net(image().requires_grad_()).sum().backward()

    return call


PROGRAMS = {
    make.__name__: make
    for make in (train, infer, hooks, new_shapes, optimized, many_optimized, errors, inspected)
}
# What a program that leaks would keep of each iteration.
LEAKS: dict[str, Callable[[], object]] = {
    "tensor": lambda: convcore.ones(1),
    "graph": lambda: convcore.ones(1, requires_grad=True) * 2,
    "block": lambda: np.empty(100, np.uint8),  # of which the collector knows nothing
    "pool": lambda: memory.empty((1 << 16,), F4),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--iterations", type=int, default=10_000, help="calls of each program")
    parser.add_argument("--only", choices=PROGRAMS, help="one program")
    parser.add_argument("--leak", choices=LEAKS, help="keep one of these an iteration")
    options = parser.parse_args()
    if options.iterations < FEWEST:
        print(f"of fewer than {FEWEST:,} iterations, what is made once may count as growth")
    kept: list[object] = []
    failed = False
    for name, make in PROGRAMS.items():
        if options.only not in (None, name):
            continue
        start, call = time.perf_counter(), make()
        iterations = options.iterations // (SELDOM if name == "many_optimized" else 1)
        warm, rest = parts(iterations, turn(name))
        for _ in range(warm):
            call()
        before = taken()
        for _ in range(rest):
            call()
            if options.leak:
                kept.append(LEAKS[options.leak]())
        after = taken()
        found = excess(before, after, rest)
        failed |= bool(found)
        grown = (now - was for was, now in zip(before, after, strict=True))
        shown = ", ".join(f"{n} {g:+,}" for n, g in zip(Taken._fields, grown, strict=True))
        print(
            f"{name}: {time.perf_counter() - start:.1f} s, {shown}",
            *found,
            sep="\n    ",
            flush=True,
        )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
