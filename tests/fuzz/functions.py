"""Random calls of every public function and method: right, or one clear error; the long form.

    python tests/fuzz/functions.py --calls 100000   # all, compared with PyTorch if it is there
    python tests/fuzz/functions.py --only cumsum --calls 500
    python tests/fuzz/functions.py --integers       # one int or index of each call is far out
    python tests/fuzz/functions.py --seed 4711      # one call again, shown

A call is made of one number, its seed.  Tensors have sizes of 0, 1 and primes, and strides that are
negative, zero or overlap; they lie at odd addresses, are read-only, hold NaN, infinities and
denormals.  Some arguments are of wrong types, or integers that do not fit anywhere; some calls are
made under autocast.  Children with a limit on time and memory make the calls, so that a crash or a
hang is one more finding.
"""

from __future__ import annotations

import argparse
import contextlib
import decimal
import fractions
import importlib
import importlib.util
import inspect
import json
import math
import os
import re
import resource
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

HERE = Path(__file__).resolve()

DOCUMENTED = (TypeError, ValueError, RuntimeError, IndexError, NotImplementedError)
# A message with these speaks of what is inside, and not of an argument.
INTERNAL = re.compile(r"_array|MetaArray|object has no attribute|unexpected keyword argument '_")

HUGE = (2**31 - 1, 2**31, 2**32, 2**63 - 1, 2**63, 2**64, -(2**31) - 1, -(2**63), -(2**63) - 1)
HUGE += (-1, -2, -(2**31), 2**40, 2**62, 10**30)
INTEGERS = False  # whether one int of each call is replaced by a huge one, and nothing else is odd
CASTING = ("bfloat16", "bfloat16", "float16", "float64")  # what autocast is asked for: not the last
SECONDS, MEMORY = 20, 3 << 30  # of one call, and beyond what is there when it begins

# What changes the process, reads or writes files, waits, or asks other code.
LEFT_OUT = re.compile(
    r"^(set_|seed$|manual_seed|load$|save$|use_deterministic|summary$|hub|compile|from_file|"
    r"get_default_device|optimize_for_inference|vmap$|share_memory_|storage|untyped_storage|"
    r"register_|retain_grad|backward$|from_dlpack|multi_head_attention|apply_$|map_$|"
    r"handle_torch_function|has_torch_function|boolean_dispatch|importlib|is_grad_enabled|"
    r"no_grad|enable_grad|inference_mode|default_generator|empty_cache|frombuffer|scaled_dot_prod)"
)
# What is random or of no fixed order, shows how our own arrays lie, or is ill-conditioned; and what
# PyTorch computes in more precision (std) or with other NaN (histc).
RANDOM = re.compile(
    r"rand|dropout|bernoulli|multinomial|normal|poisson|uniform|exponential|"
    r"empty|rrelu|gumbel|fractional|new_empty|resize_|svd|qr|eig|data_ptr|initial_seed|"
    r"get_rng_state|Generator|nextafter|id|new$|topk|is_contiguous|std|"
    r"max_unpool|sum_to_size|cholesky_ex|searchsorted|histc"
)
_SIGN = r"-?(\S+) at \(.*\), not -?\1(;|$)"  # numbers that differ in their sign alone
# (function, what differs, why that is as it should be)
KNOWN = (
    ("addcmul_?", "dtype torch.float", "the dtype of the number too"),
    ("hinge_embedding_loss", "dtype torch.float32", "of integers too"),
    ("subtract|r?sub|tensordot", r"value .*nan", "products with infinite complex numbers"),
    ("logspace", r"value \(1\+0j\).*nan", "0 ** 0 is 1"),
    ("sgn", r"value .*(inf|nan)\+nanj", "denormal numbers have a sign"),
    ("trapezoid", r"value -?inf .*nan", "half of an infinite area is one"),
    ("median", r"value -(128|32768) ", "NaN as an integer is any"),
    ("copysign_?", rf"value {_SIGN}", "NaN has no sign that is promised"),
    ("kl_div", r"shape \(\)", "as nn.functional's: the mean, and not each"),
    ("pixel_unshuffle", "shape", "PyTorch returns nothing as it is"),
    ("tensordot", r".*dtype torch.\w*float16, not torch.float32", "a product of one element"),
    ("binary_cross_entropy_with_logits", r"shape \(\)", "as nn.functional's: the mean"),
    ("margin_ranking_loss", "dtype torch.int64|value", "numbers: no bytes that wrap around"),
    ("(var|std)(_mean)?", r"value 0\.0 .*nan|value -?inf .*nan", "of nothing, and of infinities"),
    ("slogdet", r"value 1\.0 .*0\.0", "NaN has no sign that is promised"),
    ("cdist", "dtype torch.float64, not torch.bfloat16", "of nothing too"),
    ("lt|le|gt|ge|less(_equal)?|greater(_equal)?", "value (True|False)", "bytes are not negative"),
)


