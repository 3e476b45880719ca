"""save: write checkpoints in PyTorch's format."""

from __future__ import annotations

import io
import os
import pickle
import sys
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

import numpy as np

from convcore import overrides
from convcore._errors import hinted
from convcore._errors.calls import hinting
from convcore._errors.hints import OBJECT_FIRST
from convcore._tensor import Tensor
from convcore._tensor.device import device
from convcore._tensor.dtypes import bfloat16
from convcore._tensor.dtypes import dtype as _dtype
from convcore._tensor.size import Size
from convcore._tensor.storage import UntypedStorage, is_storage
from convcore.nn.parameter import Buffer, Parameter
from convcore.serialization import archive, formats
from convcore.serialization.archives import rewritable
from convcore.serialization.pickler import IterativePickler, Steps
from convcore.serialization.replacing import writing
from convcore.serialization.state_dicts import npz, safetensors
from convcore.serialization.storages import SavedStorages

DEFAULT_PROTOCOL = 2  # of pickle, as PyTorch's files have it


@hinting
def save(
    obj: Any,
    f: Any,
    pickle_module: Any = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
    *,
    format: str | None = None,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Save tensors, containers of them, or any objects, for `load` and ``torch.load``.

    A path that ends in ``.safetensors`` or ``.npz`` gets a file of that format.

    Parameters
    ----------
    obj : object
        Best is data: tensors, numbers, strings, None, and dicts, lists, tuples and sets of such, as
        the ``state_dict`` of a module, an optimizer or a schedule, which `load` and PyTorch read.
        Anything else that can be pickled, as a whole module or a NumPy array, is read only by those
        who trust the file: with ``weights_only=False``. NumPy scalars become Python numbers, except
        for those that Python has no numbers for, as ``longdouble`` and dates.
    f : str, path, or binary file
        A file at a path is replaced once the new one is whole and on the disk: a process that is
        killed leaves the old one or the new one, and perhaps ``.convcore-*.tmp`` beside it, which
        nothing reads and you may delete. To a file object the object is added where that stands;
        `load` reads several one by one. Files that cannot go back, as gzip's, are written in one
        go.
    pickle_module : module
        Ignored: objects are written as Python's `pickle` does.
    pickle_protocol : int
    format : {"torch", "safetensors", "npz"}, optional
        By default by the suffix of a path; else PyTorch's. The others hold tensors by name, as the
        ``state_dict`` of a module, and nothing else; writing safetensors needs the extra
        ``[safetensors]``.
    metadata : dict of str by str, optional
        Texts for a file of tensors by name; `convcore.serialization.read_metadata` reads them.

    Raises
    ------
    pickle.PicklingError, AttributeError, TypeError
        ``obj`` holds something that cannot be pickled, or that the format has not; nothing is
        written.
    ValueError
        There is no such format, or tensors for a file of tensors by name share only a part of their
        memory.

    Notes
    -----
    Memory formats are kept, and tensors that share memory share it again after loading, unless one
    has negative steps. An expanded tensor takes the memory of its elements, and a tensor with gaps
    is written without them if no other shares its memory. A file of tensors by name has them
    contiguous; tied weights are written once, and the metadata name the others, as safetensors' own
    ``save_model`` does: they share their memory again after loading.

    Examples
    --------
    >>> import os, tempfile, convcore
    >>> file = os.path.join(tempfile.mkdtemp(), "weights.npz")
    >>> convcore.save({"weight": convcore.ones(2)}, file, metadata={"epoch": "3"})
    >>> convcore.load(file), convcore.serialization.read_metadata(file)
    ({'weight': tensor([1., 1.])}, {'epoch': '3'})
    """
    if not isinstance(f, str | os.PathLike) and not hasattr(f, "write"):
        text = "expected 'f' to be string, path, or a file-like object with a 'write' attribute"
        swapped = isinstance(obj, str | os.PathLike)
        raise hinted(AttributeError(text), OBJECT_FIRST if swapped else "")
    if isinstance(f, io.TextIOBase):
        error = TypeError("write() argument must be str, not bytes")
        raise hinted(error, "open the file by open(path, 'wb')")
    kind = formats.of_name(f, format)
    if kind == "safetensors":
        written = safetensors.content(obj, metadata)
        _write(f, lambda opened: opened.write(written))
        return
    if kind == "npz":
        arrays = npz.arrays(obj, metadata)
        _write(f, lambda opened: npz.write(opened, arrays))
        return
    if metadata is not None:
        raise ValueError("metadata: only safetensors and npz files have it; put it into obj")
    if not _use_new_zipfile_serialization:
        raise ValueError("the format of PyTorch before version 1.6 is read, and not written")
    pickled, storages = _pickled(obj, pickle_protocol)
    records: dict[str, Any] = {archive.PICKLE: pickled}
    if not _disable_byteorder_record:
        records[archive.BYTE_ORDER] = sys.byteorder.encode()
    for key, vector in enumerate(storages.vectors):
        records[f"{archive.STORAGES}{key}"] = vector.view(np.uint8).data
    records[archive.VERSION] = b"3\n"
    _write(f, lambda opened: _write_archive(opened, records))


def _pickled(obj: Any, protocol: int) -> tuple[bytes, SavedStorages]:
    """Return an object's pickle and its storages."""
    storages = SavedStorages()
    pickled = _written(obj, protocol, storages)
    merged = storages.merged()  # known only when all tensors are
    return (pickled, storages) if merged is None else (_written(obj, protocol, merged), merged)


def _written(obj: Any, protocol: int, storages: SavedStorages) -> bytes:
    file = io.BytesIO()
    _Writer(file, protocol, storages).dump(obj)
    return file.getvalue()


def _write(f: Any, write: Callable[[Any], Any]) -> None:
    """Write a file, which is replaced as a whole."""
    try:
        with writing(f) as opened:
            write(opened)
    except ValueError as error:  # an archive in which a record failed cannot be closed
        if isinstance(error.__context__, (MemoryError, KeyboardInterrupt)):
            raise error.__context__ from None
        raise


def _write_archive(opened: Any, records: dict[str, Any]) -> None:
    with zipfile.ZipFile(rewritable(opened), "w", zipfile.ZIP_STORED) as file:
        for name, content in records.items():
            # Without the time of day: the same object is saved as the same bytes.
            entry = zipfile.ZipInfo(f"archive/{name}")
            large = name.startswith(archive.STORAGES)
            with file.open(entry, "w", force_zip64=large) as record:
                record.write(content)


def _is_pythons(scalar: np.generic) -> bool:
    """Return whether Python has a number or string for a scalar: not for longdouble, nor dates."""
    return scalar.dtype.kind not in "mMVO" and not isinstance(scalar.item(), np.generic)


class _Name:
    """A PyTorch function or class that the pickle refers to by name."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name


class _Storage:
    """A storage of the file, by its number."""

    def __init__(self, key: int) -> None:
        self.key = key


class _Values:
    """A parameter's values, written as a tensor."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


_REBUILD = _Name("torch._utils", "_rebuild_tensor_v2")
_REBUILD_OF_BYTES = _Name("torch._utils", "_rebuild_tensor_v3")
_OF_TYPE = _Name("torch._tensor", "_rebuild_from_type_v2")


class _Writer(IterativePickler):
    """A pickler that writes tensors as calls of PyTorch's functions, and all else as pickle does.

    Parameters
    ----------
    file : binary file
    protocol : int
    storages : SavedStorages
        It gets the tensors' elements.
    """

    def __init__(self, file: Any, protocol: int, storages: SavedStorages) -> None:
        super().__init__(file, protocol)
        self._storages = storages

    def persistent_id(self, obj: Any) -> Any:
        """Return a storage's reference: its type, its number and its size."""
        if not isinstance(obj, _Storage):
            return None
        vector, key = self._storages.vectors[obj.key], str(obj.key)
        if _is_untyped(vector):
            kind = _Name("torch.storage", "UntypedStorage")
            return ("storage", kind, key, "cpu", vector.nbytes)
        return ("storage", _Name("torch", archive.NAMES[vector.dtype]), key, "cpu", vector.size)

    def steps(self, obj: Any) -> Steps | None:
        """Return the steps in which an object is written."""
        if isinstance(obj, _Name):
            self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())
        elif isinstance(obj, _dtype):
            self.write(pickle.GLOBAL + f"torch\n{str(obj).rpartition('.')[2]}\n".encode())
        elif isinstance(obj, Tensor) and id(obj) not in self.memo:
            return self._tensor(obj)
        elif isinstance(obj, _Values):
            return self.call(*self._rebuilding(obj.tensor, False))
        elif isinstance(obj, Size):
            return self.call(_Name("torch", "Size"), (tuple(obj),))
        elif isinstance(obj, device):
            return self.call(_Name("torch", "device"), (str(obj),))
        elif is_storage(obj) and id(obj) not in self.memo:
            return self._storage(obj)
        elif isinstance(obj, FunctionType) and overrides.is_wrapper(obj):
            return self.steps(_Name(obj.__module__, obj.__qualname__))  # of what it wraps
        elif isinstance(obj, np.generic) and _is_pythons(obj):
            return super().steps(obj.item())
        else:
            return super().steps(obj)
        return None

    def _tensor(self, tensor: Tensor) -> Steps:
        cls = Tensor if isinstance(tensor, Buffer) else type(tensor)
        state = {} if isinstance(tensor, Buffer) else dict(tensor.__dict__)
        if isinstance(tensor, Parameter):
            args: tuple = (_Values(tensor), tensor.requires_grad, OrderedDict())
            rebuild = _Name("torch._utils", "_rebuild_parameter")
            if state and cls is Parameter:
                rebuild.name, args = "_rebuild_parameter_with_state", (*args, state)
                state = {}
        else:
            rebuild, args = self._rebuilding(tensor, tensor.requires_grad)
        if state or cls not in (Tensor, Parameter):
            named = _Name("torch", "Tensor") if cls is Tensor else cls
            rebuild, args = _OF_TYPE, (rebuild, named, args, state)
        yield from self.call(rebuild, args)
        self.memoize(tensor)

    def _rebuilding(self, tensor: Tensor, requires_grad: bool) -> tuple[_Name, tuple]:
        """Return the function that rebuilds a tensor, and its arguments."""
        elements = tensor._array
        if tensor.dtype is bfloat16:
            elements = elements.view(archive.BFLOAT16)
        if tensor.is_meta:
            raise pickle.PicklingError("a tensor on the device 'meta' has no values to be saved")
        key, offset, strides = self._storages.place(elements)
        args: tuple = (_Storage(key), offset, tensor._array.shape, strides, requires_grad)
        if _is_untyped(self._storages.vectors[key]):
            return _REBUILD_OF_BYTES, (*args, OrderedDict(), tensor.dtype)
        return _REBUILD, (*args, OrderedDict())

    def _storage(self, storage: Any) -> Steps:
        """Write a storage that is saved as such, with or without tensors that are in it."""
        elements = storage._elements
        if isinstance(storage, UntypedStorage):
            elements = elements.view(archive.UNTYPED)
        elif storage.dtype is bfloat16:
            elements = elements.view(archive.BFLOAT16)
        key, _, _ = self._storages.place(elements)
        vector = self._storages.vectors[key]
        if (vector.size, vector.dtype) != (elements.size, elements.dtype):
            raise pickle.PicklingError(
                "a storage shares its memory with tensors of other types or sizes: clone() it"
            )
        yield _Storage(key)
        self.memoize(storage)


def _is_untyped(vector: np.ndarray) -> bool:
    """Return whether PyTorch writes elements as bytes, and their dtype with each tensor."""
    return vector.dtype in archive.OF_BYTES or vector.dtype == archive.UNTYPED
