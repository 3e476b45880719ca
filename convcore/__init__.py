"""convcore: convolutions on a CPU, forward and both gradients, in a graph with hooks.

One legend of shape letters serves the whole package:

    N       batch                           K       C_in/G * KH * KW, terms of one output's sum
    C_in    input channels                  P       OH * OW, output pixels of one image
    C_out   output channels                 SH, SW  strides
    G       groups                          DH, DW  dilations
    D, H, W     input sizes                 KD, KH, KW  kernel sizes
    OD, OH, OW  output sizes
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from convcore import engine as engine
    from convcore.engine.threads import get_num_threads as get_num_threads
    from convcore.engine.threads import set_num_threads as set_num_threads

__version__ = "0.1.0"

# Nothing is loaded before it is asked for: a benchmark's worker for another library, or
# `convcore --help`, must not load the kernels and their OpenMP.

# Rooms that are attributes of the package, as `convcore.nn` is.
_ROOMS = ("autograd", "backends", "cuda", "engine", "nn", "optim", "random", "utils")

# Modules whose public names are the package's own, as `convcore.zeros` is.  functions comes first:
# it hangs the methods on Tensor.
_FAMILIES = (
    "functions",
    "_tensor",
    "_dtype",
    "_size",
    "_device",
    "_creation",
    "random",
    "_tensor_str",
    "autograd.grad_mode",
    "engine.threads",
    "engine.memory",
)

# The names of those that have private ones beside them.
_NAMES = {
    "_dtype": (
        *("float16", "half", "float32", "float", "float64", "double"),
        *("complex64", "cfloat", "complex128", "cdouble", "bool", "uint8", "int8"),
        *("int16", "short", "int32", "int", "int64", "long"),
        *("dtype", "finfo", "iinfo", "get_default_dtype", "set_default_dtype"),
        *("can_cast", "promote_types", "result_type"),
    ),
    "_tensor": (
        "Tensor",
        "memory_format",
        "contiguous_format",
        "preserve_format",
        "channels_last",
        "channels_last_3d",
    ),
    "_size": ("Size",),
    "_device": ("device",),
    "_creation": (
        *("tensor", "as_tensor", "asarray", "from_numpy", "from_dlpack", "scalar_tensor"),
        *("complex", "zeros", "ones", "empty", "full", "eye", "arange", "linspace", "logspace"),
        *("zeros_like", "ones_like", "full_like", "empty_like"),
        *("FloatTensor", "DoubleTensor", "HalfTensor", "LongTensor", "IntTensor"),
        *("ShortTensor", "ByteTensor", "CharTensor", "BoolTensor"),
    ),
    "random": (
        *("Generator", "default_generator", "manual_seed", "seed", "initial_seed"),
        *("get_rng_state", "set_rng_state", "rand", "randn", "randint", "randperm", "normal"),
        *("rand_like", "randn_like", "randint_like", "bernoulli", "multinomial"),
    ),
    "_tensor_str": ("set_printoptions",),
    "autograd.grad_mode": (
        "enable_grad",
        "inference_mode",
        "is_grad_enabled",
        "is_inference_mode_enabled",
        "no_grad",
        "set_grad_enabled",
    ),
    "random": (
        *("Generator", "default_generator", "get_rng_state", "initial_seed", "manual_seed"),
        *("seed", "set_rng_state", "rand", "rand_like", "randn", "randn_like", "randint"),
        *("randint_like", "randperm", "normal", "bernoulli", "multinomial"),
    ),
    "engine.threads": ("get_num_threads", "set_num_threads"),
    "engine.memory": ("empty_cache",),
}


def _load() -> dict[str, Any]:
    """Return every name that the package has of its own, loading what defines them."""
    names: dict[str, Any] = {}
    for family in _FAMILIES:
        try:
            module = importlib.import_module(f"convcore.{family}")
        except ModuleNotFoundError:
            continue
        for name in _NAMES.get(family) or module.__all__:
            names[name] = getattr(module, name)
    return names


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f"convcore.{name}")
    if name in ("get_num_threads", "set_num_threads"):  # need no tensors
        value = getattr(importlib.import_module("convcore.engine.threads"), name)
        globals()[name] = value
        return value
    if not name.startswith("_"):
        names = _load()
        if name in names:
            globals().update(names)
            return names[name]
    raise AttributeError(f"module 'convcore' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*_ROOMS, *_load(), "__version__"])
