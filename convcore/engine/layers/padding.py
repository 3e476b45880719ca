"""Padding with a constant or the array's own elements (reflect, replicate, circular); gradients."""

from __future__ import annotations

import itertools
import math
import numbers
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from convcore.engine.geometry import is_sequence, per_axis, shown
from convcore.engine.layers import strided_copy
from convcore.engine.layers.images import FLOATS
from convcore.engine.layers.interpolation.separable import AxisWeights, Map, SeparableMap
from convcore.engine.layers.windows import Move, add_moved, adjoint
from convcore.engine.runtime import layout
from convcore.engine.runtime.checks import Array, check_memory
from convcore.engine.runtime.tables import MOST_BYTES, kept_tables

Pairs = Sequence[Sequence[int]]

# Bytes of the padding tables per output: two indices and a weight.
_OUTPUT_BYTES = 24

MODES = ("constant", "reflect", "replicate", "circular")


def pad(array: np.ndarray, padding: Pairs, mode: str = "constant", value: Any = 0) -> np.ndarray:
    """Pad the last axes of an array.

    With i = j - before, output[j] = array[m(i)] along each axis, where m(i) = i for 0 <= i < size;
    beyond that m mirrors i at the first or last element, which is not repeated ('reflect'), takes
    the nearest element ('replicate') or wraps around ('circular'); 'constant' writes ``value``
    there.

    Parameters
    ----------
    array : (..., *sizes), of any dtype
    padding : one (before, after) pair for each of the last axes
        A negative pad crops.  A circular pad repeats the elements that remain after cropping.
    mode : 'constant', 'reflect', 'replicate' or 'circular'
    value : number
        Cast to the array's dtype; used in mode 'constant' only.

    Returns
    -------
    (..., *(before + size + after)), of the array's dtype
        A new array; channels_last if array is, else contiguous.

    Raises
    ------
    TypeError
        array is not an ndarray; padding is not a sequence of pairs of ints; value is not a number,
        or is complex while array is real.
    ValueError
        Too many pairs; an unknown mode; a crop larger than the axis; a reflected pad as long as its
        axis or a circular pad longer than it; replication of an empty axis; a value out of range.

    Notes
    -----
    Each of the 3**rank blocks of the result is copied once.

    Examples
    --------
    >>> import numpy as np
    >>> pad(np.arange(4), [(2, 1)], "reflect").tolist()
    [2, 1, 0, 1, 2, 3, 2]
    >>> pad(np.arange(4), [(2, -1)], "circular").tolist()
    [1, 2, 0, 1, 2]
    """
    return pad_map(array, padding, mode, value)(array)


def pad_grad(grad_output: np.ndarray, padding: Pairs, mode: str = "constant") -> np.ndarray:
    """Compute the gradient of `pad` (its adjoint): borders are added to their source elements.

    grad_input[i] = sum over the j that `pad` filled from i of grad_output[j].

    Parameters
    ----------
    grad_output : (..., *(before + size + after)), of any dtype that supports addition
    padding, mode : as for `pad`

    Returns
    -------
    (..., *sizes)
        A new array; channels_last if grad_output is, else contiguous.

    Raises
    ------
    TypeError, ValueError
        As `pad`; also if grad_output is shorter than its pads.

    Examples
    --------
    >>> import numpy as np
    >>> pad_grad(np.ones(7), [(2, 1)], "reflect").tolist()
    [1.0, 2.0, 3.0, 1.0]
    """
    _check_array("grad_output", grad_output)
    if grad_output.dtype.kind not in "biufcVO":
        raise TypeError(f"grad_output must be an array of numbers, got {grad_output.dtype}")
    pairs = _checked_pairs(padding, grad_output.ndim)
    outs = grad_output.shape[grad_output.ndim - len(pairs) :]
    sizes = [out - b - a for out, (b, a) in zip(outs, pairs, strict=True)]
    if min(sizes, default=0) < 0:
        raise ValueError(
            f"grad_output must be at least as long as its pads, got padding {pairs} "
            f"for a grad_output of shape {list(grad_output.shape)}"
        )
    shape = (*grad_output.shape[: grad_output.ndim - len(pairs)], *sizes)
    return _adjoint(shape, grad_output.dtype, pairs, mode)(grad_output)


def pad_maps(input: Array, padding: Pairs, mode: str) -> tuple[Map, Map]:
    """Return (`pad`, `pad_grad`) for arrays of this shape and dtype."""
    pairs = _checked_pairs(padding, input.ndim)
    return pad_map(input, pairs, mode), _adjoint(input.shape, input.dtype, pairs, mode)


