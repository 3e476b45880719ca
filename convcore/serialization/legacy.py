"""PyTorch's checkpoint format before version 1.6: a pickle, and behind it the storages."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001


class Storages:
    """The tensors' memory, which lies behind the pickle: made empty, and filled at the end."""

    def __init__(self) -> None:
        self._arrays: dict[str, np.ndarray] = {}

    def get(self, key: str, dtype: np.dtype, count: int) -> np.ndarray:
        """Return the array of a storage."""
        return self._arrays.setdefault(key, np.zeros(count, dtype))

    def read(self, keys: list[str], file: Any) -> None:
        """Read all storages, each behind the number of its elements."""
        for key in keys:
            array = self._arrays[key]
            count, content = file.read(8), file.read(array.nbytes)
            is_whole = len(count) == 8 and len(content) == array.nbytes
            if not is_whole or int.from_bytes(count, "little") != array.size:
                raise ValueError(f"storage {key} is damaged: {len(content)} bytes are there")
            array.view(np.uint8)[...] = np.frombuffer(content, np.uint8)


class WrongFormat(ValueError):
    """A file is of another format."""


def load(file: Any, reader: Callable[[Any, Storages], Any]) -> Any:
    """Read a file from where it stands; ``reader`` makes the unpickler of a file.

    Raises
    ------
    WrongFormat
        It is no such file.
    ValueError
        It is damaged.
    """
    storages = Storages()
    if not _header(file, lambda: reader(file, storages).load()):
        raise WrongFormat("no file of PyTorch's older format either")
    value = reader(file, storages).load()
    storages.read(reader(file, storages).load(), file)
    return value


def _header(file: Any, read: Callable[[], Any]) -> bool:
    """Read the header, and return whether it is one: two numbers, and what the writer's machine is.

    A pickle of PyTorch's starts with the opcode of its protocol.
    """
    start = file.read(1)
    file.seek(-len(start), os.SEEK_CUR)
    try:
        known = start == pickle.PROTO and [read(), read()] == [MAGIC_NUMBER, PROTOCOL_VERSION]
        return known and read().get("little_endian", True)
    except (pickle.UnpicklingError, EOFError):
        return False
