"""Kernel dispatch of elementwise ops: which arrays go to the compiled op, and which to NumPy.

An op is a tuple of its name and its parameters: ("leaky_relu", 0.1).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from convcore._errors import hinted, hints
from convcore._tensor import Tensor, scalar_name, wrap
from convcore._tensor.meta import NoValuesError, of_elements
from convcore.autograd import views
from convcore.autograd.grad_mode import mode
from convcore.autograd.node import describe, needs_history, record
from convcore.engine.layers.elementwise import elementwise
from convcore.functions._support.arguments import check_tensor
from convcore.functions._support.errstate import ignore_errstate

__all__: list[str] = []

Op = tuple[Any, ...]


def of_each(function: Callable, array: np.ndarray, warns: bool = False) -> np.ndarray:
    """Apply an elementwise function; ``warns`` says to suppress NumPy's floating-point warnings."""
    try:
        value = ignore_errstate(function, array) if warns else function(array)
    except NoValuesError:
        return of_elements(function, array.shape, array)
    return value if isinstance(value, np.ndarray) else np.asarray(value)


def dispatch(op: Op, ufunc: Callable, array: np.ndarray) -> np.ndarray:
    """Return the compiled op of an array, or ``ufunc(array)`` if there is none for the array.

    Half precision is always compiled: NumPy would round, and overflow, at each step.
    """
    if op and (elementwise.is_half(array.dtype) or elementwise.has_kernel(op[0], array)):
        return of_each(lambda array: elementwise.forward(op[0], array, op[1:]), array)
    return of_each(ufunc, array, warns=True)


def for_comparisons(array: np.ndarray) -> np.ndarray:
    """Return an array to compare with numbers: half precision, which would round them, wide."""
    return array.astype(np.float32) if elementwise.is_half(array.dtype) else array


def dispatch_pair(op: str, ufunc: np.ufunc, a: np.ndarray, b: np.ndarray) -> Any:
    """Return the sum or product of two arrays of one shape and dtype."""
    try:
        if elementwise.has_kernel(op, a, b):
            return elementwise.binary(op, a, b)
        return ignore_errstate(ufunc, a, b)
    except NoValuesError:
        return of_elements(ufunc, a.shape, a, b)


def backward_of(op: Op, gradient: Callable) -> Callable:
    """Return the backward of a node: its gradient is the compiled op's, if there is an op.

    ``gradient(grad, saved)``, written in differentiable functions, is left what is to be
    differentiated again, and what is of another dtype.
    """
    if not op:
        return lambda needs, grad, saved: gradient(grad, saved)
    name, *params = op

    def backward(needs: tuple[bool, ...], grad: Tensor, saved: Tensor) -> Tensor:
        dtype = saved._array.dtype
        is_compiled = elementwise.computes(name, dtype) and not mode.enabled
        if is_compiled and elementwise.is_worth_converting(name, dtype):
            return wrap(elementwise.gradient(name, grad._array, saved._array, params))
        result = gradient(grad, saved)
        return flat_in(result, saved) if name in _PIECEWISE else result

    return backward


# Ops whose gradient is constant almost everywhere.
_PIECEWISE = {
    *("clamp", "hardshrink", "hardsigmoid", "leaky_relu", "relu", "softshrink", "threshold")
}


def flat_in(out: Tensor, x: Tensor | Callable[[], Tensor]) -> Tensor:
    """Return ``out``, recorded as a function of ``x`` too, with a derivative of zero.

    So a second derivative is zeros, as in PyTorch, where nothing else leads from ``out`` to ``x``.
    In the place of a tensor ``x`` may be what `later_place_of` returns.
    """
    if not mode.enabled:
        return out
    x = x if isinstance(x, Tensor) else x()
    if not needs_history(x):
        return out
    same = wrap(out._array)
    array = x._array

    def backward(needs: tuple[bool, ...], grad: Tensor) -> tuple:
        return grad if needs[0] else None, wrap(np.zeros_like(array)) if needs[1] else None

    record("ThresholdBackwardBackward0", (out, x), same, backward)
    return same


def later_place_of(x: Tensor) -> Callable[[], Tensor]:
    """Return what makes a tensor with the shape and the history of ``x``, but none of its memory.

    The history is that of this moment.
    """
    node = x.grad_fn
    if node is None:
        return lambda: x  # a leaf, which the graph keeps anyway
    like, number = (x._array.shape, x._array.dtype), x._output_nr

    def place() -> Tensor:
        shape, dtype = like
        made = wrap(np.ndarray(shape, dtype, bytes(dtype.itemsize), 0, (0,) * len(shape)))
        made._grad_fn, made._output_nr, made._requires_grad = node, number, True
        return made

    return place


def compiled(
    x: Tensor,
    op: Op,
    gradient: Callable,
    inplace: bool = False,
    node: str = "",
    ufunc: Callable | None = None,
) -> Tensor:
    """Return a compiled op of a tensor, recorded with what its gradient needs.

    Parameters
    ----------
    x : Tensor
    op : tuple
    gradient : callable
        As for `backward_of`.
    inplace : bool
        Whether the result replaces x.
    node : str
        What the graph's node is named after; '' for the op.
    ufunc : callable, optional
        The op of an array of a dtype without a kernel.

    Raises
    ------
    NotImplementedError
        The tensor is not of a real floating-point dtype.
    """
    check_tensor(op[0], x)
    if inplace:
        return views.inplace(x, lambda x: compiled(x, op, gradient, node=node, ufunc=ufunc))
    array, node = x._array, node or op[0].title().replace("_", "")
    if array.dtype.kind not in "fV":
        kind = scalar_name(array.dtype)
        raise hinted(
            NotImplementedError(f"\"{node}\" not implemented for '{kind}'"),
            hints.FLOATS if array.dtype.kind in "iub" else "",
        )
    if ufunc is None or elementwise.computes(op[0], array.dtype):
        out = wrap(of_each(lambda array: elementwise.forward(op[0], array, op[1:]), array))
    else:
        out = wrap(of_each(ufunc, array, warns=True))
    if mode.enabled:
        saved = x if elementwise.OPS[op[0]].saved == "input" else out
        record(f"{node}Backward0", (x,), out, backward_of(op, gradient), (saved,))
        describe(out, kernel=op)
    return out
