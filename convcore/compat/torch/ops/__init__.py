"""PyTorch's compiled operators: libraries of them cannot be loaded, but for torchvision's.

Of those, what nets for detection call is in ``torchvision.py``, and the others say what they are.
"""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import Any

from convcore._errors import missing

loaded_libraries: set[str] = set()


def load_library(path: Any) -> None:
    """Raise an OSError, which packages with a fallback in Python catch; accept torchvision's."""
    file = PurePath(os.fspath(path))
    if (file.parent.name, file.name.partition(".")[0]) not in _IN_PYTHON:
        raise missing.MissingLibraryError(missing.explain("torch.ops.load_library"))


# torchvision asks once whether it has its operators, and calls none of them if not; since 0.29 its
# libraries are those of the stable ABI.
_IN_PYTHON = {("torchvision", name) for name in ("_C", "_C_stable", "image", "image_stable")}
