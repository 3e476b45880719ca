"""load: read checkpoints as data, without running code from them."""

from __future__ import annotations

import pickle
import sys
import zipfile
from collections import Counter, OrderedDict
from typing import Any

import numpy as np

from convcore import _dtype
from convcore._device import device
from convcore._size import Size
from convcore._tensor import Tensor, wrap
from convcore.nn.parameter import Parameter
from convcore.serialization import archive

__all__ = ["load"]


def load(f: Any, map_location: Any = None, *, weights_only: bool = True) -> Any:
    """Load a checkpoint that `save` or PyTorch's ``torch.save`` has written.

    Parameters
    ----------
    f : str, path, or seekable binary file
    map_location : object, optional
        Ignored: tensors are always on the CPU.
    weights_only : bool
        Must be True: only tensors, numbers, strings and containers of them are read; no code is
        run.

    Returns
    -------
    object
        The saved object, for instance a state_dict. Tensors that shared memory share it again.

    Raises
    ------
    ValueError
        ``weights_only`` is False, or the file is not such an archive or is damaged.
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
    if not weights_only:
        raise ValueError("weights_only must be True: only data is read, never code")
    try:
        opened = zipfile.ZipFile(f)
    except zipfile.BadZipFile:
        raise ValueError(
            f"{f!r} is no zip archive: PyTorch writes such since version 1.6; what is older can be "
            "read there and saved anew"
        ) from None
    with opened as file:
        records = {name.partition("/")[2]: name for name in file.namelist()}
        if archive.PICKLE not in records:
            raise ValueError(f"{f!r} is no checkpoint: there is no {archive.PICKLE} in it")
        order = archive.BYTE_ORDER
        if order in records and file.read(records[order]).decode() != sys.byteorder:
            raise ValueError(f"{f!r} was written on a machine of another byte order")
        with file.open(records[archive.PICKLE]) as pickled:
            return _Reader(pickled, file, records).load()


class _Reader(pickle.Unpickler):
    """An unpickler that allows tensors, containers and the functions that rebuild tensors."""

    def __init__(self, pickled: Any, file: zipfile.ZipFile, records: dict[str, str]) -> None:
        super().__init__(pickled)
        self._file = file
        self._records = records
        self._storages: dict[str, np.ndarray] = {}

    def find_class(self, module: str, name: str) -> Any:
        """Return the allowed object of a name; raise UnpicklingError for any other."""
        if (module, name) in _KNOWN:
            return _KNOWN[module, name]
        if module == "torch" and name in archive.DTYPES:
            return archive.DTYPES[name]
        if module == "torch" and isinstance(getattr(_dtype, name, None), _dtype.dtype):
            return getattr(_dtype, name)
        raise pickle.UnpicklingError(
            f"{module}.{name} is not read: only tensors, numbers, strings and containers are"
        )

    def persistent_load(self, pid: Any) -> np.ndarray:
        """Return a storage as a 1-D array."""
        kind, dtype, key, _, count = pid
        if kind != "storage" or not isinstance(dtype, np.dtype):
            raise pickle.UnpicklingError(f"{kind} is not read: only storages of tensors are")
        if key not in self._storages:
            record = self._records.get(archive.STORAGES + key)
            content = b"" if record is None else self._file.read(record)
            if len(content) < count * dtype.itemsize:
                raise ValueError(f"storage {key} is damaged: {len(content)} bytes are there")
            self._storages[key] = np.frombuffer(bytearray(content), dtype, count)
        return self._storages[key]


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
    ("__builtin__", "complex"): complex,
    ("__builtin__", "set"): set,
    ("_codecs", "encode"): _bytes,
    ("torch", "Size"): Size,
    ("torch", "device"): _device,
    ("torch._utils", "_rebuild_parameter"): _parameter,
    ("torch._utils", "_rebuild_tensor_v2"): _tensor,
}
