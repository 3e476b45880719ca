"""Padding of the last axes: constant, reflect, replicate and circular."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

from convcore._tensor import Tensor
from convcore.engine.geometry import indices, is_sequence
from convcore.engine.layers.padding import MODES, pad_map, pad_maps
from convcore.functions._support.arguments import check_tensor, computed
from convcore.functions._support.kept import kept
from convcore.functions._support.linear_map import Linear, linear_map

__all__ = ["pad"]

Pairs = tuple[tuple[int, int], ...]
NAMES = {"reflect": "ReflectionPad", "replicate": "ReplicationPad", "circular": "CircularPad"}


def pad(
    input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    """Pad the last axes; a negative pad crops.

    Parameters
    ----------
    input : Tensor
        For a mode other than 'constant', (N, C, *sizes) or (C, *sizes) with as many sizes as pairs.
    pad : sequence of ints
        Before and after the last axis, then before and after the one before it, and so on.
    mode : 'constant', 'reflect', 'replicate' or 'circular'
        Mirrored at the edge element, the edge element repeated, or counted on from the other end.
    value : number, optional
        Of the constant; 0 if not given.

    Returns
    -------
    Tensor
        A new one, also where nothing is padded.

    Raises
    ------
    TypeError
        input is no tensor, pad no sequence of ints, value no real number.
    NotImplementedError
        Another mode, or one that does not go with the number of pads and axes.
    RuntimeError
        pad is of odd length or too long, crops more than there is, or takes more elements than the
        axis has; a value with a mode other than 'constant'.

    Examples
    --------
    >>> import convcore
    >>> pad(convcore.tensor([[1.0, 2.0]]), (1, 0, 0, 1))
    tensor([[0., 1., 2.],
            [0., 0., 0.]])
    """
    check_tensor("pad", input)
    return linear_map(input, *_padding(input._array, pad, mode, value), described=True)


@kept
def _padding(array: np.ndarray, pad: Sequence[int], mode: str, value: Any) -> Linear:
    """Return the map of arrays of the array's shape and dtype."""
    pairs = _pairs(pad, array.ndim)
    if mode == "constant":
        zeros, adjoint = computed(pad_maps, array, pairs, mode)
        padded = computed(pad_map, array, pairs, mode, _number(value))
        return Linear(padded, adjoint, ("ConstantPadNd", "ConstantPadNd"), linear=zeros)
    _check_mode(mode, len(pairs), array.ndim, value)
    _check_not_empty(mode, len(pairs), array.shape)
    name = f"{NAMES[mode]}{len(pairs)}D"
    forward, adjoint = computed(pad_maps, array, pairs, mode)
    return Linear(forward, adjoint, (name, f"{name}Backward"), flat=mode != "circular")


def _check_not_empty(mode: str, rank: int, shape: tuple[int, ...]) -> None:
    """Raise where there is nothing to copy, or no channel; a batch may be empty."""
    if mode != "circular" and 0 in shape[len(shape) == rank + 2 :]:
        raise RuntimeError(
            f"Expected {rank + 1}D or {rank + 2}D (batch mode) tensor with possibly 0 batch size "
            f"and other non-zero dimensions for input, but got: {list(shape)}"
        )


def _pairs(pad: Any, ndim: int) -> Pairs:
    """Return (before, after) for each of the last axes, in the axes' order."""
    if not is_sequence(pad):
        raise TypeError(
            f"pad(): argument 'pad' (position 2) must be tuple of ints, not {type(pad).__name__}"
        )
    pads = indices("pad", pad)
    if len(pads) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pads) > 2 * ndim:
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got "
            f"padding length {len(pads)} and input of dimension {ndim}"
        )
    return tuple(zip(pads[-2::-2], pads[::-2], strict=True))


def _number(value: Any) -> float:
    """Return a real number, or a tensor with one element, as a float."""
    if value is None:
        return 0.0
    if not isinstance(value, numbers.Real | np.bool_ | Tensor):
        raise TypeError(
            f"pad(): argument 'value' (position 4) must be float, not {type(value).__name__}"
        )
    return float(value)


def _check_mode(mode: str, n_pairs: int, ndim: int, value: Any) -> None:
    if mode not in MODES:
        raise NotImplementedError(
            f"Unrecognised padding mode {mode}: mode must be one of {list(MODES)}"
        )
    if value:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    if not 1 <= n_pairs <= 3 or ndim not in (n_pairs + 1, n_pairs + 2):
        raise NotImplementedError(
            f"Padding size {2 * n_pairs} is not supported for {ndim}D input tensor."
        )
