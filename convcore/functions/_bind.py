"""The one place that hangs methods on Tensor, and hands the traversal its sum.

A table, name -> function: a method is the function with the tensor as its first argument.  Each
family adds its own with its `METHODS`.
"""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Any

from convcore._tensor import Tensor
from convcore.autograd import differentiate, hooks, traversal
from convcore.functions import (
    activation,
    arithmetic,
    broadcast,
    compare,
    conv,
    convert,
    dropout,
    einsum,
    elementwise,
    indexing,
    joining,
    logic,
    loss,
    matmul,
    numerics,
    order,
    piecewise,
    reduce,
    sampling,
    scatter,
    shape,
    softmax,
    special,
    strided,
)

FAMILIES: tuple[types.ModuleType, ...] = (
    activation,
    arithmetic,
    broadcast,
    compare,
    conv,
    convert,
    dropout,
    einsum,
    elementwise,
    indexing,
    joining,
    logic,
    loss,
    matmul,
    numerics,
    order,
    piecewise,
    reduce,
    sampling,
    scatter,
    shape,
    softmax,
    special,
    strided,
)


def backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Add to the ``.grad`` of each leaf the gradient of this tensor; see `autograd.backward`."""
    differentiate.backward(self, gradient, retain_graph, create_graph, inputs=inputs)


GRAPH = {
    "backward": backward,
    "register_hook": hooks.register_hook,
    "register_post_accumulate_grad_hook": hooks.register_post_accumulate_grad_hook,
    "retain_grad": hooks.retain_grad,
}


def bind() -> None:
    """Hang every family's methods on Tensor."""
    methods: dict[str, Any] = dict(GRAPH)
    for family in FAMILIES:
        clash = methods.keys() & family.METHODS.keys()
        assert not clash, f"two families bind {sorted(clash)}"
        methods.update(family.METHODS)
    for name, function in methods.items():
        setattr(Tensor, name, function)
    traversal.add = arithmetic.add


bind()
