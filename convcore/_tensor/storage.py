"""Storages: a tensor's memory as bytes (`untyped_storage`) or as elements (`storage`), and layouts.

A storage is the memory that a tensor and its views share.  It is looked at, not allocated: its
address, its size, and whether two tensors have the same one.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from convcore._tensor import Tensor, dtypes, scalar_name, wrap
from convcore._tensor.device import device as _device
from convcore.engine.runtime import shared, storages

__all__ = [
    "TypedStorage",
    "UntypedStorage",
    "is_storage",
    "layout",
    "sparse_coo",
    "sparse_csr",
    "strided",
]


class layout:
    """How a tensor's elements are stored: strided here, always; one object each."""

    __slots__ = ("_name",)

    def __init__(self, name: str):
        self._name = name

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self) -> str:
        return self._name


strided = layout("strided")
sparse_coo = layout("sparse_coo")
sparse_csr = layout("sparse_csr")


class _Storage:
    """Memory as a vector of elements."""

    __slots__ = ("_elements",)

    _elements: np.ndarray

    def data_ptr(self) -> int:
        """Return the address of the first element."""
        return self._elements.__array_interface__["data"][0]

    def nbytes(self) -> int:
        """Return the number of bytes."""
        return self._elements.nbytes

    def size(self) -> int:
        """Return the number of elements."""
        return self._elements.size

    __len__ = size

    def element_size(self) -> int:
        """Return the bytes of an element."""
        return self._elements.itemsize

    @property
    def device(self) -> _device:
        """Where the memory is: always the CPU."""
        return _device("cpu")

    @property
    def is_cuda(self) -> bool:
        """False: the memory is the CPU's."""
        return False

    @property
    def _cdata(self) -> int:
        return self.data_ptr()

    def is_shared(self) -> bool:
        """Return whether it is memory that other processes may share; see `share_memory_`."""
        return shared.is_shared(self._elements)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self._elements if dtype is None else self._elements.astype(dtype)

    def tolist(self) -> list:
        """Return the elements as a list."""
        return self._elements.tolist()

    def __getitem__(self, key: Any) -> Any:
        return self._elements[key].tolist()

    def __setitem__(self, key: Any, value: Any) -> None:
        self._elements[key] = value

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, type(self)) and self.data_ptr() == other.data_ptr()
        return same and len(self) == len(other)  # type: ignore[arg-type]

    def __hash__(self) -> int:
        return hash(self.data_ptr())


def _elements_of(function: str, name: str, data: Any, dtype: np.dtype) -> np.ndarray:
    """Return the memory that a storage is made of: an array itself, numbers, or so many zeros."""
    if isinstance(data, np.ndarray) and data.dtype == dtype:
        return data
    if isinstance(data, int):
        if data < 0:
            raise RuntimeError(f"{function}(): argument '{name}' must not be negative, got {data}")
        return np.zeros(data, dtype)
    if not isinstance(data, Sequence | np.ndarray) or isinstance(data, str):
        raise TypeError(
            f"{function}(): argument '{name}' must be int or a sequence of numbers, not "
            f"{type(data).__name__}"
        )
    # Here, for creation imports this module: `convcore.load`, called first of all, meets it first.
    from convcore._tensor.creation.arguments import checked_number, number_as

    numbers = [number_as(checked_number(function, one, name), dtype) for one in data]
    return np.array(numbers, dtype)


