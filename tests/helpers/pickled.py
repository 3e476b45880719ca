"""Checkpoints put together by hand, opcode by opcode, as nobody's program would write them."""

from __future__ import annotations

import io
import pickle
import struct
import zipfile
from typing import Any

END = pickle.STOP


def name(module: str, of: str) -> bytes:
    """Push what a name leads to."""
    return pickle.GLOBAL + f"{module}\n{of}\n".encode()


def value(plain: Any) -> bytes:
    """Push plain data."""
    return pickle.dumps(plain, 2)[2:-1]


def call(function: bytes, *args: bytes) -> bytes:
    """Push what a call returns."""
    return function + pickle.MARK + b"".join(args) + pickle.TUPLE + pickle.REDUCE


def storage(key: Any = "0", kind: str = "FloatStorage", count: Any = 4) -> bytes:
    """Push a storage."""
    parts = [value("storage"), name("torch", kind), value(key), value("cpu"), value(count)]
    return pickle.MARK + b"".join(parts) + pickle.TUPLE + pickle.BINPERSID


TENSOR = name("torch._utils", "_rebuild_tensor_v2")
ORDERED = name("collections", "OrderedDict")


def tensor(offset: Any, size: Any, stride: Any, *more: Any, **of: Any) -> bytes:
    """Push a tensor."""
    rest = more or (False, None)
    return call(TENSOR, storage(**of), *map(value, (offset, size, stride, *rest)))


def archive(
    pickled: bytes, storages: dict[str, bytes] | None = None, compression: int = zipfile.ZIP_STORED
) -> io.BytesIO:
    """Return a file of today's format."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as written:
        written.writestr("archive/data.pkl", pickled)
        for key, content in (storages or {"0": struct.pack("4f", 0, 1, 2, 3)}).items():
            written.writestr(f"archive/data/{key}", content)
    file.seek(0)
    return file


def checkpoint(*parts: bytes, **more: Any) -> io.BytesIO:
    """Return a file whose pickle is made of opcodes."""
    return archive(b"\x80\x02" + b"".join(parts) + END, **more)


def older(*parts: bytes, keys: Any = ("0",), storages: bytes | None = None) -> io.BytesIO:
    """Return a file of the older format."""
    if storages is None:
        storages = struct.pack("<q4f", 4, 0, 1, 2, 3)
    header = [0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}]
    head = b"".join(pickle.dumps(part, 2) for part in header)
    body = b"\x80\x02" + b"".join(parts) + END
    return io.BytesIO(head + body + pickle.dumps(list(keys), 2) + storages)