def pad_map(array: Array, padding: Pairs, mode: str = "constant", value: Any = 0) -> Map:
    """Return `pad` for arrays of this shape and dtype."""
    _check_array("array", array)
    pairs, shape, dtype = _checked_pairs(padding, array.ndim), array.shape, array.dtype
    lead = array.ndim - len(pairs)
    moves = _moves(shape, shape[lead:], pairs, mode)
    outs = [b + size + a for size, (b, a) in zip(shape[lead:], pairs, strict=True)]
    result = (*shape[:lead], *outs)
    check_memory(result, array.itemsize)
    if mode == "constant":
        return partial(_put, result, [axis[0] for axis in moves], _as_dtype(value, dtype))
    return _border_map(shape, dtype, pairs, mode, False) or partial(_copy, result, moves)


def _adjoint(
    shape: tuple[int, ...], dtype: np.dtype[Any], pairs: list[tuple[int, int]], mode: str
) -> Map:
    """Return `pad_grad` for gradients of padded arrays of the given shape and dtype."""
    moves = _moves(shape, shape[len(shape) - len(pairs) :], pairs, mode)
    if mode == "constant":
        return partial(_put, shape, [adjoint(axis)[0] for axis in moves], np.zeros((), dtype))
    return _border_map(shape, dtype, pairs, mode, True) or partial(_add, shape, moves)


def _put(shape: tuple[int, ...], moves: list[Move], value: Array, array: Array) -> Array:
    """Return an array surrounded by a constant."""
    result = layout.empty(shape, array.dtype, layout.is_channels_last(array.shape, array.strides))
    before = [into.start - come.start for into, come in moves]
    if not strided_copy.put(result, array, (*(0,) * (array.ndim - len(moves)), *before), value):
        into: Any = (..., *(move[0] for move in moves))
        come: Any = (..., *(move[1] for move in moves))
        result[...] = value
        np.copyto(result[into], array[come])
    return result


def _copy(shape: tuple[int, ...], moves: list[list[Move]], array: Array) -> Array:
    """Return an array with its borders, copied block by block."""
    result = layout.empty(shape, array.dtype, layout.is_channels_last(array.shape, array.strides))
    for combination in itertools.product(*moves):
        into: Any = (..., *(move[0] for move in combination))
        come: Any = (..., *(move[1] for move in combination))
        np.copyto(result[into], array[come])
    return result


def _add(shape: tuple[int, ...], moves: list[list[Move]], grad: Array) -> Array:
    """Compute the adjoint of `_copy`."""
    result = layout.empty(shape, grad.dtype, layout.is_channels_last(grad.shape, grad.strides))
    result[...] = 0
    add_moved(result, grad, [adjoint(axis) for axis in moves])
    return result


def _border_map(
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    pairs: list[tuple[int, int]],
    mode: str,
    back: bool,
) -> Map | None:
    """Return the map (or adjoint) of images for modes that copy elements; None if unsupported."""
    rank = len(pairs)
    if mode == "constant" or dtype not in FLOATS:
        return None
    if not 1 <= rank <= 3 or len(shape) not in (rank + 1, rank + 2):
        return None
    if (rank, len(shape)) == (3, 4):  # maybe channels_last, which its three axes cannot express
        return None
    sizes = shape[-rank:]
    # Tables of long axes would not be cached: slices need none.
    if _OUTPUT_BYTES * (sum(sizes) + sum(map(sum, pairs))) > MOST_BYTES:
        return None
    return _map(sizes, tuple(pairs), mode, back, dtype)


@kept_tables
def _map(
    sizes: tuple[int, ...],
    pairs: tuple[tuple[int, int], ...],
    mode: str,
    back: bool,
    dtype: np.dtype[Any],
) -> SeparableMap:
    axes = []
    for size, pair in zip(sizes, pairs, strict=True):
        source = np.empty(size + sum(pair), np.intp)
        for into, come in _axis_moves(size, *pair, mode):
            source[into] = np.arange(size)[come]
        ones = np.ones(source.size)
        weights = AxisWeights(size, source.size, np.arange(source.size + 1), source, ones)
        axes.append(weights.adjoint() if back else weights)
    return SeparableMap(axes, dtype)


