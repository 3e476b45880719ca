"""A rank of data-parallel training that is timed: ``python -m convcore.bench.rank NAME THREADS``.

``mpiexec`` starts several.  The first reads a JSON command a line, as any worker does, and tells
the others; all carry it out, and the first answers.  Between commands they sleep.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

import convcore
from convcore import distributed as dist
from convcore.bench import nets
from convcore.bench.measuring import settle
from convcore.bench.process import carry_out, serve_standard_streams
from convcore.nn.parallel import DistributedDataParallel

# A command is sent to the other ranks in so many bytes.
_MOST_BYTES = 4096
# Between looks for a command: an idle rank is not to be felt by those that are timed.
_LOOK_SECONDS = 0.01
# Of the step that says when gradients are there, the shortest of these.
_TRIES = 3
# Bytes that are added to see how fast, and how often.
_ADDED_BYTES, _ADDITIONS = 4 * 2**20, 9


class Rank:
    """A net that all ranks train, each on a batch of its own; public methods are commands."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.net: Any = None
        self.step: Any = None
        convcore.set_num_threads(threads)

    def prepare(self, net: str, batches: int) -> float:
        """Make a net that learns from ``batches`` of its batches at once; return a step's seconds.

        It is wrapped in `DistributedDataParallel` where there are several ranks.
        """
        model, self.step = _made(net, batches, wrapped=dist.get_world_size() > 1)
        self.net = model
        for _ in range(2):  # buckets are put in order after the first
            self.step()
        return self.time(1)

    def time(self, steps: int, reduce: bool = True) -> float:
        """Return the seconds a step of all ranks, with gradients averaged, or left as they are."""
        wrapped = isinstance(self.net, DistributedDataParallel)
        context = self.net.no_sync() if wrapped and not reduce else nullcontext()
        with context:
            dist.barrier()
            start = time.perf_counter()
            for _ in range(steps):
                self.step()
            dist.barrier()
            seconds = (time.perf_counter() - start) / steps
        if self.threads > 1:
            settle()
        return seconds

    def buckets(self) -> list[int]:
        """Return the bytes of the net's buckets, which are reduced in each step."""
        return [bucket.nbytes for bucket in _buckets(self.net)]

    def overlap(self) -> float:
        """Return the part of the bytes that were reduced when the last step's pass had ended."""
        return self.net._reducer.overlap

    def schedule(self, net: str) -> dict[str, Any]:
        """Return when a step's gradients are there, and more of `network.Schedule`."""
        model, step = _made(net, 1, wrapped=True)
        for _ in range(2):
            step()
        times: dict[int, float] = {}
        for i, parameter in enumerate(model.module.parameters()):
            parameter.register_post_accumulate_grad_hook(
                lambda _, i=i: times.__setitem__(i, time.perf_counter())
            )
        found = min((_timed(step, times) for _ in range(_TRIES)), key=lambda one: one["step"])
        ready = found.pop("ready")
        buckets = [(b.nbytes, max(ready[i] for i in b.members)) for b in _buckets(model)]
        held = sum(buffer._array.nbytes for buffer in model.module.buffers())
        return {**found, "buckets": buckets, "buffers": held, "add": _seconds_to_add()}


def _made(name: str, batches: int, wrapped: bool) -> tuple[Any, Any]:
    """Return a net and its training step."""
    net = nets.own_net(name)
    net = replace(net, batch=batches * net.batch)
    model = nets.make_net(convcore, net).train()
    if wrapped:
        model = DistributedDataParallel(model)
    x = convcore.from_numpy(nets.pictures(net, nets.TRAIN))
    return model, nets.training_step(convcore, net, model, x)


def _buckets(model: DistributedDataParallel) -> list[Any]:
    return model._reducer.buckets


def _timed(step: Any, times: dict[int, float]) -> dict[str, Any]:
    """Take a step; return its seconds, and when its gradients were there and all of them were."""
    start = time.perf_counter()
    step()
    end = time.perf_counter()
    ready = {i: then - start for i, then in times.items()}
    return {"step": end - start, "backward": max(ready.values()), "ready": ready}


def _seconds_to_add() -> float:
    """Return the seconds that it takes to add a byte of float32 to another."""
    here, there = (np.ones(_ADDED_BYTES // 4, np.float32) for _ in range(2))
    clock = [time.perf_counter()]
    for _ in range(_ADDITIONS):
        np.add(here, there, out=here)
        clock.append(time.perf_counter())
    return min(end - start for start, end in pairwise(clock)) / _ADDED_BYTES


def _tell(line: str) -> None:
    """Send a command to the other ranks; an empty one is the last."""
    text = line.encode()
    assert len(text) <= _MOST_BYTES, "a command is too long"
    sent = np.zeros(_MOST_BYTES, np.uint8)
    sent[: len(text)] = np.frombuffer(text, np.uint8)
    dist.broadcast(convcore.from_numpy(sent), 0)


def _hear() -> str:
    """Sleep until the first rank sends a command."""
    received = convcore.zeros(_MOST_BYTES, dtype=convcore.uint8)
    work = dist.broadcast(received, 0, async_op=True)
    while not work.is_completed():
        time.sleep(_LOOK_SECONDS)
    return received.numpy().tobytes().rstrip(b"\0").decode()


def _told(lines: Iterable[str]) -> Iterator[str]:
    """Broadcast each command to all ranks, then yield it; after the last, stop the other ranks."""
    for line in lines:
        _tell(line)
        yield line
    _tell("")


def _follow(worker: Rank) -> None:
    """Carry out what the first rank sends; an error ends all ranks."""
    while line := _hear():
        carry_out(worker, line)


if __name__ == "__main__":
    dist.init_process_group(timeout=600)
    if dist.get_rank() == 0:
        serve_standard_streams(lambda _, threads: Rank(threads), _told(sys.stdin))
    else:
        _follow(Rank(int(sys.argv[2])))
    dist.destroy_process_group()
