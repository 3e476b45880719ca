"""save: write checkpoints in PyTorch's format."""

from __future__ import annotations

import codecs
import io
import pickle
import sys
import zipfile
from collections import Counter, OrderedDict
from typing import Any

import numpy as np

from convcore._device import device
from convcore._dtype import dtype as _dtype
from convcore._size import Size
from convcore._tensor import Tensor, wrap
from convcore.engine.layers.elementwise import is_dense
from convcore.nn.parameter import Parameter
from convcore.serialization import archive

__all__ = ["save"]


def save(obj: Any, f: Any) -> None:
    """Save tensors and containers of them as a checkpoint for `load` and ``torch.load``.

    Parameters
    ----------
    obj : object
        Tensors, numbers, strings, None, and dicts, lists, tuples and sets of such; for instance
        the ``state_dict`` of a module, an optimizer or a schedule. NumPy scalars are written as
        Python numbers.
    f : str, path, or binary file

    Raises
    ------
    pickle.PicklingError
        ``obj`` holds something else; nothing is written.

    Notes
    -----
    Memory formats are kept, and tensors that share all their memory share it again after loading.
    A tensor with gaps in memory is written without them.
    """
    pickled = io.BytesIO()
    writer = _Writer(pickled)
    writer.dump(obj)
    with zipfile.ZipFile(f, "w", zipfile.ZIP_STORED) as file:
        file.writestr(f"archive/{archive.PICKLE}", pickled.getvalue())
        file.writestr(f"archive/{archive.BYTE_ORDER}", sys.byteorder)
        for key, array in enumerate(writer.arrays):
            with file.open(f"archive/{archive.STORAGES}{key}", "w", force_zip64=True) as record:
                record.write(array.data)
        file.writestr(f"archive/{archive.VERSION}", "3\n")


class _Name:
    """A PyTorch function or class that the pickle refers to by name."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __call__(self, *arguments: Any) -> Any:
        """Refuse: PyTorch, or `load`, calls it; pickle wants it callable."""
        raise NotImplementedError


class _Storage:
    """The memory of a tensor, and its number in the archive."""

    def __init__(self, key: int, array: np.ndarray) -> None:
        self.key, self.array = key, array


_TENSOR = _Name("torch._utils", "_rebuild_tensor_v2")
_PARAMETER = _Name("torch._utils", "_rebuild_parameter")

# Types that hold only data.
_PLAIN = (type(None), bool, int, float, complex, str, bytes, dict, list, tuple, set)

# Functions and classes that the pickles of such values call.
_CALLED = (Counter, OrderedDict, complex, set, codecs.encode)


_Pickler: Any = vars(pickle)["_Pickler"]


class _Writer(_Pickler):
    """A pickler that writes tensors as calls of PyTorch's functions.

    Derived from pickle's Python version: the C version imports every name that it writes.
    """

    def __init__(self, file: Any) -> None:
        super().__init__(file, protocol=2)
        self.arrays: list[np.ndarray] = []  # the storages' elements, in memory order
        self._keys: dict[tuple, int] = {}

    def persistent_id(self, obj: Any) -> Any:
        """Return a storage's reference: its type, its number and its size."""
        if isinstance(obj, _Storage):
            name = archive.NAMES[obj.array.dtype]
            return ("storage", _Name("torch", name), str(obj.key), "cpu", obj.array.size)
        return None

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        """Write an object."""
        if isinstance(obj, _Name):
            self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())
        elif isinstance(obj, _dtype):
            self.save(_Name("torch", str(obj).rpartition(".")[2]))
        elif isinstance(obj, np.generic):
            self.save(obj.item())
        else:
            super().save(obj, save_persistent_id)

    def reducer_override(self, obj: Any) -> Any:
        """Return the call that an object is written as; NotImplemented for plain data."""
        if isinstance(obj, Parameter):
            return _PARAMETER, (wrap(obj._array), obj.requires_grad, OrderedDict())
        if isinstance(obj, Tensor):
            return _TENSOR, self._tensor(obj)
        if isinstance(obj, Size):
            return _Name("torch", "Size"), (tuple(obj),)
        if isinstance(obj, device):
            return _Name("torch", "device"), (str(obj),)
        if isinstance(obj, _PLAIN) or any(obj is called for called in _CALLED):
            return NotImplemented
        named = obj if isinstance(obj, type) else type(obj)  # of a dict of its own class
        raise pickle.PicklingError(
            f"{named} is not written: only tensors, numbers, strings and containers are"
        )

    def _tensor(self, tensor: Tensor) -> tuple[Any, ...]:
        """Return the arguments of the function that rebuilds a tensor."""
        array = tensor._array if is_dense(tensor._array) else np.ascontiguousarray(tensor._array)
        strides = tuple(step // array.itemsize for step in array.strides)
        place = (_Storage(*self._stored(array)), 0, array.shape, strides)
        return *place, tensor.requires_grad, OrderedDict()

    def _stored(self, array: np.ndarray) -> tuple[int, np.ndarray]:
        """Return the number of an array's storage, which may be shared, and its elements."""
        pointer = array.__array_interface__["data"][0]
        place = (pointer, array.dtype, array.size)
        key = self._keys.setdefault(place, len(self.arrays))
        if key == len(self.arrays):
            order = np.argsort([-step for step in array.strides], kind="stable")
            self.arrays.append(np.ascontiguousarray(array.transpose(order)).reshape(-1))
        return key, self.arrays[key]
