"""``out=`` of the functions that make tensors: a tensor that is resized, filled and returned."""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore._tensor import Tensor, dtypes, recording, scalar_name
from convcore._tensor.meta import MetaArray


def out_dtype(function: str, out: Any, dtype: Any) -> np.dtype:
    """Return the NumPy dtype of ``out``, after the checks of it.

    Raises
    ------
    TypeError
        It is no Tensor.
    RuntimeError
        It has another dtype than ``dtype``, or requires a gradient.
    """
    if not isinstance(out, Tensor):
        kind = type(out).__name__
        raise TypeError(f"{function}(): argument 'out' must be Tensor, not {kind}")
    found = out._array.dtype
    if dtype is not None and dtypes.as_numpy(dtype) != found:
        given = scalar_name(dtypes.as_numpy(dtype))
        raise RuntimeError(
            f"dtype {given} does not match dtype of out parameter ({scalar_name(found)})"
        )
    if out.requires_grad and recording.mode.enabled:
        raise RuntimeError(
            f"{function}(): functions with out=... arguments don't support automatic "
            "differentiation, but one of the arguments requires grad."
        )
    return found


def laid_out(vector: np.ndarray, out: Tensor | None) -> np.ndarray:
    """Return a range in the shape of ``out`` if it has as many elements."""
    if out is None or out._array.size != vector.size:
        return vector
    return vector.reshape(out._array.shape)


def written(out: Tensor, array: np.ndarray) -> Tensor:
    """Write a new array into ``out``; where its shape is another one, it gets that memory.

    Raises
    ------
    RuntimeError
        Several elements of ``out`` are one in memory.
    """
    found = out._array
    if found.shape != array.shape:
        out._array = array
    elif 0 in found.strides and found.size > 1 and not isinstance(found, MetaArray):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a "
            "single memory location. Please clone() the tensor before performing the operation."
        )
    else:
        found[...] = array
    out._counter[0] += 1
    return out
