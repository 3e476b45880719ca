"""Bind functions to Tensor as its methods, and give the backward traversal its `add`.

A module's methods are the functions in its `__all__`, without those in `FUNCTIONS_ONLY`, and what
its `METHODS` adds: operators, in-place forms, and names that are only methods.
"""

from __future__ import annotations

import importlib
import types
from collections.abc import Sequence
from typing import Any

from convcore._errors.calls import hinting
from convcore._tensor import Tensor
from convcore.autograd import differentiate, hooks, traversal
from convcore.functions import _not_here
from convcore.functions.elementwise import arithmetic

# The order is that of the names in the package and of Tensor's methods.
_NAMES = {
    "drawing": "dropout sampling",
    "elementwise": "activation angles arithmetic compare complex_parts elementwise floats gamma "
    "logic piecewise rounding special ternary",
    "indexing": "binning index_along indexing masked order ranks scatter scatter_reduce",
    "losses": "cross_entropy loss",
    "normalization": "softmax",
    "products": "einsum matmul matrices products",
    "reductions": "distance integration numerics reduce variance",
    "shapes": "broadcast convert joining memory rearrange shape slicing splitting strided",
    "windows": "conv",
}
FAMILIES = [
    importlib.import_module(f"convcore.functions.{folder}.{name}")
    for folder, names in _NAMES.items()
    for name in names.split()
]


@hinting
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


def methods_of(family: types.ModuleType) -> dict[str, Any]:
    """Return the methods that a module of functions adds to Tensor, by name."""
    no_methods = getattr(family, "FUNCTIONS_ONLY", ())
    named = {name: getattr(family, name) for name in family.__all__ if name not in no_methods}
    return named | getattr(family, "METHODS", {})


def bind() -> None:
    """Set the methods of all modules of functions on Tensor."""
    methods: dict[str, Any] = dict(GRAPH)
    own = vars(Tensor).keys()
    for family in FAMILIES:
        found = methods_of(family)
        clash = (methods.keys() | own) & found.keys()
        assert not clash, f"bound twice: {sorted(clash)}"
        methods.update(found)
    for name, function in methods.items():
        setattr(Tensor, name, function)
    _not_here.bind()
    traversal.add = arithmetic.add


bind()
