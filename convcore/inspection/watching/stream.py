"""A stream of arrays into an npz file, up to a bound."""

from __future__ import annotations

import contextlib
import os
import zipfile
from typing import Any

import numpy as np
from numpy.lib import format as npy

from convcore.serialization.replacing import writing


class Stream:
    """Writes arrays as they come; the file is there, whole, when `close` was called.

    Parameters
    ----------
    path : str or path
        Ends in ``.npz``. An older file stays until `close`, and for good after `abandon`.

    Raises
    ------
    ValueError
        Another suffix.
    """

    def __init__(self, path: Any) -> None:
        if not isinstance(path, str | os.PathLike):
            raise TypeError(f"file must be a path, got {type(path).__name__}")
        if not os.fspath(path).endswith(".npz"):
            raise ValueError(f"file: values stream into .npz, got {os.fspath(path)!r:.99}")
        self._opened = contextlib.ExitStack()
        file = self._opened.enter_context(writing(path))
        self._archive = self._opened.enter_context(zipfile.ZipFile(file, "w", zipfile.ZIP_STORED))
        self._written: dict[str, int] = {}

    def write(self, name: str, array: np.ndarray) -> str:
        """Write an array; return its name in the file, numbered if another had it."""
        number = self._written[name] = self._written.get(name, 0) + 1
        if number > 1:
            name = f"{name}#{number}"
        with self._archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
            npy.write_array(entry, array, allow_pickle=False)
        return name

    def close(self) -> None:
        """Finish the file."""
        self._opened.close()

    def abandon(self, error: BaseException) -> None:
        """Remove the unfinished file."""
        with contextlib.suppress(BaseException):
            self._opened.__exit__(type(error), error, error.__traceback__)
