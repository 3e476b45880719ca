"""load: read checkpoints as data, or, where that is asked for, as code."""

from __future__ import annotations

import contextlib
import errno
import importlib
import io
import os
import pickle
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from convcore._errors import hinted
from convcore._errors.calls import unknown_keyword
from convcore._errors.text import printable
from convcore._tensor import dtypes
from convcore._tensor.device import check_device, device
from convcore.serialization import (
    archive,
    archives,
    bfloat16,
    formats,
    legacy,
    numpy_scalars,
    rebuild,
    safe,
)
from convcore.serialization.errors import CheckpointError, callers_error, damage
from convcore.serialization.state_dicts import npz, safetensors
from convcore.serialization.unpickler import DataUnpickler

_OF_PICKLE = ("buffers", "encoding", "errors", "fix_imports")  # keywords of pickle.load


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    format: str | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Load a checkpoint that `save` or PyTorch's ``torch.save`` has written, safetensors, or npz.

    Parameters
    ----------
    f : str, path, or seekable binary file
        Read from where it stands, to the end of one object; the next call reads the next one.
    map_location : device, optional
        Tensors are on the CPU, wherever they were saved: None, "cpu", a function or a dict change
        nothing, and a device that is not there is an error, as for ``Tensor.to``.
    mmap : bool, optional
        Ignored: tensors are in memory.
    pickle_module : module, optional
        Python's `pickle`, if ``weights_only`` is False.
    weights_only : bool
        Whether only data is read, which is the default: tensors, numbers, strings and containers of
        them, and what `add_safe_globals` allows. Where it is False, whole modules and any objects
        are read, and **the file may run any code**: do so only if you trust whoever wrote it.
    format : {"torch", "safetensors", "npz"}, optional
        What the file must be; by default its first bytes tell.

    Returns
    -------
    object
        The saved object, for instance a state_dict. Tensors that shared memory share it again.
        bfloat16 is read as float32, with a warning, where ml_dtypes is not there.

    Raises
    ------
    CheckpointError
        The file is no checkpoint, is damaged, or holds something other than data: the message says
        what is wrong. It is a `pickle.UnpicklingError`, a ValueError and a RuntimeError.
    OSError
        The file cannot be opened or read.
    EOFError
        A file that is open for reading stands behind its last object.
    RuntimeError
        ``map_location`` is "cuda", or another device where no tensor can be.

    Notes
    -----
    A file that is read as data calls nothing but constructors of what is listed above, and changes
    nothing that was there before. It takes at most 500 times its own bytes of memory, and a file of
    tensors about its own.

    Examples
    --------
    >>> import io, convcore
    >>> file = io.BytesIO()
    >>> convcore.save({"weight": convcore.ones(2)}, file)
    >>> convcore.load(file)
    {'weight': tensor([1., 1.])}
    """
    for name in pickle_load_args:
        if name not in _OF_PICKLE:
            raise unknown_keyword("load", name, ("f", "map_location", "weights_only", *_OF_PICKLE))
    if weights_only is None:
        weights_only = pickle_module is None
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    if isinstance(map_location, str | device):
        check_device(map_location)
    reader = _Reader if weights_only else _CodeReader
    named = formats.of_name(f, format)
    kinds: set[np.dtype] = set()  # of the storages that were read
    with _opened(f, weights_only) as (file, head), contextlib.ExitStack() as stack:
        kind, archived, part = formats.of_head(head, named), None, file
        if kind == "zip":
            opened, part, end = archives.first(file)
            archived = stack.enter_context(opened)
            stack.callback(file.seek, end)  # where another object may be
            kind = "npz" if _is_npz(archived, named) else "torch"
        other, reader_of_it = formats.of_others(head) if kind == "torch" else ("", "")
        if other:
            error = CheckpointError(f"it is no checkpoint, but {other}")
            raise hinted(error, f"read it with {reader_of_it}")
        formats.check_asked(format, kind)
        if kind == "safetensors":
            return safetensors.read(file)
        if archived is None:
            value = legacy.load(
                file, lambda rest, found: reader(rest, rest.n_bytes, _noting(found.get, kinds))
            )
        elif kind == "npz":
            return npz.read(part, archived)
        else:
            value = _load_archive(part, archived, reader, kinds)
    if archive.BFLOAT16 in kinds:
        bfloat16.say_so()
    return value


def _noting(storage: Callable[..., np.ndarray], kinds: set[np.dtype]) -> Callable[..., np.ndarray]:
    """Return a function that gets storages and notes the types of their elements."""

    def get(key: str, dtype: np.dtype, count: int) -> np.ndarray:
        kinds.add(dtype)
        return storage(key, dtype, count)

    return get


def read_metadata(f: Any) -> dict[str, str]:
    """Return the metadata of a safetensors or npz file: texts by name.

    Parameters
    ----------
    f : str, path, or seekable binary file

    Raises
    ------
    CheckpointError
        The file is of another format, or damaged.
    OSError
        The file cannot be opened or read.
    """
    named = formats.of_name(f, None)
    with _opened(f, True) as (file, head):
        kind = formats.of_head(head, named)
        if kind == "safetensors":
            return safetensors.read_metadata(file)
        if kind == "zip":
            archived, part, _ = archives.first(file)
            with archived:
                if _is_npz(archived, named):
                    return npz.read_metadata(part, archived)
        raise CheckpointError("only safetensors and npz files have metadata")


def _is_npz(archived: zipfile.ZipFile, named: str) -> bool:
    """Return whether an archive holds arrays; an empty one does if it is named so."""
    return npz.is_npz(archived) and (bool(archived.namelist()) or named == "npz")


@contextlib.contextmanager
def _opened(f: Any, weights_only: bool) -> Iterator[tuple[Any, bytes]]:
    """Open a file, and yield it and its first bytes; content that is wrong is a CheckpointError."""
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(open(f, "rb")) if isinstance(f, (str, os.PathLike)) else f
        head = _first_bytes(file, formats.N_HEAD)
        try:
            yield file, head
        except CheckpointError as error:
            if _named(f) not in str(error):
                error.args = (f"{_named(f)}: {error}",)
            raise
        except Exception as error:
            if (callers := callers_error(error)) is not None:
                raise callers from None
            if _is_none_of_the_files(error, weights_only):
                raise
            why = printable(damage(error), 999)
            raise CheckpointError(f"{_named(f)} is damaged: {why}") from error


def _named(f: Any) -> str:
    """Return the name of a file, or what kind of object it is read from."""
    name = os.fspath(f) if isinstance(f, (str, os.PathLike)) else getattr(f, "name", None)
    return f"{name!r:.999}" if isinstance(name, (str, bytes)) else f"the {type(f).__name__}"


def _first_bytes(file: Any, count: int) -> bytes:
    """Return the first bytes of a file, which is left where it stood, or, at its end, rewound."""
    if not hasattr(file, "read"):
        raise TypeError(f"f: expected a path or a seekable binary file, got {type(file).__name__}")
    first = None if isinstance(file, io.TextIOBase) else file.read(count)  # decodes what it reads
    if not isinstance(first, bytes):
        text = "f: expected a file that is opened in binary mode, got one of text"
        raise hinted(TypeError(text), "open it by open(path, 'rb')")
    if first:
        file.seek(-len(first), os.SEEK_CUR)
        return first
    if file.tell() and not getattr(file, "writable", lambda: True)():
        raise EOFError(f"{_named(file)} has no more objects: all of it was read")
    file.seek(0)  # at the end, as after writing: all of it is meant
    first = file.read(count)
    file.seek(0)
    return first


def _is_none_of_the_files(error: Exception, weights_only: bool) -> bool:
    """Return whether an error is the machine's, or that of code that was to be run."""
    if isinstance(error, OSError):  # a damaged file has readers seek to where there is nothing
        return error.errno not in (None, errno.EINVAL)
    code = () if weights_only else (ImportError, AttributeError)
    return isinstance(error, (MemoryError, *code))


