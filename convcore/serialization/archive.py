"""PyTorch's checkpoint format since version 1.6: a zip archive of a pickle and the tensors' memory.

``data.pkl`` holds the objects, with each tensor as a call of a function of ``torch._utils`` whose
arguments are a storage's number, an offset, sizes and strides. ``data/<number>`` is that storage's
memory.
"""

from __future__ import annotations

import os
import sys
import zipfile
from typing import Any

import numpy as np

from convcore._errors.text import printable
from convcore.serialization.errors import CheckpointError

PICKLE = "data.pkl"
STORAGES = "data/"
BYTE_ORDER = "byteorder"
VERSION = "version"
CONSTANTS = "constants.pkl"  # of programs alone, TorchScript's

# Elements that NumPy has no type for: bfloat16, as bits, and bytes whose type the tensors say.
BFLOAT16 = np.dtype("V2")
UNTYPED = np.dtype("V1")

# PyTorch's storage classes and their element types.
DTYPES = {
    "BoolStorage": np.dtype("?"),
    "ByteStorage": np.dtype("u1"),
    "CharStorage": np.dtype("i1"),
    "ShortStorage": np.dtype("i2"),
    "IntStorage": np.dtype("i4"),
    "LongStorage": np.dtype("i8"),
    "HalfStorage": np.dtype("f2"),
    "FloatStorage": np.dtype("f4"),
    "DoubleStorage": np.dtype("f8"),
    "ComplexFloatStorage": np.dtype("c8"),
    "ComplexDoubleStorage": np.dtype("c16"),
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
DTYPES["BFloat16Storage"] = BFLOAT16
NAMES[BFLOAT16] = "BFloat16Storage"
OF_BYTES = {np.dtype("u2"), np.dtype("u4"), np.dtype("u8")}  # those that have no storage class


def is_dtype(value: Any) -> bool:
    """Return whether something is the element type of one of PyTorch's storages."""
    return isinstance(value, np.dtype) and (value in NAMES or value == UNTYPED)


# PyTorch does not compress. What another tool has compressed may grow, but not without bounds:
# all of it to so many times the file's bytes, the pickle, whose objects take more, to once.
GROWTH = 16
_PIECE = 1 << 20  # bytes read at a time


def fill(memory: np.ndarray, file: Any) -> int:
    """Read bytes into a vector of them, and return how many were there."""
    view, n_read = memoryview(memory), 0  # type: ignore[arg-type]
    while n_read < len(view):
        piece = file.read(min(_PIECE, len(view) - n_read))
        if not piece:
            break
        view[n_read : n_read + len(piece)] = piece
        n_read += len(piece)
    return n_read


class Entries:
    """The entries of a zip archive, whose sizes are checked first.

    Parameters
    ----------
    file : binary file
    archive : ZipFile
        Of that file.
    """

    def __init__(self, file: Any, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._infos: dict[str, zipfile.ZipInfo] = {}
        self.n_bytes = file.seek(0, os.SEEK_END)
        if sum(info.file_size for info in archive.infolist()) > GROWTH * self.n_bytes:
            raise CheckpointError(
                f"the archive inflates to more than {GROWTH} times its {self.n_bytes} bytes: if "
                "you trust it, unpack it and zip it again without compression"
            )
        for info in archive.infolist():
            self._add(info)

    def _name(self, filename: str) -> str:
        return filename

    def _add(self, info: zipfile.ZipInfo) -> None:
        name = self._name(info.filename)
        if name in self._infos and name:
            raise CheckpointError(f"the archive is damaged: {name!r:.99} is there twice")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise CheckpointError(f"{name!r:.99} is compressed, by other means than deflate")
        self._infos[name] = info

    def names(self) -> list[str]:
        """Return the names of all entries, in their order."""
        return list(self._infos)

    def size(self, name: str) -> int:
        """Return how many bytes an entry has."""
        return self._infos[name].file_size

    def open(self, name: str) -> Any:
        """Open an entry for reading."""
        return self._archive.open(self._infos[name])


class Records(Entries):
    """The records of a checkpoint, by their names without the folder's."""

    def __init__(self, file: Any, archive: zipfile.ZipFile) -> None:
        super().__init__(file, archive)
        self._is_swapped = False
        if PICKLE not in self._infos:
            raise CheckpointError(f"it is no checkpoint: there is no {PICKLE} in it")
        if self.size(PICKLE) > self.n_bytes:
            raise CheckpointError(
                f"{PICKLE} inflates to more than the {self.n_bytes} bytes of the file"
            )

    def _name(self, filename: str) -> str:
        return filename.partition("/")[2]

    def read(self, name: str) -> bytes:
        """Return a record's bytes; none if there is no such record."""
        return self.memory(name).tobytes()

    def memory(self, name: str) -> np.ndarray:
        """Return a record as a vector of bytes of its own; an empty one if there is none."""
        if name not in self._infos:
            return np.empty(0, np.uint8)
        memory = np.empty(self.size(name), np.uint8)
        with self.open(name) as record:
            n_read = fill(memory, record)
        if n_read != memory.size:
            raise CheckpointError(
                f"{printable(name)} is damaged: {n_read} of its {memory.size} bytes are there"
            )
        return memory

    def storage(self, key: str, dtype: np.dtype, count: int) -> np.ndarray:
        """Return the elements of a storage."""
        memory = self.memory(STORAGES + key)
        if memory.size != count * dtype.itemsize:
            raise CheckpointError(
                f"storage {printable(key)} is damaged: {memory.size} bytes are there, and "
                f"{count * dtype.itemsize} are meant"
            )
        if not self._is_swapped:
            return memory.view(dtype)
        if dtype == UNTYPED:
            raise CheckpointError(
                "it was written on a machine of another byte order, in types that it does not say"
            )
        parts = dtype.itemsize // (2 if dtype.kind == "c" else 1)
        memory.view(f"u{parts}").byteswap(inplace=True)
        return memory.view(dtype)

    def check_order(self) -> None:
        """Look at whether the file was written on a machine of another byte order.

        Raises
        ------
        CheckpointError
            It says neither.
        """
        order = self.read(BYTE_ORDER).decode("latin1") or sys.byteorder
        if order not in ("little", "big"):
            raise CheckpointError(f"its byte order is {order!r:.99}, neither little nor big")
        self._is_swapped = order != sys.byteorder
