"""Matrix products of arrays of any dtype: floats by the engine's gemm, integers exactly."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np

from convcore.engine import matmul
from convcore.engine.conv.selection import selected
from convcore.engine.runtime.casts import astype
from convcore.engine.runtime.checks import plain
from convcore.functions._support.errstate import ignore_errstate

_SINGLE = np.dtype(np.float32)


def product(a: np.ndarray, b: np.ndarray, kernel: str) -> np.ndarray:
    """Return the matrix product of two arrays of one dtype, in that dtype.

    float16 and bfloat16 are multiplied in float32 and rounded once, integers wrap around as
    PyTorch's do.

    Raises
    ------
    NotImplementedError
        bool arrays; the message names ``kernel``, PyTorch's routine.
    """
    dtype = a.dtype
    if dtype.char in "fdFD":
        return matmul(a, b)
    if dtype.kind in "fV":
        # Factors that are bfloat16 are not rounded again where products are in bfloat16.
        with selected(matmul="bf16") if dtype.kind == "V" else nullcontext():
            wide = matmul(astype(a, _SINGLE), astype(b, _SINGLE))
        return ignore_errstate(astype, wide, dtype)
    if dtype.kind == "b":
        raise NotImplementedError(f"\"{kernel}\" not implemented for 'Bool'")
    return _integer_product(plain(a), plain(b))


# Products of single elements that are made before they are added up: 512 KiB of int64.
_BLOCK = 1 << 16


def _integer_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the product of integer matrices or vectors, a block of the summed axis at a time."""
    left = a[np.newaxis, :] if a.ndim == 1 else a
    right = b[:, np.newaxis] if b.ndim == 1 else b
    lead = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    out = np.zeros((*lead, left.shape[-2], right.shape[-1]), a.dtype)
    step = max(1, _BLOCK // max(1, out.size))
    for k in range(0, left.shape[-1], step):
        rows, columns = left[..., k : k + step], right[..., k : k + step, :]
        out += (rows[..., np.newaxis] * columns[..., np.newaxis, :, :]).sum(-2, dtype=a.dtype)
    if a.ndim == 1:
        out = out[..., 0, :]
    return out[..., 0] if b.ndim == 1 else out
