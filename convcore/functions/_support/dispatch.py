"""Kernel dispatch of elementwise ops: which arrays go to the compiled op, and which to NumPy.

An op is a tuple of its name and its parameters: ("leaky_relu", 0.1).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from convcore._tensor import Tensor, scalar_name, wrap
from convcore.autograd.grad_mode import mode
from convcore.autograd.node import describe, record
from convcore.engine.layers import elementwise
from convcore.functions._support.errstate import ignore_errstate

__all__: list[str] = []

Op = tuple[Any, ...]


def dispatch(op: Op, ufunc: Callable, array: np.ndarray) -> Any:
    """Return the compiled op of an array, or ``ufunc(array)`` of few elements or another dtype."""
    if op and array.size >= elementwise.LEAST and elementwise.computes(op[0], array.dtype):
        return elementwise.forward(op[0], array, op[1:])
    return ignore_errstate(ufunc, array)


def dispatch_pair(op: str, ufunc: np.ufunc, a: np.ndarray, b: np.ndarray) -> Any:
    """Return the sum or product of two arrays of one shape and dtype."""
    if elementwise.has_kernel(op, a, b):
        return elementwise.binary(op, a, b)
    return ignore_errstate(ufunc, a, b)


def compiled_backward(op: Op, backward: Callable) -> Callable:
    """Return a backward that computes the op's gradient with its kernel.

    ``backward(needs, grad, saved)``, written in differentiable functions, is left what is to be
    differentiated again, and what is not of a kernel's dtype.
    """
    name, *params = op

    def dispatched(needs: tuple[bool, ...], grad: Tensor, saved: Tensor) -> Tensor:
        if mode.enabled or not elementwise.computes(name, saved._array.dtype):
            return backward(needs, grad, saved)
        return wrap(elementwise.gradient(name, grad._array, saved._array, params))

    return dispatched


def compiled(
    x: Tensor, node: str, op: Op, backward: Callable, ufunc: Callable | None = None
) -> Tensor:
    """Return a compiled op of a tensor, recorded with what its gradient needs.

    Parameters
    ----------
    x : Tensor
    node : str
        The name of the graph's node.
    op : tuple
    backward : callable
        As for `compiled_backward`.
    ufunc : callable, optional
        The op of an array of a dtype without a kernel.

    Raises
    ------
    NotImplementedError
        The tensor is not of a real floating-point dtype.
    """
    array = x._array
    if array.dtype.kind != "f":
        kind = scalar_name(array.dtype)
        raise NotImplementedError(f"\"{node[:-9]}\" not implemented for '{kind}'")
    if ufunc is None or elementwise.computes(op[0], array.dtype):
        out = wrap(elementwise.forward(op[0], array, op[1:]))
    else:
        out = wrap(np.asarray(ignore_errstate(ufunc, array)))
    if mode.enabled:
        saved = x if elementwise.OPS[op[0]].saved == "input" else out
        record(node, (x,), out, compiled_backward(op, backward), (saved,))
        describe(out, kernel=op)
    return out
