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

import weakref
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from convcore._tensor import wrap
from convcore._tensor.creation import zeros_like
from convcore.distributed.buckets import GradBucket, Layout, buckets_of
from convcore.distributed.faults import Progress
from convcore.distributed.group import ProcessGroup, _State
from convcore.futures import Future

CommHook = Callable[[Any, GradBucket], Future]


class Reducer:
    """Average the gradients of parameters over the ranks of a group, in each backward pass.

    Parameters
    ----------
    named : list of (str, Parameter)
    group : ProcessGroup
    first, others : int
        Bytes of the first bucket, which is to start early, and of the others.
    as_views : bool
        Whether gradients are views of the buckets, so that they are not copied out of these.
    unused : bool
        Whether passes may leave parameters unused; ranks then tell one another which they used.
    """

    # Those whose forward pass was the last, and those whose backward pass is still to end.
    _active: ClassVar[weakref.WeakSet[Reducer]] = weakref.WeakSet()

    def __init__(
        self,
        named: list[tuple[str, Any]],
        group: ProcessGroup,
        first: int,
        others: int,
        as_views: bool = False,
        unused: bool = False,
    ):
        self.names = [name for name, _ in named]
        self.parameters: list[Any] = [parameter for _, parameter in named]
        self._ids = set(map(id, self.parameters))
        self.group = group
        self.hook: tuple[Any, CommHook] | None = None
        self._as_views = as_views
        self._bytes = first, others
        self._layouts = [Layout(parameter._array) for parameter in self.parameters]
        self.buckets = buckets_of([*range(len(named))][::-1], self._layouts, first, others)
        self.factor = 1 / group.size()
        self.overlap = 0.0  # part of the last pass's bytes that were reduced when it had ended
        self._unused = unused
        self._left_out: list[int] = []
        self._used = np.ones(len(named), np.uint8)
        self._expects = False  # whether a backward pass is to end
        self._marked: dict[int, None] = {}
        self._launched = 0
        self._order: list[int] = []
        self._passes = 0

    def prepare(self, factor: float, source: int = 0) -> None:
        """Be ready for a backward pass, whose gradients have a factor in this rank.

        Parameters
        ----------
        factor : float
        source : int
            A rank of the group that computed gradients in all passes before.

        Raises
        ------
        RuntimeError
            Parameters got no gradient in the last one.
        """
        if self._marked:
            names = [name for i, name in enumerate(self.names) if i not in self._marked]
            raise RuntimeError(
                "Expected to have finished reduction in the prior iteration before starting a new "
                f"one. Parameters without a gradient in this rank: {', '.join(names)}. With "
                "find_unused_parameters=True a forward pass may leave parameters unused."
            )
        self._expects, self.factor = True, factor
        Reducer._active = weakref.WeakSet([self, *(r for r in Reducer._active if r._expects)])
        self._left_out = []
        if self._passes == 1 and self.group.size() > 1:
            self._rebuild(source)

    def _rebuild(self, source: int) -> None:
        """Put buckets in the order in which gradients came to a rank."""
        shared = np.array(self._order or [*range(len(self.names))])
        self.group.complete(self.group.comm.Ibcast(shared, source), "the order of gradients")
        self.buckets = buckets_of(shared.tolist(), self._layouts, *self._bytes)

    def leave_out(self, unused: list[int]) -> None:
        """Hear which parameters the pass will not use.

        Their gradients are taken with the first of the others: until then they may be set to zero.
        """
        self._left_out = unused
        if len(unused) == len(self.parameters):  # no other will come
            self._mark_left_out()

    def mark(self, i: int) -> None:
        """Take a parameter's gradient, which is complete, and begin what can be begun.

        Not that of a pass of another wrapper, which shares the parameter.
        """
        if self in Reducer._active or not self._is_shared(i):
            self._mark_left_out()
            self._mark(i)

    def _is_shared(self, i: int) -> bool:
        """Return whether a pass of another wrapper takes the parameter's gradient too."""
        key = id(self.parameters[i])
        return any(key in one._ids for one in Reducer._active if one is not self)

    def _mark_left_out(self) -> None:
        unused, self._left_out = self._left_out, []
        for i in unused:
            self._mark(i, used=False)

    def _mark(self, i: int, used: bool = True) -> None:
        if i in self._marked:
            raise RuntimeError(
                f"Expected to mark a variable ready only once, but {self.names[i]} got a gradient "
                "twice: backward passes of several losses, or of a reentrant checkpoint, share it. "
                "Add up the losses, or checkpoint with use_reentrant=False."
            )
        bucket = next(b for b in self.buckets if i in b.members)
        gradient = self.parameters[i].grad
        if not self._is_idle():
            factor = self.factor * self.group.size() if self.hook else self.factor
            array = None if gradient is None else gradient._array
            bucket.take(i, array, factor, copies=self._is_shared(i))
        self._used[i] = used or gradient is not None or not self._unused
        bucket.missing -= 1
        self._marked[i] = None
        for other in self.buckets[: self._launched]:
            other.is_reduced()  # which gives MPI its turn
        # In the same order in all ranks, whichever is full first.
        while self._launched < len(self.buckets) and not self.buckets[self._launched].missing:
            self._launch()
        if self._launched == len(self.buckets):
            self._finish()

    def skip(self) -> None:
        """Take part in a backward pass of the others, with no gradients of this rank's own."""
        self._used[...] = not self._unused
        for bucket in self.buckets:
            bucket.clear()
            self._launch()
        self._finish()

    def _is_idle(self) -> bool:
        """Return whether gradients stay as they are, as those of one rank do."""
        return self.group.size() == 1 and self.hook is None

    def _launch(self) -> None:
        number, self._launched = self._launched, self._launched + 1
        bucket = self.buckets[number]
        if self.hook is not None:
            state, hook = self.hook
            seen = GradBucket(bucket, number, number + 1 == len(self.buckets), self.parameters)
            bucket.future = hook(state, seen)
            if not isinstance(bucket.future, Future):
                kind = type(bucket.future).__name__
                raise TypeError(f"a communication hook must return a Future, but returned {kind}")
        elif self.group.size() > 1:
            request = self.group.comm.Iallreduce(_State.mpi.IN_PLACE, bucket.elements)
            what = f"the gradients of {len(self.parameters)} parameters"
            # Who begins a pass's first bucket begins them all, in this order.
            bucket.request = request if number else self.group.agreed(request, what)

    def _share_used(self) -> None:
        """Find out which parameters any rank used."""
        if self._unused and self.group.size() > 1:
            request = self.group.comm.Iallreduce(_State.mpi.IN_PLACE, self._used, _State.mpi.MAX)
            self.group.wait(request, "which parameters are used")

    def _finish(self) -> None:
        """Wait for the averages and put them into ``.grad``."""
        done = [bucket.nbytes for bucket in self.buckets if bucket.is_reduced()]
        self.overlap = sum(done) / max(1, sum(bucket.nbytes for bucket in self.buckets))
        self._share_used()
        for number, bucket in enumerate(self.buckets):
            self.group.wait(bucket.request, f"the gradients of bucket {number}")
            if bucket.future is not None:
                bucket.replace(bucket.future.wait())
            if not self._is_idle():
                for i, view in bucket.views.items():
                    if self._used[i]:
                        self._put(self.parameters[i], view, bucket.taken)
            bucket.reset()
        self._order, self._marked, self._launched = [*self._marked], {}, 0
        self._expects = False
        self._passes += 1
        Progress.advance()

    def _put(self, parameter: Any, average: np.ndarray, taken: np.ndarray | None) -> None:
        """Have the average in ``.grad``, where it is already if it was reduced in its memory."""
        there = None if parameter.grad is None else parameter.grad._array
        if there is None or there is not taken:
            if self._as_views and average.dtype == parameter._array.dtype:
                if there is not average:
                    parameter.grad = wrap(average)
            else:
                if there is None:
                    parameter.grad = zeros_like(parameter.detach())
                np.copyto(parameter.grad._array, average, casting="unsafe")
        parameter.grad._counter[0] += 1
