"""Reading at a key: numbers, slices, new axes, index tensors and constant masks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from convcore import Tensor
from convcore.onnx.errors import OnnxError
from convcore.onnx.sizes import as_int
from convcore.onnx.translation import ints, translates
from convcore.onnx.values import array_of

if TYPE_CHECKING:
    from convcore.onnx.recording import Recorder

_LAST = np.iinfo(np.int64).max


def entries_of(r: Recorder, input: Tensor, key: Any) -> list[Any]:
    """Return a key as numbers, slices, None and index tensors or arrays, for all axes.

    Raises
    ------
    OnnxError
        It has a computed mask, or something else that no node reads at.
    """
    is_tuple = isinstance(key, tuple) or (isinstance(key, list) and _is_mixed(key))
    entries = []
    for each in key if is_tuple else [key]:
        entries += _entries(r, each)
    taken = sum(each is not None and each is not Ellipsis for each in entries)
    rest = [slice(None)] * (input.ndim - taken)
    at = next((k for k, each in enumerate(entries) if each is Ellipsis), None)
    if at is None:
        return entries + rest
    return [*entries[:at], *rest, *entries[at + 1 :]]


def _is_mixed(key: list[Any]) -> bool:
    """Return whether a list is a key of several entries, as a tuple is."""
    return any(each is None or each is Ellipsis or isinstance(each, slice) for each in key)


def _entries(r: Recorder, key: Any) -> list[Any]:
    """Return one part of a key; a mask is an index array for each of its axes."""
    if key is None or key is Ellipsis:
        return [key]
    if isinstance(key, bool | np.bool_):
        raise OnnxError("a key that is True or False")
    if isinstance(key, int | np.integer):
        return [as_int(key)]
    if isinstance(key, slice):
        return [_plain_slice(r, key)]
    if not isinstance(key, Tensor):
        key = np.asarray(key)
    elif r.is_computed(key):
        if array_of(key).dtype.kind == "b":
            raise OnnxError("how many elements a computed mask reads depends on the input")
        return [key]
    array = array_of(key)
    if array.dtype.kind == "b":
        return list(np.nonzero(array))
    if array.dtype.kind not in "iu":
        raise OnnxError(f"a key of {type(key).__name__}")
    return [array.astype(np.int64)]


def _plain_slice(r: Recorder, key: slice) -> slice:
    parts = (key.start, key.stop, key.step)
    if any(isinstance(each, Tensor) and r.is_computed(each) for each in parts):
        raise OnnxError("a slice between computed numbers")
    return slice(*(None if each is None else as_int(each) for each in parts))


@translates("getitem")
def getitem(r: Recorder, y: Any, *, input: Any, key: Any) -> list[str]:
    """Read with Slice, Squeeze and Unsqueeze, and then with Gather or GatherND."""
    entries = entries_of(r, input, key)
    names = _sliced(r, [r.name(input)], [each for each in entries if each is not None])
    left = [each for each in entries if not isinstance(each, int)]
    if new := [k for k, each in enumerate(left) if each is None]:
        names = r.node("Unsqueeze", [*names, ints(r, new)])
    indices = {k: each for k, each in enumerate(left) if isinstance(each, Tensor | np.ndarray)}
    if len(indices) == 1:
        ((axis, index),) = indices.items()
        return r.node("Gather", [*names, _name(r, index)], axis=axis)
    if indices:
        return _gathered(r, names, len(left), indices)
    return names if names != [r.name(input)] else r.node("Identity", names)


def _sliced(r: Recorder, names: list[str], entries: Sequence[Any]) -> list[str]:
    """Read at numbers and slices."""
    limits: list[tuple[int, int, int, int]] = []
    for axis, each in enumerate(entries):
        if isinstance(each, int):
            limits.append((each, each + 1 if each != -1 else _LAST, axis, 1))
        elif isinstance(each, slice) and each != slice(None):
            stop = _LAST if each.stop is None else each.stop
            limits.append((each.start or 0, stop, axis, each.step or 1))
    if limits:
        names = r.node("Slice", [*names, *(ints(r, each) for each in zip(*limits, strict=True))])
    gone = [axis for axis, each in enumerate(entries) if isinstance(each, int)]
    return r.node("Squeeze", [*names, ints(r, gone)]) if gone else names


def _name(r: Recorder, index: Any) -> str:
    return r.name(index) if isinstance(index, Tensor) else r.constant(index)


def _gathered(r: Recorder, names: list[str], rank: int, indices: dict[int, Any]) -> list[str]:
    """Read at several indices, whose axes are one: where the first is if they are neighbours."""
    axes = list(indices)
    order = [*axes, *(k for k in range(rank) if k not in axes)]
    turned = r.node("Transpose", names, perm=order)
    shape = np.broadcast_shapes(*(each.shape for each in indices.values()))
    found = r.node("GatherND", [*turned, together(r, list(indices.values()))])
    first, count = axes[0], len(shape)
    if axes != list(range(first, first + len(axes))) or not first:
        return found
    places = range(count + rank - len(axes))
    return r.node(
        "Transpose",
        found,
        perm=[*places[count : count + first], *places[:count], *places[count + first :]],
    )


def together(r: Recorder, indices: Sequence[Any]) -> str:
    """Return the name of indices as tuples of them, in one more axis at the end."""
    if all(isinstance(each, np.ndarray) for each in indices):
        return r.constant(np.stack(np.broadcast_arrays(*indices), -1), np.int64)
    shape = np.broadcast_shapes(*(each.shape for each in indices))
    columns = []
    for each in indices:
        name = _name(r, each)
        if tuple(each.shape) != shape:
            (name,) = r.node("Expand", [name, ints(r, shape)])
        columns += r.node("Unsqueeze", [name, ints(r, [-1])])
    return r.node("Concat", columns, axis=-1)[0]
