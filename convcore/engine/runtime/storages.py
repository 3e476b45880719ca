"""Storages: the memory that an array shares with its views; how it is copied and packed."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np

from convcore.engine.runtime.layout import is_dense

_Key = TypeVar("_Key", bound=Hashable)

# Of NumPy's exact search for a common byte, whose time may grow exponentially with the axes.
_MAX_WORK: Any = 1000


def root_of(array: np.ndarray) -> np.ndarray:
    """Return the array at the end of an array's chain of bases: its storage."""
    root: np.ndarray = array
    found: Any = array
    while found is not None:  # a view by strides has a base that is no array, but has one
        if isinstance(found, np.ndarray):
            root = found
        found = getattr(found, "base", None)
    return root


def memory_of(array: np.ndarray) -> np.ndarray:
    """Return the bytes of an array's storage.

    Raises
    ------
    RuntimeError
        The storage has gaps.
    """
    root = root_of(array)
    order = sorted(range(root.ndim), key=lambda axis: -root.strides[axis])
    root = root.transpose(order)
    if not root.flags.c_contiguous:
        raise RuntimeError("this needs a tensor whose memory has no gaps; clone() it first")
    return root.reshape(-1).view(np.uint8)


def copied(array: np.ndarray, memo: dict[int, Any]) -> np.ndarray:
    """Return a copy of an array for `copy.deepcopy`: views of one storage share that of the copies.

    The whole storage is copied once, as PyTorch does, so that offset and strides stay.  A storage
    with gaps or in a file has no such copy, and the array gets a storage of its own.
    """
    root = root_of(array)
    if not (type(array) is type(root) is np.ndarray and is_dense(root)):
        return array.copy(order="K")
    if id(root) not in memo:
        memo[id(root)] = root.copy(order="K")
        memo.setdefault(id(memo), []).append(root)  # no other object gets its id meanwhile
    copy = memo[id(root)]
    if type(copy) is not np.ndarray or copy.strides != root.strides:  # a program's own
        return array.copy(order="K")
    if array is root:
        return copy
    offset = address(array) - address(root)
    return np.ndarray(array.shape, array.dtype, memory_of(copy), offset, array.strides)


def address(array: np.ndarray) -> int:
    """Return the address of the first element."""
    return array.__array_interface__["data"][0]


class Packed(NamedTuple):
    """The elements of an array as a vector, and the array's strides in it, in elements."""

    vector: np.ndarray
    strides: tuple[int, ...]


def packed(array: np.ndarray) -> Packed:
    """Return an array's elements in the order of memory, each element of memory once.

    An expanded axis takes no memory, nor do gaps.  The vector is a view where it can be.
    """
    core = array[tuple(slice(0, 1) if step == 0 else slice(None) for step in array.strides)]
    if not is_dense(core):
        if may_overlap(core) and is_placeable(core):
            return _span(array)
        core = core.copy(order="K")
    # An axis of one element may have any step, also a negative one.
    steps = [abs(step) // array.itemsize for step in core.strides]
    strides = [step if given else 0 for step, given in zip(steps, array.strides, strict=True)]
    order = np.argsort([-abs(step) for step in core.strides], kind="stable")
    vector = np.ascontiguousarray(core.transpose(order)).reshape(-1)
    return Packed(vector, tuple(strides))


def unpacked(vector: np.ndarray, shape: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray:
    """Return the array whose elements were packed."""
    steps = [step * vector.itemsize for step in strides]
    return np.ndarray(shape, vector.dtype, vector, 0, steps)


def may_overlap(array: np.ndarray) -> bool:
    """Return whether elements may share memory: false if each axis steps over all shorter ones."""
    axes = zip(array.strides, array.shape, strict=True)
    extent = array.itemsize
    for step, size in sorted([(abs(step), size) for step, size in axes if size > 1]):
        if step < extent:
            return array.size > 0
        extent += step * (size - 1)
    return False


def _span(array: np.ndarray) -> Packed:
    """Return all elements from the first to the last; 0 where the array has none."""
    first, end = span_of(array)
    vector = np.zeros((end - first) // array.itemsize, array.dtype)
    np.ndarray(array.shape, array.dtype, vector, 0, array.strides)[...] = array
    return Packed(vector, tuple(step // array.itemsize for step in array.strides))


def is_placeable(array: np.ndarray) -> bool:
    """Return whether PyTorch's strides can say where elements are: whole elements, upward."""
    return all(
        step >= 0 and step % array.itemsize == 0
        for step, size in zip(array.strides, array.shape, strict=True)
        if size > 1
    )


def span_of(array: np.ndarray) -> tuple[int, int]:
    """Return the addresses of an array's first byte and of the one after its last."""
    if array.flags.c_contiguous:
        return address(array), address(array) + array.nbytes
    return np.lib.array_utils.byte_bounds(array)


def overlapping(arrays: Mapping[_Key, np.ndarray]) -> Iterator[tuple[_Key, _Key]]:
    """Yield the keys of each two arrays that have an element in common."""
    spans = [(*span_of(array), index, key) for index, (key, array) in enumerate(arrays.items())
             if array.size]  # fmt: skip
    near: list[tuple[int, _Key]] = []
    for start, end, _, key in sorted(spans, key=lambda span: span[:3]):
        near = [(other_end, other) for other_end, other in near if other_end > start]
        yield from ((other, key) for _, other in near if _share(arrays[other], arrays[key]))
        near.append((end, key))


def _share(one: np.ndarray, other: np.ndarray) -> bool:
    try:
        return np.shares_memory(one, other, max_work=_MAX_WORK)
    except np.exceptions.TooHardError:
        return True
