"""Sums over the shards of a batch in one fixed binary tree, whichever rank computed a shard.

Floating point addition is not associative: a sum has the same bits for any number of ranks if the
same pairs are added.  The tree depends on the number of shards alone; a rank has a run of shards,
adds what it can of the tree by itself, and sends the rest to the rank that has the left half.
"""

from __future__ import annotations

import numpy as np

from convcore.distributed.group import ProcessGroup

__all__: list[str] = []

Node = tuple[int, int]  # the shards from the first number up to the second


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

    Notes
    -----
    A rank keeps at most log2(shards) + 1 partial sums.
    """

    def __init__(self, shards: int, group: ProcessGroup):
        self.root = (0, shards)
        self.group = group
        self.own = [shard for shard in range(shards) if self.owner(shard) == group.rank()]
        self._siblings = siblings(self.root)
        self._sums: dict[Node, list[np.ndarray]] = {}

    def owner(self, shard: int) -> int:
        """Return the rank in the group that computes a shard."""
        return shard * self.group.size() // self.root[1]

    def add(self, shard: int, arrays: list[np.ndarray]) -> None:
        """Take the arrays of a shard of this rank, and add every pair that is complete."""
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

    def total(self, like: list[np.ndarray]) -> list[np.ndarray]:
        """Return the sum over all shards, in every rank.

        Parameters
        ----------
        like : list of arrays
            Of the shapes and dtypes of a shard's, for ranks that have none.
        """
        arrays = self._sum_of(self.root, like) or [np.empty_like(array) for array in like]
        self._sums.clear()
        for array in arrays:
            self.group.wait(self.group.comm.Ibcast(array, self.owner(0)), "the sum of all shards")
        return arrays

    def _sum_of(self, node: Node, like: list[np.ndarray]) -> list[np.ndarray] | None:
        """Return the sum of a node in the rank that has its first shard; None in the others."""
        if node in self._sums:
            return self._sums.pop(node)
        if self.owner(node[0]) == self.owner(node[1] - 1):
            return None  # another rank's, the whole of it
        here, split = self.group.rank(), middle(node)
        left = self._sum_of((node[0], split), like)
        right = self._sum_of((split, node[1]), like)
        to, source = self.owner(node[0]), self.owner(split)
        if to != source and here == source:
            assert right is not None
            self._send(right, to)
        if here != to:
            return None
        if to != source:
            right = self._receive(like, source)
        assert left is not None and right is not None
        return _added(left, right)

    def _send(self, arrays: list[np.ndarray], to: int) -> None:
        for array in arrays:
            self.group.wait(self.group.comm.Isend(array, to), f"a sum of shards for rank {to}")

    def _receive(self, like: list[np.ndarray], source: int) -> list[np.ndarray]:
        received = [np.empty_like(array) for array in like]
        for array in received:
            request = self.group.comm.Irecv(array, source)
            self.group.wait(request, f"a sum of shards of rank {source}")
        return received


def _added(left: list[np.ndarray], right: list[np.ndarray]) -> list[np.ndarray]:
    for into, array in zip(left, right, strict=True):
        into += array
    return left