class Function(NamedTuple):
    """A public function: the place where it is public, and its name there."""

    place: str
    name: str

    def of(self, library: Any) -> Callable | None:
        owner = library
        for part in self.place.split(".") if self.place else ():
            owner = getattr(owner, part, None)
        return getattr(owner, self.name, None)

    def __str__(self) -> str:
        return f"{self.place}.{self.name}" if self.place else self.name


PLACES = ("", "nn.functional", "Tensor", "linalg", "special")


def public_functions(
    places: tuple[str, ...] = PLACES, classes: str | None = None
) -> list[Function]:
    """Return every function of the package and of its namespaces, and Tensor's methods.

    classes : a namespace whose classes are called too
    """
    import convcore

    found = []
    for place in places:
        owner = convcore
        for part in place.split(".") if place else ():
            owner = getattr(owner, part)
        names = dir(owner) if place in PLACES else getattr(owner, "__all__", dir(owner))
        for name in sorted(names):
            value = getattr(owner, name, None)  # names that are missing raise
            public = not name.startswith("_") and callable(value) and not LEFT_OUT.match(name)
            if public and (not isinstance(value, type) or place == classes):
                found.append(Function(place, name))
    return found


# Arguments


class Draw:
    """The arguments of one call, drawn from a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        rank = int(self.rng.choice(5, p=[0.1, 0.2, 0.3, 0.2, 0.2]))
        self.shape = tuple(int(self.pick(_SIZES)) for _ in range(rank))
        self.dtype = str(self.pick(_DTYPES))
        self.hostile = self.chance(0.4) and not INTEGERS
        self.made: list[tuple[np.ndarray, np.ndarray]] = []  # (as it lies, its plain values)
        self.casting = ""  # the dtype of the autocast around the call, if there is one

    def pick(self, values: Any) -> Any:
        return values[int(self.rng.integers(len(values)))]

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def array(self, dtype: str = "", shape: tuple[int, ...] | None = None) -> np.ndarray:
        """Return an array with odd strides and values."""
        dtype = dtype or (self.dtype if self.chance(0.8) else str(self.pick(_DTYPES)))
        shape = self._shape() if shape is None else shape
        values = np.array(self._values(np.dtype(dtype), shape))
        lying = _laid(values, str(self.pick(_LAYS)))
        self.made.append((lying, np.array(lying)))
        return lying

    def tensor(self, dtype: str = "") -> Placeholder:
        """Return an array to make a tensor of, now and then one of bfloat16."""
        array = self.array(dtype)
        is_rounded = not dtype and array.dtype == np.float32 and self.chance(0.1)
        return Placeholder(array, "bfloat16" if is_rounded else "")

    def _shape(self) -> tuple[int, ...]:
        way = self.rng.random()
        if way < 0.7:
            return self.shape
        if way < 0.8:
            return self.shape[len(self.shape) // 2 :]
        if way < 0.9:
            return tuple(1 if self.chance(0.5) else n for n in self.shape)
        return tuple(int(self.pick(_SIZES)) for _ in range(int(self.rng.integers(5))))

    def _values(self, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
        if dtype.kind in "iu":
            return self.rng.integers(0 if dtype.kind == "u" else -3, 8, shape).astype(dtype)
        if dtype.kind == "b":
            return self.rng.random(shape) < 0.5
        values = np.asarray(self.rng.normal(size=shape) * 2)
        if dtype.kind == "c":
            values = values + 1j * self.rng.normal(size=shape)
        values = np.array(values.astype(dtype))
        if values.size and self.chance(0.25):
            with np.errstate(all="ignore"):
                odd = np.array([np.nan, np.inf, -np.inf, 0, -0.0, 1e-40, 1e30]).astype(dtype)
            values.flat[int(self.rng.integers(values.size))] = self.pick(odd)
        return values

    def wrong(self) -> Any:
        """Return what no argument is."""
        return self.pick(_WRONG)() if self.chance(0.6) else int(self.pick(HUGE))


_SIZES = (0, 1, 1, 2, 2, 3, 4, 5, 7)
_DTYPES = ("float32",) * 6 + ("float64", "float64", "int64", "int64", "int32", "uint8", "bool")
_DTYPES += ("float16", "complex64", "int16", "int8")
_LAYS = ("plain",) * 5 + ("turned", "stepped", "backward", "repeated", "unaligned", "readonly")
_WRONG = (
    *(lambda: None, object, lambda: "x", lambda: [1.0, "a"], lambda: {}, lambda: b"x", lambda: ()),
    *(lambda: np.ones(2), lambda: np.array([None, 1], object), lambda: fractions.Fraction(1, 3)),
    *(lambda: decimal.Decimal(1), lambda: 1j, lambda: math.nan, lambda: math.inf, lambda: [[1], 2]),
    *(lambda: np.int64(1), lambda: np.float32(2), lambda: True, lambda: -1, lambda: 1.5),
    *(lambda: iter(()), lambda: slice(None), lambda: Ellipsis, lambda: [None], lambda: int),
)


def _laid(values: np.ndarray, lay: str) -> np.ndarray:
    """Return the values as an array that lies in memory in an odd way."""
    shape, dtype = values.shape, values.dtype
    if lay == "turned":
        return np.ascontiguousarray(values.T).T
    if lay == "stepped" and shape:
        wide = np.zeros((*shape[:-1], 2 * shape[-1]), dtype)
        wide[..., ::2] = values
        return wide[..., ::2]
    if lay == "backward" and shape:
        return np.ascontiguousarray(values[::-1])[::-1]
    if lay == "repeated" and shape and shape[0]:
        return np.broadcast_to(values[:1], shape)
    if lay == "unaligned":
        raw = np.zeros(values.nbytes + 1, np.uint8)[1:].view(dtype).reshape(shape)
        raw[...] = values
        return raw
    if lay == "readonly":
        values.flags.writeable = False
    return values


class Placeholder(NamedTuple):
    """A tensor, before it is one of convcore or of PyTorch."""

    array: np.ndarray
    dtype: str = ""  # what it is cast to, if not ''


INT_NAMES = re.compile(
    r"^(n|k|m|d|r|N|dims?\d?|axis\d?|dim\d|diagonal|offset|steps?|chunks|sections|depth|times|repeats|"
    r"num_\w+|groups|start_dim|end_dim|minlength|bins|length|window_length|decimals|upscale_factor|"
    r"downscale_factor|kernel_size|stride|padding|dilation|output_size|output_padding|size|sizes|"
    r"shifts|correction|ignore_index|blank|storage_offset|split_size_or_sections|split_sizes|start|"
    r"end|row|col|indices_or_sections|normalized_shape|source|destination|pad|reps|increment|dimension)$"
)
SEQUENCES = re.compile(
    r"^(size|sizes|dims|pad|padding|normalized_shape|shifts|repeats|kernel_size|stride|dilation|"
    r"output_size|output_padding|split_sizes|shape|dim|reps|source|destination|split_size_or_sections)$"
)
_TENSOR_LISTS = re.compile(r"^(tensors|matrices|operands|arrays|more)$")
_INDEX_NAMES = re.compile(r"^(index|indices|targets?|input_lengths|target_lengths)$")
_WORDS = {
    "reduction": ("mean", "sum", "none"),
    "reduce": ("sum", "mean", "amax", "prod"),
    "mode": ("constant", "reflect", "replicate", "circular", "nearest", "bilinear", "mean", "sum"),
    "rounding_mode": (None, "floor", "trunc"),
    "equation": ("ij->ji", "i,i->", "ij,jk->ik", "...i->..."),
    "approximate": ("none", "tanh"),
    "indexing": ("ij", "xy"),
    "side": ("left", "right"),
    "interpolation": ("linear", "lower", "midpoint", "nearest"),
    "padding_mode": ("zeros", "border", "reflection"),
}


def _argument(draw: Draw, name: str, note: str) -> Any:
    """Return a value that a parameter of this name and annotation may well take."""
    if name in _WORDS:
        return draw.pick(_WORDS[name])
    if name == "dtype":
        return Dtype(draw.pick(("float32", "float64", "int64", "bool", "complex64")))
    if _TENSOR_LISTS.match(name):
        return [draw.tensor() for _ in range(int(draw.rng.integers(1, 4)))]
    if _INDEX_NAMES.match(name) and draw.chance(0.8):
        return Placeholder(np.abs(draw.array("int64")) % 3)
    if INT_NAMES.match(name) and ("Tensor" not in note or draw.chance(0.3)):
        if SEQUENCES.match(name) and draw.chance(0.5):
            count = len(draw.shape) if draw.chance(0.5) else int(draw.rng.integers(4))
            return [int(draw.rng.integers(-1, 4)) for _ in range(count)]
        return int(draw.rng.integers(-2, 4))
    if "bool" in note:
        return draw.chance(0.5)
    if name == "mask" or name == "condition":
        return draw.tensor("bool")
    if "Tensor" in note or name in ("input", "other", "self", "values", "source", "src", "tensor"):
        return draw.tensor() if draw.chance(0.85) else draw.pick((2, 0.5, -1, True))
    if "int" in note:
        return int(draw.rng.integers(-2, 4))
    if "float" in note:
        return draw.pick((0.0, 0.5, 1.0, 2.0, -1.0, 1e-5, 3))
    if "str" in note:
        return "x"
    return draw.pick((1, 0.5, draw.tensor(), [1, 2], None))


class Dtype(NamedTuple):
    """A dtype, before it is one of convcore or of PyTorch."""

    name: str


def parameters(function: Callable) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []


def arguments(draw: Draw, function: Callable, place: str) -> tuple[list, dict[str, Any]]:
    """Return the arguments of a call, with `Placeholder` for tensors."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for position, one in enumerate(parameters(function)):
        note = "" if one.annotation is one.empty else str(one.annotation)
        if one.kind is one.VAR_KEYWORD or one.name in ("out", "generator", "device", "layout"):
            continue
        if place == "Tensor" and position == 0:
            args.append(draw.tensor())
        elif one.kind is one.VAR_POSITIONAL:
            args += [_argument(draw, one.name, note) for _ in range(int(draw.rng.integers(3)))]
        elif one.default is one.empty:
            value = _argument(draw, one.name, note)
            if one.kind is one.KEYWORD_ONLY:
                kwargs[one.name] = value
            else:
                args.append(value)
        elif draw.chance(0.6 if INTEGERS and "int" in note else 0.25):
            kwargs[one.name] = _argument(draw, one.name, note)
    if draw.hostile:
        _spoil(draw, args, kwargs, place)
    if INTEGERS:
        _enlarge(draw, args, kwargs)
    return args, kwargs


