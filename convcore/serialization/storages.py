"""The storages that `save` writes: tensors that share memory share a storage."""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Hashable, Iterable
from typing import NamedTuple

import numpy as np

from convcore.engine.runtime.layout import is_dense
from convcore.engine.runtime.storages import address, is_placeable, overlapping, packed, span_of
from convcore.serialization.archive import UNTYPED

# The bytes that an array occupies, and, where it does not fill them, its shape and strides.
_Region = Hashable


class Place(NamedTuple):
    """Where an array is: its storage's number, and offset and strides there, in elements."""

    key: int
    offset: int
    strides: tuple[int, ...]


class _Shared(NamedTuple):
    """A storage of several regions: its number, and the address that its first byte stands for."""

    key: int
    start: int


class SavedStorages:
    """The storages of one file.

    At first each region has a storage of its own, without the gaps between its elements: a file
    holds no more than its tensors.  `merged` then has one storage for regions that share elements.

    Attributes
    ----------
    vectors : list of ndarray
        The storages' elements by number; of dtype ``UNTYPED`` where their tensors have several.
    """

    def __init__(self) -> None:
        self.vectors: list[np.ndarray] = []
        self._arrays: dict[_Region, np.ndarray] = {}  # kept: no other array gets their addresses
        self._own: dict[_Region, Place] = {}
        self._shared: dict[_Region, _Shared] = {}

    def place(self, array: np.ndarray) -> Place:
        """Return where an array is in the file."""
        region = _region_of(array)
        if region in self._shared:
            key, start = self._shared[region]
            steps = tuple(step // array.itemsize for step in array.strides)
            return Place(key, (address(array) - start) // array.itemsize, _upward(steps))
        if region not in self._own:
            vector, strides = packed(array)
            self._own[region] = Place(len(self.vectors), 0, strides)
            self._arrays[region] = array
            self.vectors.append(vector)
        found = self._own[region]
        if not is_dense(array):
            return found
        return found._replace(strides=_upward(step // array.itemsize for step in array.strides))

    def merged(self) -> SavedStorages | None:
        """Return storages for the same arrays, shared as they share memory; None if none does.

        Raises
        ------
        pickle.PicklingError
            Arrays of several dtypes share memory in which no one offset suits them all.
        """
        placeable = {region: array for region, array in self._arrays.items() if is_placeable(array)}
        groups = {region: [region] for region in placeable}
        for one, other in overlapping(placeable):
            first, second = groups[one], groups[other]
            if first is not second:
                first.extend(second)
                groups.update(dict.fromkeys(second, first))
        shared = {id(group): group for group in groups.values() if len(group) > 1}
        if not shared:
            return None
        merged = SavedStorages()
        merged._arrays = self._arrays
        for group in shared.values():
            merged._add([self._arrays[region] for region in group])
        return merged

    def _add(self, arrays: list[np.ndarray]) -> None:
        """Add one storage for several arrays; bytes between them, which no array has, are 0."""
        spans = [span_of(array) for array in arrays]
        start, end = min(low for low, _ in spans), max(high for _, high in spans)
        start -= _padding(arrays, start)
        memory = np.zeros(end - start, np.uint8)
        for array in arrays:
            offset = address(array) - start
            np.ndarray(array.shape, array.dtype, memory, offset, array.strides)[...] = array
            self._shared[_region_of(array)] = _Shared(len(self.vectors), start)
        dtypes = {array.dtype for array in arrays}
        self.vectors.append(memory.view(dtypes.pop() if len(dtypes) == 1 else UNTYPED))


def _region_of(array: np.ndarray) -> _Region:
    span = (*span_of(array), array.dtype)
    return span if is_dense(array) else (*span, array.shape, array.strides)


def _upward(steps: Iterable[int]) -> tuple[int, ...]:
    """Return steps without signs: an axis of one element may have a negative one."""
    return tuple(map(abs, steps))


def _padding(arrays: list[np.ndarray], start: int) -> int:
    """Return bytes to be put before a storage, so that offsets are whole elements."""
    offsets = defaultdict(set)
    for array in arrays:
        offsets[array.itemsize].add((address(array) - start) % array.itemsize)
    for padding in range(max(offsets)):
        if all((each + padding) % size == 0 for size in offsets for each in offsets[size]):
            return padding
    raise pickle.PicklingError(
        "tensors share memory in which their elements do not begin at multiples of their sizes: "
        "clone() one of them"
    )
