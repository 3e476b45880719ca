"""What to do, by what was seen: the hints, one sentence each.

Constants are hints that are always the same.  A function picks the hint for the values that it is
given, and returns '' where it has none.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from convcore._errors import nearest

_Shape = Sequence[int]

# Tensors and indices
FLOATS = "convert to floats first: x.float()"
REAL = "make the input real by what of it is meant: x.real, x.abs() or torch.view_as_real(x)"
INTEGERS = "convert to integers: x.long()"
BOTH_SIDES = "where(condition, input, other) takes both, or neither for the places of the true ones"
BACKWARDS = "x.flip(axis) reverses an axis; NumPy's x[::-1] is x.flip(0)"
INDEX_RANGE = "found {}, and indices are 0 to {}"
ON_CPU = 'leave the device out, or ask: "cuda" if torch.cuda.is_available() else "cpu"'
ONE_VALUE = (
    "a mean and a variance need more values: net.eval() to run the net, or larger batches; in "
    "training, DataLoader(..., drop_last=True) drops a last batch of one"
)
NORM_CHANNELS = "the input has {} channels, along axis 1, and the layer was made for {}"
# Gradients
AMBIGUOUS = (
    "use .any() or .all() for one answer; & and | instead of `and` and `or`, for one an element"
)
NOT_SCALAR = "backward starts from one number: reduce first, as in loss.mean().backward()"
COMPUTED_COPY = (
    "a tensor that was computed from others is copied by x.detach().clone(). nn.utils.weight_norm "
    "and spectral_norm keep such a weight, and so does nn.utils.prune: use "
    "nn.utils.parametrizations.weight_norm and spectral_norm, call prune.remove(layer, 'weight'), "
    "or run the net once under torch.no_grad() before the copy"
)
LEAF_IN_PLACE = (
    "change a parameter's values under torch.no_grad(), or compute a new tensor, as in w = w + 1"
)
NOT_RECORDED = "call x.requires_grad_() on it before anything is computed from it"
MODIFIED = (
    "clone the tensor before the operation changes it, or use the operation that is not in place"
)
# Losses
FLOAT_TARGETS = "targets are probabilities, from 0 to 1: target.float()"
NO_PROBABILITIES = (
    "it takes probabilities: apply sigmoid first, or give the net's scores to BCEWithLogitsLoss"
)
BATCH_SIZE = (
    "the scores' shape is {}, for {} targets: if the net has view(-1, n), a wrong n changes the "
    "batch; flatten(1) never does"
)
SWAPPED = "scores come first, and then the classes: cross_entropy(net(x), y)"
# Modules, optimizers and files
EMPTY_PARAMETERS = (
    "the module has no parameters, or they came from a generator that was used up before: "
    "call module.parameters() again. Layers in a Python list are not seen: use nn.ModuleList"
)
ONE_TENSOR = "put it into a list: [tensor]"
NON_LEAF = (
    "it was computed from other tensors: optimize those, or make a leaf, "
    "x.detach().requires_grad_(), and compute with it"
)
NO_SUPER = "call super().__init__() first in the module's __init__"
NO_INPUT = "summary(model, (1, 3, 224, 224)) gives it an input of that shape"
ONE_DATASET = "a loader takes one dataset: DataLoader(TensorDataset(x, y), batch_size)"
INPUTS_SECOND = "inputs come second, and then the file: export(net, x, path)"
OBJECT_FIRST = "the object comes first, and then the file: torch.save(object, path)"
NO_DOWNLOAD = (
    "convcore has no weights and downloads none: load a file that you have, such as torchvision's, "
    "by net.load_state_dict(convcore.load('resnet18.pth'))"
)
# Methods that modules have in Keras and scikit-learn, and what does it here.
METHODS = {
    "add": "net.append(layer) of a Sequential, or net.add_module(name, layer)",
    "fit": "train in a loop: loss(net(x), y).backward(); optimizer.step(); optimizer.zero_grad()",
    "get_weights": "net.state_dict()",
    "layers": "list(net.children())",
    **dict.fromkeys(("load", "load_weights"), "net.load_state_dict(torch.load(file))"),
    "predict": "call the net, net(x): under torch.no_grad(), after net.eval()",
    "save": "torch.save(net.state_dict(), file), or onnx.export(net, x, file) for other programs; "
    "torch.jit.trace and script return the net itself",
    "save_weights": "torch.save(net.state_dict(), file)",
    "set_weights": "net.load_state_dict(state)",
    "summary": "convcore.summary(net, x)",
    "weights": "net.parameters(), or net.state_dict() by name",
}


# Inputs of layers


def linear_input(shape: _Shape, in_features: int) -> str:
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


def conv_input(shape: _Shape, rank: int, channels: int, is_image: bool) -> str:
    """Return a hint for an input with ``rank`` spatial axes, a layer's map unless ``is_image``."""
    shape = list(shape)
    axis = len(shape) - rank - 1
    seen = f"axis {axis} are the channels: the input has {shape[axis]}, the layer takes {channels}"
    if shape[-1] == channels != shape[axis]:
        order = [*range(axis), len(shape) - 1, *range(axis, len(shape) - 1)]
        permuted = f"x.permute({', '.join(map(str, order))})"
        sizes = shape[axis:-1]
        # Images are larger than they are deep, or square; of 32 x 32 pixels, 32 says nothing.
        if channels < min(sizes) or (rank > 1 and len(set(sizes)) == 1):
            return f"axis {axis} must be the channels, and the last axis looks like it: {permuted}"
        if rank == 1:
            return f"{seen}; if the last axis are the channels: {permuted}"
    if axis == 0 and channels == 1:
        return "a batch of images in one channel has that as an axis of its own: x.unsqueeze(1)"
    if rank == 2 and not axis and shape[:2] == [1, channels]:
        return f"an axis is missing: an image is (1, {channels}, height, width), not {shape}"
    if rank == 2 and shape[axis] == 1 and channels == 3 and is_image:
        expanded = "-1, 3, -1, -1" if axis else "3, -1, -1"
        return f"{seen}; if the images are grey, repeat the channel: x.expand({expanded})"
    return seen