def _enlarge(draw: Draw, args: list, kwargs: dict[str, Any]) -> None:
    """Replace one int, that of a list, or an index in a tensor, by a huge or a negative one."""
    owners = [args, kwargs, *(v for v in (*args, *kwargs.values()) if isinstance(v, list))]
    places = [
        (owner, key)
        for owner in owners
        for key, value in (owner.items() if isinstance(owner, dict) else enumerate(owner))
        if type(value) is int or _holds_indices(value)
    ]
    if places:
        owner, key = draw.pick(places)
        value = owner[key]
        owner[key] = _far_index(draw, value) if _holds_indices(value) else int(draw.pick(HUGE))


def _holds_indices(value: Any) -> bool:
    return isinstance(value, Placeholder) and value.array.dtype == np.int64 and value.array.size > 0


def _far_index(draw: Draw, value: Placeholder) -> Placeholder:
    array = np.array(value.array)
    array.flat[int(draw.rng.integers(array.size))] = draw.pick(
        [n for n in HUGE if -(2**63) <= n < 2**63]
    )
    return Placeholder(array)


def _spoil(draw: Draw, args: list, kwargs: dict[str, Any], place: str) -> None:
    """Replace one argument, or an element of a list, by what it is not."""
    places: list[tuple[Any, Any]] = [(args, n) for n in range(place == "Tensor", len(args))]
    places += [(kwargs, name) for name in kwargs]
    places += [(v, 0) for v in (*args, *kwargs.values()) if isinstance(v, list) and v]
    if places:
        owner, key = draw.pick(places)
        owner[key] = draw.wrong()