def _load_archive(
    file: Any, opened: zipfile.ZipFile, reader: Callable[..., Any], kinds: set[np.dtype]
) -> Any:
    records = archive.Records(file, opened)
    if archive.CONSTANTS in records.names():
        raise CheckpointError(safe.SCRIPTED)
    records.check_order()
    pickled = records.read(archive.PICKLE)
    return reader(io.BytesIO(pickled), len(pickled), _noting(records.storage, kinds)).load()


class _Names:
    """What both unpicklers know: PyTorch's names, and storages.

    Parameters
    ----------
    pickled : binary file
    n_bytes : int
        The size of the pickle, or more.
    storage : callable
        Returns the storage of a key, a dtype and a number of elements.
    """

    def __init__(self, pickled: Any, n_bytes: int, storage: Callable[..., np.ndarray]) -> None:
        self._open(pickled, n_bytes)
        self._storage = storage
        self._storages: dict[str, rebuild.FileStorage] = {}

    def _open(self, pickled: Any, n_bytes: int) -> None:
        raise NotImplementedError

    def find_class(self, module: str, name: str) -> Any:
        """Return what is meant by a name of PyTorch's, or by another."""
        if (module, name) in rebuild.PYTORCHS:
            return rebuild.PYTORCHS[module, name]
        if module == "torch" and name in archive.DTYPES:
            return archive.DTYPES[name]
        if module == "torch" and isinstance(getattr(dtypes, name, None), dtypes.dtype):
            return getattr(dtypes, name)
        return self._other(module, name)

    def _other(self, module: str, name: str) -> Any:
        raise NotImplementedError

    def persistent_load(self, pid: Any) -> Any:
        """Return a storage, or a class that was saved with its source."""
        if type(pid) is not tuple or len(pid) < 2:
            raise CheckpointError("a reference to a storage is damaged")
        if pid[0] == "module":
            return pid[1]
        if pid[0] != "storage" or len(pid) not in (5, 6) or not archive.is_dtype(pid[1]):
            raise CheckpointError("only storages of tensors are read, and there is something else")
        storage = self._whole(pid[1], pid[2], rebuild.count(pid[4], "a storage's size"))
        if len(pid) == 5 or pid[5] is None:
            return storage
        return storage.part(pid[5])  # the older format's

    def settle(self) -> None:
        """Compute anew what depends on storages that were read after the pickle."""
        for storage in self._storages.values():
            storage.settle()

    def _whole(self, dtype: np.dtype, key: Any, count: int) -> rebuild.FileStorage:
        if type(key) is not str:
            raise CheckpointError(f"a storage's key is str, got {type(key).__name__}")
        if key not in self._storages:
            self._storages[key] = rebuild.FileStorage.of(self._storage(key, dtype, count))
        found = self._storages[key]
        if found.kind != dtype or found.size() != count:
            raise CheckpointError(
                f"storage {printable(key)} is damaged: it has two sizes or dtypes"
            )
        return found


