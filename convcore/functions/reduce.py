"""Sums, means and what is made of them: prod, var, std, norm, logsumexp, any, all, cumulative sums.

``dim`` is an axis, several, or None for all of them; negative ones count from the back.  The axes
are left out of the result, or kept with size 1 if ``keepdim`` is true.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from convcore._dtype import as_numpy
from convcore._dtype import cast as cast_array
from convcore._tensor import Tensor, legacy_name, wrap
from convcore.autograd.grad_mode import mode
from convcore.autograd.node import record
from convcore.functions.arithmetic import div
from convcore.functions.axes import axes, spread, total_of, with_numpy_names
from convcore.functions.broadcast import cast
from convcore.functions.quiet import quiet

__all__ = [
    "mean",
    "sum",
]


def _as_summed(array: np.ndarray, dtype: Any) -> np.ndarray:
    """Return the array in the dtype in which it is summed: int64 for integers and bools."""
    if dtype is not None:
        return cast_array(array, as_numpy(dtype))
    return array.astype(np.int64) if array.dtype.kind in "biu" else array


@with_numpy_names
def sum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the sum of all elements, or over some axes.

    Parameters
    ----------
    input : Tensor
    dim : int, tuple of ints, or None for all axes
    keepdim : bool
    dtype : dtype or None
        The elements are converted to it first.  None: their own, int64 for integers and bools.

    Raises
    ------
    IndexError
        There is no axis ``dim``.

    Notes
    -----
    Long sums of float32 are exact to its last digits: they are added pairwise or in float64.

    Examples
    --------
    >>> import convcore
    >>> convcore.ones(2, 3).sum(0)
    tensor([2., 2., 2.])
    """
    array = _as_summed(input._array, dtype)
    over = axes(dim, array.ndim)
    out = wrap(quiet(total_of, array, over, keepdim))
    if mode.enabled and input.requires_grad:
        name = "SumBackward0" if dim is None and not keepdim else "SumBackward1"
        record(name, (input,), out, _spread_backward(input, over))
    return out


def _spread_backward(input: Tensor, over: tuple[int, ...], by: float | None = None) -> Any:
    """Return the backward of a sum, or of a sum divided by ``by``."""
    shape, dtype = input._array.shape, input._array.dtype

    def backward(needs: tuple[bool, ...], grad: Tensor) -> Tensor:
        if grad._array.dtype != dtype:
            grad = cast(grad, dtype)
        return spread(grad if by is None else div(grad, by), over, shape)

    return backward


@with_numpy_names
def mean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the mean of all elements, or over some axes; NaN where there are none.

    Parameters
    ----------
    input : Tensor of a floating-point or complex dtype
    dim : int, tuple of ints, or None for all axes
    keepdim : bool
    dtype : dtype or None
        The elements are converted to it first.

    Raises
    ------
    RuntimeError
        The elements are integers and no floating-point ``dtype`` is given.
    """
    array = input._array if dtype is None else cast_array(input._array, as_numpy(dtype))
    if array.dtype.kind not in "fc":
        found = legacy_name(array.dtype)[6:-6]
        if dtype is None:
            raise RuntimeError(
                "mean(): could not infer output dtype. Input dtype must be either a floating "
                f"point or complex dtype. Got: {found}"
            )
        raise RuntimeError(
            "mean(): could not infer output dtype. Optional dtype must be either a floating point "
            f"or complex dtype. Got: {found}"
        )
    over = axes(dim, array.ndim)
    number = math.prod([array.shape[one] for one in over])
    total = quiet(total_of, array, over, keepdim)
    out = wrap(np.asarray(quiet(np.true_divide, total, total.dtype.type(number))))
    if mode.enabled and input.requires_grad:
        name = "MeanBackward0" if dim is None and not keepdim else "MeanBackward1"
        record(name, (input,), out, _spread_backward(input, over, max(number, 1)))
    return out


METHODS = {
    "mean": mean,
    "sum": sum,
}
