"""Shapes and dtypes of matrix products: PyTorch's errors."""

from __future__ import annotations

import numpy as np

from convcore._tensor import scalar_name


def check_factors(a: np.ndarray, b: np.ndarray) -> None:
    """Raise unless two matrices have a product."""
    (m, k), (rows, n) = a.shape, b.shape
    if k != rows:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({m}x{k} and {rows}x{n})")


def check_batches(a: np.ndarray, b: np.ndarray) -> None:
    """Raise unless two arrays are as many matrices each, and each pair has a product."""
    for name, array in (("batch1", a), ("batch2", b)):
        if array.ndim != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    expected, got = [a.shape[0], a.shape[2]], list(b.shape[:2])
    if expected != got:
        raise RuntimeError(batch2_text(expected, got))
    check_scalar_types(a, b)


def batch2_text(expected: list[int], got: list[int]) -> str:
    return (
        f"Expected size for first two dimensions of batch2 tensor to be: {expected} but got: {got}."
    )


def check_scalar_types(a: np.ndarray, b: np.ndarray) -> None:
    if a.dtype != b.dtype:
        raise RuntimeError(f"expected scalar type {elements_name(a)} but found {elements_name(b)}")


def check_vector(n: int, a: np.ndarray, v: np.ndarray) -> None:
    """Raise unless a matrix and a vector have a product; n elements are to be added to it."""
    if a.shape[1] != v.size:
        raise RuntimeError(vector_text(n, a, v))
    if a.dtype != v.dtype:
        raise RuntimeError(
            "addmv input tensors must have the same dtype, "
            f"but got {elements_name(v)}, {elements_name(a)}, and {elements_name(v)}"
        )


def vector_text(n: int, a: np.ndarray, v: np.ndarray) -> str:
    return f"size mismatch, got input ({n}), mat ({a.shape[0]}x{a.shape[1]}), vec ({v.size})"


def check_sum_dtypes(bias: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    if bias.dtype is a.dtype is b.dtype:
        return
    for name, left, right in (("mat1", a, b), ("self", bias, b)):
        if left.dtype != right.dtype:
            raise RuntimeError(
                f"{name} and mat2 must have the same dtype, "
                f"but got {elements_name(left)} and {elements_name(right)}"
            )


def elements_name(array: np.ndarray) -> str:
    return scalar_name(array.dtype)
