"""Complex tensors from parts or polar coordinates, their parts, and views as pairs of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore._tensor import Tensor, scalar_name, wrap
from convcore._tensor.meta import check_together, empty_beside
from convcore.autograd.node import record
from convcore.autograd.views import view
from convcore.functions._support.arguments import check_arguments, check_tensor
from convcore.functions.elementwise.arithmetic import mul
from convcore.functions.elementwise.elementwise import cos, sin
from convcore.functions.shapes.broadcast import broadcast_shape, cast, fitted
from convcore.functions.shapes.convert import contiguous, copy_

__all__ = ["complex", "imag", "polar", "real", "view_as_complex", "view_as_real"]


def complex(real: Tensor, imag: Tensor) -> Tensor:
    """Return the complex tensor of two real ones, which broadcast.

    Raises
    ------
    RuntimeError
        The parts are not both float32 or both float64.
    """
    dtype = _checked_parts("complex", real=real, imag=imag)
    shape = broadcast_shape(real._array.shape, imag._array.shape)
    check_together(real._array, imag._array)
    array = empty_beside(real._array, shape, dtype)
    array.real[...], array.imag[...] = real._array, imag._array
    out = wrap(array)
    parts = lambda needs, grad: (_real(grad), _imag(grad))  # noqa: E731
    record("ComplexBackward0", (real, imag), out, fitted(parts, real, imag))
    return out


def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """Return the complex tensor of sizes and angles in radians, which broadcast.

    Raises
    ------
    RuntimeError
        They are not both float32 or both float64.
    """
    _checked_parts("polar", abs=abs, angle=angle)
    return complex(mul(abs, cos(angle)), mul(abs, sin(angle)))


def _checked_parts(function: str, **parts: Tensor) -> np.dtype:
    """Return the complex dtype of two parts."""
    check_arguments(function, **parts)
    first, second = (part.dtype for part in parts.values())
    if first._name not in ("float32", "float64") or not second.is_floating_point:
        raise RuntimeError(
            "Expected both inputs to be Half, Float or Double tensors but got "
            f"{scalar_name(first.numpy)} and {scalar_name(second.numpy)}"
        )
    if first is not second:
        raise RuntimeError(
            f"Expected object of scalar type {scalar_name(first.numpy)} but got scalar type "
            f"{scalar_name(second.numpy)} for second argument"
        )
    return first.to_complex().numpy


def real(input: Tensor) -> Tensor:
    """Return a view of the real parts; a real tensor itself."""
    check_tensor("real", input)
    if input._array.dtype.kind != "c":
        return input
    array = input._array
    dtype = array.dtype
    return view(input, array.real, "RealBackward0", lambda needs, grad: cast(grad, dtype))


def imag(input: Tensor) -> Tensor:
    """Return a view of the imaginary parts.

    Raises
    ------
    RuntimeError
        The tensor is not complex.
    """
    check_tensor("imag", input)
    dtype = input._array.dtype
    if dtype.kind != "c":
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    imaginary = input._array.imag
    return view(input, imaginary, "ImagBackward0", lambda needs, grad: mul(cast(grad, dtype), 1j))


def view_as_real(input: Tensor) -> Tensor:
    """Return a view of a complex tensor whose last, new axis holds real and imaginary part."""
    check_tensor("view_as_real", input)
    dtype = input._array.dtype
    if dtype.kind != "c":
        raise RuntimeError("view_as_real is only supported for complex tensors")
    parts = input._array[..., None].view(np.empty(0, dtype).real.dtype)
    return view(input, parts, "ViewAsRealBackward0", lambda needs, grad: _to_complex(grad))


def _to_complex(x: Tensor) -> Tensor:
    return view_as_complex(contiguous(x))


def view_as_complex(input: Tensor) -> Tensor:
    """Return a view of a real tensor, whose last axis of two becomes one complex number.

    Raises
    ------
    RuntimeError
        The last axis is not of size 2, or its elements do not lie side by side.
    """
    check_tensor("view_as_complex", input)
    array = input._array
    if array.dtype.kind != "f":
        raise RuntimeError("view_as_complex is only supported for floating point tensors")
    if array.ndim == 0 or array.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    steps = input.stride() if array.size else (1,)
    if steps[-1] != 1:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if any(step % 2 for step in steps[:-1]):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    whole = array.view(np.result_type(array.dtype, np.complex64))[..., 0]
    return view(input, whole, "ViewAsComplexBackward0", lambda needs, grad: view_as_real(grad))


_real, _imag = real, imag


def _set_real(self: Tensor, value: Any) -> None:
    copy_(real(self), value)


def _set_imag(self: Tensor, value: Any) -> None:
    copy_(imag(self), value)


FUNCTIONS_ONLY = {"complex", "polar", "view_as_complex", "view_as_real"}
METHODS = {"imag": property(imag, _set_imag), "real": property(real, _set_real)}