def conv_rank(shape: _Shape, rank: int, channels: int) -> str:
    """Return which axes an input of a convolution with ``rank`` spatial axes lacks."""
    if len(shape) > rank + 2:
        call = f"x.flatten(0, {len(shape) - rank - 2})"
        return f"make one batch of the axes before the channels: {call}"
    if len(shape) != rank:
        return ""
    one = "[None]" if channels == 1 else f".expand({channels}{', -1' * rank})"
    no_channels = f"add the axis of the channels: x{one}"
    if rank != 2 or min(shape) == 0 or shape[0] == shape[1] or not channels:
        return no_channels
    # A matrix: one image, whose sides differ less than four times, or rows that are images.
    is_image = max(shape) <= 4 * min(shape)
    side = math.isqrt(shape[1] // channels)
    if side > 1 and channels * side**2 == shape[1]:
        flat = f"if each row is an image: x.view(-1, {channels}, {side}, {side})"
        return f"{flat}; or, if all are one, {no_channels}" if is_image else flat
    return (
        no_channels
        if is_image
        else (
            f"the layer takes images, (N, {channels}, height, width), and the input's shape is "
            f"{list(shape)}: rows of {shape[1]} features are what nn.Linear({shape[1]}, n) takes"
        )
    )


def other_dtype(given: str, expected: str) -> str:
    """Return how to convert an input whose dtype is not the parameters'."""
    convert = {"float32": ".float()", "float64": ".double()", "float16": ".half()"}
    call = convert.get(expected, f".to(torch.{expected})")
    seen = f"the input is {given}, the parameters are {expected}"
    if given.startswith("complex") and not expected.startswith("complex"):
        return f"{seen}: {REAL}"
    if given == "float64" and expected == "float32":
        seen = "NumPy's floats are float64, parameters are float32"
    return f"{seen}: convert the input, x{call}"


def no_batch(rank: int, allowed: str) -> str:
    """Return how an input gets the axis of a batch; ``allowed`` is such as '2D or 3D'."""
    if allowed == "2D or 3D" and rank in (4, 5):
        return f"for {'images' if rank == 4 else 'volumes'} it is nn.BatchNorm{rank - 2}d"
    return "add the axis of the batch: x.unsqueeze(0)" if f"{rank + 1}D" in allowed else ""


def dtype_name(name: str) -> str:
    """Return a hint for a dtype's name that was given as a device."""
    known = ("float", "double", "half", "int", "long", "bool", "bfloat", "complex", "uint")
    return f"dtypes are no strings: torch.{name}" if name.rstrip("0123456789") in known else ""


def no_graph(is_floating: bool, recording: bool) -> str:
    """Return why a tensor is connected to no leaf."""
    if not is_floating:
        return "it is not of floating point: argmax, comparisons and conversions have no gradient"
    if not recording:
        return "gradients are not recorded here: compute and call backward outside torch.no_grad()"
    return (
        "no leaf that it was computed from requires grad (set requires_grad=True on one before), "
        "or it was computed under torch.no_grad(), by a net of optimize_for_inference, or from "
        ".detach(), .data, .item() or .numpy()"
    )


# Objects in the place of others


def of_pytorch(value: Any) -> str:
    """Return how an object of the installed PyTorch got here: some imports are still its own."""
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
    if foreign := of_pytorch(value):
        return foreign
    kind = type(value)
    if kind.__module__ == "numpy":
        floats = ", and .float() for float32" if value.dtype == "float64" else ""
        return f"make a tensor of the array: torch.from_numpy(x){floats}"
    if isinstance(value, type):
        return f"that is the class: make an object of it, {value.__name__}()"
    if kind.__module__.startswith("PIL."):
        return (
            "make a tensor of the picture: torch.from_numpy(numpy.array(image)), then "
            ".permute(2, 0, 1).unsqueeze(0).float() / 255"
        )
    if isinstance(value, list | tuple) and (hint := _of_tensors(value)):
        return hint
    if isinstance(value, bool | int | float | list | tuple):
        sizes = input_of_sizes(value) if isinstance(value, tuple) else ""
        return f"make a tensor of the {kind.__name__}: torch.tensor(x){sizes and f'; {sizes}'}"
    return ""


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "requires_grad") and hasattr(value, "shape")


