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
from convcore._tensor import Tensor
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


class _Storage:
    """The memory of a tensor, and its number in the archive."""

    def __init__(self, key: int, array: np.ndarray) -> None:
        self.key, self.array = key, array


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
            self.write(pickle.GLOBAL + f"torch\n{str(obj).rpartition('.')[2]}\n".encode())
        elif isinstance(obj, Tensor):
            self._save_tensor(obj)
        elif isinstance(obj, Size):
            self._save_call(_Name("torch", "Size"), tuple(obj))
        elif isinstance(obj, device):
            self._save_call(_Name("torch", "device"), str(obj))
        elif isinstance(obj, np.generic):
            self.save(obj.item())
        elif isinstance(obj, (_Storage, *_PLAIN)) or any(obj is called for called in _CALLED):
            super().save(obj, save_persistent_id)
        else:
            named = obj if isinstance(obj, type) else type(obj)  # of a dict of its own class
            raise pickle.PicklingError(
                f"{named} is not written: only tensors, numbers, strings and containers are"
            )

    def _save_call(self, function: _Name, argument: Any) -> None:
        for part in (function, (argument,)):
            self.save(part)
        self.write(pickle.REDUCE)

    def _save_tensor(self, tensor: Tensor) -> None:
        known = self.memo.get(id(tensor))
        if known is not None:
            self.write(self.get(known[0]))
            return
        array = tensor._array if is_dense(tensor._array) else np.ascontiguousarray(tensor._array)
        strides = tuple(step // array.itemsize for step in array.strides)
        place = (_Storage(*self._stored(array)), 0, array.shape, strides)
        is_parameter = isinstance(tensor, Parameter)
        args: tuple = (*place, tensor.requires_grad and not is_parameter, OrderedDict())
        self.write(pickle.GLOBAL + b"torch._utils\n_rebuild_parameter\n" if is_parameter else b"")
        self.write(pickle.MARK if is_parameter else b"")
        self.write(pickle.GLOBAL + b"torch._utils\n_rebuild_tensor_v2\n")
        self.save(args)
        self.write(pickle.REDUCE)
        if is_parameter:
            self.save(tensor.requires_grad)
            self.save(OrderedDict())
            self.write(pickle.TUPLE + pickle.REDUCE)
        self.memoize(tensor)

    def _stored(self, array: np.ndarray) -> tuple[int, np.ndarray]:
        """Return the number of an array's storage, which may be shared, and its elements."""
        pointer = array.__array_interface__["data"][0]
        place = (pointer, array.dtype, array.size)
        key = self._keys.setdefault(place, len(self.arrays))
        if key == len(self.arrays):
            order = np.argsort([-step for step in array.strides], kind="stable")
            self.arrays.append(np.ascontiguousarray(array.transpose(order)).reshape(-1))
        return key, self.arrays[key]
