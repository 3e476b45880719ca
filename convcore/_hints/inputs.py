"""Hints for tensors, their shapes, dtypes and indices."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

_Shape = Sequence[int]


def linear_input(shape: _Shape, in_features: int) -> str:
    """Say why an input does not fit a linear layer: most often nothing flattened it."""
    shape = list(shape)
    if not shape or shape[-1] == in_features:
        return ""
    for first, call in ((1, "nn.Flatten()"), (0, "x.flatten()")):
        if len(shape) - first > 1 and math.prod(shape[first:]) == in_features:
            sizes = " * ".join(map(str, shape[first:]))
            return (
                f"the layer takes {in_features} = {sizes} features, and its input of shape {shape} "
                f"is not flattened: put {call} before it"
            )
    return (
        f"the layer takes {in_features} features, and the last axis of its input of shape {shape} "
        f"has {shape[-1]}"
    )


def conv_input(shape: _Shape, rank: int, channels: int, is_computed: bool = False) -> str:
    """Say why the channels of an input with ``rank`` spatial axes do not fit a convolution.

    What was computed from other tensors is the map of a layer before, and no image.
    """
    shape = list(shape)
    axis = len(shape) - rank - 1
    told = f"axis {axis} are the channels: the input has {shape[axis]}, the layer takes {channels}"
    if shape[-1] == channels and shape[axis] != channels:
        order = [*range(axis), len(shape) - 1, *range(axis, len(shape) - 1)]
        permuted = f"x.permute({', '.join(map(str, order))})"
        others = shape[axis:-1]
        # Images are larger than they are deep, or square; of 32 x 32 pixels, 32 says nothing.
        if channels < min(others) or (rank > 1 and len(set(others)) == 1):
            return (
                f"axis {axis} has to be the channels, and here the last axis looks like it: "
                f"{permuted}"
            )
        if rank == 1:
            return f"{told}; if the last axis are the channels: {permuted}"
    if axis == 0 and channels == 1:
        return "a batch of images in one channel has that as an axis of its own: x.unsqueeze(1)"
    if rank == 2 and not axis and shape[0] == 1 and shape[1] == channels:
        return (
            f"axes are missing: an image is (1, {channels}, height, width), and the input's shape "
            f"is {shape}"
        )
    if rank == 2 and shape[axis] == 1 and channels == 3 and not is_computed:
        sizes = "-1, 3, -1, -1" if axis else "3, -1, -1"
        return f"{told}; if the images are grey, repeat the channel: x.expand({sizes})"
    return told


def other_dtype(given: str, expected: str) -> str:
    """Say how to convert an input whose dtype is not the parameters'."""
    convert = {"float32": ".float()", "float64": ".double()", "float16": ".half()"}
    call = convert.get(expected, f".to(torch.{expected})")
    if given.startswith("complex") and not expected.startswith("complex"):
        return f"the input is {given}, the parameters are {expected}: {REAL}"
    if given == "float64" and expected == "float32":
        return f"NumPy's floats are float64, parameters are float32: convert the input, x{call}"
    return f"the input is {given}, the parameters are {expected}: convert the input, x{call}"


def normalized_input(channels: int, features: int) -> str:
    """Say which axis of a normalised input are the channels."""
    return f"the input has {channels} channels, along axis 1, and the layer was made for {features}"


def no_batch(rank: int, allowed: str) -> str:
    """Say how an input gets the axis of a batch that it has not."""
    if allowed == "2D or 3D" and rank in (4, 5):
        return f"of {'images' if rank == 4 else 'volumes'} it is nn.BatchNorm{rank - 2}d"
    return "add the axis of the batch: x.unsqueeze(0)" if f"{rank + 1}D" in allowed else ""


def conv_rank(shape: _Shape, rank: int, channels: int) -> str:
    """Say which axes an input of a convolution with ``rank`` spatial axes lacks."""
    ndim = len(shape)
    if ndim == rank:
        return _flat_images(shape, channels) or _no_channels(rank, channels)
    if ndim > rank + 2:
        return f"make one batch of the axes before the channels: x.flatten(0, {ndim - rank - 2})"
    return ""


def _no_channels(rank: int, channels: int) -> str:
    one = "[None]" if channels == 1 else f".expand({channels}{', -1' * rank})"
    return f"add the axis of the channels: x{one}"


# The sides of one image differ less than this often; those of a batch of vectors, more.
_LONGEST = 4


