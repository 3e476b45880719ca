"""Matrices that a decomposition can take: PyTorch's errors, and the error of a singular matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from convcore._tensor import Tensor, scalar_name
from convcore.engine.runtime.checks import plain
from convcore.functions._support.arguments import check_arguments
from convcore.functions._support.errstate import ignore_errstate


class LinAlgError(RuntimeError):
    """A matrix is singular, not positive-definite, or an iteration does not converge."""


def check_matrix(function: str, x: Any, name: str = "A", kernel: str = "") -> None:
    """Raise unless ``x`` is a batch of matrices of float32, float64 or a complex dtype.

    Parameters
    ----------
    function : PyTorch's name, such as 'linalg.inv'
    x : Tensor
    name : str
        The argument's.
    kernel : PyTorch's routine, named where a float16 tensor is refused
    """
    check_arguments(function.replace(".", "_"), **{name: x})
    if x._array.ndim < 2:
        raise RuntimeError(f"{function}: The input tensor {name} must have at least 2 dimensions.")
    check_floats(function, x, kernel)


def check_floats(function: str, x: Tensor, kernel: str = "") -> None:
    """Raise unless the elements are of float32, float64 or a complex dtype."""
    dtype = plain(x._array).dtype
    kind = scalar_name(dtype)
    if dtype.kind not in "fc":
        raise RuntimeError(
            f"{function}: Expected a floating point or complex tensor as input. Got {kind}"
        )
    if dtype.char not in "fdFD":
        if kernel:
            raise NotImplementedError(f"\"{kernel}\" not implemented for '{kind}'")
        raise RuntimeError(f"{function}: Low precision dtypes not supported. Got {kind}")


def check_square(function: str, x: Any, name: str = "A", kernel: str = "") -> None:
    """Raise unless ``x`` is a batch of square matrices; see `check_matrix`."""
    check_arguments(function.replace(".", "_"), **{name: x})
    shape = x._array.shape
    if len(shape) >= 2 and shape[-2] != shape[-1]:
        raise RuntimeError(
            f"{function}: {name} must be batches of square matrices, but they are {shape[-2]} by "
            f"{shape[-1]} matrices"
        )
    check_matrix(function, x, name, kernel)


def check_same_dtype(function: str, a: Tensor, b: Tensor) -> None:
    """Raise unless two matrices have one dtype."""
    kinds = [scalar_name(one._array.dtype) for one in (a, b)]
    if kinds[0] != kinds[1]:
        raise RuntimeError(
            f"{function}: Expected A and B to have the same dtype, but found A of type {kinds[0]} "
            f"and B of type {kinds[1]} instead"
        )


def check_equation(function: str, A: Tensor, B: Tensor, left: bool) -> None:
    """Raise unless B has as many rows as A, or columns if not ``left``: A X = B, or X A = B."""
    n, sizes = A._array.shape[-1], B._array.shape[-2:]
    if n != sizes[0 if left else 1]:
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"{function}: Incompatible shapes of A and B for the equation {equation} ({n}x{n} and "
            f"{sizes[0]}x{sizes[1]})"
        )


def lapack(function: str, routine: Callable, *args: Any, **kwargs: Any) -> Any:
    """Return a decomposition by NumPy, which takes batches.

    Raises
    ------
    LinAlgError
        The iteration did not converge.
    """
    try:
        if routine is np.linalg.svd and not np.isfinite(args[0]).all():
            raise np.linalg.LinAlgError  # with infinities LAPACK may iterate forever
        return ignore_errstate(routine, *args, **kwargs)
    except np.linalg.LinAlgError:
        raise LinAlgError(
            f"{function}: The algorithm failed to converge because the input matrix contained "
            "non-finite values."
        ) from None


def each(info: Callable, matrices: np.ndarray) -> np.ndarray:
    """Return a number of each matrix of a batch, as int32."""
    flat = matrices.reshape(-1, *matrices.shape[-2:])
    found = [info(matrix) for matrix in flat]
    return np.asarray(found, np.int32).reshape(matrices.shape[:-2])


def raise_first(
    function: str, info: np.ndarray, says: Callable[[int], str], kind: type = LinAlgError
) -> None:
    """Raise an error for the first matrix of a batch whose ``info`` is not 0."""
    for index, one in enumerate(info.reshape(-1).tolist()):
        if one:
            which = f"(Batch element {index}): " if info.ndim else ""
            raise kind(f"{function}: {which}{says(one)}")
