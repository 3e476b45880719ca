"""convcore.models made of PyTorch's modules: the same text, read under other names.

Only for a process that computes with PyTorch alone: afterwards convcore's own rooms of these names
cannot be had in it.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any


def models_of(library: types.ModuleType) -> types.ModuleType:
    """Return convcore.models, made of a library's modules if it is not convcore."""
    if library.__name__ != "convcore":
        for name, module in _stand_ins(library).items():
            known = sys.modules.setdefault(name, module)
            assert known is module, f"{name} was loaded before its stand-in"
    return importlib.import_module("convcore.models")


def _stand_ins(library: Any) -> dict[str, types.ModuleType]:
    tensor, norm, hooks = (types.ModuleType(name) for name in ("_tensor", "norm", "_hooks"))
    tensor.Tensor = library.Tensor  # type: ignore[attr-defined]
    # Batch norm and ReLU as one function are convcore's own: elsewhere they are two modules.
    norm.batch_norm_activation = None  # type: ignore[attr-defined]
    hooks.is_watched = lambda module: True  # type: ignore[attr-defined]
    return {
        "convcore._tensor": tensor,
        "convcore.functions": library,
        "convcore.functions.normalization": norm,
        "convcore.nn": library.nn,
        "convcore.nn.functional": library.nn.functional,
        "convcore.nn.modules": library.nn.modules,
        "convcore.nn.modules._hooks": hooks,
    }
