"""Models and weights from local folders and files, under `torch.hub`'s names.

A download is refused with a sentence that says where to put the file instead: convcore opens no
connections.  Weights are looked for in the cache folder, by default where PyTorch keeps them:
$TORCH_HOME/hub, or ~/.cache/torch/hub.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from convcore._errors import hinted as _hinted
from convcore._errors import names as _names
from convcore.serialization.load import load as _load

__all__ = [
    "download_url_to_file",
    "get_dir",
    "help",
    "list",
    "load",
    "load_state_dict_from_url",
    "set_dir",
]

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


def load(repo_or_dir: str, model: str, *args: Any, source: str = "local", **kwargs: Any) -> Any:
    """Return what a function of a folder's ``hubconf.py`` returns: a model, usually.

    Parameters
    ----------
    repo_or_dir : str
        A folder with a file ``hubconf.py``, whose code is run.
    model : str
        The function's name.
    source : 'local'
        'github' is refused unless the repository lies in the cache folder.
    *args, **kwargs
        What the function is called with; ``trust_repo``, ``force_reload``, ``skip_validation``
        and ``verbose`` are accepted.

    Raises
    ------
    RuntimeError
        There is no such function, or the folder would have to be downloaded.
    """
    for option in ("trust_repo", "force_reload", "verbose", "skip_validation"):
        kwargs.pop(option, None)
    try:
        folder = _found(repo_or_dir, source)
    except RuntimeError as error:
        _hinted(error, _ours(model))
        raise
    return _entry(folder, model)(*args, **kwargs)


def _ours(model: str) -> str:
    """Say which net of convcore's has a name."""
    from convcore import models  # which few programs that come here need

    if not callable(vars(models).get(model)):
        return ""
    return (
        f"convcore.models.{model}() is the net, under torchvision's names: net.load_state_dict("
        f"convcore.load('{model}.pth')) loads a file of its weights"
    )


def list(github: str, *args: Any, source: str = "local", **kwargs: Any) -> Any:
    """Return the names of the functions of a folder's ``hubconf.py``."""
    module = _hubconf(_found(github, source))
    return [name for name in dir(module) if callable(getattr(module, name)) and name[0] != "_"]


def help(github: str, model: str, *args: Any, source: str = "local", **kwargs: Any) -> str | None:
    """Return the docstring of a function of a folder's ``hubconf.py``."""
    return _entry(_found(github, source), model).__doc__


def _found(name: str, source: str) -> Path:
    """Return the folder of a repository: a local one, or one in the cache folder."""
    if (Path(name) / "hubconf.py").is_file():
        return Path(name)
    if source not in ("local", "github"):
        raise ValueError(f"source must be 'local' or 'github', got {source!r}")
    owner_and_name = name.partition(":")[0].replace("/", "_")
    cached = sorted(Path(get_dir()).glob(f"{owner_and_name}_*/hubconf.py"))
    if not cached:
        raise RuntimeError(
            f"there is no hubconf.py in {name!r}, and convcore downloads nothing: get the "
            "repository by another way and give its folder"
        )
    return cached[0].parent


def _hubconf(folder: Path) -> Any:
    """Run a folder's ``hubconf.py``, which imports from its folder, and return the module."""
    spec = importlib.util.spec_from_file_location("hubconf", folder / "hubconf.py")
    assert spec is not None and spec.loader is not None  # it is a .py file that exists
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(folder))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
    return module


def _entry(folder: Path, name: str) -> Any:
    function = getattr(_hubconf(folder), name, None)
    if not callable(function):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return function


_names.explain_names(__name__)
