"""Reducer: gradients of all ranks averaged in buckets while the backward pass goes on.

A hook on each parameter copies its gradient into a flat bucket when it is complete. A bucket that
is full is reduced by MPI while the pass computes the gradients of others: buckets are in the order
in which gradients come, about the reverse of the order of use, and each hook gives MPI the turn
that it needs to move on.

References
----------
S. Li et al., "PyTorch Distributed: experiences on accelerating data parallel training", VLDB 2020.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore._creation import zeros_like
from convcore._tensor import Tensor
from convcore.distributed.alone import Alone
from convcore.distributed.faults import Progress
from convcore.distributed.group import ProcessGroup, _State

__all__: list[str] = []


class Bucket:
    """Gradients that are reduced at once.

    Parameters
    ----------
    members : list of int
        Numbers of parameters.
    parameters : list of Tensors, all of them
    """

    def __init__(self, members: list[int], parameters: list[Tensor]):
        dtype = parameters[members[0]]._array.dtype
        half = dtype.itemsize == 2  # MPI cannot add it
        sizes = [parameters[i]._array.size for i in members]
        ends = np.cumsum(sizes).tolist()
        self.slices = {i: slice(e - n, e) for i, n, e in zip(members, sizes, ends, strict=True)}
        # With a flag for each member at the end: whether any rank used it.
        self.sent = np.zeros(ends[-1] + len(members), np.float32 if half else dtype)
        self.received = np.empty_like(self.sent)
        self.flags = {i: ends[-1] + place for place, i in enumerate(members)}
        self.missing = len(members)
        self.request: Any = None

    def reset(self) -> None:
        """Prepare for the next pass."""
        self.sent[...] = 0
        self.missing, self.request = len(self.slices), None


def buckets_of(order: list[int], parameters: list[Tensor], first: int, others: int) -> list[Bucket]:
    """Cut an order of parameters into buckets of one dtype and about some bytes each."""
    groups: list[list[int]] = []
    held, dtype = 0, np.dtype(object)
    for i in order:
        array = parameters[i]._array
        if array.dtype != dtype or held >= (first if len(groups) == 1 else others):
            groups.append([])
            held, dtype = 0, array.dtype
        groups[-1].append(i)
        held += array.nbytes
    return [Bucket(members, parameters) for members in groups]


class Reducer:
    """Average the gradients of parameters over the ranks of a group, in each backward pass.

    Parameters
    ----------
    named : list of (str, Parameter)
    group : ProcessGroup
    first, others : int
        Bytes of the first bucket, which is to start early, and of the others.
    """

    def __init__(self, named: list[tuple[str, Any]], group: ProcessGroup, first: int, others: int):
        self.names = [name for name, _ in named]
        self.parameters: list[Any] = [parameter for _, parameter in named]
        self.group = group
        self._bytes = first, others
        self.buckets = buckets_of([*range(len(named))][::-1], self.parameters, first, others)
        self._op = None if isinstance(group.comm, Alone) else _State.mpi.SUM
        self.factor = 1 / group.size()
        self._marked: list[int] = []
        self._launched = 0
        self._order: list[int] | None = None
        self._rebuilt = False

    def prepare(self, factor: float) -> None:
        """Be ready for a backward pass, whose gradients have a factor in this rank.

        Raises
        ------
        RuntimeError
            Parameters got no gradient in the last one.
        """
        if self._marked:
            got = set(self._marked)
            names = [name for i, name in enumerate(self.names) if i not in got]
            raise RuntimeError(
                "Expected to have finished reduction in the prior iteration before starting a new "
                f"one. Parameters without a gradient in this rank: {', '.join(names)}. With "
                "find_unused_parameters=True a forward pass may leave parameters unused."
            )
        self.factor = factor
        if self._order is not None and not self._rebuilt:
            self._rebuild(self._order)

    def _rebuild(self, order: list[int]) -> None:
        """Put buckets in the order in which gradients came to the first rank."""
        shared = np.array(order)
        self.group.wait(self.group.comm.Ibcast(shared, 0), "the order of gradients")
        self.buckets = buckets_of(shared.tolist(), self.parameters, *self._bytes)
        self._rebuilt = True

    def mark(self, i: int, used: bool = True) -> None:
        """Take a parameter's gradient, which is complete, and begin what can be begun."""
        bucket = next(b for b in self.buckets if i in b.slices)
        gradient = self.parameters[i].grad
        if gradient is not None:
            scaled = gradient._array.reshape(-1).astype(bucket.sent.dtype, copy=False)
            np.multiply(
                scaled, bucket.sent.dtype.type(self.factor), out=bucket.sent[bucket.slices[i]]
            )
        bucket.sent[bucket.flags[i]] = used or gradient is not None
        bucket.missing -= 1
        self._marked.append(i)
        for other in self.buckets[: self._launched]:
            other.request.Test()
        # In the same order in all ranks, whichever is full first.
        while self._launched < len(self.buckets) and not self.buckets[self._launched].missing:
            self._launch(self.buckets[self._launched])
        if self._launched == len(self.buckets):
            self._finish()

    def _launch(self, bucket: Bucket) -> None:
        bucket.request = self.group.comm.Iallreduce(bucket.sent, bucket.received, self._op)
        self._launched += 1

    def _finish(self) -> None:
        """Wait for the averages and put them into ``.grad``."""
        for number, bucket in enumerate(self.buckets):
            self.group.wait(bucket.request, f"the gradients of bucket {number}")
            for i, place in bucket.slices.items():
                if bucket.received[bucket.flags[i]]:
                    self._put(self.parameters[i], bucket.received[place])
            bucket.reset()
        self._order, self._marked, self._launched = self._marked, [], 0
        Progress.advance()

    @staticmethod
    def _put(parameter: Any, average: np.ndarray) -> None:
        if parameter.grad is None:
            parameter.grad = zeros_like(parameter.detach())
        array = parameter.grad._array
        array[...] = average.reshape(array.shape).astype(array.dtype, copy=False)
        parameter.grad._counter[0] += 1
