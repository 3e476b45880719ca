"""Writing at a key: what is written to becomes a new value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import convcore
from convcore import Tensor
from convcore.onnx.errors import OnnxError
from convcore.onnx.translation import as_dtype, ints, translates
from convcore.onnx.translations.indexing import entries_of, getitem, together

if TYPE_CHECKING:
    from convcore.onnx.recording import Recorder


def _is_mask(key: Any) -> bool:
    return isinstance(key, Tensor) and key.dtype is convcore.bool


def _as_operand(r: Recorder, value: Any, y: Tensor) -> str:
    return as_dtype(r, value, y.dtype) if isinstance(value, Tensor) else r.number(value, y)


@translates("setitem")
def _setitem(r: Recorder, y: Any, *, input: Any, key: Any, value: Any) -> list[str]:
    keys = key if isinstance(key, tuple) else (key,)
    if len(keys) == 1 and _is_mask(keys[0]):
        return _masked(r, y, input, keys[0], value)
    entries = entries_of(r, input, key)
    if None in [each for each in entries if not isinstance(each, Tensor | np.ndarray)]:
        raise OnnxError("writing at a new axis")
    indices = [each for each in entries if isinstance(each, Tensor | np.ndarray)]
    plain = [each for each in entries if not isinstance(each, Tensor | np.ndarray)]
    is_grid = not indices or (len(indices) == 1 and isinstance(indices[0], np.ndarray))
    if is_grid and all(each.ndim == 1 for each in indices):
        (part,) = getitem(r, y, input=input, key=key)
        return _at_grid(r, y, input, entries, part, value)
    leads = all(each is other for each, other in zip(entries, indices, strict=False))
    if not leads or not all(map(_is_whole, plain)):
        raise OnnxError("index tensors mixed with slices or ints; use scatter")
    return _at_tuples(r, y, input, indices, value, False)


def _masked(r: Recorder, y: Any, input: Any, mask: Any, value: Any) -> list[str]:
    if isinstance(value, Tensor) and value.numel() != 1:
        raise OnnxError("writing many values at a mask; use where()")
    condition = r.name(mask)
    if more := range(mask.ndim, input.ndim):
        (condition,) = r.node("Unsqueeze", [condition, ints(r, more)])
    name = _as_operand(r, value, y)
    if isinstance(value, Tensor) and value.ndim:
        (name,) = r.node("Reshape", [name, ints(r, [])])
    return r.node("Where", [condition, name, r.name(input)])


def _is_whole(entry: Any) -> bool:
    return isinstance(entry, slice) and entry == slice(None)


def _places(r: Recorder, entry: Any, size: int) -> np.ndarray:
    """Return the places that a number, slice or index array means along an axis."""
    if isinstance(entry, slice):
        if r.sizes_are_free and (entry.stop is None or min(entry.start or 0, entry.stop) < 0):
            raise OnnxError("writing up to the end where sizes are free")
        return np.arange(size)[entry]
    return np.atleast_1d(entry) % size


def _at_grid(
    r: Recorder, y: Any, input: Any, entries: Sequence[Any], part: str, value: Any
) -> list[str]:
    """Write at all combinations of places along axes; ``part`` is what is there now."""
    shape = r.node("Shape", [part])
    (update,) = r.node("Expand", [_as_operand(r, value, y), *shape])
    axes = [axis for axis, each in enumerate(entries) if not _is_whole(each)]
    if not axes:
        return [update]
    if gone := [axis for axis, each in enumerate(entries) if isinstance(each, int)]:
        (update,) = r.node("Unsqueeze", [update, ints(r, gone)])
    places = [_places(r, entries[axis], input.shape[axis]) for axis in axes]
    grid = np.stack(np.meshgrid(*places, indexing="ij"), -1)
    order = [*axes, *(k for k in range(y.ndim) if k not in axes)]
    turned, update = (r.node("Transpose", [n], perm=order)[0] for n in (r.name(input), update))
    written = r.node("ScatterND", [turned, r.constant(grid, np.int64), update])
    return r.node("Transpose", written, perm=[order.index(k) for k in range(y.ndim)])


def _at_tuples(
    r: Recorder, y: Any, input: Any, indices: Sequence[Any], value: Any, accumulate: bool
) -> list[str]:
    """Write at tuples of indices of the first axes."""
    if accumulate and r.opset < 16:
        raise OnnxError("accumulate=True needs opset 16 or later")
    places = together(r, indices)
    part = r.node("GatherND", [r.name(input), places])
    update = r.node("Expand", [_as_operand(r, value, y), *r.node("Shape", part)])
    options: dict[str, Any] = {"reduction": "add"} if accumulate else {}
    return r.node("ScatterND", [r.name(input), places, *update], **options)


@translates("index_put")
def _index_put(
    r: Recorder, y: Any, *, input: Any, indices: Any, values: Any, accumulate: bool = False
) -> list[str]:
    if any(each is None for each in indices):
        raise OnnxError("with None among the indices")
    if len(indices) == 1 and _is_mask(indices[0]):
        return _masked(r, y, input, indices[0], values)
    found = entries_of(r, input, tuple(indices))[: len(indices)]
    return _at_tuples(r, y, input, found, values, accumulate)
