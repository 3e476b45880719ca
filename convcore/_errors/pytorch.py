"""PyTorch's public names, by module: what is missing here is told from what is misspelt."""

from __future__ import annotations

import functools
from importlib.resources import files

VERSION = "2.13.0"


@functools.cache
def public() -> dict[str, frozenset[str]]:
    """Return the public names of each module, and of torch.Tensor."""
    text = files("convcore._errors").joinpath("pytorch_names.txt").read_text("ascii")
    lines = (line.split() for line in text.splitlines() if line[:1] not in ("", "#"))
    return {module: frozenset(names) for module, *names in lines}


def is_public(module: str, name: str) -> bool:
    """Return whether PyTorch has this name in this module."""
    return name in public().get(module, ())


def is_unknown(path: str) -> bool:
    """Return whether PyTorch has no such name in a module whose names are listed."""
    module, _, name = path.rpartition(".")
    known = is_public(module, name) or is_module(path)
    return module in public() and name[:1] != "_" and not known


def is_module(path: str) -> bool:
    """Return whether PyTorch has this public module."""
    return path in public()["modules"]
