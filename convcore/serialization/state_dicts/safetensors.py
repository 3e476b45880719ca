"""safetensors files: a header in JSON, then the tensors' memory.

Files are read here, and written by the library `safetensors`.  The header is checked before memory
is allocated: each byte of the rest belongs to one tensor, as many as its shape and dtype need.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from convcore._tensor import Tensor
from convcore.serialization import bfloat16
from convcore.serialization.archive import fill
from convcore.serialization.errors import CheckpointError
from convcore.serialization.state_dicts import naming

METADATA = "__metadata__"
LONGEST_HEADER = 100_000_000  # bytes, as the library has it
_MOST_AXES = 64
_MOST = 2**60  # elements along an axis

DTYPES = {
    **{"BOOL": "?", "U8": "u1", "I8": "i1", "U16": "<u2", "I16": "<i2", "U32": "<u4"},
    **{"I32": "<i4", "U64": "<u8", "I64": "<i8", "F16": "<f2", "F32": "<f4", "F64": "<f8"},
    **{"C64": "<c8", "BF16": "<u2"},
}


def _library() -> Any:
    """Return the module of the library that writes NumPy's arrays."""
    try:
        import safetensors.numpy
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "writing safetensors files needs the package 'safetensors': "
            "pip install 'convcore[safetensors]'",
            name="safetensors",
        ) from error
    return safetensors.numpy


def content(obj: Any, metadata: Mapping[str, str] | None) -> bytes:
    """Return a file of a dict of tensors."""
    arrays, texts = naming.arrays_and_metadata(obj, metadata, "safetensors")
    if METADATA in arrays:
        raise ValueError(f"obj[{METADATA!r}]: safetensors files have no tensor of that name")
    for name, array in arrays.items():
        _code(f"obj[{name!r:.99}]", array)
    return _library().save(arrays, texts or None)


_CODES = {np.dtype(code): name for name, code in DTYPES.items() if name != "BF16"}


def _code(what: str, array: np.ndarray) -> str:
    """Return the format's name of an array's dtype."""
    name = "BF16" if array.dtype.name == "bfloat16" else _CODES.get(array.dtype)
    if name is None:
        raise TypeError(f"{what}: safetensors files have no {array.dtype}: cast it first")
    return name


def entry(name: str, array: np.ndarray, start: int) -> dict[str, Any]:
    """Return what a header says of an array whose memory begins at a place.

    Raises
    ------
    TypeError
        The format has no such dtype.
    """
    places = [start, start + array.nbytes]
    return {"dtype": _code(name, array), "shape": list(array.shape), "data_offsets": places}


def memory_of(array: np.ndarray) -> Any:
    """Return an array's memory as a file has it: C order, little-endian."""
    order = "<u2" if array.dtype.name == "bfloat16" else array.dtype.newbyteorder("<")
    dense = np.ascontiguousarray(array)
    dense = dense.view("u2") if array.dtype.name == "bfloat16" else dense
    return dense.astype(order, copy=False).reshape(-1).view(np.uint8)


def header(entries: Mapping[str, dict[str, Any]]) -> bytes:
    """Return what stands before the arrays' memory: the length of a table, and the table.

    Spaces make its length a multiple of 8, as the library does.
    """
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def read(file: Any) -> dict[str, Tensor]:
    """Read a file from its current position to its end."""
    header, metadata = _read_header(file)
    if any(entry["dtype"] == "BF16" for entry in header.values()):
        bfloat16.say_so(stacklevel=4)
    arrays = {name: _array(file, name, header.pop(name)) for name in list(header)}
    return naming.state_dict(arrays, metadata)


def _array(file: Any, name: str, entry: Mapping[str, Any]) -> np.ndarray:
    """Read the next tensor's memory."""
    elements = np.empty(entry["shape"], DTYPES[entry["dtype"]])
    if fill(elements.reshape(-1).view(np.uint8), file) < elements.nbytes:
        raise CheckpointError(f"tensor {name!r:.99} is cut off: the file became shorter")
    native = elements.astype(elements.dtype.newbyteorder("="), copy=False)
    if entry["dtype"] != "BF16":
        return native
    numbers = bfloat16.numbers(native)
    return bfloat16.widened(native) if numbers is None else numbers


def read_metadata(file: Any) -> dict[str, str]:
    """Read the header of a file, and return its metadata."""
    header, metadata = _read_header(file)
    return naming.users_metadata(metadata, header)


def _read_header(file: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the checked entries of the tensors, in the order of their memory, and metadata."""
    start = file.tell()
    n_bytes = file.seek(0, os.SEEK_END) - start
    file.seek(start)
    length = int.from_bytes(file.read(8), "little")
    if n_bytes < 8 or length > n_bytes - 8:
        raise CheckpointError(
            f"it is no safetensors file, or cut off: its header has {length} bytes, and "
            f"{max(n_bytes - 8, 0)} are there"
        )
    if length > LONGEST_HEADER:
        raise CheckpointError(
            f"its header is too long: {length} bytes, {LONGEST_HEADER} are the most"
        )
    header = json.loads(file.read(length).decode(), object_pairs_hook=_without_duplicates)
    if type(header) is not dict:
        raise CheckpointError(
            "the header of a safetensors file is a dict, and it is something else"
        )
    metadata = header.pop(METADATA, {})
    if type(metadata) is not dict or any(type(text) is not str for text in metadata.values()):
        raise CheckpointError("its metadata are damaged: they are not texts by name")
    for name, entry in header.items():
        _check(name, entry)
    return _in_order(header, n_bytes - 8 - length), metadata


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise CheckpointError("its header is damaged: a name is there twice")
    return found


def _check(name: str, entry: Any) -> None:
    """Check one tensor's entry by itself."""
    if type(entry) is not dict or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise CheckpointError(f"tensor {name!r:.99} is damaged: no dtype, shape and data_offsets")
    kind, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if type(kind) is not str or kind not in DTYPES:
        raise CheckpointError(
            f"tensor {name!r:.99} has the dtype {kind!r:.99}: {', '.join(DTYPES)} are read"
        )
    for numbers in (shape, offsets):
        is_list = type(numbers) is list and len(numbers) <= _MOST_AXES
        if not is_list or any(type(n) is not int or not 0 <= n <= _MOST for n in numbers):
            raise CheckpointError(f"tensor {name!r:.99} is damaged: shape or place are no numbers")
    if len(offsets) != 2:
        raise CheckpointError(f"tensor {name!r:.99} is damaged: its place has no start and end")
    needed = math.prod(shape) * np.dtype(DTYPES[kind]).itemsize
    if offsets[1] - offsets[0] != needed:
        raise CheckpointError(
            f"tensor {name!r:.99} is damaged: {kind} of shape {shape} takes {needed} bytes, and "
            f"its place is {offsets}"
        )


def _in_order(header: dict[str, Any], n_bytes: int) -> dict[str, Any]:
    """Return entries by their place; they must neither overlap nor leave bytes out."""
    ordered = sorted(header.items(), key=lambda item: item[1]["data_offsets"])
    end = 0
    for name, entry in ordered:
        if entry["data_offsets"][0] != end:
            kind = "overlaps another" if entry["data_offsets"][0] < end else "leaves a gap"
            raise CheckpointError(f"tensor {name!r:.99} is damaged: its place {kind}")
        end = entry["data_offsets"][1]
    if end != n_bytes:
        raise CheckpointError(
            f"it is damaged or cut off: its tensors take {end} bytes, and {n_bytes} are there"
        )
    return dict(ordered)
