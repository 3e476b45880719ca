"""Real and imaginary parts of complex tensors, and views between complex numbers and pairs."""

from __future__ import annotations

import numpy as np

from convcore._tensor import Tensor
from convcore.autograd.views import view
from convcore.functions._support.arguments import check_tensor
from convcore.functions.arithmetic import mul
from convcore.functions.broadcast import cast
from convcore.functions.convert import contiguous

__all__ = ["imag", "real", "view_as_complex", "view_as_real"]


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
    steps = [stride // array.itemsize for stride in array.strides]
    if steps[-1] != 1:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if any(step % 2 for step in steps[:-1]):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    whole = array.view(np.result_type(array.dtype, np.complex64))[..., 0]
    return view(input, whole, "ViewAsComplexBackward0", lambda needs, grad: view_as_real(grad))


FUNCTIONS_ONLY = {"view_as_complex", "view_as_real"}
METHODS = {
    "imag": property(imag),
    "real": property(real),
}
