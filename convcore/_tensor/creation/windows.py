"""Windows of signals, by which a piece is faded in and out: hann, hamming, blackman, kaiser ..."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from convcore._tensor import Tensor, dtypes
from convcore._tensor.creation.arguments import DtypeLike, checked_int, counted, leaf
from convcore._tensor.device import check_device


def bartlett_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DtypeLike = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Return Bartlett's window, a triangle; arguments as for `hann_window`."""
    shape = lambda phase: 1 - np.abs(phase / math.pi - 1)  # noqa: E731
    return _window("bartlett", shape, window_length, periodic, dtype, layout, device, requires_grad)


def blackman_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DtypeLike = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Return Blackman's window, of two cosines; arguments as for `hann_window`."""
    shape = lambda phase: 0.42 - 0.5 * np.cos(phase) + 0.08 * np.cos(2 * phase)  # noqa: E731
    return _window("blackman", shape, window_length, periodic, dtype, layout, device, requires_grad)


def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: DtypeLike = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Return Hamming's window, alpha - beta * cos(phase); arguments as for `hann_window`."""
    shape = lambda phase: alpha - beta * np.cos(phase)  # noqa: E731
    return _window("hamming", shape, window_length, periodic, dtype, layout, device, requires_grad)


def hann_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DtypeLike = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Return Hann's window, a raised cosine.

    Parameters
    ----------
    window_length : int
    periodic : bool
        The window's next value would be its first; otherwise its last value is its first, too.

    Raises
    ------
    RuntimeError
        The length is negative, or the dtype not floating.

    Examples
    --------
    >>> hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    shape = lambda phase: 0.5 - 0.5 * np.cos(phase)  # noqa: E731
    return _window("hann", shape, window_length, periodic, dtype, layout, device, requires_grad)


def kaiser_window(
    window_length: int,
    periodic: bool = True,
    beta: float = 12.0,
    *,
    dtype: DtypeLike = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Return Kaiser's window, I0(beta sqrt(1 - x^2)) / I0(beta); arguments as for `hann_window`.

    x runs from -1 to 1.  The larger ``beta``, the smaller the side lobes, and the wider the main
    lobe.
    """
    root = lambda phase: np.sqrt(np.clip(1 - (phase / math.pi - 1) ** 2, 0, 1))  # noqa: E731
    shape = lambda phase: np.i0(beta * root(phase)) / np.i0(beta)  # noqa: E731
    return _window("kaiser", shape, window_length, periodic, dtype, layout, device, requires_grad)


def _window(
    name: str,
    shape: Callable[[np.ndarray], np.ndarray],
    length: int,
    periodic: bool,
    dtype: DtypeLike,
    layout: Any,
    device: Any,
    requires_grad: bool,
) -> Tensor:
    """Return the values of a shape at phases from 0 to 2 pi, the end left out of a period."""
    if layout is not None and "sparse" in repr(layout):
        raise RuntimeError(f"{name}_window is not implemented for sparse types, got: {layout}")
    check_device(device, layout)
    target = dtypes.as_numpy(dtype)
    length = checked_int(f"{name}_window", "window_length", length)
    if target.kind not in dtypes.INEXACT:
        raise RuntimeError(f"{name}_window expects floating point dtypes, got: {target.name}")
    if length < 0:
        raise RuntimeError(
            f"{name}_window requires non-negative window_length, got window_length={length}"
        )
    if length < 2:
        values = np.ones(length)
    else:
        values = shape(2 * math.pi / (length if periodic else length - 1) * counted(length))
    return leaf(dtypes.cast(values, target), requires_grad, device)
