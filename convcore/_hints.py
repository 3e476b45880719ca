"""Hints: what people most often meant, in one sentence below the text of an error.

The text itself is PyTorch's, for programs match it.  A hint is a note (PEP 678): tracebacks show it
below the text, ``str(error)`` is without it.  Nothing here runs before something has failed.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

_Error = TypeVar("_Error", bound=BaseException)

_Shape = Sequence[int]


def hinted(error: _Error, hint: str) -> _Error:
    """Return an error with a hint below its text; with none if the hint is empty."""
    note = f"Hint: {hint}"
    if hint and note not in getattr(error, "__notes__", ()):  # it may be raised twice
        error.add_note(note)
    return error


def nearest(word: str, words: Iterable[str], least: float = 0.7) -> str:
    """Return the word that is most like a misspelt one, at ``least`` so much; '' if none is."""
    from difflib import get_close_matches

    known = list(words)
    same = [one for one in known if one.lower() == word.lower()]
    close = same or get_close_matches(word, known, 9, least) or _with_words_of(word, known)
    # A slip of the fingers first: Adma is Adam, though more letters of it are in Adamax.
    slips = [one for one in close if sorted(one.lower()) == sorted(word.lower())]
    found = [*slips, *close, ""][0]
    # Of BatchNorm1d, 2d and 3d, which are as near to BatchNorm, the one of images.
    of_images = f"{found[:-2]}2d"
    is_tie = found[-2:] in ("1d", "3d") and found[-2] not in word and of_images in close
    return of_images if is_tie else found


def _with_words_of(word: str, known: Iterable[str]) -> list[str]:
    """Return the names that have words in between: CosineAnnealingLR for CosineLR."""
    parts = re.findall("[A-Z][a-z0-9]*", word)
    found = re.compile("[A-Za-z0-9]*".join(parts))
    return sorted(filter(found.fullmatch, known), key=len) if len(parts) > 1 else []


# Compiled modules


def stale_kernels(error: Exception) -> ImportError | None:
    """Return what to raise where kernels lack what the Python files beside them ask for."""
    text = str(error)
    asked = isinstance(error, ImportError) or text.startswith("module ") or "signature" in text
    if not asked or "convcore.kernels." not in text:
        return None
    folder = Path(__file__).parent / "kernels"
    return ImportError(
        f"the compiled modules in {folder} were built from other sources than lie there now: run "
        "'python setup.py build_ext --inplace' in the source tree, or install convcore again"
    )


# Shapes and dtypes


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
    if shape[-1] == channels and shape[axis] != channels:
        order = [*range(axis), len(shape) - 1, *range(axis, len(shape) - 1)]
        permuted = f"x.permute({', '.join(map(str, order))})"
        # Images are larger than they are deep; of maps 32 high and 32 wide, 32 says nothing.
        if channels < min(shape[axis:-1]):
            return (
                f"axis {axis} has to be the channels, and here the last axis looks like it: "
                f"{permuted}"
            )
        if rank == 1:
            return (
                f"axis {axis} are the channels: the input has {shape[axis]}, the layer takes "
                f"{channels}; if the last axis are the channels: {permuted}"
            )
    if axis == 0 and channels == 1:
        return "a batch of images in one channel has that as an axis of its own: x.unsqueeze(1)"
    if rank == 2 and not axis and shape[0] == 1 and shape[1] == channels:
        return (
            f"axes are missing: an image is (1, {channels}, height, width), and the input's shape "
            f"is {shape}"
        )
    told = f"axis {axis} are the channels: the input has {shape[axis]}, the layer takes {channels}"
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
    if len(shape) != 2 or min(shape) == 0 or shape[0] == shape[1]:
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
FLOAT_TARGETS = "targets are probabilities, from 0 to 1: target.float()"
NO_PROBABILITIES = (
    "it takes probabilities: apply sigmoid first, or give the net's scores to BCEWithLogitsLoss"
)


def not_a_parameter(value: Any) -> str:
    """Say how to make a parameter of something else."""
    return of_pytorch(value) or "wrap it: nn.Parameter(tensor)"


def of_pytorch(value: Any) -> str:
    """Say of an object of the installed PyTorch how it got here: some imports are still its own."""
    pytorch = sys.modules.get("torch")
    kind = value if isinstance(value, type) else type(value)
    roots = {one.__module__.partition(".")[0] for one in kind.__mro__}
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


# Losses


def reductions(names: Sequence[str]) -> str:
    """Say which reductions a loss has."""
    *most, last = map(repr, names)
    return f"allowed are {', '.join(most)} and {last}"


# Classes and indices


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


def index_range(found: int, rows: int) -> str:
    """Say which indices of rows are allowed."""
    return f"found {found}, and indices are 0 to {rows - 1}"


BOTH_SIDES = "where(condition, input, other) takes both, or neither for the places of the true ones"
ONE_DATASET = "a loader takes one dataset: DataLoader(TensorDataset(x, y), batch_size)"

# The graph

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
BACKWARDS = "x.flip(axis) reverses an axis; NumPy's x[::-1] is x.flip(0)"
MODIFIED = (
    "clone the tensor before the operation changes it, or use the operation that is not in place"
)


def no_graph(inexact: bool, enabled: bool) -> str:
    """Say why a tensor, of floating point or complex if ``inexact``, is connected to no leaf."""
    if not inexact:
        return "it is not of floating point: argmax, comparisons and conversions have no gradient"
    if not enabled:
        return "gradients are not recorded here: compute and call backward outside torch.no_grad()"
    return (
        "no leaf that it was computed from requires grad (set requires_grad=True on one before), "
        "or it was computed under torch.no_grad(), by a net of optimize_for_inference, or from "
        ".detach(), .data, .item() or .numpy()"
    )


# Modules and optimizers

# Methods that nets have in Keras and scikit-learn, and what does it here.
_METHODS = {
    "add": "net.append(layer) of a Sequential, or net.add_module(name, layer)",
    "fit": "train in a loop: loss(net(x), y).backward(); optimizer.step(); optimizer.zero_grad()",
    "get_weights": "net.state_dict()",
    "layers": "list(net.children())",
    "load": "net.load_state_dict(torch.load(file))",
    "load_weights": "net.load_state_dict(torch.load(file))",
    "predict": "call the net, net(x): under torch.no_grad(), after net.eval()",
    "save": "torch.save(net.state_dict(), file), or onnx.export(net, x, file) for other programs; "
    "torch.jit.trace and script return the net itself",
    "save_weights": "torch.save(net.state_dict(), file)",
    "set_weights": "net.load_state_dict(state)",
    "summary": "convcore.summary(net, x)",
    "weights": "net.parameters(), or net.state_dict() by name",
}


def input_of_sizes(given: tuple[Any, ...]) -> str:
    """Say how an input of some sizes is made, where only the sizes were given."""
    is_shape = len(given) > 1 and all(type(size) is int for size in given)
    return f"of random numbers it is torch.rand{given}" if is_shape else ""


def module_method(name: str) -> str:
    """Say what does the work of a method that modules have in other libraries."""
    return _METHODS.get(name, "")


def parameter(value: Any, name: str) -> str:
    """Say how to replace a parameter."""
    return of_pytorch(value) or (
        f"wrap it: nn.Parameter({_article(value)}); or change the values only: "
        f"with torch.no_grad(): module.{name}.copy_(tensor)"
    )


def _article(value: Any) -> str:
    return "tensor" if hasattr(value, "requires_grad") else "torch.as_tensor(value)"


def not_a_module(value: Any) -> str:
    """Say what to add instead of something that is no module."""
    if foreign := of_pytorch(value):
        return foreign
    if isinstance(value, type):
        return f"that is the class: make a module of it, {value.__name__}()"
    if isinstance(value, list | tuple):
        return "unpack it: nn.Sequential(*layers)"
    if callable(value):
        return "a function has no place among modules: use the module, such as nn.ReLU()"
    return ""


def not_parameters(value: Any) -> str:
    """Say what an optimizer takes instead."""
    if foreign := of_pytorch(value):
        return foreign
    if hasattr(value, "parameters"):
        return "pass module.parameters()"
    if callable(value):
        return f"call it: module.{getattr(value, '__name__', 'parameters')}()"
    return "pass the tensors: module.parameters(), or list(dictionary.values())"


EMPTY_PARAMETERS = (
    "the module has no parameters, or they came from a generator that was used up before: "
    "call module.parameters() again. Layers in a Python list are not seen: use nn.ModuleList"
)
INPUTS_SECOND = "inputs come second, and then the file: export(net, x, path)"
OBJECT_FIRST = "the object comes first, and then the file: torch.save(object, path)"
SWAPPED = "scores come first, and then the classes: cross_entropy(net(x), y)"
ON_CPU = 'leave the device out, or ask: "cuda" if torch.cuda.is_available() else "cpu"'
ONE_TENSOR = "put it into a list: [tensor]"
NON_LEAF = (
    "it was computed from other tensors: optimize those, or make a leaf, "
    "x.detach().requires_grad_(), and compute with it"
)
NO_INPUT = "summary(model, (1, 3, 224, 224)) gives it an input of that shape"


def loss_class(kind: Any) -> str:
    """Say how a loss is called that was given tensors where it is made."""
    code = kind.forward.__code__
    inputs = ", ".join(code.co_varnames[1 : code.co_argcount])
    return f"make the loss first, and then call it: nn.{kind.__name__}()({inputs})"


def lone_shape(sizes: _Shape) -> str:
    """Say which shape a net takes that runs with a batch, and was given one image's."""
    return f"the net takes a batch: summary(model, {(1, *sizes)})"