def _flat_images(shape: _Shape, channels: int) -> str:
    """Say how rows of a matrix become images; '' where it looks like one image without channels."""
    if len(shape) != 2 or min(shape) == 0 or shape[0] == shape[1] or not channels:
        return ""
    rows, features = shape
    side = math.isqrt(features // channels)
    is_image = max(shape) <= _LONGEST * min(shape)
    if side > 1 and channels * side**2 == features:
        flat = f"if each row is an image: x.view(-1, {channels}, {side}, {side})"
        return f"{flat}; or, if all are one, {_no_channels(2, channels)}" if is_image else flat
    if is_image:
        return ""
    return (
        f"the layer takes images, (N, {channels}, height, width), and the input's shape is "
        f"{[rows, features]}: rows of {features} features are what nn.Linear({features}, n) takes"
    )


def conv_weight(function: str, shape: _Shape, spatial: Sequence[str]) -> str:
    """Say which axes a weight has to have whose number of axes is another."""
    first = ("C_in", "C_out/groups") if "transpose" in function else ("C_out", "C_in/groups")
    return (
        f"weight has {len(shape)} axes, its shape is {list(shape)}, and {function} takes "
        f"{len(spatial) + 2}: ({', '.join((*first, *spatial))})"
    )


def dtype_name(name: str) -> str:
    """Say what was meant by a dtype's name where a device is expected."""
    known = ("float", "double", "half", "int", "long", "bool", "bfloat", "complex", "uint")
    return f"dtypes are no strings: torch.{name}" if name.rstrip("0123456789") in known else ""


FLOATS = "convert to floats first: x.float()"
REAL = "make the input real by what of it is meant: x.real, x.abs() or torch.view_as_real(x)"
INTEGERS = "convert to integers: x.long()"
ONE_VALUE = (
    "a mean and a variance need more values: net.eval() to run the net, or larger batches; in "
    "training, DataLoader(..., drop_last=True) drops a last batch of one"
)


def of_pytorch(value: Any) -> str:
    """Say of an object of the installed PyTorch how it got here: some imports are still its own."""
    pytorch = sys.modules.get("torch")
    kind = value if isinstance(value, type) else type(value)
    roots = {str(one.__module__).partition(".")[0] for one in kind.__mro__}
    # Under as_torch(), where torch is convcore, its classes have such names, too.
    if pytorch is None or "torch" not in roots or "_stands_for" in vars(pytorch):
        return ""
    make = " convcore.as_tensor(x) makes a tensor of it;" if kind.__name__ == "Tensor" else ""
    return (
        f"that {kind.__name__} is PyTorch's own, which is installed too:{make} import all modules "
        "from convcore, `from convcore import nn` for `import torch.nn as nn`; or leave the "
        "imports as they were, and start the program with `convcore run`"
    )


def not_a_tensor(value: Any) -> str:
    """Say how to make a tensor of something else."""
    if foreign := of_pytorch(value):
        return foreign
    if type(value).__module__ == "numpy":
        floats = ", and .float() for float32" if value.dtype == "float64" else ""
        return f"make a tensor of the array: torch.from_numpy(x){floats}"
    if isinstance(value, type):
        return f"that is the class: make an object of it, {value.__name__}()"
    if isinstance(value, list | tuple) and any(map(_is_tensor, _flattened(value))):
        return _of_tensors(value)
    if type(value).__module__.startswith("PIL."):
        return (
            "make a tensor of the picture: torch.from_numpy(numpy.array(image)), then "
            ".permute(2, 0, 1).unsqueeze(0).float() / 255"
        )
    if isinstance(value, tuple) and (of_sizes := input_of_sizes(value)):
        return f"make a tensor of the numbers: torch.tensor(x); {of_sizes}"
    if isinstance(value, bool | int | float | list | tuple):
        return f"make a tensor of the {type(value).__name__}: torch.tensor(x)"
    return ""


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "requires_grad") and hasattr(value, "shape")


def shape_of(value: Any) -> Any:
    """Return a tensor's or an array's shape; None for what has none."""
    return getattr(value, "shape", None)


def _flattened(value: Any) -> list[Any]:
    """Return a sequence's members, and those of its members that are sequences."""
    return [inner for one in value for inner in (one if isinstance(one, list | tuple) else (one,))]


def _of_tensors(value: Sequence[Any]) -> str:
    """Say which tensor to take of a sequence, or how one is made of all."""
    name = "list" if isinstance(value, list) else "tuple"
    fields = getattr(value, "_fields", ())
    if fields and _is_tensor(value[0]):
        return f"take one of what the function returned, ({', '.join(fields)}): x.{fields[0]}"
    shapes = {tuple(one.shape) if _is_tensor(one) else None for one in value}
    if isinstance(value, tuple) and _is_tensor(value[0]):
        both = ", or torch.stack(x) for all" if len(shapes) == 1 and len(value) > 1 else ""
        names = ", ".join(["out", *["_"] * (len(value) - 1)]) if len(value) > 1 else "out,"
        return (
            "it is a tuple, such as nn.LSTM and nn.MultiheadAttention return: take its first "
            f"entry, {names} = layer(x){both}"
        )
    if None in shapes:
        return f"the {name} holds more than tensors: take from it the tensor that is meant"
    if len(shapes) == 1:
        return f"make one tensor of the {name}: torch.stack(x)"
    return (
        f"the {name}'s tensors have other shapes: give them one by one, or bring them to one shape "
        "for torch.stack(x)"
    )


def index_range(found: int, rows: int) -> str:
    """Say which indices of rows are allowed."""
    return f"found {found}, and indices are 0 to {rows - 1}"


BOTH_SIDES = "where(condition, input, other) takes both, or neither for the places of the true ones"
BACKWARDS = "x.flip(axis) reverses an axis; NumPy's x[::-1] is x.flip(0)"


def input_of_sizes(given: tuple[Any, ...]) -> str:
    """Say how an input of some sizes is made, where only the sizes were given."""
    is_shape = len(given) > 1 and all(type(size) is int for size in given)
    return f"of random numbers it is torch.rand{given}" if is_shape else ""


ON_CPU = 'leave the device out, or ask: "cuda" if torch.cuda.is_available() else "cpu"'
