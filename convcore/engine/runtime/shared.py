"""Arrays in memory that several processes share.

A block of such memory is a file without a name, of which a process has a descriptor or a map: it is
gone when the last of these is, also where processes are killed, and nothing is left behind.
Forked children share the blocks of their parent; `Handle` takes an array to other processes.
"""

from __future__ import annotations

import mmap
import os
import sys
import weakref
from typing import Any

import numpy as np

from convcore.engine.runtime import storages

# Each map holds a descriptor; beyond so many in use, what arrives is copied instead.  At most a
# quarter of the descriptors that the process may have: the program needs some, and so do messages.
MOST_MAPS = 256

_n_maps = 0


def new_file(n_bytes: int) -> int:
    """Return the descriptor of a new file without a name, in memory where the system has such."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("convcore")
    else:
        import tempfile

        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    os.ftruncate(fd, n_bytes)
    return fd


class Block(mmap.mmap):
    """A map of a file; ``fd`` is the file's descriptor if other processes may be given it."""

    fd: int | None = None

    def __del__(self) -> None:
        if self.fd is not None:
            os.close(self.fd)


def map_file(fd: int, n_bytes: int) -> Block | memoryview:
    """Return a file's content, mapped while few maps are in use, else as a copy; close the file."""
    global _n_maps
    try:
        if _n_maps >= min(MOST_MAPS, _max_descriptors() // 4):
            return _read(fd, n_bytes)
        flags = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)  # all pages at once
        block = Block(fd, n_bytes, flags=flags)
    finally:
        os.close(fd)
    _n_maps += 1
    weakref.finalize(block, _count_freed).atexit = False
    return block


def _max_descriptors() -> int:
    """Return the number of descriptors that the process may have."""
    try:
        import resource
    except ImportError:  # Windows
        return 512
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return limit if limit >= 0 else sys.maxsize


def _count_freed() -> None:
    global _n_maps
    _n_maps -= 1


def _read(fd: int, n_bytes: int) -> memoryview:
    content: memoryview = np.empty(n_bytes, np.uint8).data
    done = 0
    while done < n_bytes:  # the system reads at most 2 GB at once
        done += os.preadv(fd, [content[done:]], done)
    return content


def write(fd: int, content: memoryview, start: int) -> None:
    """Write bytes to a file, from the byte ``start`` on."""
    done = 0
    while done < len(content):
        done += os.pwrite(fd, content[done:], start + done)


def is_shared(array: np.ndarray) -> bool:
    """Return whether an array lies in a block."""
    return _block(array) is not None


def _block(array: Any) -> Block | None:
    while isinstance(array, (np.ndarray, memoryview)):
        array = array.base if isinstance(array, np.ndarray) else array.obj
    return array if isinstance(array, Block) else None


def copy_to_shared(array: np.ndarray) -> np.ndarray:
    """Return an array in a new block, with the values and the order of axes of another."""
    if os.name == "nt":
        raise RuntimeError("memory cannot be shared with other processes on this system")
    _register()
    fd = new_file(max(array.nbytes, 1))
    block = Block(fd, max(array.nbytes, 1))
    block.fd = fd
    order = np.argsort([-abs(step) for step in array.strides], kind="stable")
    shape = [array.shape[axis] for axis in order]
    values = np.ndarray(shape, array.dtype, block).transpose(np.argsort(order))
    values[...] = array
    return values


class Handle:
    """An array on its way to another process.

    A pickle of it holds the elements, each once, and is read as an ndarray of the same strides
    between them; what `multiprocessing` pickles for another process holds the descriptor of the
    array's block instead, if the array is in one.
    """

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __reduce__(self) -> tuple:
        vector, strides = storages.packed(self.array)
        return storages.unpacked, (vector, self.array.shape, strides)


def _register() -> None:
    from multiprocessing.reduction import ForkingPickler

    ForkingPickler.register(Handle, _by_descriptor)


def _by_descriptor(handle: Handle) -> tuple:
    from multiprocessing.reduction import DupFd

    array, block = handle.array, _block(handle.array)
    if block is None or block.fd is None:
        return handle.__reduce__()
    start = array.__array_interface__["data"][0] - np.frombuffer(block, np.uint8).ctypes.data
    place = (array.shape, array.dtype, start, array.strides)
    return _of_descriptor, (DupFd(block.fd), len(block), place)


def _of_descriptor(duplicate: Any, n_bytes: int, place: tuple) -> np.ndarray:
    _register()
    fd = duplicate.detach()
    block = Block(fd, n_bytes)
    block.fd = fd
    shape, dtype, start, strides = place
    return np.ndarray(shape, dtype, block, start, strides)