NO_SUPER = "call super().__init__() first in the module's __init__"


def no_forward(module: object) -> str:
    """Say which method may have been meant to be `forward`."""
    if type(module).__module__.startswith("convcore."):
        return "it only holds modules: call them one by one, or use nn.Sequential"
    found = nearest("forward", vars(type(module)))
    if found:
        return f"is {found!r} meant to be 'forward'?"
    return "define forward(self, x) in the class, indented as __init__ is"


# Keys of a state


def state_keys(
    missing: Sequence[str],
    unexpected: Sequence[str],
    state: Mapping[str, Any],
    shapes: Mapping[str, _Shape],
) -> str:
    """Say how the keys of a state differ from those of a module, whose shapes are given."""
    if not missing or not unexpected:
        return ""
    for key in unexpected:
        inner = state.get(key)
        if isinstance(inner, Mapping) and missing[0] in inner:
            return f"the state is inside: load_state_dict(checkpoint[{key!r}])"
    prefix = prefix_of(missing, unexpected)
    if prefix:
        return (
            f"the keys have the prefix {prefix!r}"
            f"{', of nn.DataParallel' if prefix == 'module.' else ''}: "
            f"{{key.removeprefix({prefix!r}): value for key, value in state_dict.items()}}"
        )
    prefix = prefix_of(unexpected, missing)
    if prefix:
        return (
            f"the module's keys have the prefix {prefix!r}, which the state's have not: "
            f"{{{prefix!r} + key: value for key, value in state_dict.items()}}"
        )
    pairs = [
        (key, nearest(key, [k for k in unexpected[:200] if _shape(state[k]) == shapes.get(key)]))
        for key in missing[:3]
    ]
    meant = [f"{found!r} meant to be {key!r}" for key, found in pairs if found]
    return f"is {', '.join(meant)}?" if meant else ""


