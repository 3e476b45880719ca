"""The format of a checkpoint file: by what is asked for, the file's name, or its first bytes."""

from __future__ import annotations

import os
import pickle
from typing import Any

from convcore.serialization.errors import CheckpointError

FORMATS = ("torch", "safetensors", "npz")
_SUFFIXES = {".safetensors": "safetensors", ".npz": "npz"}
_ARCHIVES = (b"PK\x03\x04", b"PK\x05\x06")  # the second is empty
N_HEAD = 9  # bytes that tell


def of_name(f: Any, asked: str | None) -> str:
    """Return the format that is asked for, or a path's by its suffix; else PyTorch's.

    Raises
    ------
    ValueError
        There is no such format.
    """
    if asked is not None:
        if asked not in FORMATS:
            raise ValueError(f"format: expected one of {', '.join(FORMATS)}, got {asked!r}")
        return asked
    if not isinstance(f, (str, os.PathLike)):
        return "torch"
    return _SUFFIXES.get(os.path.splitext(os.fsdecode(f))[1].lower(), "torch")


def of_head(head: bytes, named: str) -> str:
    """Return what a file's first bytes say: "zip", "safetensors" or "torch", the older format.

    A header in JSON comes behind its length, and a pickle never has a brace there.
    """
    if head[:4] in _ARCHIVES:
        return "zip"
    if head[8:9] == b"{":
        return "safetensors"
    is_cut_off = named == "safetensors" and head[:1] != pickle.PROTO
    return "safetensors" if is_cut_off else "torch"


def of_others(head: bytes) -> tuple[str, str]:
    """Return what a file is that others read, and what reads it; empty texts if not known."""
    if _is_onnx(head):
        return "a model in ONNX's format", "convcore.onnx.load(file), which returns the net"
    if head.startswith(b"\x93NUMPY"):
        return "an array in NumPy's format", "torch.from_numpy(numpy.load(file))"
    return "", ""


def _is_onnx(head: bytes) -> bool:
    """Return whether a file begins as ONNX models do.

    That is the number of the format's version, and behind it the writer's name, the graph, or the
    versions of the operators.
    """
    return head[:1] == b"\x08" and head[1:2] < b"\x40" and head[2:3] in (b"\x12", b":", b"B")


def check_asked(asked: str | None, found: str) -> None:
    """Refuse a file of another format than was asked for."""
    if asked is not None and asked != found:
        raise CheckpointError(f"it is no file of the format {asked}, but of {found}")
