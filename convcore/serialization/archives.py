"""Zip archives in files that hold more: several saved objects, one behind the other."""

from __future__ import annotations

import contextlib
import io
import os
import struct
import zipfile
from collections.abc import Iterator
from typing import Any

_END = b"PK\x05\x06"  # of a zip archive: its signature, and 18 bytes and a comment behind it
_N_END = 22
_PIECE = 1 << 20
_MAX_ENDS = 1000  # of a damaged file, whose bytes look like ends of archives


class Part(io.RawIOBase):
    """A part of a seekable file, as a file of its own."""

    def __init__(self, file: Any, start: int, end: int) -> None:
        self._file, self._start, self._end = file, start, end
        self._position = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position in the part."""
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move the position."""
        size = self._end - self._start
        origin = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: size}[whence]
        if origin + offset < 0:
            raise ValueError(f"negative seek value {origin + offset}")
        self._position = origin + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Read bytes, none behind the part's end."""
        left = self._end - self._start - self._position
        self._file.seek(self._start + self._position)
        content = self._file.read(max(0, min(len(buffer), left)))
        buffer[: len(content)] = content
        self._position += len(content)
        return len(content)


def first(file: Any) -> tuple[zipfile.ZipFile, Any, int]:
    """Return the archive that begins where a file stands, its file, and where it ends.

    That is all of a file which holds one archive; else a `Part` of it.

    Raises
    ------
    zipfile.BadZipFile
        No archive begins there, or it is damaged.
    """
    start = file.tell()
    size = file.seek(0, os.SEEK_END)
    for end in (size, *_ends(file, start, size)):
        part = file if (start, end) == (0, size) else Part(file, start, end)
        with contextlib.suppress(zipfile.BadZipFile):  # these bytes are no end of an archive
            archive = zipfile.ZipFile(part)
            if _is_all(archive, part):
                return archive, part, end
    part = Part(file, start, size) if start else file
    return zipfile.ZipFile(part), part, size


def _is_all(archive: zipfile.ZipFile, file: Any) -> bool:
    """Return whether a file has an archive, and nothing before and behind it."""
    file.seek(-_N_END - len(archive.comment), os.SEEK_END)
    first = min((info.header_offset for info in archive.infolist()), default=0)
    return first == 0 and file.read(len(_END)) == _END


def _ends(file: Any, start: int, size: int) -> Iterator[int]:
    """Yield where archives may end: behind each signature of an end, and its comment."""
    position, tail, n_ends = start, b"", 0
    while position < size:
        file.seek(position)
        content = tail + file.read(_PIECE)
        if len(content) == len(tail):
            return
        last = len(content) - _N_END + len(_END)
        found = content.find(_END, 0, last)
        while found >= 0 and n_ends < _MAX_ENDS:
            (n_comment,) = struct.unpack_from("<H", content, found + _N_END - 2)
            yield position - len(tail) + found + _N_END + n_comment
            n_ends += 1
            found = content.find(_END, found + 1, last)
        position += len(content) - len(tail)
        tail = content[1 - _N_END :]


class Stream:
    """A file to which bytes are only added, whatever else it can do.

    A zip archive is written without going back: a file that is opened to append, compressed as
    gzip's, or on its way elsewhere writes at another place than its position says, or fails.
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        self.flush = getattr(file, "flush", lambda: None)

    def write(self, content: Any) -> int:
        """Write all bytes, which an unbuffered file may take in several calls."""
        rest = memoryview(content)
        while len(rest):
            n_written = self._file.write(rest)
            rest = rest[len(rest) if n_written is None else n_written :]
        return len(content)


def rewritable(file: Any) -> Any:
    """Return a file if a zip archive may be written with going back in it, else a `Stream` to it.

    Only Python's own files in memory and on disks are known to go back.
    """
    if isinstance(file, io.BytesIO):
        return file
    is_buffered = isinstance(file, io.BufferedWriter | io.BufferedRandom)
    if is_buffered and isinstance(file.raw, io.FileIO) and file.seekable():
        return Stream(file) if _appends(file.raw) else file
    return Stream(file)


def _appends(raw: io.FileIO) -> bool:
    """Return whether all that is written to a file goes to its end."""
    if "a" in raw.mode:
        return True
    try:
        import fcntl
    except ImportError:  # Windows
        return False
    return bool(fcntl.fcntl(raw.fileno(), fcntl.F_GETFL) & os.O_APPEND)
