"""CheckpointError, the one error of a file that cannot be read."""

from __future__ import annotations

import pickle
import struct
import sys
import zipfile
import zlib

from convcore._errors.frames import is_from_signal_handler


class CheckpointError(pickle.UnpicklingError, ValueError, RuntimeError):
    """A file is no checkpoint, is damaged, or holds something other than data; the text says what.

    It is an `UnpicklingError`, a ValueError and a RuntimeError, whichever of them PyTorch raises.
    """


# What a reader's own errors say about the file that it reads, the narrower class first.
_FAULTS: tuple[tuple[type[Exception], str], ...] = (
    (zipfile.BadZipFile, "it is no whole zip archive ({})"),
    (zlib.error, "what is compressed in it cannot be read ({})"),
    (EOFError, "it ends too early"),
    (struct.error, "a number in it is cut off"),
    (LookupError, "its pickle takes an object that it has not put there"),
    (UnicodeError, "a text in it cannot be decoded ({})"),
    (RecursionError, "its objects are nested too deeply"),
    (OverflowError, "a number in it is too large"),
    (NotImplementedError, "a part of it is of a kind that is not read ({})"),
    (OSError, "it leads to a place where there is nothing"),
)


def damage(error: Exception) -> str:
    """Return what is wrong with a file, told from the error that a reader of it has met."""
    for kind, text in _FAULTS:
        if isinstance(error, kind):
            return text.format(error)
    return f"its parts do not go together ({type(error).__name__}: {error})"


_N_FRAMES = 200  # more than a reader's calls are nested


def callers_error(error: BaseException | None) -> BaseException | None:
    """Return the error that is not a file's but its reader's caller's, if that led to an error.

    It is what a signal handler has raised, a timeout, or too deep a recursion of a caller that was
    near the limit already.
    """
    while error is not None and not _is_callers(error):
        error = error.__context__
    return error


def _is_callers(error: BaseException) -> bool:
    if isinstance(error, RecursionError):
        depth, frame = 0, sys._getframe()
        while frame is not None:
            depth, frame = depth + 1, frame.f_back  # type: ignore[assignment]
        return depth + _N_FRAMES > sys.getrecursionlimit()
    return isinstance(error, TimeoutError) or is_from_signal_handler(error)
