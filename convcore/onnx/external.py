"""External data: a model's tensors in files beside it."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from convcore.onnx.errors import OnnxError
from convcore.onnx.naming import quoted

# Types of which a byte holds several elements.
_BITS = {**dict.fromkeys(("UINT4", "INT4", "FLOAT4E2M1"), 4), **dict.fromkeys(("UINT2", "INT2"), 2)}
# Tensors may overlap in a file: their sizes add up to at most these multiples of the files' sizes,
# and this many bytes more.
_TIMES, _BYTES_MORE = 8, 16 << 20


class _Range(NamedTuple):
    """A tensor's bytes in a file."""

    file: Path
    offset: int
    length: int


class ExternalData:
    """Files with tensors' data, which lie below a model's folder.

    Each tensor is read into its own memory, and not into the protocol buffer, whose size is limited
    to 2 GiB.

    Parameters
    ----------
    model : Path, optional
        The model's file.  Where it is a link, data may lie beside the link or beside the file that
        the link leads to, and links beside it may lead into the folder of that file.
    """

    def __init__(self, model: Path | None = None) -> None:
        self._folders = [] if model is None else [model.parent, model.resolve().parent]
        self._files: dict[str, Path | None] = {}  # by location
        self._replaced: dict[_Range, bytes] = {}

    def check(self, tensors: Iterable[TensorProto]) -> None:
        """Raise OnnxError if data are missing, outside the folder, or referred to too often."""
        ranges = [self._range(tensor) for tensor in tensors if is_external(tensor)]
        files = sum(file.stat().st_size for file in {each.file for each in ranges})
        total = sum(each.length for each in ranges)
        if total > _TIMES * files + _BYTES_MORE:
            raise OnnxError(
                f"external data: {len(ranges)} tensors of {total} bytes in all refer to files of "
                f"{files} bytes; at most {_TIMES} times the files' size and "
                f"{_BYTES_MORE >> 20} MiB are read"
            )

    def replace(self, tensor: TensorProto, data: bytes) -> None:
        """Give a tensor other data for `array` and `copy`; the file stays as it is."""
        self._replaced[self._range(tensor)] = data

    def is_replaced(self, location: str) -> bool:
        """Return whether a file's tensors were given other data."""
        return any(each.file == self._file(location) for each in self._replaced)

    def is_file(self, location: str, path: Path) -> bool:
        """Return whether a path leads to the file of a location."""
        file = self._file(location)
        return file is not None and path.exists() and path.samefile(file)

    def copy(self, location: str, new: BinaryIO) -> None:
        """Write a file's bytes, with the data that replaced others, to an open file."""
        file = self._file(location)
        assert file is not None  # `check` was called
        with file.open("rb") as old:
            shutil.copyfileobj(old, new)
        for place, data in self._replaced.items():
            if place.file == file:
                new.seek(place.offset)
                new.write(data)

    def array(self, tensor: TensorProto) -> np.ndarray:
        """Return a tensor's data as an array of its own."""
        file, offset, length = self._range(tensor)
        dtype = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.data_type))
        try:
            if dtype.isbuiltin == 1 and not self._replaced:
                array = np.fromfile(
                    file, dtype.newbyteorder("<"), length // dtype.itemsize, "", offset
                )
                return array.reshape(tuple(tensor.dims)).astype(dtype, copy=False)
            with file.open("rb") as opened:
                opened.seek(offset)
                data = bytearray(opened.read(length))
        except (OSError, ValueError) as error:
            raise OnnxError(f"tensor {quoted(tensor.name)}: external data: {error}") from error
        for place, new in self._replaced.items():
            start, stop = (
                max(offset, place.offset),
                min(offset + length, place.offset + place.length),
            )
            if place.file == file and start < stop:
                data[start - offset : stop - offset] = new[
                    start - place.offset : stop - place.offset
                ]
        inline = TensorProto(dims=tensor.dims, data_type=tensor.data_type, raw_data=bytes(data))
        return numpy_helper.to_array(inline)

    def _range(self, tensor: TensorProto) -> _Range:
        """Return where a tensor's data lie, checked."""
        shown = f"tensor {quoted(tensor.name)}"
        if not self._folders:
            raise OnnxError(f"{shown} lies in another file: load the model by its path")
        entries = {entry.key: entry.value for entry in tensor.external_data}
        location = location_of(tensor)
        try:
            file = self._file(location)
            offset, length = int(entries.get("offset", 0)), int(entries.get("length", -1))
            size = file.stat().st_size if file else 0
        except (OSError, RuntimeError, ValueError) as error:
            raise OnnxError(f"{shown}: external data {quoted(location)}: {error}") from error
        if file is None:
            raise OnnxError(
                f"{shown} asks for the file {quoted(location)}, "
                "which is not below the model's folder"
            )
        needed = _n_bytes(tensor)
        length = needed if length < 0 else length
        if not file.is_file() or offset < 0 or offset + length > size:
            raise OnnxError(
                f"{shown}: bytes {offset} to {offset + length} "
                f"are not in {quoted(location)}, which has {size}"
            )
        if length != needed:
            raise OnnxError(
                f"{shown} of shape {tuple(tensor.dims)} has {needed} bytes, and {length} bytes of "
                f"external data"
            )
        return _Range(file, offset, length)

    def _file(self, location: str) -> Path | None:
        """Return the file of a location, which need not be there; None if it is not allowed."""
        if location in self._files:
            return self._files[location]
        found = [folder / location for folder in self._folders]
        file = next((each for each in found if os.path.lexists(each)), found[0]).resolve()
        is_allowed = location and any(file.is_relative_to(each.resolve()) for each in self._folders)
        self._files[location] = file if is_allowed else None
        return self._files[location]


def location_of(tensor: TensorProto) -> str:
    """Return the name of the file that has a tensor's data."""
    return {entry.key: entry.value for entry in tensor.external_data}.get("location", "")


def is_external(tensor: TensorProto) -> bool:
    """Return whether a tensor's data lie in another file."""
    return tensor.data_location == TensorProto.EXTERNAL


def _n_bytes(tensor: TensorProto) -> int:
    """Return the number of bytes of a tensor's elements."""
    count, code = math.prod(tensor.dims), tensor.data_type
    if any(n < 0 for n in tensor.dims) or code == TensorProto.STRING:
        count = -1
    try:
        name = TensorProto.DataType.Name(code)
        bits = _BITS.get(name) or 8 * np.dtype(helper.tensor_dtype_to_np_dtype(code)).itemsize
    except (KeyError, ValueError):
        count = bits = -1
    if count < 0:
        raise OnnxError(
            f"tensor {quoted(tensor.name)} of type {code} and shape {tuple(tensor.dims)} "
            "cannot lie in another file"
        )
    return -(-count * bits // 8)