def _of_tensors(value: Sequence[Any]) -> str:
    """Return which tensor to take of a sequence, or how to make one of all."""
    inner = [one for each in value for one in (each if isinstance(each, list | tuple) else [each])]
    if not any(map(_is_tensor, inner)):
        return ""
    if hasattr(value, "_fields") and _is_tensor(value[0]):
        fields = value._fields
        return f"take one of what the function returned, ({', '.join(fields)}): x.{fields[0]}"
    shapes = {tuple(one.shape) if _is_tensor(one) else None for one in value}
    if isinstance(value, tuple) and _is_tensor(value[0]):
        both = ", or torch.stack(x) for all" if len(shapes) == 1 and len(value) > 1 else ""
        names = ", ".join(["out", *["_"] * (len(value) - 1)]) if len(value) > 1 else "out,"
        return (
            "it is a tuple, such as nn.LSTM and nn.MultiheadAttention return: take its first "
            f"entry, {names} = layer(x){both}"
        )
    name = type(value).__name__
    if None in shapes:
        return f"the {name} holds more than tensors: take from it the tensor that is meant"
    if len(shapes) == 1:
        return f"make one tensor of the {name}: torch.stack(x)"
    return (
        f"the {name}'s tensors have other shapes: give them one by one, or bring them to one shape "
        "for torch.stack(x)"
    )


def input_of_sizes(given: tuple[Any, ...]) -> str:
    is_shape = len(given) > 1 and all(type(size) is int for size in given)
    return f"of random numbers it is torch.rand{given}" if is_shape else ""


def not_a_module(value: Any) -> str:
    if foreign := of_pytorch(value):
        return foreign
    if isinstance(value, type):
        return f"that is the class: make a module of it, {value.__name__}()"
    if isinstance(value, list | tuple):
        return "unpack it: nn.Sequential(*layers)"
    return (
        "a function has no place among modules: use the module, such as nn.ReLU()"
        if callable(value)
        else ""
    )


def not_parameters(value: Any) -> str:
    if foreign := of_pytorch(value):
        return foreign
    if hasattr(value, "parameters"):
        return "pass module.parameters()"
    if callable(value):
        return f"call it: module.{getattr(value, '__name__', 'parameters')}()"
    return "pass the tensors: module.parameters(), or list(dictionary.values())"


def parameter(value: Any, name: str) -> str:
    tensor = "tensor" if hasattr(value, "requires_grad") else "torch.as_tensor(value)"
    return of_pytorch(value) or (
        f"wrap it: nn.Parameter({tensor}); or change the values only: "
        f"with torch.no_grad(): module.{name}.copy_(tensor)"
    )


def no_forward(module: object) -> str:
    if type(module).__module__.startswith("convcore."):
        return "it only holds modules: call them one by one, or use nn.Sequential"
    if meant := nearest("forward", vars(type(module))):
        return f"is {meant!r} meant to be 'forward'?"
    return "define forward(self, x) in the class, indented as __init__ is"


# Targets of losses


def class_dtype(shape: _Shape, target: _Shape, floating: bool) -> str:
    if not floating:
        return "convert the classes to int64: target.long()"
    return (
        "targets are classes, of int64: target.long(); or probabilities of classes, of the input's "
        f"shape {list(shape)}, not {list(target)}"
    )


def class_shape(shape: _Shape, target: _Shape) -> str:
    """Return how to give targets the shape that scores of this shape need."""
    shape, target = list(shape), list(target)
    if len(target) == len(shape) > 1 and target[1] == 1:
        return f"targets of shape {target} have an axis too many: target.squeeze(1)"
    if shape == target:
        axis = 1 if len(shape) > 1 else 0
        return f"one-hot targets become classes by target.argmax({axis}), probabilities by .float()"
    if len(shape) == 3 and shape[:2] == target:
        return (
            f"classes are axis 1: for scores of shape {shape}, one row a step, it is "
            "cross_entropy(scores.transpose(1, 2), target)"
        )
    if len(target) == 1 and len(shape) > 2:
        return (
            f"scores of shape {shape} are one a pixel: for one an image, flatten them before the "
            "last layer, x.flatten(1)"
        )
    return ""


