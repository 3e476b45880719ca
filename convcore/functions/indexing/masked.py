"""Elements where a mask is true: masked_fill, masked_select, masked_scatter."""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor, scalar_name, wrap
from convcore.autograd.views import check_fits
from convcore.functions._support.arguments import check_arguments
from convcore.functions.indexing.index_along import number_for
from convcore.functions.indexing.indexing import applied, take_at
from convcore.functions.indexing.scatter import corner, in_place_form
from convcore.functions.shapes.broadcast import broadcast_shape, expand, fit
from convcore.functions.shapes.shape import reshape

__all__ = ["masked_fill", "masked_scatter", "masked_select"]


def _check_mask(function: str, mask: Tensor) -> None:
    if mask._array.dtype.kind != "b":
        if function == "masked_select":
            raise RuntimeError("masked_select: expected BoolTensor for mask")
        raise RuntimeError(
            f"{function} only supports boolean masks, but got mask with dtype "
            f"{scalar_name(mask._array.dtype).lower()}"
        )


def _masked_fill(x: Tensor, mask: Tensor, value: Any, *, in_place: bool) -> Tensor:
    _check_mask("masked_fill_", mask)
    number = number_for(x, value, "masked_fill_")
    shape = broadcast_shape(mask._array.shape, x._array.shape)
    before = x._array.shape, x._array.dtype
    if shape != before[0]:
        if in_place:
            check_fits(before[0], shape)
        x = expand(x, shape)
    like = (), value._array.dtype if isinstance(value, Tensor) else x._array.dtype

    def backward(needs: tuple[bool, ...], grad: Tensor, mask: Tensor) -> tuple:
        return (
            _masked_fill(grad, mask, 0, in_place=False) if needs[0] else None,
            fit(_masked_fill(grad, wrap(~mask._array), 0, in_place=False), like)
            if needs[1]
            else None,
        )

    # Not a subscript: a mask is quickest as NumPy's `where`, and it broadcasts.
    return applied(
        x,
        in_place,
        lambda array: np.copyto(array, number, where=mask._array),
        "MaskedFillBackward1" if isinstance(value, Tensor) else "MaskedFillBackward0",
        (x, value),
        backward,
        (mask,),
    )


def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """Return a vector of the elements where a mask, which broadcasts, is True.

    Raises
    ------
    RuntimeError
        The mask is not of bools, or does not broadcast with ``input``.
    """
    check_arguments("masked_select", input=input, mask=mask)
    _check_mask("masked_select", mask)
    shape = broadcast_shape(mask._array.shape, input._array.shape)
    if input._array.shape != shape:
        input = expand(input, shape)
    if mask._array.shape != shape:
        mask = expand(mask, shape)
    if not shape:
        input, mask = reshape(input, 1), reshape(mask, 1)
    return take_at(input, (mask,), "MaskedSelectBackward0")


def _masked_scatter(x: Tensor, mask: Tensor, source: Tensor, *, in_place: bool) -> Tensor:
    _check_mask("masked_scatter_", mask)
    if mask._array.ndim > x._array.ndim and not in_place:
        x = expand(x, np.broadcast_shapes(x._array.shape, mask._array.shape))
    if source._array.dtype != x._array.dtype:
        raise RuntimeError(
            "masked_scatter: expected self and source to have same dtypes but got "
            f"{scalar_name(x._array.dtype)} and {scalar_name(source._array.dtype)}"
        )
    if broadcast_shape(mask._array.shape, x._array.shape) != x._array.shape:
        raise RuntimeError(
            f"the mask's shape {list(mask._array.shape)} cannot be expanded to the tensor's, "
            f"{list(x._array.shape)}"
        )
    chosen = np.broadcast_to(mask._array, x._array.shape)
    count = int(np.count_nonzero(chosen))
    if source._array.size < count:
        raise RuntimeError(
            f"Number of elements of source < number of ones in mask: {source._array.size} < {count}"
        )
    new = source._array

    def change(array: np.ndarray) -> None:
        array[np.broadcast_to(mask._array, array.shape)] = new.reshape(-1)[:count]

    def backward(needs: tuple[bool, ...], grad: Tensor, mask: Tensor) -> tuple:
        inside = None
        if needs[1]:
            inside = reshape(corner(masked_select(grad, mask), (new.size,)), new.shape)
        return (_masked_fill(grad, mask, 0, in_place=False) if needs[0] else None), inside

    return applied(x, in_place, change, "MaskedScatterBackward0", (x, source), backward, (mask,))


def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """Return a copy with a number where a mask, which broadcasts, is True.

    Parameters
    ----------
    input : Tensor
    mask : Tensor of bools
    value : number, or Tensor without axes, through which gradients flow

    Raises
    ------
    RuntimeError
        The mask is not of bools or does not broadcast; the value does not fit into input's dtype.
    """
    check_arguments("masked_fill", input=input, mask=mask)
    return _masked_fill(input, mask, value, in_place=False)


@names_arguments
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Return a copy with the first elements of ``source``, in order, where a mask is True."""
    check_arguments("masked_scatter", input=input, mask=mask)
    shape = broadcast_shape(mask._array.shape, input._array.shape)
    if input._array.shape != shape:
        input = expand(input, shape)
    return _masked_scatter(input, mask, source, in_place=False)


METHODS = {
    "masked_fill_": in_place_form(_masked_fill, masked_fill),
    "masked_scatter_": in_place_form(_masked_scatter, masked_scatter),
}
