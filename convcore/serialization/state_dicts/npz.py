"""NumPy's npz files: a zip archive of arrays, read without pickle.

Metadata and the names of tied weights, which NumPy has no place for, are one more array of the
archive, of JSON's bytes.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.lib import format as npy

from convcore._tensor import Tensor, dtypes
from convcore.serialization.archive import Entries, fill
from convcore.serialization.archives import rewritable
from convcore.serialization.errors import CheckpointError
from convcore.serialization.state_dicts import naming

METADATA = "__metadata__"
_SUFFIX = ".npy"
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
_LONGEST = 2**16 - 1  # bytes of a name in a zip archive
_DTYPES = {one.numpy for one in dtypes.ALL}


def is_npz(archive: zipfile.ZipFile) -> bool:
    """Return whether there is nothing but arrays in an archive."""
    return all(name.endswith(_SUFFIX) for name in archive.namelist())


def arrays(obj: Any, metadata: Mapping[str, str] | None) -> dict[str, np.ndarray]:
    """Return a dict of tensors as arrays for `write`."""
    found, texts = naming.arrays_and_metadata(obj, metadata, "npz")
    if METADATA in found:
        raise ValueError(f"obj[{METADATA!r}]: npz files have metadata under that name")
    for name, array in found.items():
        if "\0" in name:
            raise ValueError(f"obj[{name!r:.99}]: names in npz files end at a null character")
        if len(f"{name}{_SUFFIX}".encode()) > _LONGEST:
            raise ValueError(
                f"obj[{name!r:.99}]: names in npz files have at most {_LONGEST - len(_SUFFIX):,} "
                f"bytes, got {len(name.encode()):,}"
            )
        if array.dtype not in _DTYPES:
            raise TypeError(f"obj[{name!r:.99}]: npz files have no {array.dtype}: cast it first")
    if texts:
        found[METADATA] = np.frombuffer(json.dumps(texts).encode(), np.uint8)
    return found


def write(file: Any, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays, without compression."""
    with zipfile.ZipFile(rewritable(file), "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}{_SUFFIX}", "w", force_zip64=True) as entry:
                npy.write_array(entry, array, allow_pickle=False)


def read(file: Any, archive: zipfile.ZipFile) -> dict[str, Tensor]:
    """Read all arrays as tensors."""
    entries = Entries(file, archive)
    found = {name.removesuffix(_SUFFIX): _array(entries, name) for name in entries.names()}
    return naming.state_dict(found, _texts(found.pop(METADATA, None)))


def read_metadata(file: Any, archive: zipfile.ZipFile) -> dict[str, str]:
    """Return the metadata of a file."""
    entries = Entries(file, archive)
    names = {name.removesuffix(_SUFFIX): None for name in entries.names()}
    if METADATA not in names:
        return {}
    return naming.users_metadata(_texts(_array(entries, f"{METADATA}{_SUFFIX}")), names)


def _texts(array: np.ndarray | None) -> dict[str, str]:
    if array is None:
        return {}
    found = json.loads(array.tobytes().decode())
    if type(found) is not dict or any(type(text) is not str for text in found.values()):
        raise CheckpointError("its metadata are damaged: they are not texts by name")
    return found


def _array(entries: Entries, name: str) -> np.ndarray:
    """Read an array: its header says no more than there is."""
    with entries.open(name) as entry:
        shape, is_fortran, dtype = _header(entry, name)
        taken = entry.tell()
        array = _empty(shape, is_fortran, dtype, entries.size(name) - taken, name)
        is_whole = fill(array.reshape(-1, order="A").view(np.uint8), entry) == array.nbytes
        if not is_whole or entry.read(1):  # reads up to the end, where the checksum is compared
            raise CheckpointError(f"array {name!r:.99} is damaged: its size is not what it says")
    return array.astype(dtype.newbyteorder("="), copy=False)


def _header(entry: Any, name: str) -> tuple[tuple[int, ...], bool, np.dtype]:
    version = npy.read_magic(entry)
    if version not in _HEADERS:
        raise CheckpointError(f"array {name!r:.99} is of version {version}, which is not read")
    try:
        shape, is_fortran, dtype = _HEADERS[version](entry)
    except MemoryError:  # of Python's parser, for the header is short
        raise CheckpointError(f"array {name!r:.99} has a header that is not read") from None
    if dtype.hasobject:
        raise CheckpointError(f"array {name!r:.99} holds pickled objects, which may run code: no")
    if dtype.newbyteorder("=") not in _DTYPES:
        raise CheckpointError(f"array {name!r:.99} is of {dtype!s:.99}, which no tensor has")
    return shape, is_fortran, dtype


def _empty(
    shape: tuple[int, ...], is_fortran: bool, dtype: np.dtype, n_bytes: int, name: str
) -> np.ndarray:
    """Return memory for an array, if so much is there."""
    count = 1
    for size in shape:
        count *= size
    if any(size < 0 for size in shape) or count * dtype.itemsize != n_bytes:
        raise CheckpointError(
            f"array {name!r:.99} is damaged: {n_bytes} bytes are there, and {dtype} of shape "
            f"{shape!s:.99} takes {count * dtype.itemsize}"
        )
    return np.empty(shape, dtype, order="F" if is_fortran else "C")
