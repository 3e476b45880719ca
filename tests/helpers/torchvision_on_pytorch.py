"""Import torchvision on PyTorch, also where its compiled operators are of another kind.

The package index has torchvision compiled for CUDA alone on Linux.  Beside PyTorch for the CPU its
operators cannot be loaded, and its start ends in an error, because it describes those that it
declares only there.  With declarations it starts, and does without them what is written in Python.
"""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import pytest

_DECLARATIONS = ("nms", "qnms")
_libraries = []  # what is declared is forgotten with its library


def import_torchvision() -> ModuleType:
    """Return torchvision, or skip the test where it is not installed."""
    if importlib.util.find_spec("torchvision") is None:
        pytest.skip("torchvision is not installed")
    import torch

    try:
        import torchvision
    except RuntimeError as error:
        if "operator torchvision::nms does not exist" not in str(error):
            raise
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        library = torch.library.Library("torchvision", "DEF")
        for name in _DECLARATIONS:
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _libraries.append(library)
        import torchvision
    return torchvision
