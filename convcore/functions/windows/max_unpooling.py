"""Max unpooling: the inverse of max pooling, with zeros at all other elements."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from convcore import engine
from convcore._tensor import Tensor, scalar_name
from convcore.functions._support.arguments import check_arguments, check_kind, ints
from convcore.functions._support.linear_map import linear_map
from convcore.functions.elementwise.in_float32 import in_float32
from convcore.functions.shapes.shape import squeeze, unsqueeze
from convcore.functions.windows.pooling import ints_per_axis

__all__ = ["max_unpool1d", "max_unpool2d", "max_unpool3d"]

Ints = tuple[int, ...]


def _max_unpool(
    rank: int,
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    output_size: Any,
) -> Tensor:
    function = f"max_unpool{rank}d"
    check_arguments(function, input=input, indices=indices)
    kernel = ints_per_axis(function, "kernel_size", kernel_size, rank)
    steps = kernel if stride is None else ints_per_axis(function, "stride", stride, rank)
    pads = ints_per_axis(function, "padding", padding, rank)
    shape = input._array.shape
    _check_shapes(rank, input, indices)
    usual = tuple(
        (n - 1) * s + k - 2 * p
        for n, s, k, p in zip(shape[-rank:], steps, kernel, pads, strict=True)
    )
    if output_size is None:
        sizes = usual
    else:
        sizes = _checked_size(usual, steps, ints(function, "output_size", output_size))
    check_kind(function, input, "f")
    forward = partial(engine.place_pixels, input_size=sizes)
    adjoint = partial(_gather, rank)
    name = f"MaxUnpool{rank}D"
    return linear_map(input, forward, adjoint, (name, f"{name}Backward"), saved=(indices,))


def _gather(rank: int, planes: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Return the pixels at indices; 0 for an index that occurs again later in its plane."""
    sizes = planes.shape[planes.ndim - rank :]
    found = engine.place_pixels(np.ones(indices.shape, np.float16), indices, sizes)
    if np.count_nonzero(found.view(np.uint16)) < indices.size:
        numbers = np.arange(indices.size, dtype=np.float64).reshape(indices.shape)
        last = engine.gather_pixels(engine.place_pixels(numbers, indices, sizes), indices, rank)
        indices = np.where(last == numbers, indices, -1)
    return engine.gather_pixels(planes, indices, rank)


@in_float32
def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Tensor:
    """Return lines with (N, C, W) or (C, W) put back to its indices; see `max_unpool2d`.

    As in PyTorch, that is what is done to planes one pixel wide.
    """
    check_arguments("max_unpool1d", input=input, indices=indices)
    kernel = (*ints_per_axis("max_unpool1d", "kernel_size", kernel_size, 1), 1)
    steps = kernel
    if stride is not None:
        steps = (*ints_per_axis("max_unpool1d", "stride", stride, 1), 1)
    pads = (*ints_per_axis("max_unpool1d", "padding", padding, 1), 0)
    if output_size is not None:
        usual = (input._array.shape[-1] - 1) * steps[0] + kernel[0] - 2 * pads[0]
        output_size = ints("max_unpool1d", "output_size", output_size)
        output_size = (*_checked_size((usual,), steps[:1], output_size), 1)
    planes, places = unsqueeze(input, -1), unsqueeze(indices, -1)
    return squeeze(_max_unpool(2, planes, places, kernel, steps, pads, output_size), -1)


@in_float32
def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Tensor:
    """Undo max pooling: return planes of zeros with the elements of input at indices.

    Of elements with one index the last counts, and it alone has a gradient.

    Parameters
    ----------
    input : (N, C, OH, OW) or (C, OH, OW), floating
    indices : the same shape, int64
        As `max_pool2d` returns them with return_indices.
    kernel_size, stride, padding
        As that pool had them; output_size is told from them.
    output_size : (H, W), or all of the result's sizes, optional
        Where several sizes pool to the input's.

    Returns
    -------
    (N, C, H, W) or (C, H, W)

    Raises
    ------
    ValueError
        An output_size further than a stride from what is expected.
    RuntimeError
        Shapes that differ; indices that are not int64 or beyond their planes.
    NotImplementedError
        A dtype that is not floating.

    References
    ----------
    M. Zeiler, R. Fergus, Visualizing and understanding convolutional networks (2014), section 2.1.

    Examples
    --------
    >>> import convcore
    >>> max_unpool2d(convcore.tensor([[[7.0]]]), convcore.tensor([[[2]]]), 2)
    tensor([[[0., 0.],
             [7., 0.]]])
    """
    return _max_unpool(2, input, indices, kernel_size, stride, padding, output_size)


@in_float32
def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Tensor:
    """Return volumes with (N, C, D, H, W) put back to its indices; see `max_unpool2d`."""
    return _max_unpool(3, input, indices, kernel_size, stride, padding, output_size)


def _check_shapes(rank: int, input: Tensor, indices: Tensor) -> None:
    shape, ndim = list(input._array.shape), input._array.ndim
    if ndim not in (rank + 1, rank + 2):
        raise RuntimeError(
            f"Input to max_unpooling{rank}d should be a {rank + 1}d or {rank + 2}d Tensor, "
            f"but got a tensor with {ndim} dimensions."
        )
    if indices._array.dtype != np.int64:
        name = scalar_name(indices._array.dtype)
        raise RuntimeError(f"elements in indices should be type int64 but got: {name}")
    if list(indices._array.shape) != shape:
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({shape}) but got "
            f"indices tensor with shape: {list(indices._array.shape)}"
        )


def _checked_size(usual: Ints, strides: Ints, sizes: Ints) -> Ints:
    """Return the spatial sizes asked for, each within a stride of the usual one."""
    rank = len(usual)
    if len(sizes) == rank + 2:
        sizes = sizes[2:]
    if len(sizes) != rank:
        raise ValueError(
            f"output_size should be a sequence containing {rank} or {rank + 2} elements, "
            f"but it has a length of '{len(sizes)}'"
        )
    for axis, (size, n, step) in enumerate(zip(sizes, usual, strides, strict=True)):
        if not n - step < size < n + step:
            raise ValueError(
                f'invalid output_size "{sizes}" '
                f"(dim {axis} must be between {n - step} and {n + step})"
            )
    return sizes