def other_axis(shape: _Shape, target: _Shape) -> str:
    if list(shape) == [*target, 1]:
        return "scores have an axis more: input.squeeze(-1), or target.unsqueeze(-1)"
    if [*shape, 1] == list(target):
        return "targets have an axis more: target.squeeze(-1), or input.unsqueeze(-1)"
    return ""


def class_range(target: int, classes: int) -> str:
    text = f"the input has {classes} classes, so targets are 0 to {classes - 1}"
    if target == classes:
        return f"{text}; if yours count from 1, subtract 1"
    return f"{text}; set ignore_index={target} to leave them out" if target < 0 else text


# States, samples and files


def state_keys(
    missing: Sequence[str],
    unexpected: Sequence[str],
    state: Mapping[str, Any],
    shapes: Mapping[str, _Shape],
) -> str:
    """Return how the keys of a state differ from those of a module with these shapes."""
    if not missing or not unexpected:
        return next(filter(None, map(of_pytorch, state.values())), "")
    for key in unexpected:
        if isinstance(state.get(key), Mapping) and missing[0] in state[key]:
            return f"the state is inside: load_state_dict(checkpoint[{key!r}])"
    if prefix := prefix_of(missing, unexpected):
        parallel = ", of nn.DataParallel" if prefix == "module." else ""
        return (
            f"the keys have the prefix {prefix!r}{parallel}: "
            f"{{key.removeprefix({prefix!r}): value for key, value in state_dict.items()}}"
        )
    if prefix := prefix_of(unexpected, missing):
        return (
            f"the module's keys have the prefix {prefix!r}, which the state's have not: "
            f"{{{prefix!r} + key: value for key, value in state_dict.items()}}"
        )
    sizes = {key: getattr(state.get(key), "shape", None) for key in unexpected[:200]}
    pairs = [
        (key, nearest(key, [k for k, size in sizes.items() if size == shapes.get(key)]))
        for key in missing[:3]
    ]
    meant = [f"{found!r} meant to be {key!r}" for key, found in pairs if found]
    return f"is {', '.join(meant)}?" if meant else ""


def prefix_of(short: Sequence[str], long: Sequence[str]) -> str:
    """Return the prefix that makes the short keys the long ones; '' if there is none."""
    first = next((key for key in long if key.endswith(f".{short[0]}")), "")
    prefix = first.removesuffix(short[0])
    return prefix if prefix and {prefix + key for key in short} == set(long) else ""


def samples(numbers: Sequence[Any], batch: Sequence[Any]) -> str:
    """Return which sample of a batch does not go together with the others."""
    if not isinstance(batch, list | tuple):  # a batch that the dataset made itself
        return ""
    first = _shapes(batch[0]) if batch else None
    for number, sample in zip(numbers, batch, strict=False):
        if sample is None:
            return f"dataset[{number}] returned None"
        if missing := [key for key, value in _members(sample) if value is None]:
            return f"dataset[{number}][{missing[0]!r}] is None"
    for number, sample in zip(numbers, batch, strict=False):
        if _shapes(sample) != first:
            return f"dataset[{numbers[0]}] has {first}, dataset[{number}] has {_shapes(sample)}"
    return ""


def _members(sample: Any) -> list[tuple[Any, Any]]:
    if isinstance(sample, Mapping):
        return list(sample.items())
    return list(enumerate(sample)) if isinstance(sample, tuple | list) else []


def _shapes(sample: Any) -> str:
    """Return the shapes of a sample's tensors and arrays in words."""
    values = [value for _, value in _members(sample)] or [sample]
    shapes = [list(one.shape) for one in values if isinstance(getattr(one, "shape", None), tuple)]
    return f"shape {shapes[0]}" if len(shapes) == 1 else f"shapes {shapes}"


def stale_kernels(error: Exception) -> ImportError | None:
    """Return the error where compiled modules are older than the Python files beside them."""
    text = str(error)
    asked = isinstance(error, ImportError) or text.startswith("module ") or "signature" in text
    if not asked or not re.search(r"convcore\.engine\.(\w+\.)*_\w", text):
        return None
    return ImportError(
        f"the compiled modules in {Path(__file__).parents[1] / 'engine'} were built from other "
        "sources than lie there now: run 'python setup.py build_ext --inplace' in the source tree, "
        "or install convcore again"
    )
