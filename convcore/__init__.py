"""convcore: CPU convolutions, forward and both gradients, in an autograd graph with hooks.

PyTorch's names on NumPy arrays.  Start here:

    import convcore as torch; from convcore import nn, optim    train as in PyTorch
    inspection.capture, .profile, .find_nan, .report            look inside a net
    optimize_for_inference(net)                                 a copy that only runs, fast
    convcore run script.py      a program written for PyTorch, unchanged
    convcore                    what else the command line does

Tensors and layers are here, plain ndarrays in `convcore.engine`.  A room imports only from rooms
below it (tests/test_layering.py); from the bottom up:

    engine/         ndarray in, ndarray out, in Python, Cython and C: conv/, layers/, runtime/
    _tensor/ random/        tensors, their creation, dtypes; random numbers
    autograd/       graph, backward pass, hooks; knows no arithmetic
    functions/      differentiable functions on tensors; plumbing in functions/_support/
    distributed/    process groups and collectives on MPI
    overrides.py    modes and subclasses of Tensor that see every function
    nn/ optim/ utils/ amp/ backends/ cpu/ cuda/     modules, optimizers, data, switches
    func/                           function transforms
    linalg.py special.py distributions/             PyTorch's rooms of mathematics
    multiprocessing/ futures.py     processes that share tensors, values that come later
    inference/ inspection/ onnx/ serialization/ models/ bench/ demo/ hub.py    uses of all that
    compat/         PyTorch's programs with convcore in PyTorch's place
    verify/         self-check: every algorithm against the oracle, on the user's machine
    cli/            the command `convcore`

Memory formats: shapes are always logical NCHW.  Memory is contiguous (NCHW) or channels_last
(NHWC), decided by the strides; where a kernel has a version for each, names end in _nchw and
_nhwc.  A convolution's output is channels_last if its input or weight is; other operations keep
the format.

Threads and bits: a call runs in parallel regions; in those that call BLAS, BLAS runs on one
thread.  Blocks depend on shapes alone and partial sums are added in a fixed order, so that results
have the same bits for any number of threads.

Shape letters, the same in the whole package:

    N       batch                           K       C_in/G * KH * KW, terms of one output's sum
    C_in    input channels                  P       OH * OW, output pixels of one image
    C_out   output channels                 SH, SW  strides
    G       groups                          DH, DW  dilations
    D, H, W     input sizes                 KD, KH, KW  kernel sizes
    OD, OH, OW  output sizes

Glossary:

    microkernel         innermost loop, in C, compiled once for each instruction set
    instruction set     ISA: base, avx2 or avx512 on x86-64, NEON on arm64; chosen at import
    kernel dispatch     the choice of a compiled kernel, or of NumPy, for dtype and memory format
    pass                of a convolution: forward, input gradient, or weight gradient
    op                  an elementwise function, such as relu or mish
    tap                 one element of a kernel window
    epilogue            bias and activation, applied while an output block is in the cache
    plan                algorithm, block sizes and workspace of a pass; a function of its problem
    call plan           a cached plan together with its kernel
    prepacked weights   weights transformed once into a kernel's layout, for inference
    specialisation      a variant of a kernel compiled for fixed sizes, such as 3x3 stride 1
    halo tile           input block with the border that neighbouring outputs share
    panel               columns of packed weights, as many as a microkernel makes at a time
    scratch             one thread's temporary memory during a call
    memory pool         freed blocks of large arrays, kept for reuse; see `memory_stats`
    BLAS thread limit   BLAS is set to one thread while regions call it, then restored
    stride decomposition    a strided input gradient as several dense convolutions, one a phase
    gemm + col2im       a matrix product whose columns are summed into overlapping windows
    Winograd            F(4x4, 3x3): fewer multiplications by transforms of tiles; rounds more
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from convcore import _forks as _forks  # its handler of forks is registered before all others

if TYPE_CHECKING:  # what __getattr__ does, for type checkers and editors
    from collections.abc import Callable

    from convcore import amp as amp
    from convcore import autograd as autograd
    from convcore import backends as backends
    from convcore import cpu as cpu
    from convcore import cuda as cuda
    from convcore import distributed as distributed
    from convcore import distributions as distributions
    from convcore import engine as engine
    from convcore import func as func
    from convcore import futures as futures
    from convcore import linalg as linalg
    from convcore import multiprocessing as multiprocessing
    from convcore import nn as nn
    from convcore import optim as optim
    from convcore import overrides as overrides
    from convcore import random as random
    from convcore import special as special
    from convcore import utils as utils
    from convcore._tensor.constants import *
    from convcore._tensor.creation import *
    from convcore._tensor.device import *
    from convcore._tensor.dtypes import *
    from convcore._tensor.limits import *
    from convcore._tensor.printing import *
    from convcore._tensor.settings import *
    from convcore._tensor.size import *
    from convcore._tensor.storage import *
    from convcore._tensor.tensor import *
    from convcore.amp import autocast as autocast
    from convcore.autograd.grad_mode import *
    from convcore.engine.runtime.memory import empty_cache as empty_cache
    from convcore.engine.runtime.memory import get_cache_limit as get_cache_limit
    from convcore.engine.runtime.memory import memory_stats as memory_stats
    from convcore.engine.runtime.memory import reset_peak_memory_stats as reset_peak_memory_stats
    from convcore.engine.runtime.memory import set_cache_limit as set_cache_limit
    from convcore.engine.runtime.threads import get_num_threads as get_num_threads
    from convcore.engine.runtime.threads import set_num_threads as set_num_threads
    from convcore.functions import *
    from convcore.random import *

    # Rooms above this one: loaded when they are asked for, never imported here.
    hub: Any
    models: Any
    inference: Any
    inspection: Any
    optimize_for_inference: Callable[..., Any]
    load: Callable[..., Any]
    save: Callable[..., None]
    onnx: Any
    compat: Any
    serialization: Any
    summary: Callable[..., Any]
    vmap: Callable[..., Any]

__version__ = "0.1.0"

# Nothing is loaded before it is asked for: a benchmark's worker for another library, or
# `convcore --help`, must not load the kernels and their OpenMP.

# Rooms that are attributes of the package, as `convcore.nn` is.
_ROOMS = (
    *("amp", "autograd", "backends", "cpu", "cuda", "engine", "nn", "optim", "overrides", "random"),
    *(
        "distributed",
        "distributions",
        "futures",
        "func",
        "linalg",
        "multiprocessing",
        "special",
        "testing",
    ),
    "utils",
    *("compat", "hub", "inference", "inspection", "models", "onnx", "serialization"),
)

# Modules whose `__all__` is the package's own, as `convcore.zeros` is.  functions comes first: it
# hangs the methods on Tensor.
_FAMILIES = (
    "functions",
    "_tensor.tensor",
    "_tensor.dtypes",
    "_tensor.limits",
    "_tensor.size",
    "_tensor.storage",
    "_tensor.device",
    "_tensor.creation",
    "_tensor.constants",
    "random",
    "_tensor.settings",
    "_tensor.printing",
    "autograd.grad_mode",
)

# What the engine has that needs no tensors.
_ENGINE = {
    "empty_cache": "memory",
    "get_cache_limit": "memory",
    "get_num_threads": "threads",
    "memory_stats": "memory",
    "reset_peak_memory_stats": "memory",
    "set_cache_limit": "memory",
    "set_num_threads": "threads",
}

# Names of higher rooms, loaded when they are asked for.
_HIGHER = {
    **{"autocast": "amp", "is_autocast_enabled": "amp.autocast_mode"},
    "get_autocast_dtype": "amp.autocast_mode",
    "load": "serialization",
    "optimize_for_inference": "inference",
    "save": "serialization",
    "summary": "inspection",
    "vmap": "func",
}


def _load() -> dict[str, Any]:
    """Return every name that the package has of its own, loading what defines them."""
    names: dict[str, Any] = {}
    importlib.import_module("convcore.overrides")  # which subclasses of Tensor need
    for family in _FAMILIES:
        module = importlib.import_module(f"convcore.{family}")
        names.update((name, getattr(module, name)) for name in module.__all__)
    return names


if not TYPE_CHECKING:  # type checkers have the imports above, and find misspelt names

    def __getattr__(name: str) -> Any:
        try:
            return _found(name)
        except Exception as error:
            # An AttributeError would end here: `from convcore import name` hides what it says.
            if stale := importlib.import_module("convcore._errors.hints").stale_kernels(error):
                raise stale from error
            raise

    def _found(name: str) -> Any:
        if name in _ROOMS:
            return importlib.import_module(f"convcore.{name}")
        if name in _ENGINE:
            value = getattr(
                importlib.import_module(f"convcore.engine.runtime.{_ENGINE[name]}"), name
            )
            globals()[name] = value
            return value
        if name in _HIGHER:
            return getattr(importlib.import_module(f"convcore.{_HIGHER[name]}"), name)
        if not name.startswith("_"):
            names = _load()
            if name in names:
                globals().update(names)
                return names[name]
        raise importlib.import_module("convcore._errors.names").missing_name("convcore", name)


class _Missing:
    """The last finder of modules: one of PyTorch's that is not here is told as a name is.

    It is asked for what no other finder has found.
    """

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:
        if name.startswith("convcore.") and not name.startswith("convcore.engine."):
            importlib.import_module("convcore._errors.names").refuse_module(name)


sys.meta_path.append(_Missing)


def __dir__() -> list[str]:
    return sorted([*_ROOMS, *_ENGINE, *_HIGHER, *_load(), "__version__"])