class UntypedStorage(_Storage):
    """The bytes that a tensor and its views share.

    Parameters
    ----------
    memory : ndarray of uint8, or a sequence of ints from 0 to 255; or how many bytes, all 0

    Raises
    ------
    TypeError
        ``memory`` is something else.
    RuntimeError
        It is a number below 0, or holds one that is no byte.
    """

    __slots__ = ("__dict__", "__weakref__")

    def __init__(self, memory: Any = 0):
        self._elements = _elements_of("UntypedStorage", "memory", memory, np.dtype(np.uint8))

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """Map the first ``nbytes`` bytes of a file: copied when written to, unless ``shared``."""
        if not nbytes:
            return cls(np.empty(0, np.uint8))
        mode: Any = "c" if not shared else "r+" if os.path.exists(filename) else "w+"
        return cls(np.memmap(filename, np.uint8, mode, shape=(nbytes,)).view(np.ndarray))

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """The bytes, for `asarray` to share them."""
        return self._elements.__array_interface__

    @property
    def filename(self) -> None:
        """None: the name of a mapped file is not kept."""

    def untyped(self) -> UntypedStorage:
        """Return the storage itself."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> UntypedStorage:
        """Copy the bytes; tensors that are copied with the storage share the copy."""
        if id(self) not in memo:
            memo[id(self)] = copied = UntypedStorage(storages.copied(self._elements, memo))
            copied.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return memo[id(self)]

    def clone(self) -> UntypedStorage:
        """Return a copy of the bytes."""
        return UntypedStorage(self._elements.copy())

    def __getitem__(self, key: Any) -> Any:
        found = self._elements[key]
        return UntypedStorage(found) if isinstance(key, slice) else int(found)


class TypedStorage(_Storage):
    """The memory that a tensor and its views share, as elements of its dtype.

    Parameters
    ----------
    data : sequence of numbers, or how many elements, which are zero
    wrap_storage : UntypedStorage, optional
        The memory itself, in the place of ``data``.
    dtype : dtype, optional
        The default one if it is not given.

    Raises
    ------
    TypeError
        An argument is something else.
    """

    __slots__ = ("_untyped_storage", "dtype")

    def __init__(
        self,
        data: Any = 0,
        *,
        wrap_storage: UntypedStorage | None = None,
        dtype: dtypes.dtype | None = None,
    ):
        dtype = dtypes.get_default_dtype() if dtype is None else dtype
        if not isinstance(dtype, dtypes.dtype):
            kind = type(dtype).__name__
            raise TypeError(f"TypedStorage(): argument 'dtype' must be torch.dtype, not {kind}")
        if wrap_storage is None:
            elements = _elements_of("TypedStorage", "data", data, dtype.numpy)
            wrap_storage = UntypedStorage(elements.view(np.uint8))
        elif not isinstance(wrap_storage, UntypedStorage):
            kind = type(wrap_storage).__name__
            raise TypeError(
                f"TypedStorage(): argument 'wrap_storage' must be UntypedStorage, not {kind}"
            )
        self._untyped_storage = wrap_storage
        self.dtype = dtype
        self._elements = wrap_storage._elements.view(dtype.numpy)

    def untyped(self) -> UntypedStorage:
        """Return the bytes."""
        return self._untyped_storage

    def __deepcopy__(self, memo: dict[int, Any]) -> TypedStorage:
        """Copy the elements; tensors that are copied with the storage share the copy."""
        if id(self) not in memo:
            untyped = copy.deepcopy(self._untyped_storage, memo)
            memo[id(self)] = TypedStorage(wrap_storage=untyped, dtype=self.dtype)
        return memo[id(self)]

    def clone(self) -> TypedStorage:
        """Return a copy of the elements."""
        return TypedStorage(wrap_storage=self._untyped_storage.clone(), dtype=self.dtype)


def is_storage(obj: Any) -> bool:
    """Return whether an object is a storage."""
    return isinstance(obj, TypedStorage | UntypedStorage)


def as_tensor(storage: TypedStorage | UntypedStorage, dtype: np.dtype) -> Tensor:
    """Return a storage's memory as a vector of elements of a dtype, which a typed one must have."""
    if isinstance(storage, TypedStorage) and storage.dtype.numpy != dtype:
        wanted, found = scalar_name(dtype), scalar_name(storage.dtype.numpy)
        raise RuntimeError(
            f"Expected a Storage of type {wanted} or an UntypedStorage, but got type {found} for "
            "argument 1 'storage'"
        )
    untyped = storage if isinstance(storage, UntypedStorage) else storage._untyped_storage
    return wrap(untyped._elements.view(dtype))
