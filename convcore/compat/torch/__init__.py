"""Names of `torch` itself that only programs written for PyTorch ask for."""

from __future__ import annotations

import importlib
import math
import types
import warnings
from functools import partial
from typing import Any

import numpy as np

from convcore import Tensor, get_default_dtype, int64, tensor
from convcore._errors import pytorch
from convcore.amp import GradScaler as GradScaler
from convcore.amp.autocast_mode import *  # noqa: F403
from convcore.compat.inert import stand_in
from convcore.compat.torch import __config__ as __config__
from convcore.compat.torch._switches import *  # noqa: F403
from convcore.compat.torch.torch_version import TorchVersion
from convcore.functions.drawing.gamma_variates import dirichlet as _sample_dirichlet  # noqa: F401
from convcore.futures import Future as Future
from convcore.nn import functional as F
from convcore.overrides import DisableTorchFunction as DisableTorchFunction
from convcore.overrides import DisableTorchFunctionSubclass as DisableTorchFunctionSubclass

__version__ = TorchVersion(f"{pytorch.VERSION}+convcore")

# Types that programs compare with; no value of theirs can be made.
SymInt, SymFloat, SymBool = (stand_in(f"torch.{n}") for n in ("SymInt", "SymFloat", "SymBool"))
ScriptModule, ScriptFunction, ScriptObject = (
    stand_in(f"torch.{n}") for n in ("ScriptModule", "ScriptFunction", "ScriptObject")
)
PyTorchFileReader = stand_in("torch.PyTorchFileReader")
PyTorchFileWriter = stand_in("torch.PyTorchFileWriter")
complex32 = chalf = stand_in("torch.complex32")
float8_e4m3fn, float8_e5m2, float8_e4m3fnuz, float8_e5m2fnuz, float8_e8m0fnu = (
    stand_in(f"torch.float8_{n}") for n in ("e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz", "e8m0fnu")
)
classes = stand_in("torch.classes")


def _assert(condition: Any, message: str) -> None:
    """Raise AssertionError with a message unless the condition holds."""
    if not condition:
        raise AssertionError(message)


def _assert_async(
    condition: Tensor, message: str = "Expected Tensor with single nonzero value, but got zero"
) -> None:
    """Raise RuntimeError with a message unless a tensor's only element is true."""
    if not condition:
        raise RuntimeError(message)


def _check_with(error: type[Exception], cond: bool, message: Any = None) -> None:
    """Raise an error unless the condition holds, with the message that a function returns."""
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if message is not None and not callable(message):
        raise TypeError("message must be a callable")
    if not cond:
        raise error(str(message()) if message else "Expected cond to be True, but got False")


_check = partial(_check_with, RuntimeError)
_check_index = partial(_check_with, IndexError)
_check_value = partial(_check_with, ValueError)
_check_type = partial(_check_with, TypeError)
_check_not_implemented = partial(_check_with, NotImplementedError)


def _shape_as_tensor(input: Tensor) -> Tensor:
    """Return a tensor's sizes as a tensor."""
    return tensor(tuple(input.shape), dtype=int64)


def range(start: Any = 0, end: Any = None, step: Any = 1, **options: Any) -> Tensor:
    """Return start, start + step, ... up to ``end``, which is included; deprecated in PyTorch."""
    warnings.warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is "
        "inconsistent with Python's range builtin. Instead, use torch.arange, which produces "
        "values in [start, end).",
        stacklevel=2,
    )
    start, end = (0, start) if end is None else (start, end)
    out = options.pop("out", None)
    if options.get("dtype") is None:
        options["dtype"] = get_default_dtype() if out is None else out.dtype
    values = tensor(start + step * np.arange(math.floor((end - start) / step) + 1), **options)
    return values if out is None else out.resize_(values.shape).copy_(values)


def typename(value: Any) -> str:
    """Return the name of a value's type, with its module."""
    kind: Any = value if isinstance(value, type | types.FunctionType) else type(value)
    if kind.__name__ == "Tensor":
        return value.type() if kind is type(value) else "torch.Tensor"
    module = "" if kind.__module__ in ("builtins", "__builtin__", None) else f"{kind.__module__}."
    return f"{module}{kind.__qualname__}"


def sym_int(value: Any) -> int:
    """Return an integer."""
    return int(value)


def sym_float(value: Any) -> float:
    """Return a float."""
    return float(value)


def sym_max(a: Any, b: Any) -> Any:
    """Return the larger of two numbers."""
    return max(a, b)


def sym_min(a: Any, b: Any) -> Any:
    """Return the smaller of two numbers."""
    return min(a, b)


def sym_not(value: bool) -> bool:
    """Return the opposite of a bool."""
    return not value


def _fallback(name: str) -> Any:
    """Return what is found by a rule and stands in no module, such as ``torch.zero_``; or None."""
    if name.startswith("_foreach_"):
        return importlib.import_module(f"{__name__}._foreach").function(name)
    if name.startswith("__"):
        return None
    functions = importlib.import_module(f"{__name__}._functions")
    if name in functions.ALIKE:
        return getattr(F, name)
    return getattr(functions, name) if name in functions.__all__ else functions.of_a_method(name)
