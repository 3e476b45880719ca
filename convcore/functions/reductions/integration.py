"""Integrals and slopes of sampled functions: trapezoid, gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor, wrap
from convcore._tensor.creation.arguments import checked_int, checked_number
from convcore._tensor.dtypes import INEXACT, float32, promote_types
from convcore.engine.runtime.checks import plain
from convcore.functions._support.arguments import check_tensor, ints, number
from convcore.functions._support.axes import wrap_dim
from convcore.functions.elementwise.arithmetic import add, div, mul, sub
from convcore.functions.reductions.numerics import diff
from convcore.functions.reductions.reduce import sum
from convcore.functions.shapes.broadcast import cast
from convcore.functions.shapes.joining import cat
from convcore.functions.shapes.shape import reshape, wrap_dims
from convcore.functions.shapes.slicing import slice_of

__all__ = ["gradient", "trapezoid", "trapz"]

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
    rank, shape = y._array.ndim, y._array.shape
    if not rank:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    axis = wrap_dim(dim, rank)
    size = shape[axis]
    if not size:  # zeros of the values' dtype, and no function of them
        dtype = plain(y._array).dtype
        return wrap(np.zeros((*shape[:axis], *shape[axis + 1 :]), dtype))
    doubled = add(slice_of(y, axis, 1, size), slice_of(y, axis, 0, size - 1))
    if x is None:
        return sum(mul(mul(doubled, number("trapezoid", "dx", dx)), 0.5), axis)
    return sum(mul(mul(doubled, diff(_along(x, y, axis), dim=axis)), 0.5), axis)


def _along(x: Tensor, y: Tensor, axis: int) -> Tensor:
    """Return where the values are, with the axes of ``y`` and any more behind them."""
    rank, missing = y._array.ndim, y._array.ndim - x._array.ndim
    if x._array.ndim == 1:
        if x._array.size != y._array.shape[axis]:
            raise RuntimeError("trapezoid: There must be one `x` value for each sample point")
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


trapz = trapezoid

FUNCTIONS_ONLY = {"gradient", "trapezoid", "trapz"}
