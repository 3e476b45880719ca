"""Matrix products of float32 arrays in bfloat16, by the convolution that does so: opt-in.

A matrix product is a convolution of one tap: rows are pixels, and columns channels.  It is taken
where ``fp32_precision`` of products of matrices is "bf16" (`convcore.backends.mkldnn.matmul`), and
where engine/conv/bfloat16/plan.py is faster than BLAS.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore.engine.conv.call import run
from convcore.engine.conv.problem import FORWARD, WEIGHT_GRAD
from convcore.engine.conv.selection import current, selected
from convcore.engine.runtime import _isa
from convcore.engine.runtime.checks import Array

# Below so many multiply-adds, or in so narrow matrices, BLAS is as fast: few rows by a large matrix
# wait for memory, and rounding it takes longer than they do.  To try others, where the
# processor's instruction is taken: benchmarks/sweep.py --precision bf16 --threads 1 --constant
# engine.matmul_bfloat16.LEAST_WORK --values 131072,8388608, or .NARROWEST --values 16,64.
LEAST_WORK = 1 << 20
NARROWEST = 32
_STEPS = (1, 0, 1, 1)


def allowed() -> bool:
    """Return whether products of float32 matrices may be computed in bfloat16 here."""
    return current().matmul == "bf16"


def matmul_bfloat16(a: Array, b: Array) -> Array | None:
    """Return the product (m, n) of float32 matrices (m, k) and (k, n) with rounded factors.

    None where it is not worth while: small or narrow matrices, both stored by columns, a processor
    without the instruction.
    """
    (m, k), n = a.shape, b.shape[1]
    if _isa.bfloat16_is_emulated() or min(m, n, k) < NARROWEST or m * n * k < LEAST_WORK:
        return None
    if a.strides[1] == a.itemsize:
        product = _run(FORWARD, _pixels(a), b.T[:, :, np.newaxis, np.newaxis], _STEPS)
        return product[0, :, :, 0].T
    if a.strides[0] == a.itemsize and b.strides[1] == b.itemsize:
        # Sums over pixels: the gradient of the weights.
        product = _run(WEIGHT_GRAD, _pixels(b), _pixels(a.T), (*_STEPS, (1, 1)))
        return product[:, :, 0, 0]
    return None


def _pixels(rows: Array) -> Array:
    """Return rows of a matrix, which lie side by side, as the pixels of a channels_last image."""
    count, channels = rows.shape
    return rows.reshape(1, count, 1, channels).transpose(0, 3, 1, 2)


def _run(pass_name: str, left: Array, right: Array, parameters: tuple[Any, ...]) -> Array:
    with selected(algorithm="bfloat16"):
        return run(pass_name, left, right, parameters)
