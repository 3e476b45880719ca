"""A state dict as arrays by name: its checks, and tied weights.

Neither format has tensors that share memory.  As safetensors' own ``save_model`` does, a tensor is
written once, and the metadata have the kept name of each name that was left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from convcore._tensor import Tensor, wrap
from convcore.engine.runtime.storages import overlapping


def arrays_and_metadata(
    obj: Any, metadata: Mapping[str, str] | None, kind: str
) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Return what to write: contiguous arrays by name, and metadata, with the names left out.

    Raises
    ------
    TypeError
        ``obj`` is no dict of tensors by name, or ``metadata`` none of str by str.
    ValueError
        Tensors share only a part of their memory, metadata would be taken for tied weights, or a
        text cannot be written as UTF-8.
    """
    tensors = _checked(obj, kind)
    kept: dict[str, np.ndarray] = {}
    left_out: dict[str, str] = {}
    names: dict[tuple, str] = {}
    for name, array in tensors.items():
        place = (array.__array_interface__["data"][0], array.dtype, array.shape, array.strides)
        first = names.setdefault(place, name) if array.size else name
        if first == name:
            kept[name] = array
        else:
            left_out[name] = first
    _check_overlaps(kept, kind)
    found = _checked_metadata(metadata or {}, tensors, left_out, kind)
    return {name: np.asarray(array, order="C") for name, array in kept.items()}, found


def _checked(obj: Any, kind: str) -> dict[str, np.ndarray]:
    if not isinstance(obj, Mapping):
        raise TypeError(
            f"obj: a {kind} file holds a dict of tensors by name, got {type(obj).__name__}"
        )
    for name, value in obj.items():
        if not isinstance(name, str):
            raise TypeError(f"obj: the keys of a {kind} file are str, got {name!r:.99}")
        _check_text(f"obj[{name!r:.99}]", name, kind)
        if not isinstance(value, Tensor):
            raise TypeError(
                f"obj[{name!r:.99}]: a {kind} file holds tensors, got {type(value).__name__}; a "
                ".pt file holds other data too"
            )
        if value.is_meta:
            raise TypeError(f"obj[{name!r:.99}]: a tensor on the device 'meta' has no values")
    return {name: value._array for name, value in obj.items()}


def _check_text(what: str, text: str, kind: str) -> None:
    """Refuse halves of characters, which UTF-8, and so a file, has not."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        found = text[error.start : error.end]
        raise ValueError(
            f"{what}: a {kind} file has text that can be written as UTF-8, got {found!r:.99}"
        ) from None


def _check_overlaps(arrays: dict[str, np.ndarray], kind: str) -> None:
    """Refuse views of each other's memory, which would come back as copies."""
    for other, name in overlapping(arrays):
        raise ValueError(
            f"obj[{name!r:.99}] and obj[{other!r:.99}] share a part of their memory, which "
            f"a {kind} file cannot keep: clone one of them, or save to a .pt file"
        )


def _checked_metadata(
    metadata: Mapping[str, str], tensors: Mapping[str, Any], left_out: dict[str, str], kind: str
) -> dict[str, str]:
    if not isinstance(metadata, Mapping):
        raise TypeError(f"metadata: expected str by str, got {type(metadata).__name__}")
    for key, text in metadata.items():
        if not (isinstance(key, str) and isinstance(text, str)):
            raise TypeError(f"metadata: expected str by str, got {key!r:.99}: {text!r:.99}")
        _check_text("metadata", key + text, kind)
        if key in left_out or (text in tensors and key not in tensors):
            raise ValueError(
                f"metadata[{key!r:.99}]: {text!r:.99} would be taken for the name of a tied weight"
            )
    return {**metadata, **left_out}


def tied_names(metadata: Mapping[str, str], tensors: Mapping[str, Any]) -> dict[str, str]:
    """Return the names that were left out of a file, each with the one that was kept."""
    return {
        name: kept for name, kept in metadata.items() if name not in tensors and kept in tensors
    }


def state_dict(arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> dict[str, Tensor]:
    """Return tensors by name; tied weights share their memory again."""
    tied = tied_names(metadata, arrays)
    tensors = {name: wrap(array) for name, array in arrays.items()}
    return tensors | {name: wrap(arrays[kept]) for name, kept in tied.items()}


def users_metadata(metadata: Mapping[str, str], names: Mapping[str, Any]) -> dict[str, str]:
    """Return metadata without the names of tied weights."""
    tied = tied_names(metadata, names)
    return {key: text for key, text in metadata.items() if key not in tied}
