"""The last layer with weights of a classifier from an ONNX file: found and replaced."""

from __future__ import annotations

from typing import Any

from convcore.cli.errors import UsageError

# Operators whose results are no logits.  A Softmax at the end is left out instead.
_NO_LOGITS = frozenset({"ArgMax", "HardSigmoid", "Sigmoid", "TopK"})


def logits_of(net: Any) -> Any:
    """Return the part of a net that computes the logits, of the same modules."""
    from convcore import onnx

    if len(net.output_names) != 1:
        names = ", ".join(net.output_names)
        raise UsageError(f"the net has the outputs {names}: one is needed, of logits")
    steps = {name: step for step in net.steps for name in step.outputs}
    step = steps.get(net._results[0])
    while step is not None and _kind(net, step) == "Identity":
        step = steps.get(step.inputs[0])
    if step is not None and _kind(net, step) == "Softmax":
        return onnx.cut(net, step.inputs[0])
    if step is not None and _kind(net, step) in _NO_LOGITS:
        raise UsageError(f"the output is not logits: node {step.module!r} is a {_kind(net, step)}")
    return net


def _kind(net: Any, step: Any) -> str:
    return getattr(net.get_submodule(step.module), "op_type", "")


def head_of(net: Any) -> list[str]:
    """Return the names of the last modules with weights: a layer, and sums that follow it."""
    found: list[str] = []
    for step in reversed(net.steps):
        if next(net.get_submodule(step.module).parameters(), None) is not None:
            found.insert(0, step.module)
            if _kind(net, step) != "Add":
                return found
    raise UsageError("the net has no layer with weights")


def replace_head(net: Any, head: list[str], n_classes: int) -> None:
    """Put a layer with random weights in the place of those that `head_of` returns."""
    from convcore import nn

    name, *sums = head
    old = net.get_submodule(name)
    is_alone = all(len(step.inputs) == 1 for step in net.steps if step.module == name)
    new: nn.Module
    if isinstance(old, nn.Linear):
        new = nn.Linear(old.in_features, n_classes)
    elif old.op_type in ("Gemm", "MatMul") and is_alone and getattr(old, "B", None) is not None:
        new = nn.Linear(old.B.shape[1 if old.options.get("transB") else 0], n_classes)
    elif isinstance(old, nn.Conv2d) and old.groups == 1:
        options = (old.kernel_size, old.stride, old.padding, old.dilation)
        new = nn.Conv2d(old.in_channels, n_classes, *options)
    else:
        raise UsageError(
            f"--new-head: the last layer with weights, {name!r}, is a {old.op_type}: a Gemm, "
            "MatMul or Conv is replaced; convcore.onnx.load(...).nodes[name] = module replaces any"
        )
    net.add_module(name, new)
    for each in sums:
        net.add_module(each, nn.Identity())
