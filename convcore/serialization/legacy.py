"""PyTorch's checkpoint format before version 1.6: a pickle, and behind it the storages."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

from convcore._errors.text import printable
from convcore.serialization.archive import fill
from convcore.serialization.errors import CheckpointError

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001

_TAR = 257, b"ustar"  # where a tar archive has what tells it


class _Rest:
    """The rest of a file, of which no more is asked than is there."""

    def __init__(self, file: Any) -> None:
        start = file.tell()
        self.n_bytes = file.seek(0, os.SEEK_END) - start
        file.seek(start)
        self._file = file

    def read(self, size: int) -> bytes:
        """Return the next bytes."""
        return self._file.read(min(size, self.n_bytes))

    def readline(self) -> bytes:
        """Return a line."""
        return self._file.readline()


class Storages:
    """The tensors' memory, which lies behind the pickle: made empty, and filled at the end."""

    def __init__(self, n_bytes: int) -> None:
        self._arrays: dict[str, np.ndarray] = {}
        self._left = n_bytes

    def get(self, key: str, dtype: np.dtype, count: int) -> np.ndarray:
        """Return the array of a storage, for which there must be room in the file."""
        self._left -= count * dtype.itemsize
        if self._left < 0:
            raise CheckpointError(
                f"storage {printable(key)} is damaged: it is larger than the file"
            )
        return self._arrays.setdefault(key, np.zeros(count, dtype))

    def read(self, keys: Any, file: Any) -> None:
        """Read all storages, each behind the number of its elements."""
        are_keys = type(keys) is list and all(type(key) is str for key in keys)
        if not are_keys or sorted(keys) != sorted(self._arrays):
            raise CheckpointError("the list of storages is damaged")
        for key in keys:
            array = self._arrays[key]
            count = file.read(8)
            n_read = fill(array.view(np.uint8), file)
            is_whole = len(count) == 8 and n_read == array.nbytes
            if not is_whole or int.from_bytes(count, "little") != array.size:
                raise CheckpointError(
                    f"storage {printable(key)} is damaged: {n_read} bytes are there"
                )


def load(file: Any, reader: Callable[[Any, Storages], Any]) -> Any:
    """Read a file from where it stands; ``reader`` makes the unpickler of a file.

    Raises
    ------
    CheckpointError
        It is no such file, or it is damaged.
    """
    rest = _Rest(file)
    storages = Storages(rest.n_bytes)
    if not rest.n_bytes:
        raise CheckpointError("it is empty")
    start = file.tell()
    if not _header(file, lambda: reader(rest, storages).load()):
        file.seek(start + _TAR[0])
        if file.read(len(_TAR[1])) == _TAR[1]:
            raise CheckpointError(
                "it is a tar archive, of PyTorch 0.1 perhaps, which is not read: in PyTorch, "
                "torch.save(torch.load(file, weights_only=False), 'new.pt') writes it anew"
            )
        raise CheckpointError("it is no zip archive, and no file of PyTorch's older format either")
    unpickler = reader(rest, storages)
    value = unpickler.load()
    storages.read(reader(rest, storages).load(), rest)
    unpickler.settle()
    return value


def _header(file: Any, read: Callable[[], Any]) -> bool:
    """Read the header, and return whether it is one: two numbers, and what the writer's machine is.

    A pickle of PyTorch's starts with the opcode of its protocol.
    """
    start = file.read(1)
    file.seek(-len(start), os.SEEK_CUR)
    try:
        known = start == pickle.PROTO and [read(), read()] == [MAGIC_NUMBER, PROTOCOL_VERSION]
        about = read() if known else None
    except (pickle.UnpicklingError, EOFError):
        return False
    return type(about) is dict  # storages are written as on little-endian machines by any
