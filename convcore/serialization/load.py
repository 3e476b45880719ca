"""load: read checkpoints as data, or, where that is asked for, as code."""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import sys
import zipfile
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from convcore import _dtype
from convcore._device import device
from convcore._size import Size
from convcore._tensor import Tensor, wrap
from convcore.nn.parameter import Parameter
from convcore.serialization import archive, legacy, safe

__all__ = ["load"]


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Load a checkpoint that `save` or PyTorch's ``torch.save`` has written.

    Parameters
    ----------
    f : str, path, or seekable binary file
    map_location, mmap : object, optional
        Ignored: tensors are always on the CPU, in memory.
    pickle_module : module, optional
        Python's `pickle`, if ``weights_only`` is False.
    weights_only : bool
        Whether only data is read, which is the default: tensors, numbers, strings and containers of
        them, and what `add_safe_globals` allows. Where it is False, whole modules and any objects
        are read, and **the file may run any code**: do so only if you trust whoever wrote it.

    Returns
    -------
    object
        The saved object, for instance a state_dict. Tensors that shared memory share it again.

    Raises
    ------
    ValueError
        The file is no such archive or is damaged.
    pickle.UnpicklingError
        The file holds something other than data; the message names it.

    Examples
    --------
    >>> import io, convcore
    >>> file = io.BytesIO()
    >>> convcore.save({"weight": convcore.ones(2)}, file)
    >>> convcore.load(file)
    {'weight': tensor([1., 1.])}
    """
    if weights_only is None:
        weights_only = pickle_module is None
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    reader = _Reader if weights_only else _CodeReader
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(open(f, "rb")) if isinstance(f, (str, os.PathLike)) else f
        first = file.read(4)
        file.seek(-len(first), os.SEEK_CUR)
        if not first:  # at the end, as after writing: all of it is meant
            file.seek(0)
            first = file.read(4)
            file.seek(0)
        try:
            if first == b"PK\x03\x04":
                return _load_archive(f, stack.enter_context(zipfile.ZipFile(file)), reader)
            return legacy.load(file, lambda pickled, storages: reader(pickled, storages.get))
        except zipfile.BadZipFile as error:
            raise ValueError(f"{f!r} is damaged: {error}") from error
        except legacy.WrongFormat as error:
            raise ValueError(f"{f!r} is no zip archive, and {error}") from error


def _load_archive(f: Any, file: zipfile.ZipFile, reader: type[_Reader]) -> Any:
    records = {name.partition("/")[2]: name for name in file.namelist()}
    if archive.PICKLE not in records:
        raise ValueError(f"{f!r} is no checkpoint: there is no {archive.PICKLE} in it")
    order = archive.BYTE_ORDER
    if order in records and file.read(records[order]).decode() != sys.byteorder:
        raise ValueError(f"{f!r} was written on a machine of another byte order")

    def storage(key: str, dtype: np.dtype, count: int) -> np.ndarray:
        record = records.get(archive.STORAGES + key)
        content = b"" if record is None else file.read(record)
        if len(content) < count * dtype.itemsize:
            raise ValueError(f"storage {key} is damaged: {len(content)} bytes are there")
        return np.frombuffer(bytearray(content), dtype, count)

    with file.open(records[archive.PICKLE]) as pickled:
        return reader(pickled, storage).load()


class _Reader(pickle.Unpickler):
    """An unpickler of data: tensors, containers, the functions that rebuild tensors.

    Parameters
    ----------
    pickled : binary file
    storage : callable
        Returns the storage of a key, a dtype and a number of elements.
    """

    def __init__(self, pickled: Any, storage: Callable[[str, np.dtype, int], np.ndarray]) -> None:
        super().__init__(pickled)
        self._storage = storage
        self._storages: dict[str, np.ndarray] = {}

    def find_class(self, module: str, name: str) -> Any:
        """Return the allowed object of a name; raise UnpicklingError for any other."""
        module, name = safe.modern(module, name)
        if (module, name) in _KNOWN:
            return _KNOWN[module, name]
        if module == "torch" and name in archive.DTYPES:
            return archive.DTYPES[name]
        if module == "torch" and isinstance(getattr(_dtype, name, None), _dtype.dtype):
            return getattr(_dtype, name)
        return self._other(module, name)

    def _other(self, module: str, name: str) -> Any:
        return safe.found(module, name)

    def persistent_load(self, pid: Any) -> Any:
        """Return a storage as a 1-D array, or a class that was saved with its source."""
        if pid[0] == "module":
            return pid[1]
        kind, dtype, key, _, count = pid[:5]
        if kind != "storage" or not isinstance(dtype, np.dtype):
            raise pickle.UnpicklingError(f"{kind} is not read: only storages of tensors are")
        if key not in self._storages:
            self._storages[key] = self._storage(key, dtype, count)
        array = self._storages[key]
        if len(pid) == 6 and pid[5] is not None:  # the older format: a part of the storage
            _, start, size = pid[5]
            return array[start : start + size]
        return array


class _CodeReader(_Reader):
    """An unpickler of anything, with convcore's classes for PyTorch's."""

    def _other(self, module: str, name: str) -> Any:
        if module.partition(".")[0] != "torch":
            return super(_Reader, self).find_class(module, name)
        try:
            value = importlib.import_module(f"convcore{module[5:]}")
            for part in name.split("."):
                value = getattr(value, part)
        except (ImportError, AttributeError):
            raise pickle.UnpicklingError(
                f"{module}.{name} is not read: convcore has nothing of that name"
            ) from None
        return value


def _tensor(
    storage: np.ndarray, offset: int, size: Any, stride: Any, requires_grad: bool, *rest: Any
) -> Tensor:
    """Rebuild a tensor from its storage; NumPy checks the bounds."""
    n_bytes = storage.itemsize
    strides = tuple(step * n_bytes for step in stride)
    array: np.ndarray = np.ndarray(
        tuple(size), storage.dtype, storage.data, offset * n_bytes, strides
    )
    tensor = wrap(array)
    tensor.requires_grad = requires_grad
    return tensor


def _parameter(data: Tensor, requires_grad: bool, *rest: Any) -> Parameter:
    return Parameter(data, requires_grad)


def _with_state(tensor: Any, state: Any) -> Any:
    """Set the attributes of a tensor: a dict of them, or a pair of one and of slots."""
    tensor.__dict__.update((state[0] if isinstance(state, tuple) else state) or {})
    return tensor


def _parameter_with_state(data: Tensor, requires_grad: bool, hooks: Any, state: Any) -> Parameter:
    return _with_state(Parameter(data, requires_grad), state)


def _of_type(rebuild: Callable[..., Tensor], cls: type, args: tuple, state: Any) -> Tensor:
    tensor = rebuild(*args)
    if type(tensor) is not cls:
        array, requires_grad = tensor._array, tensor.requires_grad
        tensor = wrap(array, cls)
        tensor.requires_grad = requires_grad
    return _with_state(tensor, state)


def _bytes(text: str, encoding: str) -> bytes:
    """Return bytes, which pickle protocol 2 writes as latin-1 text."""
    return text.encode("latin1")


def _device(*place: Any) -> device:
    """Return the CPU, whatever device a checkpoint names."""
    return device("cpu")


_KNOWN: dict[tuple[str, str], Any] = {
    ("collections", "Counter"): Counter,
    ("collections", "OrderedDict"): OrderedDict,
    ("builtins", "complex"): complex,
    ("builtins", "set"): set,
    ("builtins", "bytearray"): bytearray,
    ("_codecs", "encode"): _bytes,
    ("torch", "Size"): Size,
    ("torch", "Tensor"): Tensor,
    ("torch", "device"): _device,
    ("torch.nn.parameter", "Parameter"): Parameter,
    ("torch._tensor", "_rebuild_from_type_v2"): _of_type,
    ("torch._utils", "_rebuild_parameter"): _parameter,
    ("torch._utils", "_rebuild_parameter_with_state"): _parameter_with_state,
    ("torch._utils", "_rebuild_tensor_v2"): _tensor,
}
