"""Sums over the shards of a batch in one fixed binary tree, whichever rank computed a shard.

Floating point addition is not associative: a sum has the same bits for any number of ranks if the
same pairs are added.  The tree depends on the number of shards alone; a rank has a run of shards,
adds what it can of the tree by itself, and sends the rest to the rank that has the left half.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from convcore.distributed.group import ProcessGroup
from convcore.engine.layers.elementwise import elementwise

Node = tuple[int, int]  # the shards from the first number up to the second
Arrays = list[np.ndarray | None]  # None is a sum of nothing
_ALIGNMENT = 64  # bytes


def middle(node: Node) -> int:
    """Return where a node is split: its left half has the largest power of two below its size."""
    return node[0] + (1 << (node[1] - node[0] - 1).bit_length() - 1)


def siblings(root: Node) -> dict[Node, Node]:
    """Return each node's sibling in the tree of a root."""
    found: dict[Node, Node] = {}
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node[1] - node[0] > 1:
            left, right = (node[0], middle(node)), (middle(node), node[1])
            found[left], found[right] = right, left
            waiting += left, right
    return found


class ShardTree:
    """The sum of a list of arrays over all shards.

    Parameters
    ----------
    shards : int
        How many there are.
    group : ProcessGroup
        The ranks that they are divided among: each has a run of them, or none.
    like : list of arrays
        Of the shapes and dtypes of a shard's.

    Notes
    -----
    A rank keeps at most log2(shards) + 1 partial sums.
    """

    def __init__(self, shards: int, group: ProcessGroup, like: list[np.ndarray]):
        self.root = (0, shards)
        self.group = group
        self.own = [shard for shard in range(shards) if self.owner(shard) == group.rank()]
        self.width = len(like)
        self._like = like
        self._siblings = siblings(self.root)
        self._sums: dict[Node, Arrays] = {}

    def owner(self, shard: int) -> int:
        """Return the rank in the group that computes a shard."""
        return shard * self.group.size() // self.root[1]

    def add(self, shard: int, arrays: Arrays) -> None:
        """Add the arrays of a shard of this rank to those of every node that is then complete.

        They belong to the tree from then on: sums are made in them.
        """
        node = (shard, shard + 1)
        while node != self.root and self._siblings[node] in self._sums:
            sibling = self._siblings[node]
            other = self._sums.pop(sibling)
            arrays = _added(arrays, other) if node < sibling else _added(other, arrays)
            node = (min(node[0], sibling[0]), max(node[1], sibling[1]))
        self._sums[node] = arrays

    def clear(self) -> None:
        """Forget the sums of a step that failed."""
        self._sums.clear()

    def total(self) -> Arrays:
        """Return the sum over all shards, in every rank."""
        own = self._sum_of(self.root)
        self._sums.clear()
        if self.group.size() == 1:
            assert own is not None
            return own
        message = _Message(self._like) if own is None else _Message.of(own, self._like)
        for buffer in message.buffers():
            self.group.wait(
                self.group.layers.Ibcast(buffer, self.owner(0)), "the sum of all shards"
            )
        return message.arrays() if own is None else own

    def _sum_of(self, node: Node) -> Arrays | None:
        """Return the sum of a node in the rank that has its first shard; None in the others."""
        if node in self._sums:
            return self._sums.pop(node)
        if self.owner(node[0]) == self.owner(node[1] - 1):
            return None  # another rank's, the whole of it
        here, split = self.group.rank(), middle(node)
        left = self._sum_of((node[0], split))
        right = self._sum_of((split, node[1]))
        to, source = self.owner(node[0]), self.owner(split)
        if to != source and here == source:
            assert right is not None
            self._send(right, to)
        if here != to:
            return None
        if to != source:
            right = self._receive(source)
        assert left is not None and right is not None
        return _added(left, right)

    def _send(self, arrays: Arrays, to: int) -> None:
        for buffer in _Message.of(arrays, self._like).buffers():
            self.group.wait(self.group.layers.Isend(buffer, to), f"a sum of shards for rank {to}")

    def _receive(self, source: int) -> Arrays:
        message = _Message(self._like)
        for buffer in message.buffers():
            request = self.group.layers.Irecv(buffer, source)
            self.group.wait(request, f"a sum of shards of rank {source}")
        return message.arrays()


class _Message:
    """Arrays as they are sent: which there are, then the elements of these.

    Parameters
    ----------
    like : list of arrays
        Of their shapes and dtypes.
    """

    def __init__(self, like: list[np.ndarray]):
        self._like = like
        self._there = np.empty(len(like), np.uint8)
        self._elements: np.ndarray | None = None

    @classmethod
    def of(cls, arrays: Arrays, like: list[np.ndarray]) -> _Message:
        """Return the message of arrays, which are copied."""
        message = cls(like)
        message._there[:] = [array is not None for array in arrays]
        for array, place in zip(arrays, message.arrays(), strict=True):
            if place is not None:
                place[...] = array
        return message

    def buffers(self) -> Iterator[np.ndarray]:
        """Yield what is sent, or, in an empty message, what is to be received into."""
        yield self._there
        if self._elements is None:
            self.arrays()
        assert self._elements is not None
        yield self._elements

    def arrays(self) -> Arrays:
        """Return views of the arrays, each at an address that suits its elements."""
        sizes = [a.nbytes if there else 0 for a, there in zip(self._like, self._there, strict=True)]
        ends = np.cumsum([-(-size // _ALIGNMENT) * _ALIGNMENT for size in sizes], dtype=int)
        if self._elements is None:
            self._elements = np.empty(int(ends[-1]) if sizes else 0, np.uint8)
        starts = [0, *ends[:-1].tolist()]
        return [
            self._elements[start : start + size].view(a.dtype).reshape(a.shape) if there else None
            for a, there, start, size in zip(self._like, self._there, starts, sizes, strict=True)
        ]


def _added(left: Arrays, right: Arrays) -> Arrays:
    """Return the sums, in the arrays of either side."""
    for i, array in enumerate(right):
        into = left[i]
        if into is None:
            left[i] = array
        elif array is not None:
            elementwise.add_to(into, array)
    return left
