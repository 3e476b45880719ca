"""Fractional max pooling: windows at random distances that are no whole numbers on average."""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore._tensor import Tensor
from convcore.engine.geometry import is_sequence
from convcore.functions._support.arguments import check_kind, check_tensor
from convcore.functions.in_float32 import in_float32
from convcore.functions.pooling import _picked, ints_per_axis
from convcore.functions.shape import reshape
from convcore.random import fill_uniform

__all__ = [
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
]


_AXES = ("time", "height", "width")


def _with_indices(
    rank: int,
    input: Tensor,
    kernel_size: Any,
    output_size: Any,
    output_ratio: Any,
    _random_samples: Tensor | None,
) -> tuple[Tensor, Tensor]:
    function = f"fractional_max_pool{rank}d"
    check_tensor(function, input)
    check_kind(f"{function}_out_frame", input, "f")
    kernel = _ints(function, "kernel_size", kernel_size, rank)
    shape = input._array.shape
    if len(shape) not in (rank + 1, rank + 2):
        raise RuntimeError(
            f"{function}(): Expected {rank + 1}D or {rank + 2}D tensor, but got: {list(shape)}"
        )
    for axis in range(len(shape) - rank - 1, len(shape)):
        if not shape[axis]:
            raise RuntimeError(
                f"{function}{'_out' * (rank == 3)}(): Expected input to have non-zero size for "
                f"non-batch dimensions, but got{list(shape)} with dimension {axis} being empty."
            )
    batch = input if len(shape) == rank + 2 else reshape(input, 1, *shape)
    sizes = batch._array.shape[2:]
    outs = _outputs(function, rank, sizes, output_size, output_ratio)
    _check_fit(function, sizes, kernel, outs)
    if _random_samples is None:
        drawn = np.empty((*batch._array.shape[:2], rank), input._array.dtype)
        fill_uniform(drawn)
    else:
        _check_samples(_random_samples._array.shape, (*batch._array.shape[:2], rank))
        drawn = _random_samples._array[: len(batch._array)]
    # The samples of two axes are for the width and for the height, in this order.
    order = (1, 0) if rank == 2 else (0, 1, 2)
    starts = [
        _starts(drawn[..., order[axis]], sizes[axis], outs[axis], kernel[axis])
        for axis in range(rank)
    ]
    values, indices = _largest(batch._array, starts, kernel, outs)
    found = _picked(f"FractionalMaxPool{rank}D", rank, batch, values, indices, True)
    if batch is input:
        return found
    return reshape(found[0], shape[0], *outs), reshape(found[1], shape[0], *outs)


@in_float32
def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return what `fractional_max_pool2d` does, and the indices in the planes."""
    return _with_indices(2, input, kernel_size, output_size, output_ratio, _random_samples)


@in_float32
def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Return the largest element under windows at pseudorandom places.

    Parameters
    ----------
    input : (N, C, H, W) or (C, H, W), floating
    kernel_size : int, or (KH, KW)
    output_size : int, or (OH, OW)
    output_ratio : number from (0, 1), or two
        Of the output's sizes to the input's, instead of output_size.
    return_indices : bool
        Return, besides, the int64 indices of the elements in their planes.

    Raises
    ------
    ValueError
        Neither a size nor a ratio is given.
    RuntimeError
        The windows do not fit.

    References
    ----------
    B. Graham, "Fractional max-pooling", 2014.
    """
    maxima = _with_indices(2, input, kernel_size, output_size, output_ratio, _random_samples)
    return maxima if return_indices else maxima[0]


@in_float32
def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return what `fractional_max_pool3d` does, and the indices in the volumes."""
    return _with_indices(3, input, kernel_size, output_size, output_ratio, _random_samples)


@in_float32
def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Return the largest element under windows in (N, C, D, H, W); see `fractional_max_pool2d`."""
    maxima = _with_indices(3, input, kernel_size, output_size, output_ratio, _random_samples)
    return maxima if return_indices else maxima[0]


