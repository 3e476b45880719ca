"""Pad, unpad, dilate and rotate arrays: the steps of a convolution written out.

They work on the last axes of an array of any dtype.  Together they compute a convolution's input
gradient: dilate grad_output by the stride, pad it by dilation*(kernel - 1), and correlate it with
the kernel rotated by 180 degrees.  (The engine itself never writes those zeros: see
stride_phases.py.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from convcore.engine.geometry import Spatial, index, is_sequence, per_axis


def zero_pad(array: np.ndarray, padding: int | Sequence[Sequence[int]]) -> np.ndarray:
    """Pad the last axes of the array with zeros.

    Parameters
    ----------
    array : (..., *sizes), of any dtype
    padding : int, or one (before, after) pair for each of the last axes, at least 0
        An int applies to the last two axes, or the only axis.

    Returns
    -------
    (..., *(before + size + after))
        A new array with the same order of axes in memory.

    Raises
    ------
    TypeError, ValueError
        padding does not have that form, is negative, or has more pairs than array has axes.

    Examples
    --------
    >>> import numpy as np
    >>> zero_pad(np.ones((1, 1)), 1)
    array([[0., 0., 0.],
           [0., 1., 0.],
           [0., 0., 0.]])
    """
    pairs = _pairs(array, padding)
    sizes = [n + a + b for n, (b, a) in zip(array.shape, pairs, strict=True)]
    padded = np.zeros_like(array, shape=sizes)
    padded[_inside(padded, pairs)] = array
    return padded


def unpad(array: np.ndarray, padding: int | Sequence[Sequence[int]]) -> np.ndarray:
    """Remove the borders of the array; return a view.  The inverse of `zero_pad`.

    An axis padded by 0 keeps all its elements.

    Parameters
    ----------
    array : (..., *sizes), of any dtype
    padding : as for `zero_pad`

    Returns
    -------
    (..., *(size - before - after))
        A view of array.

    Raises
    ------
    TypeError, ValueError
        As `zero_pad`; also if an axis is shorter than its pads.

    Examples
    --------
    >>> import numpy as np
    >>> unpad(np.arange(9).reshape(3, 3), [(0, 0), (1, 1)])
    array([[1],
           [4],
           [7]])
    """
    pairs = _pairs(array, padding)
    if any(b + a > n for n, (b, a) in zip(array.shape, pairs, strict=True)):
        raise ValueError(
            f"padding must leave at least 0 elements an axis, got {pairs} "
            f"for an array of shape {list(array.shape)}"
        )
    inside: Any = (..., *_inside(array, pairs))  # the dots keep a 0-d array an array
    return array[inside]


def dilate(array: np.ndarray, dilation: Spatial) -> np.ndarray:
    """Insert dilation - 1 zeros between neighbours along the last axes of the array.

    Parameters
    ----------
    array : (..., *sizes), of any dtype
    dilation : int, or one int for each of the last axes, at least 1
        An int applies to the last two axes, or the only axis.

    Returns
    -------
    (..., *((size - 1)*dilation + 1))
        A new array; an empty axis stays empty.

    Raises
    ------
    TypeError, ValueError
        dilation does not have that form, is below 1, or has more ints than array has axes.

    Examples
    --------
    >>> import numpy as np
    >>> dilate(np.array([1, 2, 3]), 2)
    array([1, 0, 2, 0, 3])
    """
    _check_array(array)
    rank = len(dilation) if is_sequence(dilation) else min(array.ndim, 2)
    _check_rank("dilation", rank, array)
    steps = (1,) * (array.ndim - rank) + per_axis("dilation", dilation, rank, least=1)
    sizes = [(n - 1) * d + 1 if n else 0 for n, d in zip(array.shape, steps, strict=True)]
    dilated = np.zeros_like(array, shape=sizes)
    dilated[tuple(slice(None, None, d) for d in steps)] = array
    return dilated


def rotate180(kernel: np.ndarray, axes: int | None = None) -> np.ndarray:
    """Return the kernel rotated by 180 degrees, each spatial axis reversed: a view.

    Parameters
    ----------
    kernel : (C_out, C_in/G, *kernel) of any dtype, or an array of spatial axes alone
    axes : int, optional
        Number of spatial axes, the last ones; default: all but the first two of an array with three
        axes or more, all axes of a smaller one.

    Returns
    -------
    The same shape
        A view of kernel.

    Raises
    ------
    TypeError, ValueError
        kernel is not an array, or has fewer axes than `axes`.

    Examples
    --------
    >>> import numpy as np
    >>> rotate180(np.arange(4).reshape(2, 2))
    array([[3, 2],
           [1, 0]])
    """
    _check_array(kernel, "kernel")
    if axes is None:
        axes = kernel.ndim - 2 if kernel.ndim > 2 else kernel.ndim
    axes = index("axes", axes)
    if not 0 <= axes <= kernel.ndim:
        raise ValueError(f"axes must be from 0 to {kernel.ndim}, the kernel's axes, got {axes}")
    reverse: Any = slice(None, None, -1)
    return kernel[(..., *(reverse,) * axes)]


def _check_array(array: object, name: str = "array") -> None:
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{name} must be a numpy.ndarray, got {type(array).__name__}")


def _check_rank(name: str, rank: int, array: np.ndarray) -> None:
    if rank > array.ndim:
        raise ValueError(
            f"{name} must be given for at most {array.ndim} axes, those of the array, got {rank}"
        )


def _pairs(array: np.ndarray, padding: Any) -> list[tuple[int, int]]:
    """Return (before, after) for every axis of the array."""
    _check_array(array)
    if is_sequence(padding):
        _check_rank("padding", len(padding), array)
        pairs = [per_axis("padding", pair, 2, least=0) for pair in padding]
    else:
        pairs = [per_axis("padding", padding, 2, least=0)] * min(array.ndim, 2)
    return [(0, 0)] * (array.ndim - len(pairs)) + [(b, a) for b, a in pairs]


def _inside(array: np.ndarray, pairs: Sequence[tuple[int, int]]) -> tuple[slice, ...]:
    """Return the slices that select the array without its borders."""
    return tuple(slice(b, n - a) for n, (b, a) in zip(array.shape, pairs, strict=True))