_CONSTRUCTORS: dict[int, Any] = rebuild.CONSTRUCTORS | numpy_scalars.CONSTRUCTORS


class _Reader(_Names, DataUnpickler):
    """An unpickler of data: tensors, containers, the functions that rebuild tensors."""

    def _open(self, pickled: Any, n_bytes: int) -> None:
        DataUnpickler.__init__(self, pickled, n_bytes, _CONSTRUCTORS)

    def find_class(self, module: str, name: str) -> Any:
        """Return the allowed object of a name; raise CheckpointError for any other."""
        return super().find_class(*safe.modern(module, name))

    def _other(self, module: str, name: str) -> Any:
        if (module, name) in rebuild.PYTHONS:
            return rebuild.PYTHONS[module, name]
        if name in numpy_scalars.NAMES.get(module, ()) and not safe.is_allowed(module, name):
            return numpy_scalars.NAMES[module][name]
        return self.trust(safe.found(module, name))


# As it is now: Lightning, for one, has another in its place while it loads.
_Unpickler = pickle.Unpickler


class _CodeReader(_Names, _Unpickler):
    """An unpickler of anything, with convcore's classes for PyTorch's."""

    def _open(self, pickled: Any, n_bytes: int) -> None:
        _Unpickler.__init__(self, pickled)

    def _other(self, module: str, name: str) -> Any:
        if module.partition(".")[0] != "torch":
            return self._of_a_program(module, name)
        try:
            value = importlib.import_module(f"convcore{module[5:]}")
            for part in name.split("."):
                value = getattr(value, part)
        except (ImportError, AttributeError):
            shown = printable(f"{module}.{name}")
            nothing = f"{shown} is not read: convcore has nothing of that name"
            raise CheckpointError(safe.unread(module, name) or nothing) from None
        return value

    def _of_a_program(self, module: str, name: str) -> Any:
        try:
            return _Unpickler.find_class(self, module, name)
        except (ImportError, AttributeError) as error:
            raise hinted(error, _NO_CLASS) from None


_NO_CLASS = (
    "a whole net is read only where its class is: write torch.save(net.state_dict(), file) there, "
    "and load that into a net that you make"
)