def _check_fit(
    function: str, sizes: tuple[int, ...], kernel: tuple[int, ...], outs: tuple[int, ...]
) -> None:
    rank = len(sizes)
    for name, here, window, out in zip(_AXES[-rank:], sizes, kernel, outs, strict=True):
        if window < 0 or out + window - 1 > here - (rank == 3):  # PyTorch wants one more of volumes
            shown = function if rank == 2 else f"{function}_out"
            raise RuntimeError(
                f"{shown}(): pool {name} {window} too large relative to input {name} {here}"
                if window >= 0
                else f"{shown}(): pool {name} must not be negative, got {window}"
            )


def _outputs(function: str, rank: int, sizes: tuple, size: Any, ratio: Any) -> tuple[int, ...]:
    if size is None and ratio is None:
        raise ValueError(f"{function} requires specifying either an output_size or an output_ratio")
    if size is not None:
        return _ints(function, "output_size", size, rank)
    ratios = ratio if is_sequence(ratio) else (ratio,) * rank
    if len(ratios) != rank:
        raise ValueError(
            f"{function} requires output_ratio to either be a single Int or tuple of Ints."
        )
    return tuple([int(here * by) for here, by in zip(sizes, ratios, strict=True)])


def _ints(function: str, name: str, value: Any, rank: int) -> tuple[int, ...]:
    """Return one int an axis; unlike other pools', a sequence has that many."""
    if is_sequence(value) and len(value) != rank:
        kinds = "tuple of Ints" if rank == 2 else "tuple of three Ints"
        raise RuntimeError(f"{function}: {name} must either be a single Int or {kinds}")
    return ints_per_axis(function, name, value, rank)


def _check_samples(shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    """Raise unless there is a number an axis for each plane of the input, at least."""
    if len(shape) != 3:
        raise RuntimeError(f"Expect _random_samples to have 3 dimensions, got {len(shape)}")
    if shape[0] < expected[0]:
        raise RuntimeError("Expect _random_samples.size(0) no less then input batch size.")
    if shape[1] != expected[1]:
        raise RuntimeError("Expect _random_samples.size(1) equals to input channel size.")
    if shape[2] != expected[2]:
        raise RuntimeError(
            f"Expect _random_samples.size(2) equals to {expected[2]}; got {shape[2]}."
        )


def _starts(samples: np.ndarray, size: int, out: int, window: int) -> np.ndarray:
    """Return where the windows of each plane start along an axis, (N, C, out)."""
    kind = samples.dtype.type
    starts = np.full((*samples.shape, out), size - window, np.int64)
    if out > 1:
        step = kind(size - window) / kind(out - 1)
        numbers = np.arange(out - 1).astype(kind)
        ends = ((numbers + samples[..., np.newaxis]) * step).astype(np.int64)
        starts[..., :-1] = ends - (samples * step).astype(np.int64)[..., np.newaxis]
    return starts


def _largest(
    array: np.ndarray, starts: list[np.ndarray], kernel: tuple, outs: tuple
) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest element of each window, and its index in the plane."""
    rank, lead, sizes = len(kernel), array.shape[:2], array.shape[2:]
    if 0 in (*lead, *outs):
        return np.empty((*lead, *outs), array.dtype), np.empty((*lead, *outs), np.int64)
    places = np.zeros((*lead, *(1,) * 2 * rank), np.int64)
    for axis in range(rank):
        at = starts[axis][..., np.newaxis] + np.arange(kernel[axis])
        shape = [1] * 2 * rank
        shape[axis], shape[rank + axis] = outs[axis], kernel[axis]
        places = places * sizes[axis] + at.reshape(*lead, *shape)
    flat = places.reshape(*lead, *outs, -1)
    planes = array.reshape(*lead, -1)
    taken = np.take_along_axis(planes, flat.reshape(*lead, -1), 2).reshape(flat.shape)
    best = np.argmax(taken, axis=-1)[..., np.newaxis]
    values = np.take_along_axis(taken, best, -1)[..., 0]
    return values, np.take_along_axis(flat, best, -1)[..., 0]


FUNCTIONS_ONLY = __all__
