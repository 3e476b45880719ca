"""Tensors changed in place between forward and backward: the same gradient, or the in-place error.

Each tensor that a call read or returned is changed in turn.  A gradient that differs from the one
without a change comes from the new values: backward has read memory that was not saved with its
version.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from right_calls import Operands, values_of

import convcore
from convcore import Tensor

MODIFIED = "modified by an inplace operation"
NO_FURTHER = (RuntimeError, NotImplementedError)  # what functions without a derivative raise
ORDERS = (1, 2)  # the gradient, and that of the gradient


def findings(call: Callable[[Operands], Any]) -> Iterator[str]:
    """Yield what is wrong with the versions and the gradients of a call."""
    run = _Run(call)
    for number, (tensor, version, values) in enumerate(run.reads):
        if tensor._version == version and values_of(tensor) != values:
            yield f"argument {number} was written into, and its version stays {version}"
    for order in ORDERS:
        try:
            expected = _Run(call).gradients(order)
        except NO_FURTHER:
            return
        except Exception as error:
            yield f"gradient {order}: {error!r:.200}"
            return
        for number in range(len(run.tensors)):
            changed = _Run(call)
            try:
                found = changed.gradients(order, changed.tensors[number])
            except Exception as error:
                if MODIFIED not in str(error):
                    yield f"tensor {number} changed, gradient {order}: {error!r:.200}"
                continue
            if found != expected:
                yield f"tensor {number} changed: another gradient of order {order}"


class _Run:
    """A call that is made once: ``tensors`` are those that it read, and then its results."""

    def __init__(self, call: Callable[[Operands], Any]) -> None:
        convcore.manual_seed(20)
        operands = Operands()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = [*tensors_in(call(operands))]
        self.reads, self.leaves = operands.reads, operands.leaves
        self.tensors = [one.tensor for one in self.reads]
        self.tensors += [t for t in found if not any(t is one for one in self.tensors)]
        self.outputs = [t for t in found if t.requires_grad and t.numel()]

    def gradients(self, order: int, change: Tensor | None = None) -> list:
        """Return the values of all gradients; before the last pass a tensor is changed."""
        outputs, leaves = self.outputs, list(self.leaves)
        for n in range(order):
            if not outputs:
                raise NotImplementedError("there is no further derivative")
            last = n == order - 1
            if last and change is not None:
                _change(change)
            seeds = [_weights(t).requires_grad_() for t in outputs]
            found = convcore.autograd.grad(
                outputs, leaves, seeds, create_graph=not last, allow_unused=True
            )
            outputs = [g for g in found if g is not None and g.requires_grad]
            leaves += seeds
        for g, leaf in zip(found, leaves, strict=False):
            if g is not None and (g.shape, g.dtype) != (leaf.shape, leaf.dtype):
                raise AssertionError(f"a gradient of {leaf.shape} has shape {g.shape}, {g.dtype}")
        return [None if g is None else values_of(g) for g in found]


def _weights(t: Tensor) -> Tensor:
    """Return a gradient with other numbers everywhere."""
    return (1 + convcore.arange(t.numel()).reshape(t.shape) % 7 / 8).to(t.dtype)


def _change(t: Tensor) -> None:
    """Give a tensor other values of the same range, if that is possible."""
    old = t.detach().clone()
    if not old.numel():
        return
    if old.dtype == convcore.bool:
        new = ~old
    elif old.dtype.is_floating_point or old.dtype.is_complex:
        new = old * 0.5 + 0.25
    else:
        new = old.max() + old.min() - old
    # Elements of one place, and views of a function that makes several, cannot be changed.
    with contextlib.suppress(RuntimeError), convcore.no_grad():
        t.copy_(new)


def tensors_in(value: Any) -> Iterator[Tensor]:
    """Yield the tensors in a value, which may hold them in tuples, lists and dictionaries."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        yield from tensors_in(list(value.values()))
    elif isinstance(value, tuple | list):
        for one in value:
            yield from tensors_in(one)
