"""Max unpooling, and gradients of max pooling by indices: gather and scatter of pixels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from convcore.engine.geometry import index
from convcore.engine.layers.pooling.pooling import (
    FLOATS,
    INTEGERS,
    as_batch,
    checked_sizes,
    empty_results,
)
from convcore.engine.layers.windows import blocks
from convcore.engine.runtime import layout
from convcore.engine.runtime.checks import Array


def scatter_pixels(values: Array, indices: Array, input_size: Sequence[int]) -> Array:
    """Add values to zero planes at their indices (the gradient of `max_pool`).

    planes[n, c, i] = sum over the j with indices[n, c, j] = i of values[n, c, j].

    Parameters
    ----------
    values : (N, C, *outs) or (C, *outs); float16, float32 or float64
    indices : the same shape, integers
        Into a flattened plane; -1 skips its value.
    input_size : one int per spatial axis

    Returns
    -------
    (N, C, *input_size) or (C, *input_size), of the dtype of values
        channels_last if values is, else contiguous.

    Raises
    ------
    TypeError, ValueError
        As `max_pool`; also if shapes differ, or an index is outside its plane.

    Notes
    -----
    Sums use float64, in the order of j, and are rounded once.

    References
    ----------
    M. Zeiler, R. Fergus, Visualizing and understanding convolutional networks (2014), section 2.1.

    Examples
    --------
    >>> import numpy as np
    >>> scatter_pixels(np.array([[1.0, 2.0, 4.0]]), np.array([[0, 2, 2]]), (4,)).tolist()
    [[1.0, 0.0, 6.0, 0.0]]
    """
    sizes = checked_sizes("input_size", input_size, least=0)
    batch, unbatched, _ = as_batch("values", values, "input_size", sizes, FLOATS)
    places = _indices_of_all(batch, indices, unbatched, sizes)
    (planes,) = empty_results(batch, sizes, batch.dtype)
    channels_last = layout.is_channels_last(planes.shape, planes.strides)
    for block in blocks(planes.shape, planes.itemsize):
        grads, (at, valid) = batch[block], _places(places[block], sizes, channels_last)
        if valid.all():
            grads, at = _memory(grads, channels_last), _memory(at, channels_last)
        else:
            grads, at = grads[valid], at[valid]
        memory = _memory(planes[block], channels_last)
        sums = np.bincount(at.ravel(), grads.ravel(), minlength=memory.size)
        memory[...] = sums.reshape(memory.shape)
    return planes[0] if unbatched else planes


def place_pixels(values: Array, indices: Array, input_size: Sequence[int]) -> Array:
    """Write values into zero planes at their indices; for duplicate indices the last value wins.

    Parameters
    ----------
    values, indices, input_size : as for `scatter_pixels`, but without indices of -1

    Returns
    -------
    (N, C, *input_size) or (C, *input_size), of the dtype of values
        channels_last if values is, else contiguous.

    Raises
    ------
    TypeError, ValueError
        As `scatter_pixels`.

    Examples
    --------
    >>> import numpy as np
    >>> place_pixels(np.array([[1.0, 2.0, 4.0]]), np.array([[0, 2, 2]]), (4,)).tolist()
    [[1.0, 0.0, 4.0, 0.0]]
    """
    sizes = checked_sizes("input_size", input_size, least=0)
    batch, unbatched, _ = as_batch("values", values, "input_size", sizes, FLOATS)
    if 0 in sizes:  # as in PyTorch, indices into empty planes are not checked
        (planes,) = empty_results(batch, sizes, batch.dtype)
        return planes[0] if unbatched else planes
    places = _indices_of_all(batch, indices, unbatched, sizes, least=0)
    (planes,) = empty_results(batch, sizes, batch.dtype)
    planes[...] = 0
    channels_last = layout.is_channels_last(planes.shape, planes.strides)
    at, _ = _places(places, sizes, channels_last)
    memory = _memory(planes, channels_last).reshape(-1)
    memory[_memory(at, channels_last)] = _memory(batch, channels_last)
    return planes[0] if unbatched else planes


def gather_pixels(input: Array, indices: Array, rank: int | None = None) -> Array:
    """Read the elements of planes at indices: the adjoint of `scatter_pixels`.

    values[n, c, j] = input[n, c, indices[n, c, j]], and 0 where the index is -1.

    Parameters
    ----------
    input : (N, C, *sizes) or (C, *sizes); float16, float32, float64 or integers
    indices : (N, C, *outs) or (C, *outs), integers
        Into a flattened plane; the same number of axes as input.
    rank : int, optional
        The number of spatial axes; default: that of a batched input.

    Returns
    -------
    The shape of indices, of the dtype of input
        channels_last if input is, else contiguous.

    Raises
    ------
    TypeError, ValueError
        As `scatter_pixels`.

    Examples
    --------
    >>> import numpy as np
    >>> gather_pixels(np.array([[3.0, 1.0, 2.0]]), np.array([[0, 2, 2, -1]]), rank=1).tolist()
    [[3.0, 2.0, 2.0, 0.0]]
    """
    axes = index("rank", getattr(input, "ndim", 3) - 2 if rank is None else rank)
    if not 1 <= axes <= 3:
        raise ValueError(f"rank must be 1, 2 or 3: one to three spatial axes, got {axes}")
    per = (1,) * axes
    batch, unbatched, _ = as_batch("input", input, "rank", per, (*FLOATS, *INTEGERS))
    places = _indices(indices, batch, unbatched, batch.shape[2:])
    (values,) = empty_results(batch, places.shape[2:], batch.dtype)
    sizes, channels_last = batch.shape[2:], layout.is_channels_last(batch.shape, batch.strides)
    for block in blocks(places.shape, places.itemsize):
        at, valid = _places(places[block], sizes, channels_last)
        memory = _memory(batch[block], channels_last).reshape(-1)
        if valid.all():
            values[block] = memory[at]
        else:
            values[block] = 0
            values[block][valid] = memory[at[valid]]
    return values[0] if unbatched else values


def _indices(
    value: Any, batch: Array, unbatched: bool, sizes: Sequence[int], least: int = -1
) -> Array:
    """Return indices with a batch axis; raise if they do not match the batch and plane sizes."""
    if not isinstance(value, np.ndarray) or isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"indices must be a numpy.ndarray, got {type(value).__name__}")
    if value.dtype not in INTEGERS:
        raise TypeError(f"indices must be an array of integers, got {value.dtype}")
    indices = value[np.newaxis] if unbatched else value
    if indices.ndim != batch.ndim or indices.shape[:2] != batch.shape[:2]:
        raise ValueError(
            f"indices must have planes as {list(batch.shape[unbatched:])} has, "
            f"got shape {list(value.shape)}"
        )
    if indices.size and not (indices.min() >= least and indices.max() < math.prod(sizes)):
        wrong = indices[(indices < least) | (indices >= math.prod(sizes))].flat[0]
        raise ValueError(
            f"Found an invalid max index: {wrong} "
            f"(output volumes are of size {'x'.join(map(str, sizes))})"
        )
    return indices


def _indices_of_all(
    batch: Array, value: Any, unbatched: bool, sizes: Sequence[int], least: int = -1
) -> Array:
    """Return indices with a batch axis; also raise unless there is one per element of the batch."""
    indices = _indices(value, batch, unbatched, sizes, least)
    if indices.shape != batch.shape:
        raise ValueError(
            f"indices must have the shape of values, {list(batch.shape[unbatched:])}, "
            f"got {list(value.shape)}"
        )
    return indices


def _memory(array: Array, channels_last: bool) -> Array:
    """Return an (N, C, *sizes) array with its axes in memory order."""
    return np.moveaxis(array, 1, -1) if channels_last else array


def _places(indices: Array, sizes: Sequence[int], channels_last: bool) -> tuple[Array, Array]:
    """Return each index's position in a dense block of planes, and which indices are not -1."""
    n, c = indices.shape[:2]
    indices = indices.astype(np.int64, copy=False)  # small or unsigned ones overflow
    pixels = math.prod(sizes)
    origins = np.arange(n)[:, np.newaxis] * (c * pixels)
    origins = origins + np.arange(c) * (1 if channels_last else pixels)
    places = indices * c if channels_last else indices
    return places + origins.reshape(n, c, *(1,) * len(sizes)), indices >= 0
