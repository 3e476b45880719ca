"""Weights from local files, under `torch.hub`'s names.

A download is refused with a sentence that says where to put the file instead: convcore opens no
connections.  Weights are looked for in the cache folder, by default where PyTorch keeps them:
$TORCH_HOME/hub, or ~/.cache/torch/hub.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from convcore._errors import names as _names
from convcore.serialization.load import load as _load

__all__ = ["download_url_to_file", "get_dir", "load_state_dict_from_url", "set_dir"]

_folder: str | None = None


def get_dir() -> str:
    """Return the cache folder: what `set_dir` set, or $TORCH_HOME/hub, or ~/.cache/torch/hub."""
    return _folder if _folder is not None else os.path.join(_get_torch_home(), "hub")


def set_dir(d: str | os.PathLike) -> None:
    """Set the cache folder."""
    global _folder
    _folder = os.path.expanduser(d)


def _get_torch_home() -> str:
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(cache, "torch")))


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = True,
) -> Mapping[str, Any]:
    """Load weights from the cache folder, or from a ``file://`` address.

    Parameters
    ----------
    url : str
        Its last part names the file in the cache folder.
    model_dir : str, optional
        The folder; default: ``checkpoints`` in `get_dir`.
    map_location, weights_only
        As for `convcore.load`.
    progress, check_hash
        Ignored: nothing is downloaded.
    file_name : str, optional
        The file's name, instead of the one in the address.

    Raises
    ------
    RuntimeError
        The file is not there; the text says where it is looked for.
    """
    address = urlparse(url)
    folder = Path(model_dir or os.path.join(get_dir(), "checkpoints"))
    file = folder / (file_name or os.path.basename(address.path))
    if address.scheme == "file":
        file = Path(unquote(address.path))
    if not file.is_file():
        raise RuntimeError(
            f"convcore downloads nothing: get {url} by another way and save it as {file}"
        )
    return _load(file, map_location=map_location, weights_only=weights_only)


def download_url_to_file(
    url: str, dst: str, hash_prefix: str | None = None, progress: bool = True
) -> None:
    """Raise RuntimeError: nothing is downloaded."""
    raise RuntimeError(f"convcore downloads nothing: get {url} by another way and save it as {dst}")


_names.explain_names(__name__)