def _moves(
    shape: Sequence[int], sizes: Sequence[int], pairs: list[tuple[int, int]], mode: str
) -> list[list[Move]]:
    """Validate the pads against the sizes; return (outputs, inputs) moves for each axis."""
    if not isinstance(mode, str) or mode not in MODES:
        raise ValueError(f"Unrecognised padding mode {mode}: mode must be one of {list(MODES)}")
    lead = len(shape) - len(pairs)
    for axis, (size, (before, after)) in enumerate(zip(sizes, pairs, strict=True), lead):
        if min(before, after, before + after) < -size:
            raise ValueError(
                f"padding must crop at most the {size} elements of dimension {axis}, "
                f"got {(before, after)} for an input of shape {list(shape)}"
            )
        _check_border(shape, axis, before, after, mode)
    return [
        _axis_moves(size, before, after, mode)
        for size, (before, after) in zip(sizes, pairs, strict=True)
    ]


def _check_border(shape: Sequence[int], axis: int, before: int, after: int, mode: str) -> None:
    """Raise ValueError if the axis is too short for the pads of this mode."""
    size, longest = shape[axis], max(before, after)
    if mode == "constant" or longest <= 0:
        return
    if mode == "circular":
        if longest > size + min(before, after, 0):
            raise ValueError(
                "Padding value causes wrapping around more than once. Circular padding must be at "
                f"most the input's size, but got: padding {(before, after)} at dimension {axis} "
                f"of input {list(shape)}"
            )
        return
    if size == 0:
        raise ValueError(
            f"Expected input with possibly 0 batch size and other non-zero dimensions for mode "
            f"{mode!r}, but got: {list(shape)}"
        )
    if mode == "reflect" and longest >= size:
        raise ValueError(
            f"Argument #{2 * (len(shape) - axis) + 2}: Padding size should be less than the "
            f"corresponding input dimension, but got: padding {(before, after)} "
            f"at dimension {axis} of input {list(shape)}"
        )


def _axis_moves(size: int, before: int, after: int, mode: str) -> list[Move]:
    """Return the moves that fill one padded axis: its interior, and its borders unless constant."""
    low, high = max(-before, 0), size + min(after, 0)  # the interval that is not cropped
    moves = [(slice(before + low, before + high), slice(low, high))]
    if mode == "constant":
        return moves
    out = before + size + after
    if before > 0:
        source = {
            "reflect": slice(before, 0, -1),
            "replicate": slice(0, 1),
            "circular": slice(high - before, high),
        }
        moves.append((slice(0, before), source[mode]))
    if after > 0:
        end = size - 2 - after
        source = {
            "reflect": slice(size - 2, None if end < 0 else end, -1),
            "replicate": slice(size - 1, size),
            "circular": slice(low, low + after),
        }
        moves.append((slice(out - after, out), source[mode]))
    return moves


def _check_array(name: str, array: object) -> None:
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{name} must be a numpy.ndarray, got {type(array).__name__}")


def _checked_pairs(padding: Any, ndim: int) -> list[tuple[int, int]]:
    if not is_sequence(padding) or not all(map(is_sequence, padding)):
        raise TypeError(
            f"padding must be a sequence of (before, after) pairs, got {shown(padding)}"
        )
    if len(padding) > ndim:
        raise ValueError(
            f"padding must have at most one pair for each of {ndim} axes, got {len(padding)} pairs"
        )
    return [(b, a) for b, a in (per_axis("padding", pair, 2) for pair in padding)]


def _as_dtype(value: Any, dtype: np.dtype[Any]) -> np.ndarray:
    """Return value as a 0-d array of the dtype; raise if it is not a number or out of range."""
    number = value.item() if isinstance(value, np.generic) else value
    if not isinstance(number, numbers.Complex):
        raise TypeError(f"value must be a number, got {shown(value)}")
    if dtype.kind not in "cO" and not isinstance(number, numbers.Real):
        raise TypeError(f"value must be a real number for {dtype.name}, got {shown(value)}")
    if not _fits(number, dtype):
        name = f"{dtype.name}_t" if dtype.kind in "iu" else dtype.name
        raise ValueError(f"value cannot be converted to type {name} without overflow, got {value}")
    return np.asarray(number).astype(dtype)


def _fits(number: Any, dtype: np.dtype[Any]) -> bool:
    """Return whether a number is in the dtype's range; floats include infinities and NaN."""
    if dtype.kind in "iu":
        return bool(np.iinfo(dtype).min <= number <= np.iinfo(dtype).max)
    if dtype.kind not in "fc":
        return True
    most = float(np.finfo(dtype).max)
    return not any(
        most < part < math.inf or -math.inf < part < -most for part in (number.real, number.imag)
    )
