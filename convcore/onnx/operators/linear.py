"""Products of matrices, sums over named axes, determinants."""

from __future__ import annotations

import convcore
from convcore.onnx.operators.registry import operator
from convcore.onnx.values import Value


def product(a: Value, b: Value) -> Value:
    """Return a matrix product; that of integers wraps round as theirs do."""
    return convcore.matmul(a, b)


@operator("MatMul", weights=(0, 1))
def matmul(a: Value, b: Value) -> Value:
    """Return the matrix product, as NumPy's."""
    return product(a, b)


@operator("Gemm", weights=(0, 1, 2))
def gemm(
    a: Value,
    b: Value,
    c: Value = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    broadcast: int = 1,
) -> Value:
    """Return alpha * A @ B + beta * C; a C of NaN or infinity does not count where beta is 0."""
    y = product(a.t() if transA else a, b.t() if transB else b)
    y = y if alpha == 1 else (alpha * y).to(a.dtype)
    if c is None or beta == 0:
        return y
    return y + (c if beta == 1 else (beta * c).to(a.dtype))


@operator("Einsum", weights=(0, 1))
def einsum(*values: Value, equation: str) -> Value:
    """Return the sum of products over named axes."""
    return convcore.einsum(equation.replace(" ", ""), *values)


@operator("Det")
def det(x: Value) -> Value:
    """Return the determinants of square matrices."""
    return convcore.det(x)
