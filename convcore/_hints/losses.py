"""Hints for losses, and for their targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_Shape = Sequence[int]
FLOAT_TARGETS = "targets are probabilities, from 0 to 1: target.float()"
NO_PROBABILITIES = (
    "it takes probabilities: apply sigmoid first, or give the net's scores to BCEWithLogitsLoss"
)


def reductions(names: Sequence[str]) -> str:
    """Say which reductions a loss has."""
    *most, last = map(repr, names)
    return f"allowed are {', '.join(most)} and {last}"


def class_dtype(shape: _Shape, target: _Shape, floating: bool) -> str:
    """Say what targets of a loss over classes are."""
    if not floating:
        return "convert the classes to int64: target.long()"
    return (
        "targets are classes, of int64: target.long(); or probabilities of classes, of the input's "
        f"shape {list(shape)}, not {list(target)}"
    )


def class_shape(shape: _Shape, target: _Shape) -> str:
    """Say what a matrix of targets is to become."""
    axis = 1 if len(shape) > 1 else 0
    if len(target) == len(shape) > 1 and target[1] == 1:
        return f"targets of shape {list(target)} have an axis too many: target.squeeze(1)"
    if list(shape) == list(target):
        return f"one-hot targets become classes by target.argmax({axis}), probabilities by .float()"
    if len(target) == 2 and len(shape) == 3 and list(shape[:2]) == list(target):
        return (
            f"classes are axis 1: of scores of shape {list(shape)}, one row a step, it is "
            "cross_entropy(scores.transpose(1, 2), target)"
        )
    if len(target) == 1 and len(shape) > 2:
        return (
            f"scores of shape {list(shape)} are one a pixel: for one an image, flatten them before "
            "the last layer, x.flatten(1)"
        )
    return ""


def batch_size(shape: _Shape, targets: int) -> str:
    """Say why a batch may have another number of rows than there are targets."""
    return (
        f"the scores' shape is {list(shape)}, for {targets} targets: if the net has view(-1, n), a "
        "wrong n changes the batch; flatten(1) never does"
    )


def other_axis(shape: _Shape, target: _Shape) -> str:
    """Say how scores and targets that differ by one axis of size 1 get the same shape."""
    if list(shape) == [*target, 1]:
        return "scores have an axis more: input.squeeze(-1), or target.unsqueeze(-1)"
    if [*shape, 1] == list(target):
        return "targets have an axis more: target.squeeze(-1), or input.unsqueeze(-1)"
    return ""


def class_range(target: int, classes: int) -> str:
    """Say which targets are allowed."""
    text = f"the input has {classes} classes, so targets are 0 to {classes - 1}"
    if target == classes:
        return f"{text}; if yours count from 1, subtract 1"
    return f"{text}; set ignore_index={target} to leave them out" if target < 0 else text


SWAPPED = "scores come first, and then the classes: cross_entropy(net(x), y)"


def loss_class(kind: Any) -> str:
    """Say how a loss is called that was given tensors where it is made."""
    code = kind.forward.__code__
    inputs = ", ".join(code.co_varnames[1 : code.co_argcount])
    return f"make the loss first, and then call it: nn.{kind.__name__}()({inputs})"
