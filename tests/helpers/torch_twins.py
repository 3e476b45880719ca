"""The nets of convcore.models on PyTorch: the same sources with their imports changed."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import convcore

FOLDER = Path(convcore.__file__).parent / "models"

IMPORTS = (
    ("from convcore import nn", "from torch import nn"),
    ("from convcore._tensor import Tensor", "from torch import Tensor"),
    ("from convcore.functions import cat", "from torch import cat"),
    ("from convcore.nn import functional as F", "from torch.nn import functional as F"),
    ("from convcore.models.", "from torch_twins_"),
    (
        "from convcore.functions.normalization import batch_norm_activation",
        "",
    ),  # of what is replaced below
    ("from convcore.nn.modules._hooks import is_watched", ""),
)


def normalized(norm: Callable, activation: Callable | None, x: Any, residual: Any = None) -> Any:
    """What `convcore.models.blocks.normalized` computes, one layer after the other."""
    x = norm(x)
    x = x if residual is None else x + residual
    return x if activation is None else activation(x)


def models_of_torch() -> types.ModuleType:
    """Return a module like convcore.models whose nets are PyTorch's; PyTorch must be there."""
    whole = types.ModuleType("torch_twins")
    for name in ("blocks", "autoencoder", "lenet", "mobilenet", "resnet", "unet", "vgg"):
        source = (FOLDER / f"{name}.py").read_text("utf-8")
        for ours, theirs in IMPORTS:
            source = source.replace(ours, theirs)
        twin = types.ModuleType(f"torch_twins_{name}")
        sys.modules[twin.__name__] = twin
        exec(compile(source, twin.__name__, "exec"), vars(twin))
        if name == "blocks":
            twin.normalized = normalized
        vars(whole).update((public, getattr(twin, public)) for public in twin.__all__)
    return whole


def copied_state(module: Any, library: Any) -> dict[str, Any]:
    """Return a module's state as tensors of another library."""
    state = module.state_dict()
    return {name: library.from_numpy(value.numpy().copy()) for name, value in state.items()}
