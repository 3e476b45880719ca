"""What programs read off PyTorch's compiled core."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from convcore import Generator as Generator
from convcore import Size as Size
from convcore import Tensor
from convcore import device as device
from convcore import dtype as dtype
from convcore import is_grad_enabled as is_grad_enabled
from convcore import is_inference_mode_enabled as is_inference_mode_enabled
from convcore.autograd import is_multithreading_enabled as _is_multithreading_enabled  # noqa: F401
from convcore.compat.inert import stand_in
from convcore.nn.modules._conversion import _parse_to
from convcore.overrides import DisableTorchFunction as DisableTorchFunction
from convcore.overrides import DisableTorchFunctionSubclass as DisableTorchFunctionSubclass

TensorBase = _TensorBase = Tensor
_has_mkldnn = has_openmp = has_lapack = True
_has_cuda = has_mkl = False


def _log_api_usage_once(event: str) -> None:
    """Do nothing: nothing is reported to anybody."""


def _get_tracing_state() -> None:
    """Return None: nothing traces."""


def _is_tracing() -> bool:
    return False


_are_functorch_transforms_active = _is_tracing


def _jit_set_profiling_mode(on: bool) -> bool:
    return False


_jit_set_profiling_executor = _jit_set_texpr_fuser_enabled = _jit_set_profiling_mode


def _initExtension(path: str) -> None:
    """Do nothing: the kernels are loaded already."""


def _disabled_torch_function_impl(
    func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None
) -> Any:
    """Call the function without interception: what a class sets as its `__torch_function__`."""
    with DisableTorchFunctionSubclass():
        return func(*args, **(kwargs or {}))


def _get_privateuse1_backend_name() -> str:
    return "privateuseone"


_FunctionBase = stand_in("torch._C._FunctionBase")
_nullcontext = contextlib.nullcontext


class _nn:
    """What modules read off the compiled core."""

    @staticmethod
    def _parse_to(*args: Any, non_blocking: bool = False, **kwargs: Any) -> tuple:
        """Return device, dtype, non_blocking and memory format from the arguments of ``to``."""
        place, kind, memory_format = _parse_to(*args, **kwargs)
        given = [value for value in args if isinstance(value, bool)]
        if place is None and (tensors := [v for v in args if isinstance(v, Tensor)]):
            place = tensors[0].device
        place = None if place is None else device(place)
        return place, kind, (given or [non_blocking])[0], memory_format
