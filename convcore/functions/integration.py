"""Integrals and slopes of sampled functions: trapezoid, gradient; and logcumsumexp."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor, wrap
from convcore._tensor.creation.arguments import checked_int, checked_number
from convcore._tensor.dtypes import INEXACT, float32, promote_types
from convcore.autograd.grad_mode import mode
from convcore.autograd.node import record
from convcore.engine.runtime.checks import plain
from convcore.functions._support.arguments import check_kind, check_tensor, ints, number
from convcore.functions._support.axes import wrap_dim
from convcore.functions._support.errstate import ignore_errstate
from convcore.functions.arithmetic import add, div, mul, neg, sub
from convcore.functions.broadcast import cast
from convcore.functions.elementwise import exp, log
from convcore.functions.in_float32 import in_float32
from convcore.functions.joining import cat
from convcore.functions.numerics import diff
from convcore.functions.piecewise import where
from convcore.functions.rearrange import flip
from convcore.functions.reduce import cumsum, sum
from convcore.functions.shape import movedim, reshape, unsqueeze, wrap_dims
from convcore.functions.slicing import slice_of

__all__ = ["cumulative_trapezoid", "gradient", "logcumsumexp", "trapezoid", "trapz"]

_FLOAT32 = np.dtype("float32")


@names_arguments
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = 1.0, dim: int = -1) -> Tensor:
    """Integrate along an axis by the trapezoidal rule.

    Parameters
    ----------
    y : Tensor
        The values.
    x : Tensor or None
        Where they are: a vector, or a Tensor that broadcasts with ``y``.  One of more axes than
        ``y`` is sampled along the axis of the same number, counted from the front.
    dx : number
        The distance of neighbours, if ``x`` is not given.
    dim : int

    Examples
    --------
    >>> import convcore
    >>> convcore.trapezoid(convcore.tensor([0.0, 1.0, 4.0]), dx=2)
    tensor(6.)
    """
    check_tensor("trapezoid", y)
    axis, shape = _axis(dim, y), y._array.shape
    if not shape[axis]:  # zeros of the values' dtype, and no function of them
        dtype = plain(y._array).dtype
        return wrap(np.zeros((*shape[:axis], *shape[axis + 1 :]), dtype))
    return sum(_trapezoids("trapezoid", y, x, dx, axis), axis)


@names_arguments
def cumulative_trapezoid(
    y: Tensor, x: Tensor | None = None, *, dx: Any = 1.0, dim: int = -1
) -> Tensor:
    """Return the cumulative integrals by the trapezoidal rule; the rest as for `trapezoid`."""
    check_tensor("cumulative_trapezoid", y)
    axis = _axis(dim, y)
    return cumsum(_trapezoids("cumulative_trapezoid", y, x, dx, axis), axis)


def _axis(dim: int, y: Tensor) -> int:
    if not y._array.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return wrap_dim(dim, y._array.ndim)


def _trapezoids(function: str, y: Tensor, x: Tensor | None, dx: Any, axis: int) -> Tensor:
    size = y._array.shape[axis]
    doubled = add(slice_of(y, axis, 1, size), slice_of(y, axis, 0, max(size - 1, 0)))
    if x is None:
        return mul(mul(doubled, number(function, "dx", dx)), 0.5)
    return mul(mul(doubled, diff(_along(function, x, y, axis), dim=axis)), 0.5)


def _along(function: str, x: Tensor, y: Tensor, axis: int) -> Tensor:
    """Return where the values are, with the axes of ``y`` and any more behind them."""
    rank, missing = y._array.ndim, y._array.ndim - x._array.ndim
    if x._array.ndim == 1:
        if x._array.size != y._array.shape[axis]:
            raise RuntimeError(f"{function}: There must be one `x` value for each sample point")
        return reshape(x, [-1 if one == axis else 1 for one in range(rank)])
    return reshape(x, [1] * missing + list(x._array.shape)) if missing > 0 else x


@names_arguments
def gradient(
    input: Tensor, *, spacing: Any = None, dim: Any = None, edge_order: int = 1
) -> tuple[Tensor, ...]:
    """Return the slopes of sampled values along each axis, by central differences.

    Parameters
    ----------
    input : Tensor
    spacing : number, numbers or vectors of coordinates, one an axis
        The distance of neighbours; 1 if it is not given.
    dim : int, ints, or None for all axes
    edge_order : 1 or 2
        The order of the error at both ends.

    Raises
    ------
    RuntimeError
        An axis has no more than ``edge_order`` elements.
    """
    check_tensor("gradient", input)
    rank = input._array.ndim
    over = range(rank) if dim is None else wrap_dims(ints("gradient", "dim", dim), rank)
    if not (spacing is None or isinstance(spacing, Tensor | Sequence)):
        checked_number("gradient", spacing, "spacing")
    steps = spacing if isinstance(spacing, Sequence) else [spacing] * len(over)
    if len(steps) != len(over):
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar, or a list of length "
            f"equal to the number of dimensions, {len(over)}, but got a list of length {len(steps)}"
        )
    if checked_int("gradient", "edge_order", edge_order) not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    return tuple([_slopes(input, axis, h, edge_order) for axis, h in zip(over, steps, strict=True)])


def _slopes(x: Tensor, axis: int, spacing: Any, edge_order: int) -> Tensor:
    size = x._array.shape[axis]
    if size <= edge_order:
        raise RuntimeError(
            "torch.gradient expected each dimension size to be at least edge_order+1"
        )
    if isinstance(spacing, Tensor) and spacing._array.ndim:
        x, steps = _in_common_dtype(x, diff(spacing))
        return _slopes_at(x, steps, axis, edge_order)
    if x._array.dtype.kind not in INEXACT:
        x = cast(x, _FLOAT32)
    h = checked_number("gradient", 1.0 if spacing is None else spacing, "spacing")
    x = cast(x, np.result_type(x._array, np.complex64)) if np.iscomplexobj(h) else x
    return div(_slopes_at(x, wrap(np.ones(size - 1, x._array.dtype)), axis, edge_order), h)


def _in_common_dtype(x: Tensor, steps: Tensor) -> list[Tensor]:
    """Return values and distances in their common dtype; that of integer distances is float32."""
    dtypes = (x.dtype, steps.dtype if steps._array.dtype.kind in INEXACT else float32)
    dtype = promote_types(*dtypes).numpy
    return [one if one._array.dtype == dtype else cast(one, dtype) for one in (x, steps)]


def _slopes_at(x: Tensor, steps: Tensor, axis: int, edge_order: int) -> Tensor:
    """Return the slopes of values that lie so far apart."""
    size = x._array.shape[axis]

    def step(first: int, count: int = 1) -> Tensor:
        part = slice_of(steps, 0, first, first + count)
        return reshape(part, (-1, *(1,) * (x._array.ndim - 1 - axis)))

    def weighed(first: int, *weights: Tensor) -> Tensor:
        total: Any = None
        for place, weight in enumerate(weights, first):
            array = weight._array
            if array.size and not array.any() and not weight.requires_grad:
                continue  # times what may be infinite
            term = mul(slice_of(x, axis, place, place + array.shape[0]), weight)
            total = term if total is None else add(total, term)
        return total

    def rise(place: int) -> Tensor:
        low, high = (slice_of(x, axis, one, one + 1) for one in (place, place + 1))
        return div(sub(high, low), step(place))

    a, b = step(0, size - 2), step(1, size - 2)
    inner = weighed(0, -b / (a * (a + b)), (b - a) / (a * b), a / (b * (a + b)))
    if edge_order == 1:
        return cat([rise(0), inner, rise(size - 2)], axis)
    a, b, c, d = (step(place) for place in (0, 1, size - 3, size - 2))
    first = -(2 * a + b) / (a * (a + b)), (a + b) / (a * b), -a / (b * (a + b))
    last = d / (c * (c + d)), -(c + d) / (c * d), (2 * d + c) / (d * (c + d))
    return cat([weighed(0, *first), inner, weighed(size - 3, *last)], axis)


@in_float32
def logcumsumexp(input: Tensor, dim: int | None = None, *, axis: int | None = None) -> Tensor:
    """Return the logarithms of the cumulative sums of exponentials along an axis, safely."""
    check_tensor("logcumsumexp", input)
    check_kind("logcumsumexp_out_cpu", input, "f")
    axis = wrap_dim(axis if dim is None else dim, input._array.ndim)
    array = np.atleast_1d(input._array)
    value = ignore_errstate(np.logaddexp.accumulate, array, axis) if array.size else array.copy()
    out = wrap(value.reshape(input._array.shape))
    if mode.enabled:

        def backward(needs: tuple[bool, ...], grad: Tensor, x: Tensor, y: Tensor) -> Tensor:
            if mode.enabled:
                return _shared(grad, x, y, axis)
            return sub(_returned(grad, x, y, axis), _returned(neg(grad), x, y, axis))

        record("LogcumsumexpBackward0", (input,), out, backward, (input, out))
    return out


def _returned(grad: Tensor, x: Tensor, y: Tensor, axis: int) -> Tensor:
    """Return the part of the gradient that comes from its positive elements."""
    positive = wrap(np.asarray(grad._array > 0))
    finite = wrap(np.where(np.isneginf(y._array), 0, y._array))
    logs = sub(where(positive, log(where(positive, grad, 1.0)), -math.inf), finite)
    if not x._array.ndim:
        return exp(add(logs, x))
    return exp(add(flip(logcumsumexp(flip(logs, (axis,)), axis), (axis,)), x))


def _shared(grad: Tensor, x: Tensor, y: Tensor, axis: int) -> Tensor:
    """Return the gradient as a sum over all pairs, exp(x_j - y_i), which has further gradients."""
    if not x._array.ndim:
        return mul(grad, exp(sub(x, y)))
    grad, x, y = (movedim(one, axis, -1) for one in (grad, x, y))
    size = x._array.shape[-1]
    later = wrap(np.tri(size, dtype=bool))
    shares = exp(where(later, sub(unsqueeze(x, -2), unsqueeze(y, -1)), -math.inf))
    return movedim(sum(mul(unsqueeze(grad, -1), shares), -2), -1, axis)


trapz = trapezoid

FUNCTIONS_ONLY = {"cumulative_trapezoid", "gradient", "trapezoid", "trapz"}