def prefix_of(short: Sequence[str], long: Sequence[str]) -> str:
    """Return what stands before each of the short keys in the long ones; '' if there is none."""
    found = next((key for key in long if key.endswith(f".{short[0]}")), "")
    prefix = found.removesuffix(short[0])
    return prefix if prefix and {prefix + key for key in short} == set(long) else ""


NO_DOWNLOAD = (
    "convcore has no weights and downloads none: load a file that you have, such as torchvision's, "
    "by net.load_state_dict(convcore.load('resnet18.pth'))"
)


def not_a_state(value: Any) -> str:
    """Say what to load instead of something that is no mapping."""
    if hasattr(value, "state_dict"):
        return "pass its state: load_state_dict(other.state_dict())"
    if isinstance(value, str):
        return "read the file first: load_state_dict(torch.load(path))"
    return ""


# Samples of a dataset


def samples(numbers: Sequence[Any], found: Sequence[Any]) -> str:
    """Say which sample of a batch does not go together with the others."""
    if not isinstance(found, list | tuple):  # a batch that the dataset made itself
        return ""
    for number, sample in zip(numbers, found, strict=False):
        if sample is None:
            return f"dataset[{number}] returned None"
        place = _none_inside(sample)
        if place:
            return f"dataset[{number}]{place} is None"
    first = _shapes(found[0]) if found else None
    for number, sample in zip(numbers, found, strict=False):
        if _shapes(sample) != first:
            return (
                f"dataset[{numbers[0]}] has {_described(first)}, dataset[{number}] has "
                f"{_described(_shapes(sample))}"
            )
    return ""


def _members(sample: Any) -> list[tuple[Any, Any]]:
    if isinstance(sample, Mapping):
        return list(sample.items())
    return list(enumerate(sample)) if isinstance(sample, tuple | list) else []


def _none_inside(sample: Any) -> str:
    return next((f"[{key!r}]" for key, value in _members(sample) if value is None), "")


def _shapes(sample: Any) -> list[Any]:
    """Return the shapes of a sample's tensors and arrays."""
    values = [value for _, value in _members(sample)] or [sample]
    return [list(value.shape) for value in values if isinstance(_shape(value), tuple)]


def _shape(value: Any) -> Any:
    return getattr(value, "shape", None)


def _described(shapes: Any) -> str:
    return f"shape {shapes[0]}" if len(shapes) == 1 else f"shapes {shapes}"
