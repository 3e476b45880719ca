"""Atomic replacement of files: whatever happens, either the old or the new one is there, whole."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from functools import partial
from typing import Any, BinaryIO

from convcore.engine.runtime._folders import sync_folder


@contextlib.contextmanager
def writing(f: Any) -> Iterator[Any]:
    """Open a path for writing, whose file is replaced at the end; a file object stays as it is.

    The new file lies beside the old one, as ``.convcore-<random>.tmp``, until it is on the disk. It
    gets the old one's permissions and, where that is allowed, its owner; until then it is its
    writer's alone. A symbolic link stays one.
    Written in place, as ever, is what cannot be replaced: a device, a pipe, or a file in a folder
    in which no file may be made.
    """
    if not isinstance(f, (str, os.PathLike)):
        yield f
        return
    target = os.path.realpath(os.fsdecode(f))
    before = _about(f)
    temporary = os.path.join(os.path.dirname(target), f".convcore-{os.urandom(8).hex()}.tmp")
    try:
        made = _made(temporary, f, before)
        if made is None:
            with open(f, "wb") as file:
                yield file
            return
        with made as new:
            yield new
            _put_on_disk(new, temporary, before)
        os.replace(temporary, target)
    except BaseException as error:
        if isinstance(error, OSError) and error.filename in (None, temporary):  # a full disk, say
            error.filename = os.fspath(f)
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    sync_folder(os.fsencode(os.path.dirname(target)))


def _about(f: Any) -> os.stat_result | None:
    """Return a file's status; None if there is none; raise if it must not be written."""
    try:
        about = os.stat(f)
    except FileNotFoundError:
        return None
    if stat.S_ISREG(about.st_mode):
        open(f, "r+b").close()
    return about


def _made(temporary: str, f: Any, before: os.stat_result | None) -> BinaryIO | None:
    """Return a new file; None if what is there is to be written in place."""
    if before is not None and not stat.S_ISREG(before.st_mode):
        return None
    try:
        # No bare descriptor, which Ctrl-C would leave open.
        return open(temporary, "x+b", opener=partial(os.open, mode=_mode(before)))
    except OSError as error:
        if before is not None and isinstance(error, PermissionError):
            return None
        folder = os.path.dirname(os.fspath(f))
        absent = "" if os.path.isdir(folder or ".") else f" (there is no directory {folder!r})"
        raise type(error)(error.errno, f"{error.strerror}{absent}", os.fspath(f)) from None


def _mode(before: os.stat_result | None) -> int:
    """Return a new file's mode: while it is written, nobody reads it who must not read the old."""
    return 0o666 if before is None else 0o600 & before.st_mode


def _put_on_disk(new: BinaryIO, temporary: str, before: os.stat_result | None) -> None:
    """Give a new file the old one's owner and permissions, and wait until it is on the disk."""
    new.flush()
    if before is not None:
        if hasattr(os, "chown"):
            with contextlib.suppress(PermissionError):
                os.chown(temporary, before.st_uid, before.st_gid)
        os.chmod(temporary, stat.S_IMODE(before.st_mode))
    os.fsync(new.fileno())
