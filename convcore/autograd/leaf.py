"""Hooks, gradient accumulator and gradient of a leaf tensor."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from convcore._tensor import Tensor


class Leaf:
    """A leaf's hooks, and its AccumulateGrad while a graph has one.

    Stand-ins for the leaf among saved tensors share this object, and so lead to its gradient.
    """

    __slots__ = ("accumulator", "after_accumulate", "hooks", "owner")

    def __init__(self, owner: Tensor) -> None:
        self.accumulator: Callable[[], Any] = _nobody
        self.hooks: OrderedDict = OrderedDict()
        self.after_accumulate: OrderedDict = OrderedDict()
        self.owner = weakref.ref(owner)

    def forget_accumulator(self) -> None:
        """Let later graphs have another AccumulateGrad, because the leaf got other memory."""
        self.accumulator = _nobody


def _nobody() -> None:
    """Be a weak reference to nothing."""


def leaf_of(tensor: Tensor) -> Leaf:
    """Return a leaf's `Leaf`, made at the first call."""
    if tensor._leaf is None:
        tensor._leaf = Leaf(tensor)
    return tensor._leaf


def blank(grad: Tensor) -> None:
    """Fill a leaf's gradient with zeros in place, outside of any graph; it may be a view."""
    if grad.grad_fn is not None:
        grad.detach_()
    else:
        grad.requires_grad_(False)
    grad.zero_()
