"""A stream of arrays into an npz or safetensors file, as they come."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import zipfile
from typing import Any

import numpy as np
from numpy.lib import format as npy

from convcore.serialization.replacing import writing
from convcore.serialization.state_dicts import safetensors


class Stream:
    """Writes arrays as they come; the file is there, whole, when `close` was called.

    Parameters
    ----------
    path : str or path
        Ends in ``.npz`` or ``.safetensors``. An older file stays until `close`, and for good after
        `abandon`.

    Raises
    ------
    ValueError
        Another suffix.
    """

    def __init__(self, path: Any) -> None:
        if not isinstance(path, str | os.PathLike):
            raise TypeError(f"file must be a path, got {type(path).__name__}")
        name = os.fsdecode(path)
        kind = _KINDS.get(os.path.splitext(name)[1])
        if kind is None:
            raise ValueError(f"file: values stream into .npz or .safetensors, got {name!r:.99}")
        self._opened = contextlib.ExitStack()
        file = self._opened.enter_context(writing(path))
        self._archive = self._opened.enter_context(kind(file, os.path.dirname(name)))
        self._written: dict[str, int] = {}

    def write(self, name: str, array: np.ndarray) -> str:
        """Write an array; return its name in the file, numbered if another had it."""
        number = self._written[name] = self._written.get(name, 0) + 1
        if number > 1:
            name = f"{name}#{number}"
        self._archive.write(name, array)
        return name

    def close(self) -> None:
        """Finish the file."""
        self._opened.close()

    def abandon(self, error: BaseException) -> None:
        """Remove the unfinished file."""
        try:
            self._opened.__exit__(type(error), error, error.__traceback__)
        except Exception:
            return
        except BaseException as other:
            if other is not error:  # an interrupt
                raise


class _Npz:
    """An npz file: an array is an entry of a ZIP archive, which has its table at the end."""

    def __init__(self, file: Any, folder: str) -> None:
        self._archive = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED)

    def __enter__(self) -> _Npz:
        return self

    def write(self, name: str, array: np.ndarray) -> None:
        """Write an array."""
        if array.dtype.kind == "V":
            raise TypeError(f"{name}: npz files have no {array.dtype}: stream into .safetensors")
        with self._archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
            npy.write_array(entry, array, allow_pickle=False)

    def __exit__(self, *error: Any) -> None:
        self._archive.close()


class _Safetensors:
    """A safetensors file: its table stands first, so memory waits in another file until the end."""

    def __init__(self, file: Any, folder: str) -> None:
        self._file = file
        self._memory = tempfile.TemporaryFile(dir=folder or ".")  # noqa: SIM115  see __exit__
        self._entries: dict[str, dict] = {}

    def __enter__(self) -> _Safetensors:
        return self

    def write(self, name: str, array: np.ndarray) -> None:
        """Write an array."""
        entry = safetensors.entry(name, array, self._memory.tell())
        self._memory.write(safetensors.memory_of(array))
        self._entries[name] = entry

    def __exit__(self, kind: Any, *error: Any) -> None:
        with self._memory:
            if kind is None:
                self._file.write(safetensors.header(self._entries))
                self._memory.seek(0)
                shutil.copyfileobj(self._memory, self._file, 1 << 20)


_KINDS: dict[str, Any] = {".npz": _Npz, ".safetensors": _Safetensors}
