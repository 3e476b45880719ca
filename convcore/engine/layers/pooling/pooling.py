"""Argument checks and results shared by max pooling and average pooling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from convcore.engine.geometry import Axis, is_sequence, per_axis, shown
from convcore.engine.runtime import layout
from convcore.engine.runtime.checks import Array, check_memory, plain

FLOATS = tuple(np.dtype(t) for t in ("float16", "float32", "float64"))
INTEGERS = tuple(np.dtype(f"{sign}int{8 * size}") for sign in ("", "u") for size in (1, 2, 4, 8))


def checked_flag(name: str, value: Any) -> bool:
    """Return a bool argument; raise TypeError if it is not a bool."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be a bool, got {shown(value)}")
    return bool(value)


def checked_sizes(name: str, value: Any, least: int) -> tuple[int, ...]:
    """Return the sizes of one to three spatial axes from a sequence; raise if they are invalid."""
    if not is_sequence(value):
        raise TypeError(f"{name} must be a sequence of ints, got {shown(value)}")
    if not 1 <= len(value) <= 3:
        raise ValueError(
            f"{name} must be one to three ints, one a spatial axis, got {shown(value)}"
        )
    return per_axis(name, value, len(value), least)


def output_sizes(axes: Sequence[Axis]) -> tuple[int, ...]:
    """Return the number of windows along each axis."""
    return tuple(a.out for a in axes)


def wide_enough(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype to compute in: float32 for float16, which NumPy computes slowly."""
    return np.dtype(np.float32) if dtype == np.float16 else dtype


def as_batch(
    name: str, value: Any, size_name: str, size: Any, dtypes: Sequence[np.dtype[Any]]
) -> tuple[Array, bool, tuple[int, ...]]:
    """Return (batched value, whether it was unbatched, one int of ``size`` per spatial axis)."""
    if not isinstance(value, np.ndarray) or isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{name} must be a numpy.ndarray, got {type(value).__name__}")
    if value.dtype not in dtypes or not value.dtype.isnative:
        names = ", ".join(dtype.name for dtype in dtypes)
        raise TypeError(f"{name} must be an array of {names}, got {value.dtype}")
    value = plain(value)
    rank = len(size) if is_sequence(size) else value.ndim - 2
    if not 1 <= rank <= 3 or value.ndim not in (rank + 1, rank + 2):
        raise ValueError(
            f"non-empty {rank + 1}D or {rank + 2}D (batch mode) tensor expected for {name}: "
            "one to three spatial axes after (N, C) or (C,), "
            f"as many as {size_name} {shown(size)} has, got {name} of size: {list(value.shape)}"
        )
    sizes = per_axis(size_name, size, rank)
    return (value[np.newaxis], True, sizes) if value.ndim == rank + 1 else (value, False, sizes)


def check_planes(batch: Array, unbatched: bool) -> None:
    """Raise ValueError if an axis other than the batch axis is empty."""
    if 0 in batch.shape[1:]:
        rank = batch.ndim - 2
        raise ValueError(
            f"Expected {rank + 1}D or {rank + 2}D (batch mode) tensor with optional 0 dim batch "
            f"size for input, but got:{list(batch.shape[unbatched:])}"
        )


def check_adaptive(batch: Array, unbatched: bool, outs: Sequence[int]) -> None:
    """Raise ValueError if a spatial axis is empty, or an output size negative."""
    if min(outs) < 0:
        raise ValueError(
            "elements of output_size must be greater than or equal to 0 "
            f"but received {{{', '.join(map(str, outs))}}}"
        )
    if 0 in batch.shape[2:]:
        shape = batch.shape[unbatched:]
        raise ValueError(
            "Expected input to have non-zero size for non-batch dimensions, but input has sizes "
            f"{list(shape)} with dimension {shape.index(0, 2 - unbatched)} being empty"
        )


def empty_results(batch: Array, sizes: Sequence[int], *dtypes: np.dtype[Any]) -> list[Array]:
    """Return new (N, C, *sizes) arrays, one of each dtype, in the batch's memory format."""
    shape = (*batch.shape[:2], *sizes)
    check_memory(shape, 8)
    channels_last = layout.is_channels_last(batch.shape, batch.strides)
    return [layout.empty(shape, dtype, channels_last) for dtype in dtypes]