def built(library: Any, value: Any) -> Any:
    """Return an argument with tensors of a library in the place of placeholders."""
    if isinstance(value, Placeholder):
        array = np.array(value.array) if library.__name__ == "torch" else value.array
        tensor = _tensor(library, array)
        return tensor.to(getattr(library, value.dtype)) if value.dtype else tensor
    if isinstance(value, Dtype):
        return getattr(library, value.name)
    if isinstance(value, list):
        return [built(library, one) for one in value]
    if isinstance(value, dict):
        return {key: built(library, one) for key, one in value.items()}
    return value


def _tensor(library: Any, array: np.ndarray) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return library.from_numpy(array)


# One call, and what is to be said against it


def finding(seed: int, function: Function, compare: bool) -> str:
    """Make the call of a seed; return what is wrong with it, or ''."""
    draw, args, kwargs = drawn(seed, function)
    return judged(function, draw, args, kwargs, compare and not draw.hostile)


def drawn(seed: int, function: Function) -> tuple[Draw, list, dict[str, Any]]:
    """Return what drew the call of a seed, and its arguments."""
    import convcore

    draw = Draw(seed)
    args, kwargs = arguments(draw, function.of(convcore), function.place)
    if draw.chance(0.15):
        draw.casting = str(draw.pick(CASTING))
    return draw, args, kwargs


