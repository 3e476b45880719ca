"""Objects sent from a worker process to its parent, their arrays in shared memory.

The memory is a file without a name, whose descriptor goes over the socket: a process that is killed
leaves nothing behind. Small objects go over the socket themselves.
"""

from __future__ import annotations

import os
import pickle
import sys
from multiprocessing import reduction
from typing import Any

from convcore.engine.runtime import shared

SMALL = 1 << 16  # bytes that are faster copied through the socket than mapped
_ALIGNMENT = 64

# Windows has neither the sockets nor the files.
_has_descriptors = sys.platform != "win32" and reduction.HAVE_SEND_HANDLE


def send(connection: Any, value: Any) -> None:
    """Send an object, of which nothing is sent if it cannot be pickled."""
    buffers: list[pickle.PickleBuffer] = []
    pickled = pickle.dumps(value, 5, buffer_callback=buffers.append)
    parts = [memoryview(pickled), *(buffer.raw() for buffer in buffers)]
    sizes = [len(part) for part in parts]
    in_file = _has_descriptors and sum(sizes) > SMALL
    fd = _file_of(parts) if in_file else None
    try:
        connection.send((sizes, in_file))
        if fd is None:
            for part in parts:
                connection.send_bytes(part)
        else:
            reduction.send_handle(connection, fd, None)
    finally:
        if fd is not None:
            os.close(fd)


def _starts(sizes: list[int]) -> tuple[list[int], int]:
    """Return where parts start in a file, and the size of the file."""
    starts, end = [], 0
    for size in sizes:
        starts.append(end)
        end += -(-size // _ALIGNMENT) * _ALIGNMENT
    return starts, end


def _file_of(parts: list[memoryview]) -> int:
    starts, n_bytes = _starts([len(part) for part in parts])
    fd = shared.new_file(n_bytes)
    try:
        for part, start in zip(parts, starts, strict=True):
            shared.write(fd, part, start)
    except BaseException:
        os.close(fd)
        raise
    return fd


def receive(connection: Any) -> Any:
    """Receive an object; EOFError or OSError if the sender is gone."""
    sizes, in_file = connection.recv()
    if in_file:
        starts, n_bytes = _starts(sizes)
        content = memoryview(shared.map_file(reduction.recv_handle(connection), n_bytes))
        parts: list[Any] = [
            content[start : start + size] for start, size in zip(starts, sizes, strict=True)
        ]
    else:
        parts = [bytearray(connection.recv_bytes()) for _ in sizes]  # arrays may be written to
    return pickle.loads(parts[0], buffers=parts[1:])
