"""The names under which a node shows what it saved, which are PyTorch's.

Tools that draw graphs look for attributes that begin with ``_saved_``.
"""

from __future__ import annotations

from typing import Any

from convcore.autograd.saved import FREED, saves_output, unpack

# What nodes save, in its order, where it is not called self, other, result.
_NAMES = {
    "Addcdiv": "tensor1 tensor2 value",
    "Addcmul": "tensor1 tensor2 value",
    "Addmm": "mat1 mat2",
    "BinaryCrossEntropy": "self target weight",
    "BinaryCrossEntropyWithLogits": "self target weight pos_weight",
    "Bmm": "self mat2",
    "Convolution": "input weight",
    "Dot": "self tensor",
    "Embedding": "indices",
    "Gather": "index",
    "Index": "indices",
    "IndexSelect": "index",
    "KlDiv": "self target",
    "L1Loss": "self target",
    "Lerp": "self end weight",
    "MaskedFill": "mask",
    "Max": "indices",
    "Min": "indices",
    "Mm": "self mat2",
    "MseLoss": "self target",
    "Mv": "self vec",
    "NativeBatchNorm": "input weight bias",
    "NativeGroupNorm": "input weight bias",
    "NativeLayerNorm": "input weight bias",
    "NllLoss": "target weight",
    "Pow": "self exponent result",
    "PreluKernel": "self weight",
    "Scatter": "index",
    "SmoothL1Loss": "self target",
    "Sort": "indices",
    "Topk": "indices",
    "Where": "condition",
}
_SHOWN_ARGUMENTS = ("alpha", "beta", "dim", "keepdim", "output_padding", "transposed")


def saved_values(node: Any) -> dict[str, Any]:
    """Return what a node saved, and arguments of its operation, by names without the prefix.

    Raises
    ------
    RuntimeError
        A backward pass has freed it, or a tensor was changed in place.
    """
    return dict(zip(_names(node), unpack(node), strict=False)) | _arguments(node)


def attribute_names(node: Any) -> list[str]:
    """Return the names of a node's ``_saved_`` attributes."""
    return [f"_saved_{name}" for name in (*_names(node), *_arguments(node))]


def raw_names(node: Any) -> list[str]:
    """Return the names of a node's ``_raw_saved_`` attributes, in the order of what it saved."""
    return [f"_raw_saved_{name}" for name in _names(node)]


def _names(node: Any) -> list[str]:
    held = () if node._saved is FREED else node._saved
    listed = _NAMES.get(node.name().rstrip("0123456789").removesuffix("Backward"))
    if listed:
        return listed.split()[: len(held)]
    others = iter(("self", "other", *(f"other{n}" for n in range(1, len(held)))))
    return ["result" if saves_output(item) else next(others) for item in held]


def _arguments(node: Any) -> dict[str, Any]:
    given = node.attributes
    steps = given["steps"]._asdict() if "steps" in given else {}
    return steps | {name: given[name] for name in _SHOWN_ARGUMENTS if name in given}