def judged(function: Function, draw: Draw, args: list, kwargs: dict, compare: bool) -> str:
    """Make a call with arguments that `draw` made; return what is wrong with it, or ''."""
    import convcore

    state = _state(convcore)
    try:
        ours = built(convcore, [args, kwargs])
    except DOCUMENTED:
        return ""  # such an array is no tensor
    theirs = built(importlib.import_module("torch"), [args, kwargs]) if compare else None
    found, error = _called(function, convcore, *ours, draw.casting)
    if _state(convcore) != state:
        return "changed the process's state"
    if error is not None:
        return _bad_error(error) or _changed(draw)
    in_place = function.name.endswith("_") or "inplace" in kwargs
    changed = "" if in_place else _changed(draw)
    if changed:
        return changed
    if compare:
        return _compared(function, theirs, draw.casting, found)
    return ""


def is_right(function: Function, args: list, kwargs: dict) -> bool:
    """Make a call; return whether it raises nothing."""
    import convcore

    try:
        ours = built(convcore, [args, kwargs])
    except DOCUMENTED:
        return False
    return _called(function, convcore, *ours)[1] is None


def _called(
    function: Function, library: Any, args: list, kwargs: dict, casting: str = ""
) -> tuple[Any, BaseException | None]:
    call = function.of(library)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with autocast(library, casting):
                return call(*args, **kwargs), None
        except Exception as error:
            return None, error


