"""One optimisation step whose gradients have the same bits for any number of ranks.

The batch is cut into shards, and each is computed as if alone: forward and backward from the same
buffers, random numbers of its own seed, normalization by its own statistics.  What the shards give
is added in one fixed tree (distributed/shard_tree.py).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from convcore import random
from convcore._tensor import Tensor, wrap
from convcore._tensor.creation import tensor, zeros_like
from convcore.distributed.faults import Progress
from convcore.distributed.group import ProcessGroup
from convcore.distributed.shard_tree import Arrays, ShardTree
from convcore.nn.modules.module import Module


def tensors_in(value: Any) -> list[Tensor]:
    """List the tensors in nested tuples, lists, dicts and dataclasses."""
    if isinstance(value, Tensor):
        return [value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = [getattr(value, field.name) for field in dataclasses.fields(value)]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, tuple | list):
        return [found for part in value for found in tensors_in(part)]
    return []


def cut(value: Any, dim: int, start: int, end: int) -> Any:
    """Return a shard of a batch: that part of every tensor in it."""
    if isinstance(value, Tensor):
        return value.narrow(dim, start, end - start)
    if isinstance(value, dict):
        return {key: cut(part, dim, start, end) for key, part in value.items()}
    if isinstance(value, tuple | list):
        parts = [cut(part, dim, start, end) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


def is_floating(tensor: Tensor) -> bool:
    """Return whether a tensor's elements can be averaged."""
    return tensor._array.dtype.kind not in "biu"


def put(tensor: Tensor, array: np.ndarray) -> None:
    """Put an array's elements into a tensor, unrecorded."""
    tensor._array[...] = array
    tensor._counter[0] += 1


def add_to_grad(parameter: Tensor, array: np.ndarray) -> None:
    """Add an array, which is the parameter's from then on, to its gradient."""
    if parameter.grad is not None:
        put(parameter.grad, parameter.grad._array + array)
    elif array.strides == parameter._array.strides:
        parameter.grad = wrap(array)
    else:
        parameter.grad = zeros_like(parameter.detach())
        put(parameter.grad, array)


def seed_of(seed: int, shard: int) -> int:
    """Mix the seed of a step and the number of a shard, so that no two shards draw alike.

    References
    ----------
    G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
    """
    mask = (1 << 64) - 1
    z = (seed + (shard + 1) * 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return (z ^ (z >> 31)) >> 32


class ShardedStep:
    """Forward and backward of one batch in shards; see the module.

    Parameters
    ----------
    module : Module
    group : ProcessGroup
    shards : int
    dim : int
        The batch's axis.
    """

    def __init__(self, module: Module, group: ProcessGroup, shards: int, dim: int):
        self.parameters = [p for p in module.parameters() if p.requires_grad]
        self.buffers = list(module.buffers())
        self.group = group
        self.dim = dim
        floating = [*self.parameters, *filter(is_floating, self.buffers)]
        self.tree = ShardTree(shards, group, [*(t._array for t in floating), np.empty(1)])

    def run(self, loss_of: Callable[..., Tensor], batch: tuple) -> Tensor:
        """Add the batch's gradients to ``.grad`` and return its mean loss."""
        count = self._size_of(batch)
        seed = self._shared_seed(count)
        before = [b._array.copy() for b in self.buffers]
        grads = [p.grad for p in self.parameters]
        counters = before
        try:
            with random.fork_rng():
                for shard in self.tree.own:
                    self._put_buffers(before)
                    self.tree.add(shard, self._shard(loss_of, batch, shard, count, seed, before))
            if self.tree.own:
                counters = [b._array.copy() for b in self.buffers]
        except BaseException:
            self.tree.clear()
            raise
        finally:
            for parameter, grad in zip(self.parameters, grads, strict=True):
                parameter.grad = grad
            self._put_buffers(before)
        *sums, loss = self.tree.total()
        self._finish(sums, before, counters)
        Progress.advance()
        assert loss is not None, "not all shards are empty"
        return tensor(float(loss[0]))

    def _size_of(self, batch: tuple) -> int:
        sizes = {t.shape[self.dim] if t.ndim > self.dim else 0 for t in tensors_in(batch)}
        if len(sizes) != 1 or not min(sizes):
            raise ValueError(
                f"batch must have tensors of one size, above 0, in axis {self.dim}, but got sizes "
                f"{sorted(sizes)}"
            )
        return sizes.pop()

    def _shared_seed(self, count: int) -> int:
        """Draw a seed; all ranks take the first rank's, and all draw."""
        seed = np.array([int(random.randint(0, 2**62, size=(1,)).item())])
        what = f"a step of {count} samples in {self.tree.root[1]} shards"
        self.group.complete(self.group.comm.Ibcast(seed, 0), what)
        return int(seed[0])

    def _shard(
        self,
        loss_of: Callable[..., Tensor],
        batch: tuple,
        shard: int,
        count: int,
        seed: int,
        before: list[np.ndarray],
    ) -> Arrays:
        """Return gradients, changes of buffers, and loss of a shard, by its share of the batch."""
        shards = self.tree.root[1]
        start, end = shard * count // shards, (shard + 1) * count // shards
        if start == end:
            return [None] * self.tree.width
        share = (end - start) / count
        for parameter in self.parameters:
            parameter.grad = None
        random.manual_seed(seed_of(seed, shard))
        loss = loss_of(*cut(batch, self.dim, start, end))
        if not isinstance(loss, Tensor) or loss._array.size != 1:
            raise TypeError(f"loss_of must return a Tensor of one element, but got {loss!r}")
        loss.backward(tensor(share, dtype=loss.dtype).expand(loss.shape))
        changes = [
            np.asarray((b._array - old) * b._array.dtype.type(share))  # of 0-d it is a number
            for b, old in zip(self.buffers, before, strict=True)
            if is_floating(b)
        ]
        grads = [None if p.grad is None else p.grad._array for p in self.parameters]
        return [*grads, *changes, np.array([loss.item() * share])]

    def _put_buffers(self, arrays: list[np.ndarray]) -> None:
        for buffer, array in zip(self.buffers, arrays, strict=True):
            put(buffer, array)

    def _finish(self, sums: Arrays, before: list[np.ndarray], counters: list[np.ndarray]) -> None:
        """Add the summed gradients to `grad`, and update the buffers from all shards."""
        for parameter, array in zip(self.parameters, sums, strict=False):
            if array is not None:
                add_to_grad(parameter, array)
        changes = iter(sums[len(self.parameters) :])
        for buffer, old, counter in zip(self.buffers, before, counters, strict=True):
            if is_floating(buffer):
                new = old + next(changes)
            else:  # a count of batches: the last shard's
                new = np.array(counter, order="C")
                whole = new.reshape(-1).view(np.uint8)
                root = self.tree.owner(self.tree.root[1] - 1)
                self.group.wait(self.group.comm.Ibcast(whole, root), "buffers of a step")
            put(buffer, new)
