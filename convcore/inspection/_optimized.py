"""Nets of optimize_for_inference, where layers are fused, prepacked or called by a plan."""

from __future__ import annotations

from convcore import nn
from convcore.inference import OptimizedModule
from convcore.inference.layers import PrepackedConv

OPTIMIZED = OptimizedModule.__name__  # the type that a row of a table has


def is_optimized(module: nn.Module) -> bool:
    """Return whether a module was made by `optimize_for_inference`."""
    return isinstance(module, OptimizedModule)


def refuse_optimized(model: nn.Module, name: str) -> None:
    """Raise RuntimeError if layers of a net are not what they were, for a function of that name.

    Their parameters and multiply-adds would be missing: they are in prepacked weights.
    """
    # A net that was optimised in place has prepacked layers, whoever holds it.
    if any(isinstance(one, OptimizedModule | PrepackedConv) for one in model.modules()):
        raise RuntimeError(
            f"{name} cannot tell the layers and costs of an optimized model, whose weights are "
            "folded and prepacked: give it the model that it was made of, before "
            "optimize_for_inference"
        )