def autocast(library: Any, casting: str) -> contextlib.AbstractContextManager:
    """Return a library's autocast with a dtype; none if that is ''."""
    if not casting:
        return contextlib.nullcontext()
    return library.autocast("cpu", dtype=getattr(library, casting))


def _state(convcore: Any) -> tuple:
    return (
        *(convcore.is_grad_enabled(), convcore.get_default_dtype(), np.geterr()["divide"]),
        *(convcore.get_num_threads(), convcore.is_inference_mode_enabled()),
        convcore.is_autocast_enabled("cpu"),
    )


def _bad_error(error: BaseException) -> str:
    """Return what is wrong with an error: its class, or a text about what is inside."""
    kind, text = type(error).__name__, str(error)
    if isinstance(error, MemoryError):
        return ""  # the limit, where a size is a valid one
    if isinstance(error, AssertionError) and re.search("num_embeddings|num_heads", text):
        return ""  # PyTorch's class for it
    if not isinstance(error, DOCUMENTED) or isinstance(error, RecursionError):
        return f"{kind}: {text[:160]} @ {_where(error)}"
    if INTERNAL.search(text):
        return f"internal: {kind}: {text[:160]} @ {_where(error)}"
    if not text:
        return f"no text: {kind} @ {_where(error)}"
    return ""


def _where(error: BaseException) -> str:
    trace = error.__traceback__
    place = ""
    while trace is not None:
        code = trace.tb_frame.f_code
        if "convcore" in code.co_filename:
            place = f"{Path(code.co_filename).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def _changed(draw: Draw) -> str:
    for lying, values in draw.made:
        if lying.tobytes() != values.tobytes():
            return "changed an argument"
    return ""


def _compared(function: Function, arguments: Any, casting: str, found: Any) -> str:
    """Return how a result differs from PyTorch's, if that gives one."""
    import torch

    if function.of(torch) is None or RANDOM.search(function.name):
        return ""
    expected, error = _called(function, torch, *arguments, casting)
    if error is not None:
        return ""
    what = "; ".join(_differences(found, expected, bool(casting)))[:300]
    if any(re.fullmatch(name, function.name) and re.match(known, what) for name, known, _ in KNOWN):
        return ""
    return f"under autocast of {casting}: {what}" if what and casting else what


def _differences(ours: Any, theirs: Any, rounded: bool = False) -> Iterator[str]:
    """Yield how results differ; `rounded` ones may come from operands of bfloat16."""
    if hasattr(theirs, "detach") and hasattr(theirs, "numpy"):
        if not hasattr(ours, "detach"):
            yield f"a {type(ours).__name__}, not a tensor"
            return
        if tuple(ours.shape) != tuple(theirs.shape):
            yield f"shape {tuple(ours.shape)}, not {tuple(theirs.shape)}"
        elif str(ours.dtype) != str(theirs.dtype):
            yield f"dtype {ours.dtype}, not {theirs.dtype}"
        elif "bfloat16" in str(theirs.dtype):
            pair = (one.detach().float().numpy() for one in (ours, theirs))
            yield from _unequal(*pair, 2e-2, rounded)
        elif not theirs.is_sparse:
            pair = (ours.numpy(force=True), theirs.resolve_conj().numpy(force=True))
            yield from _unequal(*pair, 2e-2 if rounded else 0.0, rounded)
    elif isinstance(theirs, tuple | list) and isinstance(ours, tuple | list):
        if len(ours) != len(theirs):
            yield f"{len(ours)} results, not {len(theirs)}"
        for one, other in zip(ours, theirs, strict=False):
            yield from _differences(one, other, rounded)
    elif isinstance(theirs, bool | int | float) and repr(ours) != repr(theirs):
        yield f"{ours}, not {theirs}"


