"""softmax, log_softmax and softmin along an axis."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

from convcore._errors import hinted, hints
from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor, scalar_name, wrap
from convcore._tensor.dtypes import as_numpy
from convcore.autograd.grad_mode import mode
from convcore.autograd.node import describe, record
from convcore.engine.layers.softmax import softmax as engine_softmax
from convcore.functions._support.arguments import check_tensor
from convcore.functions._support.axes import wrap_dim
from convcore.functions.elementwise.arithmetic import mul, neg, sub
from convcore.functions.elementwise.elementwise import exp
from convcore.functions.reductions.reduce import sum
from convcore.functions.shapes.broadcast import cast

__all__ = ["log_softmax", "softmax", "softmin"]


@names_arguments
def softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """Return exp(x) over the sum of exp(x) along an axis.

    Parameters
    ----------
    input : Tensor of a floating-point dtype
    dim : int
        None is deprecated: 0 for 0, 1 and 3 axes, else 1.
    dtype : dtype or None
        The elements are converted to it first.

    Examples
    --------
    >>> import convcore
    >>> convcore.softmax(convcore.zeros(2, 2), dim=1)
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]])
    """
    check_tensor("softmax", input)
    x, along = _prepared("softmax", input, dim, _stacklevel, dtype)
    return _along(x, along, False, "SoftmaxBackward0", _softmax_gradient)


def _softmax_gradient(grad: Tensor, y: Tensor, along: int) -> Tensor:
    weighted = mul(grad, y)
    return sub(weighted, mul(y, sum(weighted, along, True)))


@names_arguments
def softmin(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """Return `softmax` of -input."""
    check_tensor("softmin", input)
    if dim is None:
        dim = _implicit_dim("softmin", input._array.ndim, _stacklevel + 1)
    return softmax(neg(input), dim, dtype=dtype)


@names_arguments
def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """Return the logarithm of `softmax`, which has the same arguments, without its underflow."""
    check_tensor("log_softmax", input)
    x, along = _prepared("log_softmax", input, dim, _stacklevel, dtype)
    return _along(x, along, True, "LogSoftmaxBackward0", _log_softmax_gradient)


def _log_softmax_gradient(grad: Tensor, y: Tensor, along: int) -> Tensor:
    return sub(grad, mul(exp(y), sum(grad, along, True)))


def _along(x: Tensor, along: int, log: bool, name: str, gradient: Callable) -> Tensor:
    """Return the engine's softmax, or its logarithm; ``gradient`` is for double backward."""
    out = wrap(engine_softmax.forward(x._array, along, log))
    if mode.enabled:

        def backward(needs: tuple[bool, ...], grad: Tensor, y: Tensor) -> Tensor:
            if mode.enabled:
                return gradient(grad, y, along)
            return wrap(engine_softmax.backward(grad._array, y._array, along, log))

        record(name, (x,), out, backward, (out,))
        describe(out, forward=partial(engine_softmax.forward, along=along, log=log))
    return out


def _prepared(
    function: str, x: Tensor, dim: int | None, stacklevel: int, dtype: Any
) -> tuple[Tensor, int]:
    """Return the tensor in the dtype to compute in, and the axis."""
    rank = x._array.ndim
    if dim is None:
        dim = _implicit_dim(function, rank, stacklevel + 2)
    if dtype is not None and x._array.dtype != as_numpy(dtype):
        x = cast(x, as_numpy(dtype))
    if x._array.dtype.kind not in "fV":
        kind = scalar_name(x._array.dtype)
        raise hinted(
            NotImplementedError(f"\"{function}_lastdim_kernel_impl\" not implemented for '{kind}'"),
            hints.REAL if x._array.dtype.kind == "c" else hints.FLOATS,
        )
    return x, wrap_dim(dim, rank)


def _implicit_dim(function: str, rank: int, stacklevel: int) -> int:
    warnings.warn(
        f"Implicit dimension choice for {function} has been deprecated. Change the call to include "
        "dim=X as an argument.",
        stacklevel=max(1, min(stacklevel, 1000)),
    )
    return 0 if rank in (0, 1, 3) else 1


def _method(function: Callable) -> Callable:
    """Return softmax as a method, which has no _stacklevel among its arguments."""

    def method(self: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
        return function(self, dim, 5, dtype)

    method.__doc__, method.__name__ = function.__doc__, function.__name__
    method.__qualname__ = function.__qualname__
    return names_arguments(method)


FUNCTIONS_ONLY = {"softmin"}
METHODS = {"log_softmax": _method(log_softmax), "softmax": _method(softmax)}
