"""What a leaf keeps for the graph."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from convcore._tensor import Tensor


class Leaf:
    """A leaf's hooks, and its AccumulateGrad while one is in use.

    A saved tensor that stands for the leaf shares it, and so leads to the leaf's gradient.
    """

    __slots__ = ("accumulator", "after_accumulate", "hooks", "owner")

    def __init__(self, owner: Tensor) -> None:
        self.accumulator: Callable[[], Any] = _nobody
        self.hooks: OrderedDict = OrderedDict()
        self.after_accumulate: OrderedDict = OrderedDict()
        self.owner = weakref.ref(owner)


def _nobody() -> None:
    """Stand for a weak reference to nothing."""


def leaf_of(tensor: Tensor) -> Leaf:
    """Return what a leaf keeps for the graph, made at the first call."""
    if tensor._leaf is None:
        tensor._leaf = Leaf(tensor)
    return tensor._leaf