def _unequal(
    ours: np.ndarray, theirs: np.ndarray, size: float = 0.0, scaled: bool = False
) -> Iterator[str]:
    """Yield the first element that differs by more than a size, in terms of the largest one."""
    size = size or {"float16": 2e-2, "float64": 1e-6}.get(theirs.dtype.name, 1e-3)
    with np.errstate(all="ignore"):
        largest = np.abs(theirs[np.isfinite(theirs)]).max(initial=1.0) if scaled else 1.0
        close = np.isclose(ours, theirs, rtol=size, atol=size * largest, equal_nan=True)
    if not close.all():
        place = np.unravel_index(int(np.argmin(close)), close.shape)
        yield f"value {ours[place]} at {tuple(map(int, place))}, not {theirs[place]}"


# Children


def work(start: int, stop: int, only: str, compare: bool, integers: bool, progress: str) -> None:
    """Make the calls of some seeds, tell of findings, and say before each which it is."""
    global INTEGERS
    INTEGERS = integers
    functions = [f for f in public_functions() if not only or f.name == only]
    compare = with_pytorch(compare)

    def call(seed: int) -> tuple[Function, str]:
        function = functions[seed % len(functions)]
        return function, finding(seed, function, compare)

    make_calls(start, stop, progress, call)


def with_pytorch(compare: bool) -> bool:
    """Load PyTorch if it is there and asked for; return whether it is."""
    compare = compare and importlib.util.find_spec("torch") is not None
    if compare:
        importlib.import_module("torch").ones(1)
    return compare


def make_calls(
    start: int, stop: int, progress: str, call: Callable[[int], tuple[Function, str]]
) -> None:
    """Make calls by their numbers in limited time and memory; see `in_children`."""
    _limit()
    with open(progress, "w") as place:
        for number in range(start, stop):
            place.seek(0)
            place.write(f"{number:020d}")
            place.flush()
            signal.setitimer(signal.ITIMER_REAL, SECONDS)
            function, wrong = call(number)
            signal.setitimer(signal.ITIMER_REAL, 0)
            if wrong:
                print(json.dumps([number, str(function), wrong]), flush=True)


def _limit() -> None:
    """Let this process have some memory beyond what it has, and no core file."""
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if sys.platform == "linux" else 0
    if pages:
        most = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def hunt(
    start: int, calls: int, only: str, compare: bool, folder: Path, integers: bool = False
) -> list[list]:
    """Return the findings of some calls as [seed, function, what]; children make them."""
    names = [str(f) for f in public_functions() if not only or f.name == only]
    command = [str(HERE), "--work", only, str(int(compare)), str(int(integers))]
    return in_children(command, start, start + calls, folder, lambda seed: names[seed % len(names)])


def in_children(
    command: list[str], start: int, stop: int, folder: Path, name: Callable[[int], str]
) -> list[list]:
    """Let children make the calls [start, stop); return [number, function, what] of findings.

    A child is told the first call, the last, and a file for the number of the call that it makes;
    it prints findings as JSON.  The next one goes on after a call that ended a child.
    """
    progress, found = folder / f"progress-{os.getpid()}", []
    environ = os.environ | {"OMP_NUM_THREADS": "2"}
    while start < stop:
        progress.write_text("")
        child = subprocess.run(
            [sys.executable, *command, str(start), str(stop), str(progress)],
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )
        found += [json.loads(line) for line in child.stdout.splitlines() if line.startswith("[")]
        if child.returncode == 0:
            break
        number = int(progress.read_text() or start)
        died = signal.Signals(-child.returncode).name if child.returncode < 0 else "exit"
        what = "hangs" if died == "SIGALRM" else f"dies of {died}: {child.stderr[-300:]}"
        found.append([number, name(number), what])
        start = number + 1
    progress.unlink(missing_ok=True)
    return found


class Sweep(NamedTuple):
    """Numbered calls that are right but for one value in one place: each place with each value.

    script : what a child runs
    places : the places in functions of some names, between commas, or in all
    values : what is put into a place
    drawn : place, value -> the arguments of the call, to be shown
    is_right : whether a place is in a call that is right otherwise
    wrong : place, value, compare -> what is wrong with the call, or ''
    """

    script: Path
    places: Callable[[str], list]
    values: tuple
    drawn: Callable[[Any, Any], Any]
    is_right: Callable[[Any], bool]
    wrong: Callable[[Any, Any, bool], str]

    def call(self, number: int, only: str, compare: bool) -> tuple[Any, str]:
        """Make a call by its number; return its place, and what is wrong."""
        place, value = self._numbered(number, only)
        wrong = self.wrong(place, value, compare)
        return place, f"{value!r}: {wrong}" if wrong else ""

    def _numbered(self, number: int, only: str) -> tuple[Any, Any]:
        place, value = divmod(number, len(self.values))
        return self.places(only)[place], self.values[value]

    def hunt(self, only: str, compare: bool, folder: Path) -> list[list]:
        """Return the findings of all calls as [number, place, what]; children make them."""
        command = [str(self.script), "--work", only, str(int(compare))]
        calls = len(self.places(only)) * len(self.values)
        return in_children(
            command, 0, calls, folder, lambda number: str(self._numbered(number, only)[0])
        )

    def main(self, about: str) -> int:
        """Run the script: all calls, those of a child, or one that is shown."""
        parser = argparse.ArgumentParser(description=about)
        parser.add_argument("--only", default="", help="names of functions, between commas")
        parser.add_argument("--call", type=int, help="make one call again")
        parser.add_argument("--alone", action="store_true", help="do not compare with PyTorch")
        parser.add_argument("--work", nargs=5, help=argparse.SUPPRESS)
        options = parser.parse_args()
        if options.work:
            only, compare, start, stop, progress = options.work
            beside = with_pytorch(compare == "1")
            make_calls(
                int(start), int(stop), progress, lambda number: self.call(number, only, beside)
            )
            return 0
        if options.call is not None:
            place, value = self._numbered(options.call, options.only)
            print(place, self.drawn(place, value), sep="\n")
            wrong = self.call(options.call, options.only, not options.alone)[1]
            print(wrong or "right, or a clear error")
            return 0
        found = self.hunt(options.only, not options.alone, Path("/tmp"))
        for number, name, what in found:
            print(f"{number}\t{name}\t{what}")
        every = self.places(options.only)
        reached = sum(map(self.is_right, every))
        print(
            f"{len(every) * len(self.values)} calls in {len(every)} places, {reached} of them "
            f"reached; {len(found)} findings"
        )
        return bool(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--only", default="", help="the name of one function")
    parser.add_argument("--seed", type=int, help="make one call again")
    parser.add_argument("--alone", action="store_true", help="do not compare with PyTorch")
    parser.add_argument("--integers", action="store_true", help="one int of each call is huge")
    parser.add_argument("--work", nargs=6, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        only, compare, integers, start, stop, progress = options.work
        work(int(start), int(stop), only, compare == "1", integers == "1", progress)
        return 0
    global INTEGERS
    INTEGERS = options.integers
    if options.seed is not None:
        return _again(options.seed, options.only, not options.alone)
    hunted = options.start, options.calls, options.only, not options.alone
    found = hunt(*hunted, Path("/tmp"), options.integers)
    for seed, function, what in found:
        print(f"{seed}\t{function}\t{what}")
    print(f"{options.calls} calls, {len(found)} findings")
    return bool(found)


def _again(seed: int, only: str, compare: bool) -> int:
    functions = [f for f in public_functions() if not only or f.name == only]
    function = functions[seed % len(functions)]
    draw, args, kwargs = drawn(seed, function)
    print(f"{function} autocast={draw.casting!r}", args, kwargs, sep="\n")
    with contextlib.suppress(ImportError):
        print(finding(seed, function, compare) or "right, or a clear error")
    return 0


if __name__ == "__main__":
    sys.exit(main())
